#include "transport/lane/udp/udp_lane.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/udp/udp_link_monitor.h"
#include "transport/lane/udp/udp_mtu.h"
#include "transport/lane/udp/udp_peers.h"
#include "transport/lane/udp/udp_receiver.h"
#include "transport/lane/udp/udp_sender.h"
#include "transport/lane/udp/udp_socket.h"

namespace paceline {
namespace {

constexpr size_t kSpareBufferBytes = 64 << 10;  // some answers to strangers
constexpr uint32_t kLoopbackMtu = 16384;        // measured, see docs/lanes/udp.md
constexpr uint32_t kMaxDatagramBytes = 65507;   // what 16 bits of IP length leave
// Which Receive calls also look at the link: an idle poll loop gets there within microseconds, and a system call more
// in 64 or 1024 does not show.
constexpr uint32_t kIdlePollsPerLinkPoll = 64;
constexpr uint32_t kBusyPollsPerLinkPoll = 1024;
// A segment is stamped before its burst waits for the processor and the kernel, on both sides: a scheduler's tick.
constexpr Duration kDelayError = Duration::Millis(1);
constexpr size_t kRoom = 1024;  // segments; Send itself takes whatever it is given until the kernel is full

class UdpLane final : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Create(const UdpLaneOptions& options);

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return monitor_->status(); }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override { return peers_.Open(address); }
  void ClosePeer(uint32_t peer) override {
    peers_.Close(peer);
    if (peers_.Find(peer) == nullptr) sender_.Forget(peer);
  }
  size_t room() const override;
  size_t Send(std::span<const TxSegment> segments) override;
  void GuessPlacement(const PlacementGuess& guess) override { receiver_.Guess(guess); }
  size_t Receive(std::span<RxSegment> out, Time now) override;
  int wait_descriptor() const override { return epoll_.get(); }

 private:
  UdpLane(const UdpBindPoint& point, uint32_t mtu, std::vector<UdpSocket> sockets, UdpSocket spare,
          FileDescriptor epoll, std::unique_ptr<UdpLinkMonitor> monitor, const UdpLaneOptions& options);

  void WatchForRoom(int socket);
  void StopWatchingForRoom();

  std::vector<UdpSocket> sockets_;  // the first one receives
  UdpSocket spare_;                 // for answers to strangers while the first one is full of them
  FileDescriptor epoll_;
  std::unique_ptr<UdpLinkMonitor> monitor_;
  std::string name_;
  LaneAddress address_;
  LaneCapabilities capabilities_;
  LaneCounters counters_;
  UdpPeers peers_;
  UdpSender sender_;
  UdpReceiver receiver_;
  int watched_socket_ = -1;  // had no room: the wait descriptor tells when it has
  uint32_t idle_polls_ = 0;
  uint32_t busy_polls_ = 0;
};

LaneCapabilities MakeCapabilities(const UdpBindPoint& point, uint32_t mtu, const std::vector<UdpSocket>& sockets,
                                  const UdpLaneOptions& options) {
  const UdpSocket& main = sockets.front();
  LaneCapabilities result;
  result.max_packet_bytes = std::min(mtu - UdpOverhead(point.address), kMaxDatagramBytes);
  result.this_machine_only = point.interface.loopback;
  result.path_may_be_narrower = !point.interface.loopback;
  if (!point.interface.loopback) result.overtaking = Overtaking::kShort;
  result.costly_receive = true;
  result.ecn = main.ecn;
  result.rx_timestamps = main.timestamps;
  result.least_guessed_bytes = main.gro ? UdpReceiver::kLeastGuessedBytes : 0;
  result.delay_error = kDelayError;
  const uint32_t fit = kMaxDatagramBytes / result.max_packet_bytes;
  result.burst_segments =
      options.gso && main.gso ? std::clamp<uint32_t>(fit, 1, static_cast<uint32_t>(UdpSender::kMaxSegments)) : 1;
  result.burst_bytes = options.gso && main.gso ? kMaxDatagramBytes : 0;
  result.entropies = static_cast<uint32_t>(sockets.size());
  result.entropy_is_udp_port = true;
  result.header_bytes = (point.interface.loopback ? 0 : kEthernetOverhead) + UdpOverhead(point.address);
  // The kernel counts its own overhead too (up to half of it with full packets) and gives memory back in lumps of a
  // quarter of the buffer: what is left of the limit then holds payload. Measured, see docs/lanes/udp.md.
  result.receive_buffer_bytes = main.receive_buffer_bytes / 8 * 3;
  result.link_rate = options.link_rate.is_zero() ? point.interface.speed : options.link_rate;
  return result;
}

UdpSender::Options MakeSenderOptions(const LaneCapabilities& capabilities, const std::vector<UdpSocket>& sockets,
                                     const UdpSocket& spare, const UdpLaneOptions& options) {
  UdpSender::Options result;
  for (const UdpSocket& socket : sockets) result.sockets.push_back(socket.fd.get());
  result.spare_socket = spare.fd.get();
  result.most_queued_bytes = static_cast<int>(sockets.front().send_buffer_bytes / 4);
  result.ipv6 = sockets.front().address.family() == AF_INET6;
  result.gso = options.gso && sockets.front().gso;
  result.ecn = capabilities.ecn;
  result.traffic_class = options.traffic_class & ~kEcnBits;
  result.max_packet_bytes = capabilities.max_packet_bytes;
  return result;
}

UdpLane::UdpLane(const UdpBindPoint& point, uint32_t mtu, std::vector<UdpSocket> sockets, UdpSocket spare,
                 FileDescriptor epoll, std::unique_ptr<UdpLinkMonitor> monitor, const UdpLaneOptions& options)
    : sockets_(std::move(sockets)),
      spare_(std::move(spare)),
      epoll_(std::move(epoll)),
      monitor_(std::move(monitor)),
      address_(FromSocketAddress(sockets_.front().address, false)),
      capabilities_(MakeCapabilities(point, mtu, sockets_, options)),
      peers_(sockets_.front().address),
      sender_(MakeSenderOptions(capabilities_, sockets_, spare_, options)),
      receiver_({sockets_.front().fd.get(), sockets_.front().gro, sockets_.front().timestamps,
                 capabilities_.max_packet_bytes}) {
  name_ = absl::StrCat("udp:", point.interface.name, " ", FormatLaneAddress(address_));
}

absl::StatusOr<std::unique_ptr<Lane>> UdpLane::Create(const UdpLaneOptions& options) {
  if (options.tx_sockets < 1 || options.tx_sockets > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("UDP lane tx_sockets ", options.tx_sockets, ": may be 1 to 1024 (each is a source port)"));
  }
  const absl::StatusOr<UdpBindPoint> point = ResolveBindAddress(options.bind_address);
  if (!point.ok()) return point.status();
  const uint32_t usual = std::min(point->interface.mtu, point->interface.loopback ? kLoopbackMtu : kJumboMtu);
  const absl::StatusOr<uint32_t> mtu = ChooseMtu(*point, options.mtu, usual, point->interface.mtu);
  if (!mtu.ok()) return mtu.status();
  absl::StatusOr<std::unique_ptr<UdpLinkMonitor>> monitor =
      UdpLinkMonitor::Create(point->interface.index, point->address, !options.bind_to_device);
  if (!monitor.ok()) return monitor.status();

  UdpSocketOptions socket_options;
  socket_options.address = point->address;
  if (options.bind_to_device) socket_options.device = point->interface.name;
  socket_options.ecn = options.ecn;
  socket_options.traffic_class = options.traffic_class;
  socket_options.send_buffer_bytes = options.send_buffer;
  socket_options.receives = true;
  socket_options.gro = options.gro;
  socket_options.timestamps = options.timestamps;
  socket_options.receive_buffer_bytes = options.receive_buffer;
  std::vector<UdpSocket> sockets;
  for (int i = 0; i < options.tx_sockets; ++i) {
    absl::StatusOr<UdpSocket> socket = OpenUdpSocket(socket_options);
    if (!socket.ok()) return socket.status();
    sockets.push_back(*std::move(socket));
    socket_options.receives = false;  // the others send only
    (point->address.family() == AF_INET ? socket_options.address.v4.sin_port : socket_options.address.v6.sin6_port) = 0;
  }

  socket_options.send_buffer_bytes = kSpareBufferBytes;
  absl::StatusOr<UdpSocket> spare = OpenUdpSocket(socket_options);
  if (!spare.ok()) return spare.status();

  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "cannot make a descriptor to wait on");
  for (const int fd : {sockets.front().fd.get(), (*monitor)->descriptor()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return absl::ErrnoToStatus(errno, "cannot wait for a UDP socket");
    }
  }
  return std::unique_ptr<Lane>(
      new UdpLane(*point, *mtu, std::move(sockets), *std::move(spare), std::move(epoll), *std::move(monitor), options));
}

size_t UdpLane::room() const {
  if (sender_.blocked_socket() < 0) return kRoom;
  pollfd waiting{sender_.blocked_socket(), POLLOUT, 0};
  return poll(&waiting, 1, 0) == 1 ? kRoom : 0;
}

void UdpLane::WatchForRoom(int socket) {
  StopWatchingForRoom();
  epoll_event event{};
  const bool receives = socket == sockets_.front().fd.get();
  event.events = receives ? EPOLLIN | EPOLLOUT : EPOLLOUT;
  epoll_ctl(epoll_.get(), receives ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  watched_socket_ = socket;
}

void UdpLane::StopWatchingForRoom() {
  if (watched_socket_ < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  const bool receives = watched_socket_ == sockets_.front().fd.get();
  epoll_ctl(epoll_.get(), receives ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, watched_socket_, &event);
  watched_socket_ = -1;
}

size_t UdpLane::Send(std::span<const TxSegment> segments) {
  const size_t taken = sender_.Send(segments, peers_, counters_);
  if (!sender_.gso()) {
    capabilities_.burst_segments = 1;
    capabilities_.burst_bytes = 0;
  }
  if (sender_.blocked_socket() != watched_socket_) {
    if (sender_.blocked_socket() >= 0) {
      WatchForRoom(sender_.blocked_socket());
    } else {
      StopWatchingForRoom();
    }
  }
  return taken;
}

size_t UdpLane::Receive(std::span<RxSegment> out, Time now) {
  const size_t count = receiver_.Receive(out, now, counters_);
  const bool look = count == 0 ? ++idle_polls_ >= kIdlePollsPerLinkPoll : ++busy_polls_ >= kBusyPollsPerLinkPoll;
  if (look) {
    idle_polls_ = busy_polls_ = 0;
    monitor_->Poll();
    // Room came back but nobody sends any more: the wait descriptor must fall silent.
    if (watched_socket_ >= 0 && room() > 0) {
      sender_.ClearBlocked();
      StopWatchingForRoom();
    }
  }
  return count;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateUdpLane(const UdpLaneOptions& options) { return UdpLane::Create(options); }

}  // namespace paceline
