// A whole endpoint with a peer whose packets are changed on the way as the input says: a real exchange of every kind of
// operation, in which headers are altered and signed again, packets dropped, copied, cut, swapped and played again. No
// input may crash either side, make it write outside of its memory, or complete an operation twice.
//
// The input is a list of steps of four bytes: what to do, to which packet from now on, where, and with what value.
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
        packet.bytes[where % packet.header_bytes] = value;
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
  WorldOptions options;
  options.ports = 1 + (data[0] & 1);
  options.control = (data[0] & 2) != 0 ? TestControl::kCredit : TestControl::kWindow;
  options.endpoint.unexpected_bytes = (data[0] & 4) != 0 ? 16'384 : 1 << 20;
  options.endpoint.connect_timeout = Duration::Millis(400);
  options.endpoint.peer_timeout = Duration::Millis(400);
  options.endpoint.keepalive = Duration::Millis(100);
  ScriptedWorld world(options);
  std::map<uint64_t, int> completions;
  for (uint32_t i = 0; i < 2; ++i) {
    world.host(i).on_completion = [&completions, i](const Completion& completion) {
      if (completion.user_data != 0) Require(++completions[completion.user_data * 2 + i] == 1);
    };
  }
  const bool change_handshake = (data[0] & 8) != 0;
  auto mutator = std::make_shared<Mutator>(data + 1, size - 1, &world.network());
  const auto hook = [mutator](NetworkPacket& packet, Fate& fate) { (*mutator)(packet, fate); };
  if (change_handshake) world.network().SetHook(hook);
  const auto [a, b] = change_handshake ? world.Connect(0, 1) : world.Establish(0, 1);
  world.network().SetHook(hook);
  if (a == kNoConnection) return 0;

  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  const auto buffer = [&buffers](size_t bytes) -> GuardedBuffer& {
    buffers.push_back(std::make_unique<GuardedBuffer>(bytes));
    return *buffers.back();
  };
  GuardedBuffer& memory = buffer(40'000);
  Endpoint& left = world.endpoint(0);
  Endpoint& right = world.endpoint(1);
  const RemoteMemory remote = right.ExportMemory(
      right.RegisterMemory(memory.data(), memory.size(), kRemoteRead | kRemoteWrite | kRemoteAtomic));
  uint64_t number = 1;
  const Time now = world.now();
  right.PostReceive(b, {.buffer = buffer(30'000).local(), .tag = 1, .user_data = number++}, now);
  right.PostReceive(b, {.buffer = buffer(100).local(), .tag = 2, .user_data = number++}, now);
  left.PostSend(a, {.buffer = buffer(30'000).local(), .tag = 1, .user_data = number++}, now);
  left.PostSend(a, {.buffer = buffer(5000).local(), .tag = 2, .user_data = number++}, now);
  left.PostSend(a, {.buffer = buffer(9000).local(), .tag = 3, .user_data = number++}, now);
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
  left.PostFlush(a, {.user_data = number++}, now);
  right.PostSend(b, {.buffer = buffer(20'000).local(), .tag = 4, .user_data = number++}, now);
  world.RunFor(Duration::Millis(5));
  right.PostReceive(b, {.buffer = buffer(9000).local(), .tag = 3, .user_data = number++}, world.now());
  left.PostReceive(a, {.buffer = buffer(20'000).local(), .tag = 4, .user_data = number++}, world.now());
  world.RunFor(Duration::Millis(300));
  left.Close(a, world.now());
  world.RunFor(Duration::Millis(300));
  for (const auto& one : buffers) Require(one->GuardsIntact());
  return 0;
}
