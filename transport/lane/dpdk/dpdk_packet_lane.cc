#include "transport/lane/dpdk/dpdk_packet_lane.h"

#include <rte_ethdev.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_eal.h"
#include "transport/lane/dpdk/dpdk_memif.h"
#include "transport/lane/dpdk/dpdk_memory.h"
#include "transport/lane/dpdk/dpdk_peers.h"
#include "transport/lane/dpdk/dpdk_receiver.h"
#include "transport/lane/dpdk/dpdk_sender.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/udp/udp_mtu.h"

namespace paceline {
namespace {

constexpr uint32_t kEntropies = 64;
constexpr uint32_t kBurstSegments = 32;
constexpr size_t kRoom = 256;  // segments; Send itself takes whatever it is given until the queue is full
// A segment is stamped before its burst waits for the processor, on both sides: a scheduler's tick.
constexpr Duration kDelayError = Duration::Millis(1);
// Packets wait behind those of one queue that are due before them, so not for longer than a network's round trip.
constexpr Duration kSendAhead = Duration::Micros(10);
constexpr Duration kLookInterval = Duration::Millis(5);  // at link and counters of the port
constexpr Duration kCareInterval = Duration::Micros(200);
// Of a memif client: between attempts to find a server, and to one that has answered but not brought up the link. The
// driver's own thread is at work then, and does not bear to be interrupted.
constexpr Duration kConnectInterval = Duration::Millis(200);
constexpr Duration kRestartInterval = Duration::Seconds(1);
constexpr int kNeighbourFramesPerPoll = 16;

class DpdkLane final : public Lane {
 public:
  DpdkLane(std::unique_ptr<DpdkPort> port, FileDescriptor lock, const DpdkDevice& device,
           const DpdkLaneOptions& options)
      : lock_(std::move(lock)),
        memory_(port->traits().mapping),
        port_(std::move(port)),
        own_(MakeFlow(*port_, device, options)),
        address_(ToLaneAddress(own_.version, own_.source, own_.source_port)),
        capabilities_(MakeCapabilities(*port_, own_, options)),
        neighbours_({own_.source_mac, own_.version, own_.source, device.prefix_bits, device.gateway}),
        peers_(own_, &neighbours_),
        sender_(port_.get(), &memory_, &neighbours_, own_.version, capabilities_.max_packet_bytes),
        receiver_(port_.get(), &neighbours_, own_) {
    name_ = absl::StrCat("dpdk:", port_->name(), " ", FormatLaneAddress(address_));
    if (const std::string& shortfall = port_->traits().queue_shortfall; !shortfall.empty()) {
      std::fprintf(stderr, "paceline: %s: %u queues to receive and %u to send, not %u: %s.\n", name_.c_str(),
                   port_->traits().receive_queues, port_->traits().send_queues, device.queues, shortfall.c_str());
    }
    status_.up = port_->LinkUp();
  }
  // Memory goes while the card is still ours: with the last card DPDK gives up the table of what is mapped.
  ~DpdkLane() override {
    port_->Stop();
    memory_.UnmapAll();
  }

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return status_; }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override { return peers_.Open(address); }
  void ClosePeer(uint32_t peer) override { peers_.Close(peer); }
  size_t room() const override { return kRoom; }
  size_t RoomTo(uint32_t peer) override;
  size_t Send(std::span<const TxSegment> segments) override;
  size_t Receive(std::span<RxSegment> out, Time now) override;
  bool LendMemory(const LaneMemory& memory) override;
  void ReturnMemory(const LaneMemory& memory) override { memory_.Return(memory); }
  bool ReadsFromDevice(const uint8_t* payload, size_t bytes) const override {
    return sender_.ReadsFromDevice(payload, bytes);
  }
  std::string memory_problem() const override { return absl::StrCat(name_, ": ", memory_problem_); }

 private:
  static FrameFlow MakeFlow(const DpdkPort& port, const DpdkDevice& device, const DpdkLaneOptions& options);
  static LaneCapabilities MakeCapabilities(const DpdkPort& port, const FrameFlow& own, const DpdkLaneOptions& options);

  void TalkToNeighbours(Time now);
  void LookAtPort(Time now);
  // Memory that was given back goes once the driver has let go of it, and what waited for that comes.
  void ChangeMemory();

  FileDescriptor lock_;
  DpdkMemory memory_;
  std::unique_ptr<DpdkPort> port_;
  FrameFlow own_;
  LaneAddress address_;
  LaneCapabilities capabilities_;
  Neighbours neighbours_;
  DpdkPeers peers_;
  DpdkSender sender_;
  DpdkReceiver receiver_;
  std::string name_;
  LaneStatus status_;
  LaneCounters counters_;
  uint32_t neighbour_changes_ = 0;
  Time next_look_;
  Time next_restart_;
  bool conflict_is_said_ = false, shortage_is_said_ = false;
  std::string memory_problem_ = "it copies payload into its buffers";
  uint64_t missed_ = 0;  // packets, as the port counts those that found no buffer
};

FrameFlow DpdkLane::MakeFlow(const DpdkPort& port, const DpdkDevice& device, const DpdkLaneOptions& options) {
  FrameFlow flow;
  flow.source_mac = port.traits().mac;
  flow.version = device.version;
  flow.source = device.address;
  flow.source_port = device.udp_port;
  flow.traffic_class = static_cast<uint8_t>(options.traffic_class & ~kEcnMask);
  return flow;
}

LaneCapabilities DpdkLane::MakeCapabilities(const DpdkPort& port, const FrameFlow& own,
                                            const DpdkLaneOptions& options) {
  const DpdkPortTraits& traits = port.traits();
  const auto headers = static_cast<uint32_t>(FrameHeaderBytes(own.version) - kEthernetHeaderBytes);
  LaneCapabilities result;
  result.max_packet_bytes = traits.mtu - headers;
  result.path_may_be_narrower = !traits.this_machine_only;
  if (!traits.this_machine_only) result.overtaking = Overtaking::kShort;
  result.ecn = true;
  result.rx_timestamps = port.packet_times() && port.packet_times()->arrivals();
  if (port.packet_times() && port.packet_times()->departures()) result.send_ahead = kSendAhead;
  result.this_machine_only = traits.this_machine_only;
  result.reads_later = traits.reads_later;
  result.keeps_bytes_intact = traits.this_machine_only;
  result.delay_error = kDelayError;
  result.burst_segments = kBurstSegments;
  result.entropies = kEntropies;
  result.entropy_is_udp_port = true;
  result.header_bytes = (traits.this_machine_only ? 0 : kEthernetOverhead) + headers;
  // All packets of one path come by one queue.
  result.receive_buffer_bytes = uint64_t{traits.receive_entries} * result.max_packet_bytes;
  result.link_rate = options.link_rate.is_zero() ? traits.rate : options.link_rate;
  return result;
}

// While a neighbour is being asked for, what can wait does. One that does not answer is sent to: those who sent see it
// as loss.
size_t DpdkLane::RoomTo(uint32_t peer) {
  const DpdkPeers::Peer* to = peers_.Find(peer);
  return to != nullptr && neighbours_.state(to->neighbour) == Neighbours::State::kAsking ? 0 : kRoom;
}

size_t DpdkLane::Send(std::span<const TxSegment> segments) {
  JoinDpdk();
  if (!port_->is_usable()) {
    counters_.tx_drops += segments.size();
    return segments.size();
  }
  return sender_.Send(segments, peers_, status_.up, counters_);
}

size_t DpdkLane::Receive(std::span<RxSegment> out, Time now) {
  JoinDpdk();
  const size_t count = port_->is_usable() ? receiver_.Receive(out, now, counters_) : 0;
  if (neighbours_.next_due() <= now || neighbours_.change_count() != neighbour_changes_) TalkToNeighbours(now);
  if (next_look_ <= now) LookAtPort(now);
  return count;
}

void DpdkLane::ChangeMemory() {
  if (!memory_.has_changes()) return;
  port_->FreeSent();
  memory_.MakeChanges();
}

bool DpdkLane::LendMemory(const LaneMemory& memory) {
  ChangeMemory();
  const absl::Status status = memory_.Lend(memory);
  if (!status.ok()) memory_problem_ = std::string(status.message());
  if (!status.ok() && status.code() == absl::StatusCode::kResourceExhausted &&
      !std::exchange(shortage_is_said_, true)) {
    std::fprintf(stderr, "paceline: %s: payload in %zu bytes of memory is copied, not read by the card: %s.\n",
                 name_.c_str(), memory.bytes, std::string(status.message()).c_str());
  }
  return status.ok();
}

void DpdkLane::TalkToNeighbours(Time now) {
  for (int i = 0; port_->is_usable() && i < kNeighbourFramesPerPoll; ++i) {
    const auto frame = neighbours_.PollTransmit(now);
    if (!frame) break;
    sender_.SendFrame(frame->view());
  }
  if (std::exchange(neighbour_changes_, neighbours_.change_count()) != neighbours_.change_count()) {
    sender_.ReleaseHeld(port_->is_usable(), counters_);
  }
}

void DpdkLane::LookAtPort(Time now) {
  port_->Attend();
  next_look_ = now + (port_->needs_care() ? kCareInterval : kLookInterval);
  ChangeMemory();
  const bool up = port_->LinkUp();
  if (up != status_.up) {
    status_.up = up;
    ++status_.change_count;
  }
  if (port_->traits().is_memif_client) {
    if (up || next_restart_ == Time() || port_->is_coming_up()) next_restart_ = now + kRestartInterval;
    if (next_restart_ <= now) {
      next_restart_ = now + (port_->Restart() ? kRestartInterval : kConnectInterval);
    }
  }
  if (neighbours_.conflicts() > 0 && !std::exchange(conflict_is_said_, true)) {
    std::fprintf(stderr, "paceline: %s: %s sends under the same address; one of the two needs another.\n",
                 name_.c_str(), FormatMacAddress(neighbours_.last_conflict()).c_str());
  }
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_->id(), &stats) == 0) {
    const uint64_t missed = stats.imissed + stats.rx_nombuf;
    if (missed > missed_) counters_.rx_drops += missed - missed_;
    missed_ = missed;
  }
}

}  // namespace

std::unique_ptr<Lane> MakeDpdkLane(std::unique_ptr<DpdkPort> port, FileDescriptor lock, const DpdkDevice& device,
                                   const DpdkLaneOptions& options) {
  return std::make_unique<DpdkLane>(std::move(port), std::move(lock), device, options);
}

absl::StatusOr<std::vector<std::unique_ptr<Lane>>> OpenDpdkLanes(const DpdkLaneOptions& options) {
  std::vector<DpdkDevice> devices;
  std::vector<FileDescriptor> locks(std::max<size_t>(options.devices.size(), 1));
  std::vector<std::string> texts = options.devices;
  if (texts.empty()) {
    absl::StatusOr<MemifEnd> end = OpenMemifPair(options.mtu);
    if (!end.ok()) return end.status();
    texts.push_back(end->device);
    locks[0] = std::move(end->lock);
  }
  for (const std::string& text : texts) {
    auto device = ParseDpdkDevice(text);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  if (options.devices.empty()) devices.front().is_own_pair = true;
  if (absl::Status status = StartDpdkEal(devices, options.eal_arguments); !status.ok()) return status;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (size_t i = 0; i < devices.size(); ++i) {
    auto port = DpdkPort::Open(devices[i], options.mtu);
    if (!port.ok()) return port.status();
    lanes.push_back(MakeDpdkLane(*std::move(port), std::move(locks[i]), devices[i], options));
  }
  return lanes;
}

}  // namespace paceline
