// A whole endpoint with a peer whose packets are changed on the way as the input says: a real exchange of every kind of
// operation, in which headers are altered and signed again, packets dropped, copied, cut, swapped and played again. No
// input may crash either side, make it write outside of its memory, or complete an operation twice. With a cluster key
// none may change what is received either.
//
// The input is a byte of settings, with its highest bit a second one, and a list of steps of four bytes: what to do, to
// which packet from now on, where, and with what value.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/guarded_buffer.h"
#include "tests/support/scripted_world.h"
#include "transport/wire/checksum.h"
#include "transport/wire/packet.h"

namespace {

using namespace paceline;           // NOLINT: one small program
using namespace paceline::support;  // NOLINT

void Require(bool holds) {
  if (!holds) std::abort();
}

void Sign(NetworkPacket& packet) {
  if (packet.bytes.size() < packet.header_bytes || packet.header_bytes < wire::kCommonBytes) return;
  std::memset(packet.bytes.data() + 8, 0, 4);
  const uint32_t crc = wire::Crc32c(std::span(packet.bytes).first(packet.header_bytes));
  std::memcpy(packet.bytes.data() + 8, &crc, 4);
}

class Mutator {
 public:
  Mutator(const uint8_t* data, size_t size, ScriptedNetwork* network) : data_(data), size_(size), network_(network) {}

  void operator()(NetworkPacket& packet, Fate& fate) {
    if (wait_ == 0) {
      if (at_ + 4 > size_) return;  // nothing more to change: the rest of the exchange is honest
      wait_ = 1 + data_[at_ + 1] % 16;
    }
    if (--wait_ > 0) return;
    const uint8_t what = data_[at_], where = data_[at_ + 2], value = data_[at_ + 3];
    at_ += 4;
    if (packet.kind != SegmentKind::kPacket) {  // cards let nothing else happen to a write
      fate.drop = what % 8 == 0;
      return;
    }
    switch (what % 8) {
      case 0:
        fate.drop = true;
        break;
      case 1:
        fate.copies = 1 + value % 4;
        break;
      case 2:
        fate.extra_delay = Duration::Micros(value * 16);
        fate.overtake = true;
        break;
      case 3:  // a byte of the header, signed again
      case 4:
        if (packet.header_bytes == 0) break;
        // Or of the payload, and then nobody checks it.
        if ((what & 0x80) != 0 && packet.bytes.size() > packet.header_bytes) {
          packet.bytes[packet.header_bytes + where % (packet.bytes.size() - packet.header_bytes)] = value;
          packet.bytes[1] |= wire::kNoPayloadCrc;
        } else {
          packet.bytes[where % packet.header_bytes] = value;
        }
        Sign(packet);
        break;
      case 5:
        if (!packet.bytes.empty()) packet.bytes.resize(1 + where * packet.bytes.size() / 256);
        packet.header_bytes = std::min<uint32_t>(packet.header_bytes, static_cast<uint32_t>(packet.bytes.size()));
        break;
      case 6:
        packet.Trim();
        break;
      case 7:  // an earlier packet once more, to either side
        if (!kept_.empty()) network_->Inject(kept_[value % kept_.size()]);
        break;
    }
    if (kept_.size() < 64) kept_.push_back(packet);
  }

 private:
  const uint8_t* data_;
  size_t size_;
  ScriptedNetwork* network_;
  size_t at_ = 0;
  unsigned wait_ = 0;
  std::vector<NetworkPacket> kept_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > 4096) return 0;
  const size_t settings = (data[0] & 128) != 0 ? 2 : 1;
  if (size < settings) return 0;
  const uint8_t more = settings > 1 ? data[1] : 0;
  const bool bursts = (more & 1) != 0, closes_both = (more & 8) != 0, revokes = (more & 16) != 0;
  WorldOptions options;
  if (bursts) {  // packets leave and arrive as runs
    options.packet_capabilities.burst_segments = options.hca_capabilities.burst_segments = 16;
    options.packet_capabilities.least_guessed_bytes = 1;
  }
  if ((more & 2) != 0) options.lanes = LaneKind::kHca;
  if ((more & 4) != 0) options.endpoint.eager_bytes = 0;  // all sends ask first
  if ((more & 32) != 0) {                                 // many segments
    options.packet_capabilities.max_packet_bytes = options.hca_capabilities.max_packet_bytes = 600;
    options.hca_capabilities.max_write_bytes = 500;
  }
  options.ports = 1 + (data[0] & 1);
  options.control = (data[0] & 2) != 0 ? TestControl::kCredit : TestControl::kWindow;
  options.packet_capabilities.path_may_be_narrower = (data[0] & 64) == 0;
  options.endpoint.unexpected_bytes = (data[0] & 4) != 0 ? 16'384 : 1 << 20;
  options.endpoint.connect_timeout = Duration::Millis(400);
  options.endpoint.peer_timeout = Duration::Millis(400);
  options.endpoint.keepalive = Duration::Millis(100);
  const bool keyed = (data[0] & 16) != 0;
  if (keyed) {
    options.endpoint.cluster_key.emplace().fill(1);
    options.endpoint.encrypt = (data[0] & 32) != 0;
    options.endpoint.packets_per_key = 64;
    options.customize = [](uint32_t host, EndpointOptions& endpoint) {
      endpoint.key_seed.fill(static_cast<uint8_t>(host));
    };
  }
  ScriptedWorld world(options);
  std::map<uint64_t, int> completions;
  std::map<uint64_t, OperationStatus> outcomes;
  for (uint32_t i = 0; i < 2; ++i) {
    world.host(i).on_completion = [&completions, &outcomes, i](const Completion& completion) {
      if (completion.user_data == 0) return;
      Require(++completions[completion.user_data * 2 + i] == 1);
      outcomes[completion.user_data * 2 + i] = completion.status;
    };
  }
  const bool change_handshake = (data[0] & 8) != 0;
  auto mutator = std::make_shared<Mutator>(data + settings, size - settings, &world.network());
  const auto hook = [mutator](NetworkPacket& packet, Fate& fate) { (*mutator)(packet, fate); };
  if (change_handshake) world.network().SetHook(hook);
  const auto [a, b] = change_handshake || keyed ? world.Connect(0, 1) : world.Establish(0, 1);
  world.network().SetHook(hook);
  if (a == kNoConnection) return 0;
  const std::array<ConnectionId, 2> connections = {a, b};

  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  const auto buffer = [&buffers](size_t bytes) -> GuardedBuffer& {
    buffers.push_back(std::make_unique<GuardedBuffer>(bytes));
    return *buffers.back();
  };
  GuardedBuffer& memory = buffer(40'000);
  Endpoint& left = world.endpoint(0);
  Endpoint& right = world.endpoint(1);
  const RegionId region =
      right.RegisterMemory(memory.data(), memory.size(), kRemoteRead | kRemoteWrite | kRemoteAtomic);
  const RemoteMemory remote = right.ExportMemory(region);
  GuardedBuffer& asked = buffer(20'000);
  const RemoteMemory for_right =
      left.ExportMemory(left.RegisterMemory(asked.data(), asked.size(), kRemoteRead | kRemoteAtomic));
  uint64_t number = 1;
  const Time now = world.now();
  // What is sent with a tag holds the pattern of that number, and so does what was received with it.
  struct Expected {
    uint64_t outcome;
    const GuardedBuffer* buffer;
    uint64_t tag;
  };
  std::vector<Expected> expected;
  const auto receive = [&](uint32_t host, size_t bytes, uint64_t tag, Time at) {
    GuardedBuffer& to = buffer(bytes);
    expected.push_back({number * 2 + host, &to, tag});
    world.endpoint(host).PostReceive(connections[host], {.buffer = to.local(), .tag = tag, .user_data = number++}, at);
  };
  const auto send = [&](uint32_t host, size_t bytes, uint64_t tag) {
    GuardedBuffer& from = buffer(bytes);
    FillPattern(from.data(), bytes, tag);
    world.endpoint(host).PostSend(connections[host], {.buffer = from.local(), .tag = tag, .user_data = number++}, now);
  };
  receive(1, 30'000, 1, now);
  receive(1, 100, 2, now);
  send(0, 30'000, 1);
  send(0, 5000, 2);
  send(0, 9000, 3);
  for (uint64_t tag = 5; tag <= 10; ++tag) {  // in one packet
    if (tag % 2 == 0) receive(1, 40 + tag, tag, now);
    send(0, 40 + tag, tag);
  }
  left.PostWrite(a,
                 {.buffer = buffer(20'000).local(),
                  .remote = remote,
                  .immediate = 7,
                  .has_immediate = true,
                  .user_data = number++},
                 now);
  left.PostRead(a, {.buffer = buffer(20'000).local(), .remote = remote, .remote_offset = 20'000, .user_data = number++},
                now);
  left.PostAtomic(a, {.remote = remote, .remote_offset = 8, .operand = 1, .user_data = number++}, now);
  const uint64_t operands[2] = {1, 2};
  left.PostVectorAtomic(a,
                        {.elements = 2,
                         .operands = operands,
                         .results = buffer(16).data(),
                         .remote = remote,
                         .remote_offset = 16,
                         .user_data = number++},
                        now);
  left.PostFlush(a, {.user_data = number++}, now);
  send(1, 20'000, 4);
  const auto ask = [&] {
    right.PostRead(connections[1], {.buffer = buffer(20'000).local(), .remote = for_right, .user_data = number++},
                   world.now());
    right.PostAtomic(connections[1], {.remote = for_right, .operand = 1, .user_data = number++}, world.now());
  };
  if (more != 0) ask();
  if (revokes) {
    world.RunFor(Duration::Micros(30));
    right.DeregisterMemory(region, world.now());
    memory.Poison();
  }
  world.RunFor(Duration::Millis(5));
  receive(1, 9000, 3, world.now());
  for (uint64_t tag = 5; tag <= 10; tag += 2) receive(1, 40 + tag, tag, world.now());
  receive(0, 20'000, 4, world.now());
  world.RunFor(Duration::Millis(300));
  if (closes_both) {
    ask();
    left.PostRead(a, {.buffer = buffer(100).local(), .remote = remote, .user_data = number++}, world.now());
    right.Close(b, world.now());
  }
  left.Close(a, world.now());
  world.RunFor(Duration::Millis(300));
  for (const auto& one : buffers) Require(one->GuardsIntact());
  if (revokes) Require(memory.Untouched());
  for (const Expected& one : expected) {
    const auto outcome = outcomes.find(one.outcome);
    if (!keyed || outcome == outcomes.end()) continue;
    if (outcome->second != OperationStatus::kOk && outcome->second != OperationStatus::kTruncated) continue;
    Require(FindDifference(one.buffer->data(), one.buffer->size(), one.tag) == one.buffer->size());
  }
  return 0;
}
