#include "transport/lane/shm/shm_lane.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/shm/shm_peers.h"
#include "transport/lane/shm/shm_sources.h"

namespace paceline {
namespace {

// What an event of the epoll set is about; a peer's or source's number is added.
constexpr uint64_t kListenerMark = 0;
constexpr uint64_t kPeerMark = uint64_t{1} << 32;
constexpr uint64_t kSourceMark = uint64_t{2} << 32;
constexpr uint64_t kNumberMask = kPeerMark - 1;

constexpr uint32_t kLeastPacket = 2048;
constexpr uint32_t kMostPacket = 1 << 20;
constexpr uint32_t kPacketsPerRing = 4;
constexpr size_t kRoom = 64;  // segments; each peer has its own besides
constexpr uint32_t kBurst = 4;
constexpr uint64_t kEnough =
    16;  // packets for which there is room without another look at what the reader has released
// Which Receive calls also look at the sockets, by a system call that may take as long as a message. Only connections
// that begin and end are told there; who sleeps is woken by them all the same. So do they after this time: of a program
// that yields its processor between polls, to many, so many polls may take seconds.
constexpr uint32_t kIdlePollsPerLook = 512;
constexpr uint32_t kBusyPollsPerLook = 1024;
constexpr Duration kLookInterval = Duration::Millis(1);
constexpr Rate kLinkRate = Rate::Gbps(400);
// A segment waits for both processes to get the processor: a scheduler's tick.
constexpr Duration kDelayError = Duration::Millis(1);

class ShmLane final : public Lane {
 public:
  ShmLane(const ShmLaneOptions& options, const ShmToken& token, FileDescriptor listener, FileDescriptor epoll)
      : epoll_(std::move(epoll)),
        address_(ToLaneAddress(token)),
        name_(absl::StrCat("shm:", SocketName(token))),
        most_bytes_(ShmPacketBytes(ShmSources::kMaxHeaderBytes, options.max_packet_bytes)),
        peers_(address_, options.ring_bytes, epoll_.get(), kPeerMark),
        sources_(std::move(listener), epoll_.get(), kSourceMark) {
    capabilities_.max_packet_bytes = options.max_packet_bytes;
    capabilities_.this_machine_only = true;
    capabilities_.shares_memory = true;
    capabilities_.keeps_bytes_intact = true;
    capabilities_.burst_segments = kBurst;
    capabilities_.delay_error = kDelayError;
    capabilities_.link_rate = options.link_rate.is_zero() ? kLinkRate : options.link_rate;
  }

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return {}; }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override { return peers_.Open(address); }
  void ClosePeer(uint32_t peer) override { peers_.Close(peer); }
  size_t room() const override { return kRoom; }
  size_t RoomTo(uint32_t peer) override;
  size_t Send(std::span<const TxSegment> segments) override;
  size_t Receive(std::span<RxSegment> out, Time now) override;
  int wait_descriptor() const override { return epoll_.get(); }
  bool PrepareToWait() override;

 private:
  bool Write(ShmPeers::Peer* peer, const TxSegment& segment);
  void WakeIfAsleep(ShmPeers::Peer* peer);
  void LookAtSockets(Time now);

  FileDescriptor epoll_;
  LaneAddress address_;
  std::string name_;
  uint64_t most_bytes_;  // of the ring, that a packet takes
  LaneCapabilities capabilities_;
  LaneCounters counters_;
  ShmPeers peers_;
  ShmSources sources_;
  bool prepared_ = false;  // the caller may have slept since the last Receive
  uint32_t idle_polls_ = 0;
  uint32_t busy_polls_ = 0;
  Time next_look_;
};

size_t ShmLane::RoomTo(uint32_t number) {
  ShmPeers::Peer* peer = peers_.Find(number);
  if (peer == nullptr || peer->gone) return kRoom;  // what is sent there is dropped
  const uint64_t room = peer->writer.Room(kEnough * most_bytes_) / most_bytes_;
  if (peer->writer.broken()) return kRoom;
  peer->full = room == 0;
  return std::min<uint64_t>(room, kRoom);
}

size_t ShmLane::Send(std::span<const TxSegment> segments) {
  ShmPeers::Peer* peer = nullptr;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i == 0 || segments[i].peer != segments[i - 1].peer) {
      WakeIfAsleep(peer);
      peer = peers_.Find(segments[i].peer);
    }
    if (Write(peer, segments[i])) {
      ++counters_.tx_packets;
      counters_.tx_bytes += segments[i].header_bytes + segments[i].payload_bytes;
    } else {
      ++counters_.tx_drops;
    }
  }
  WakeIfAsleep(peer);
  return segments.size();
}

bool ShmLane::Write(ShmPeers::Peer* peer, const TxSegment& segment) {
  if (peer == nullptr || peer->gone || segment.kind != SegmentKind::kPacket) return false;
  if (segment.payload == nullptr && segment.payload_bytes > 0) return false;  // a phantom
  const uint64_t bytes = uint64_t{segment.header_bytes} + segment.payload_bytes;
  if (segment.header_bytes > ShmSources::kMaxHeaderBytes || bytes > capabilities_.max_packet_bytes) return false;
  return peer->writer.Write({segment.header, segment.header_bytes}, {segment.payload, segment.payload_bytes});
}

void ShmLane::WakeIfAsleep(ShmPeers::Peer* peer) {
  if (peer == nullptr || peer->gone || !peer->writer.ReaderSleeps()) return;
  Ring(peer->socket);
  ++counters_.tx_calls;
}

size_t ShmLane::Receive(std::span<RxSegment> out, Time now) {
  if (std::exchange(prepared_, false)) {
    sources_.AskNoMore();
    peers_.AskNoMore();
    LookAtSockets(now);
  }
  size_t count = sources_.Receive(out, now, counters_);
  const bool look = count == 0 ? ++idle_polls_ >= kIdlePollsPerLook : ++busy_polls_ >= kBusyPollsPerLook;
  if (look || now >= next_look_) LookAtSockets(now);
  return count;
}

bool ShmLane::PrepareToWait() {
  prepared_ = true;
  return sources_.AskForPackets() && peers_.AskForRoom(most_bytes_);
}

void ShmLane::LookAtSockets(Time now) {
  idle_polls_ = busy_polls_ = 0;
  next_look_ = now + kLookInterval;
  ++counters_.rx_calls;
  if (sources_.connections_wait()) sources_.OnListener();
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(events[i].data.u64 & kNumberMask);
    switch (events[i].data.u64 & ~kNumberMask) {
      case kListenerMark:
        sources_.OnListener();
        break;
      case kPeerMark:
        peers_.OnSocket(number);
        break;
      case kSourceMark:
        sources_.OnSocket(number);
        break;
    }
  }
}

absl::Status CheckOptions(const ShmLaneOptions& options) {
  if (options.max_packet_bytes < kLeastPacket || options.max_packet_bytes > kMostPacket) {
    return absl::InvalidArgumentError(absl::StrCat("shm lane max_packet_bytes ", options.max_packet_bytes, ": may be ",
                                                   kLeastPacket, " to ", kMostPacket));
  }
  const uint64_t least = std::max(ShmMemory::kLeastRing, uint64_t{kPacketsPerRing} * options.max_packet_bytes);
  if (options.ring_bytes < least || options.ring_bytes > ShmMemory::kMostRing ||
      (options.ring_bytes & (options.ring_bytes - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("shm lane ring_bytes ", options.ring_bytes,
                                                   ": may be a power of two from ", least, " to ",
                                                   ShmMemory::kMostRing));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateShmLane(const ShmLaneOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  // Where no ring can be made there is no lane: other lanes do instead.
  FileDescriptor descriptor;
  if (auto memory = ShmMemory::Create(options.ring_bytes, &descriptor); !memory.ok()) return memory.status();
  ShmToken token;
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return absl::ErrnoToStatus(errno, "shm lane: no random bytes");
  }
  absl::StatusOr<FileDescriptor> listener = ListenShm(token);
  if (!listener.ok()) return listener.status();
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kListenerMark;
  if (!epoll.valid() || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, listener->get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "shm lane: cannot make a descriptor to wait on");
  }
  return std::make_unique<ShmLane>(options, token, *std::move(listener), std::move(epoll));
}

absl::Status CheckShmLane() { return CreateShmLane({}).status(); }

}  // namespace paceline
