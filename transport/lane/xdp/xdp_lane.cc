#include "transport/lane/xdp/xdp_lane.h"

#include <linux/sock_diag.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/udp/udp_link_monitor.h"
#include "transport/lane/udp/udp_mtu.h"
#include "transport/lane/udp/udp_peers.h"
#include "transport/lane/udp/udp_socket.h"
#include "transport/lane/xdp/xdp_card.h"
#include "transport/lane/xdp/xdp_library.h"
#include "transport/lane/xdp/xdp_neighbours.h"
#include "transport/lane/xdp/xdp_program.h"
#include "transport/lane/xdp/xdp_queue.h"
#include "transport/lane/xdp/xdp_sender.h"
#include "transport/lane/xdp/xdp_tables.h"

namespace paceline {
namespace {

// Of all queues together, divided among them: what does not fit into the cache costs more with each chunk.
constexpr uint32_t kReceiveChunks = 2048, kTransmitChunks = 1024;
constexpr uint32_t kLeastReceiveChunks = 256, kLeastTransmitChunks = 128;
constexpr uint32_t kBurst = 32;                   // what the kernel takes in one call when it copies
constexpr size_t kMaxArrivals = 256;              // of one Receive
constexpr size_t kRoomWhileDown = 1024;           // segments that a lane without a link takes, to drop them
constexpr size_t kSpareBufferBytes = 64 << 10;    // some answers to strangers
constexpr size_t kSocketBufferBytes = 256 << 10;  // what waits for neighbours to be found
constexpr Duration kHousekeeping = Duration::Millis(1);
constexpr Duration kDropsEvery = Duration::Millis(100);
constexpr Duration kQueuesEvery = Duration::Seconds(1);
constexpr int kPatience = 1000;  // flushes in vain before a sleep is allowed
// A segment is stamped before its burst waits for the processor and the kernel, on both sides: a scheduler's tick.
constexpr Duration kDelayError = Duration::Millis(1);

absl::Status Blame(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("lane \"xdp\": ", status.message()));
}

XdpTarget TargetOf(const SocketAddress& address) {
  XdpTarget target{};
  const bool v4 = address.family() == AF_INET;
  std::memcpy(target.address, v4 ? static_cast<const void*>(&address.v4.sin_addr) : &address.v6.sin6_addr, v4 ? 4 : 16);
  target.port = v4 ? address.v4.sin_port : address.v6.sin6_port;
  target.ip_version = v4 ? 4 : 6;
  return target;
}

// Packets that a socket of the kernel's has dropped, ever.
uint32_t CountDrops(int socket) {
  std::array<uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof(info);
  return getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &size) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

using Queues = std::vector<std::unique_ptr<XdpQueue>>;

// What a lane is made of, in the order in which it is made; what came last goes first.
struct Parts {
  UdpBindPoint point;
  uint32_t mtu = 0;
  XdpCard card;
  std::unique_ptr<UdpLinkMonitor> monitor;
  std::vector<UdpSocket> sockets;  // hold the ports of the entropies
  UdpSocket spare;                 // for answers to strangers while the first one is full of them
  std::unique_ptr<XdpTables> tables;
  FileDescriptor epoll;
  Queues queues;  // one for each receive queue of the interface
  std::unique_ptr<XdpProgram> program;

  // Those that frames leave by: the interface may have fewer transmit queues, and takes nothing by one that it has not.
  std::span<const std::unique_ptr<XdpQueue>> senders() const {
    return std::span(queues).first(std::min<size_t>(queues.size(), card.transmit_queues));
  }
};

class XdpLane final : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Create(const XdpLaneOptions& options);

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return parts_.monitor->status(); }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override { return peers_.Open(address); }
  void ClosePeer(uint32_t peer) override;
  size_t room() const override;
  size_t Send(std::span<const TxSegment> segments) override {
    return sender_.Send(segments, status().up, now_, counters_);
  }
  size_t Receive(std::span<RxSegment> out, Time now) override;
  int wait_descriptor() const override { return parts_.epoll.get(); }
  bool PrepareToWait() override;

 private:
  XdpLane(Parts parts, const XdpLaneOptions& options);

  void KeepHouse();
  void TakeStrays();

  Parts parts_;
  LaneAddress address_;
  LaneCapabilities capabilities_;
  std::string name_;
  LaneCounters counters_;
  UdpPeers peers_;
  XdpNeighbours neighbours_;
  XdpSender sender_;
  std::vector<LaneAddress> sources_;  // of the segments that were handed out
  size_t first_queue_ = 0;            // is read first
  int vain_flushes_ = 0;
  uint32_t strays_ = 0;  // as the kernel last told
  bool queues_are_said_ = false;
  Time now_, house_kept_at_, drops_taken_at_, queues_counted_at_;
};

LaneCapabilities MakeCapabilities(const Parts& parts, const XdpLaneOptions& options) {
  const uint32_t headers = UdpOverhead(parts.point.address);
  LaneCapabilities result;
  result.max_packet_bytes = parts.mtu - headers;
  result.path_may_be_narrower = true;
  result.overtaking = Overtaking::kShort;
  result.ecn = options.ecn;
  result.delay_error = kDelayError;
  result.burst_segments = kBurst;
  result.entropies = static_cast<uint32_t>(parts.sockets.size());
  result.entropy_is_udp_port = true;
  result.header_bytes = kEthernetOverhead + headers;
  // All packets of one path come by one queue, and each, however short, takes a chunk. Its path may take no longer
  // ones.
  const auto queues = static_cast<uint32_t>(parts.queues.size());
  result.receive_buffer_bytes = uint64_t{std::max(kReceiveChunks / std::bit_ceil(queues), kLeastReceiveChunks)} *
                                std::min(result.max_packet_bytes, kUsualPacketBytes) / 2;
  result.link_rate = options.link_rate.is_zero() ? parts.point.interface.speed : options.link_rate;
  return result;
}

XdpSender::Options MakeSenderOptions(const Parts& parts, const LaneCapabilities& capabilities,
                                     const XdpLaneOptions& options) {
  XdpSender::Options result;
  result.mac = parts.card.mac;
  result.address = parts.sockets.front().address;
  const bool v4 = result.address.family() == AF_INET;
  for (const UdpSocket& socket : parts.sockets) {
    result.ports.push_back(ntohs(v4 ? socket.address.v4.sin_port : socket.address.v6.sin6_port));
    result.by_kernel.sockets.push_back(socket.fd.get());
  }
  result.ecn = options.ecn;
  result.traffic_class = static_cast<uint8_t>(options.traffic_class & ~kEcnBits);
  result.max_packet_bytes = capabilities.max_packet_bytes;
  result.by_kernel.ipv6 = !v4;
  result.by_kernel.connect = nullptr;
  result.by_kernel.ecn = parts.sockets.front().ecn;
  result.by_kernel.max_packet_bytes = capabilities.max_packet_bytes;
  result.by_kernel.most_queued_bytes = static_cast<int>(parts.sockets.front().send_buffer_bytes / 4);
  result.by_kernel.spare_socket = parts.spare.fd.get();
  result.by_kernel.traffic_class = result.traffic_class;
  return result;
}

XdpLane::XdpLane(Parts parts, const XdpLaneOptions& options)
    : parts_(std::move(parts)),
      address_(FromSocketAddress(parts_.sockets.front().address, false)),
      capabilities_(MakeCapabilities(parts_, options)),
      peers_(parts_.sockets.front().address),
      neighbours_(parts_.tables.get()),
      sender_(MakeSenderOptions(parts_, capabilities_, options), parts_.senders(), &peers_, &neighbours_),
      sources_(kMaxArrivals),
      strays_(CountDrops(parts_.sockets.front().fd.get())) {
  const XdpQueue& queue = *parts_.queues.front();
  name_ = absl::StrCat("xdp:", parts_.point.interface.name, " ", FormatLaneAddress(address_), ", program in the ",
                       parts_.program->native() ? "driver" : "kernel's generic code", ", ",
                       queue.zero_copy() ? "zero copy" : absl::StrCat("copying (zero copy: ", queue.why_copy(), ")"));
}

absl::StatusOr<std::vector<UdpSocket>> OpenSockets(const UdpBindPoint& point, const XdpLaneOptions& options) {
  UdpSocketOptions socket_options;
  socket_options.address = point.address;
  socket_options.ecn = options.ecn;
  socket_options.traffic_class = options.traffic_class;
  std::vector<UdpSocket> sockets;
  // One more than there are entropies: the spare one.
  for (int i = 0; i <= options.entropies; ++i) {
    socket_options.send_buffer_bytes = i < options.entropies ? kSocketBufferBytes : kSpareBufferBytes;
    absl::StatusOr<UdpSocket> socket = OpenUdpSocket(socket_options);
    if (!socket.ok()) return socket.status();
    sockets.push_back(*std::move(socket));
    (point.address.family() == AF_INET ? socket_options.address.v4.sin_port : socket_options.address.v6.sin6_port) = 0;
  }
  return sockets;
}

absl::Status OpenQueues(const XdpLibrary& library, Parts& parts) {
  const uint32_t share = std::bit_ceil(parts.card.receive_queues);
  const uint32_t senders = std::min(parts.card.receive_queues, parts.card.transmit_queues);
  XdpQueue::Options options;
  options.interface = parts.point.interface.name;
  options.frame_bytes = parts.mtu + kEthernetHeaderBytes;
  options.zero_copy = parts.program->native();
  options.receive_chunks = std::max(kReceiveChunks / share, kLeastReceiveChunks);
  for (options.queue = 0; options.queue < parts.card.receive_queues; ++options.queue) {
    options.transmit_chunks = options.queue < senders
                                  ? std::max(kTransmitChunks / std::bit_ceil(senders), kLeastTransmitChunks)
                                  : kLeastTransmitChunks;
    absl::StatusOr<std::unique_ptr<XdpQueue>> queue = XdpQueue::Create(library, options);
    if (!queue.ok()) return queue.status();
    if (const uint32_t frame = (*queue)->frame_bytes(); frame < options.frame_bytes) {
      const uint32_t mtu = frame - kEthernetHeaderBytes;
      if (options.queue > 0) {
        return absl::UnavailableError(absl::StrCat(
            "receive queue ", options.queue, " of interface ", options.interface,
            " takes no frames of several chunks, though the first one does: set ", "PACELINE_MTU to ", mtu));
      }
      options.frame_bytes = frame;
      parts.mtu = mtu;
    }
    if (absl::Status status = parts.program->AddSocket(options.queue, (*queue)->descriptor()); !status.ok()) {
      return status;
    }
    parts.queues.push_back(*std::move(queue));
  }
  return absl::OkStatus();
}

absl::Status Watch(Parts& parts) {
  parts.epoll = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!parts.epoll.valid()) return absl::ErrnoToStatus(errno, "cannot make a descriptor to wait on");
  std::vector<int> descriptors = {parts.monitor->descriptor(), parts.tables->descriptor()};
  for (const std::unique_ptr<XdpQueue>& queue : parts.queues) descriptors.push_back(queue->descriptor());
  for (const int fd : descriptors) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(parts.epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return absl::ErrnoToStatus(errno, "cannot wait for an AF_XDP socket");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> MakeParts(const XdpLaneOptions& options) {
  const absl::StatusOr<const XdpLibrary*> library = LoadXdpLibrary();
  if (!library.ok()) return library.status();
  if (options.entropies < 1 || options.entropies > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("entropies ", options.entropies, ": may be 1 to 1024 (each is a source port)"));
  }
  Parts parts;
  absl::StatusOr<UdpBindPoint> point = ResolveBindAddress(options.bind_address);
  if (!point.ok()) return point.status();
  parts.point = *std::move(point);
  absl::StatusOr<XdpCard> card = AskXdpCard(parts.point.interface.name, parts.point.interface.index);
  if (!card.ok()) return card.status();
  parts.card = *std::move(card);
  if (absl::Status status = CheckXdpCard(parts.point.interface.name, parts.card); !status.ok()) return status;
  const uint32_t most = std::min(parts.point.interface.mtu, kJumboMtu);
  const absl::StatusOr<uint32_t> mtu = ChooseMtu(parts.point, options.mtu, most, most);
  if (!mtu.ok()) return mtu.status();
  parts.mtu = *mtu;
  const uint32_t index = parts.point.interface.index;
  absl::StatusOr<std::unique_ptr<UdpLinkMonitor>> monitor = UdpLinkMonitor::Create(index, parts.point.address, false);
  if (!monitor.ok()) return monitor.status();
  parts.monitor = *std::move(monitor);
  absl::StatusOr<std::vector<UdpSocket>> sockets = OpenSockets(parts.point, options);
  if (!sockets.ok()) return sockets.status();
  parts.spare = std::move(sockets->back());
  sockets->pop_back();
  parts.sockets = *std::move(sockets);
  const SocketAddress& own = parts.sockets.front().address;
  absl::StatusOr<std::unique_ptr<XdpTables>> tables = OpenXdpTables(index, own);
  if (!tables.ok()) return tables.status();
  parts.tables = *std::move(tables);
  absl::StatusOr<std::unique_ptr<XdpProgram>> program =
      XdpProgram::Attach(**library, parts.point.interface.name, index, TargetOf(own), options.driver);
  if (!program.ok()) return program.status();
  parts.program = *std::move(program);
  if (absl::Status status = OpenQueues(**library, parts); !status.ok()) return status;
  if (options.mtu > parts.mtu) {
    return absl::InvalidArgumentError(
        absl::StrCat("mtu ", options.mtu, " on interface ", parts.point.interface.name, ": at most ", parts.mtu,
                     " here, as neither the kernel (6.6 does) nor ", "the driver takes frames of several chunks"));
  }
  if (absl::Status status = Watch(parts); !status.ok()) return status;
  return parts;
}

absl::StatusOr<std::unique_ptr<Lane>> XdpLane::Create(const XdpLaneOptions& options) {
  absl::StatusOr<Parts> parts = MakeParts(options);
  if (!parts.ok()) return Blame(parts.status());
  return std::unique_ptr<Lane>(new XdpLane(*std::move(parts), options));
}

void XdpLane::ClosePeer(uint32_t peer) {
  peers_.Close(peer);
  if (peers_.Find(peer) == nullptr) neighbours_.Forget(peer);
}

size_t XdpLane::room() const {
  if (!status().up) return kRoomWhileDown;
  size_t least = kRoomWhileDown;
  for (const std::unique_ptr<XdpQueue>& queue : parts_.senders()) least = std::min<size_t>(least, queue->FreeFrames());
  return least;
}

void XdpLane::KeepHouse() {
  house_kept_at_ = now_;
  parts_.monitor->Poll();
  neighbours_.Poll();
  sender_.Flush(counters_);
  if (now_ - drops_taken_at_ < kDropsEvery) return;
  drops_taken_at_ = now_;
  for (const std::unique_ptr<XdpQueue>& queue : parts_.queues) counters_.rx_drops += queue->TakeDrops();
  TakeStrays();
}

// What the program leaves to the kernel though it is for the lane's port ends at the socket that holds the port: it
// came by a queue that was added since, or in a form that the lane does not read.
void XdpLane::TakeStrays() {
  const int socket = parts_.sockets.front().fd.get();
  const uint32_t before = std::exchange(strays_, CountDrops(socket));
  counters_.rx_drops += strays_ - before;
  if (strays_ == before || queues_are_said_ || now_ - queues_counted_at_ < kQueuesEvery) return;
  queues_counted_at_ = now_;
  const std::string& interface = parts_.point.interface.name;
  const uint32_t queues = CountReceiveQueues(socket, interface);
  if (queues <= parts_.queues.size()) return;
  queues_are_said_ = true;
  std::fprintf(
      stderr,
      "paceline: %s: interface %s has %u receive queues now and the lane a socket on the first %zu: what comes "
      "by the others is lost; set as many as there were (ethtool -L %s), or make the lane anew.\n",
      name_.c_str(), interface.c_str(), queues, parts_.queues.size(), interface.c_str());
}

size_t XdpLane::Receive(std::span<RxSegment> out, Time now) {
  now_ = now;
  if (now - house_kept_at_ >= kHousekeeping) {
    KeepHouse();
  } else if (sender_.waiting()) {
    sender_.Flush(counters_);
  }
  neighbours_.Ask(now);
  const Queues& queues = parts_.queues;
  for (const std::unique_ptr<XdpQueue>& queue : queues) queue->Recycle();
  size_t most = std::min(out.size(), sources_.size());
  size_t count = 0;
  for (size_t i = 0; i < queues.size() && most > 0; ++i) {
    XdpQueue& queue = *queues[(first_queue_ + i) % queues.size()];
    for (;;) {
      const std::span<uint8_t> frame = queue.Next(most);
      if (frame.empty()) break;
      const std::optional<ParsedFrame> parsed = ParseFrame(frame, false);
      if (!parsed.has_value()) {
        ++counters_.rx_drops;
        continue;
      }
      sources_[count] = ToLaneAddress(parsed->flow.version, parsed->flow.source, parsed->flow.source_port);
      RxSegment& segment = out[count];
      segment = RxSegment{};
      segment.congestion_experienced = parsed->congestion_experienced();
      segment.data = frame.data() + (parsed->payload.data() - frame.data());
      segment.data_bytes = static_cast<uint32_t>(parsed->payload.size());
      segment.source = &sources_[count];
      segment.received_at = now;
      counters_.rx_bytes += segment.data_bytes;
      ++count;
    }
  }
  // Whoever gets nothing may sleep, and frames that were refused are not to be missing meanwhile.
  if (count == 0) {
    for (const std::unique_ptr<XdpQueue>& queue : queues) queue->Recycle();
  }
  first_queue_ = (first_queue_ + 1) % queues.size();
  counters_.rx_packets += count;
  return count;
}

bool XdpLane::PrepareToWait() {
  // What waits leaves when the kernel has room, of which nothing wakes us. It may be long: the link may be down.
  if (!status().up || sender_.Flush(counters_) || ++vain_flushes_ > kPatience) {
    vain_flushes_ = 0;
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateXdpLane(const XdpLaneOptions& options) { return XdpLane::Create(options); }

}  // namespace paceline
