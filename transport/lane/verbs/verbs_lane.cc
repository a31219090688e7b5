#include "transport/lane/verbs/verbs_lane.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/verbs/verbs_library.h"
#include "transport/lane/verbs/verbs_parts.h"

namespace paceline {
namespace {

constexpr size_t kRoom = 64;  // segments
constexpr size_t kBatch = 64;
constexpr uint32_t kBurst = 8;
constexpr uint8_t kEcnBits = 3;  // of a traffic class
constexpr Duration kLookAtEvents = Duration::Millis(5);
constexpr Duration kRepairEvery = Duration::Millis(100);
// Software on both sides takes part in what a delay seems to be.
constexpr Duration kDelayError = Duration::Micros(50);
// Ethernet with preamble, FCS and gap 38, IPv6 40, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4.
constexpr uint32_t kHeaderBytes = 38 + 40 + 8 + 12 + 16 + 4 + 4;

class VerbsLane final : public Lane {
 public:
  explicit VerbsLane(VerbsParts parts, FileDescriptor epoll) : parts_(std::move(parts)), epoll_(std::move(epoll)) {}

  absl::Status Start(const VerbsLaneOptions& options);

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return status_; }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override;
  void ClosePeer(uint32_t peer) override;
  size_t room() const override { return std::min({parts_.datagrams->room(), paths_->room(), kRoom}); }
  size_t RoomTo(uint32_t peer) override;
  size_t Send(std::span<const TxSegment> segments) override;
  size_t Receive(std::span<RxSegment> out, Time now) override;
  uint64_t RegisterMemory(const LaneMemory& memory) override { return parts_.memory->Register(memory); }
  std::string memory_problem() const override { return parts_.memory->problem(); }
  void DeregisterMemory(uint64_t key) override { parts_.memory->Deregister(key); }
  void ResetPath(uint32_t peer, uint32_t connection, uint16_t entropy) override {
    paths_->Reset(peer, connection, entropy);
  }
  void EndWrites(uint32_t peer, uint32_t connection) override { paths_->EndConnection(peer, connection); }
  void FenceWrites(uint32_t connection) override;
  int wait_descriptor() const override { return epoll_.get(); }
  bool PrepareToWait() override;

 private:
  bool Take(const VerbsCompletion& completion, RxSegment& segment, size_t at);
  void OnOwnMessage(const VerbsDatagrams::Arrived& arrived);
  void SendOwn(const VerbsAddress& to, const VerbsMessage& message);
  void LookAtEvents();
  void OnEvent(const ibv_async_event& event);
  void OnQpError(const ibv_qp* qp);
  void SetUp(bool up);
  void RetireSent();
  // The datagrams' QP has failed, and may be started again, now or later.
  bool AwaitsRepair() const { return parts_.datagrams->failed() && port_up_; }
  bool RepairIsDue() const { return AwaitsRepair() && now_ >= next_repair_; }
  void RepairDatagrams();
  // Infinite: not at all.
  void WakeIn(Duration duration);

  VerbsParts parts_;
  std::unique_ptr<VerbsPaths> paths_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  LaneAddress address_;
  std::string name_;
  LaneCapabilities capabilities_;
  LaneCounters counters_;
  LaneStatus status_;
  uint32_t epoch_ = 0;
  Time now_;
  Time next_look_;
  Time next_repair_;
  bool port_up_ = true;
  bool dead_ = false;      // for good: the card, or a queue of all paths, has failed
  bool prepared_ = false;  // the caller may have slept since the last Receive
  bool timer_set_ = false;
  std::array<LaneAddress, kBatch> sources_;
};

absl::Status VerbsLane::Start(const VerbsLaneOptions& options) {
  if (getrandom(&epoch_, sizeof(epoch_), 0) != sizeof(epoch_)) {
    return absl::ErrnoToStatus(errno, "verbs lane: no random bytes");
  }
  const VerbsPort& port = parts_.card->port();
  const VerbsAddress address = {
      .gid = port.gid, .qp_number = parts_.datagrams->qp_number(), .lid = port.lid, .ethernet = port.ethernet};
  address_ = ToLaneAddress(address);
  name_ = absl::StrCat("verbs:", port.name());
  const VerbsCardOptions& bounds = parts_.card->options();
  capabilities_.max_packet_bytes = parts_.datagrams->max_bytes();
  capabilities_.remote_placement = true;
  capabilities_.max_write_bytes = port.mtu;
  capabilities_.ecn = port.ethernet;
  capabilities_.rx_timestamps = parts_.card->timed();
  capabilities_.delay_error = kDelayError;
  capabilities_.keeps_bytes_intact = true;  // the card checks each packet (ICRC), the payload included
  capabilities_.burst_segments = kBurst;
  capabilities_.entropies = options.entropies;
  capabilities_.header_bytes = kHeaderBytes;
  capabilities_.receive_buffer_bytes = uint64_t{std::min(bounds.arrivals, bounds.datagrams_in)} * port.mtu;
  capabilities_.link_rate = options.link_rate.is_zero() ? port.rate : options.link_rate;
  timer_ = FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  for (const int fd : {parts_.card->channel()->fd, parts_.card->context()->async_fd, timer_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return absl::ErrnoToStatus(errno, "verbs lane: cannot make a descriptor to wait on");
    }
  }
  const VerbsPaths::Parts parts = {.card = parts_.card.get(),
                                   .memory = parts_.memory.get(),
                                   .datagrams = parts_.datagrams.get(),
                                   .peers = parts_.peers.get(),
                                   .counters = &counters_};
  auto paths = VerbsPaths::Create(parts, options.reliable ? VerbsService::kReliable : VerbsService::kUnreliable, epoch_,
                                  capabilities_.max_write_bytes);
  if (!paths.ok()) return paths.status();
  paths_ = *std::move(paths);
  return absl::OkStatus();
}

uint32_t VerbsLane::OpenPeer(const LaneAddress& address) {
  VerbsAddress verbs;
  return ToVerbsAddress(address, verbs) ? parts_.peers->Open(verbs) : VerbsPeers::kNowhere;
}

void VerbsLane::ClosePeer(uint32_t peer) {
  const VerbsPeers::Peer* known = parts_.peers->Find(peer);
  if (known == nullptr) return;
  if (known->references == 1) paths_->EndPeer(peer);
  parts_.peers->Close(peer);
}

size_t VerbsLane::RoomTo(uint32_t number) {
  const VerbsPeers::Peer* peer = parts_.peers->Find(number);
  const auto room_now = [this, peer] { return peer != nullptr && peer->full_paths > 0 ? 0 : room(); };
  if (room_now() == 0) RetireSent();
  return room_now();
}

// Receive does this too; who only sends need not call it to have room again.
void VerbsLane::RetireSent() {
  parts_.card->Drain();
  for (ibv_wc& completion : parts_.card->drained()) {
    const VerbsWork work = WorkOf(completion.wr_id);
    if (work == VerbsWork::kDatagramSent) parts_.datagrams->OnSent(completion);
    if (work == VerbsWork::kWriteSent) paths_->OnSent(completion);
    if (work == VerbsWork::kDatagramSent || work == VerbsWork::kWriteSent) {
      completion.wr_id = WorkId(VerbsWork::kNothing, 0);
    }
  }
}

size_t VerbsLane::Send(std::span<const TxSegment> segments) {
  for (const TxSegment& segment : segments) {
    if (segment.kind == SegmentKind::kWrite) {
      paths_->Write(segment, now_);
      continue;
    }
    const VerbsPeers::Peer* peer = parts_.peers->Find(segment.peer);
    const bool phantom = segment.payload == nullptr && segment.payload_bytes > 0;
    if (peer != nullptr && !phantom &&
        parts_.datagrams->Send(peer->to(segment.ecn_capable), {segment.header, segment.header_bytes},
                               {segment.payload, segment.payload_bytes}, false)) {
      ++counters_.tx_packets;
      counters_.tx_bytes += segment.header_bytes + segment.payload_bytes;
    } else {
      ++counters_.tx_drops;
    }
  }
  parts_.datagrams->Flush();
  paths_->Flush();
  ++counters_.tx_calls;
  return segments.size();
}

size_t VerbsLane::Receive(std::span<RxSegment> out, Time now) {
  now_ = now;
  if (timer_set_) WakeIn(Duration::Infinite());
  parts_.datagrams->GiveBack();
  parts_.card->RefillArrivals();
  if (std::exchange(prepared_, false) || now >= next_look_) {
    next_look_ = now + kLookAtEvents;
    LookAtEvents();
    parts_.card->ReadClock();
  }
  // Here and nowhere later: it gives the card all buffers, and what this call finds stays the caller's until the next.
  if (RepairIsDue()) RepairDatagrams();
  paths_->Poll(now);
  parts_.targets->Poll(now);
  ++counters_.rx_calls;
  std::array<VerbsCompletion, kBatch> completions;
  size_t count = 0;
  const size_t most = std::min(out.size(), kBatch);
  while (count < most) {
    const size_t polled = parts_.card->Poll(std::span(completions).first(most - count));
    for (size_t i = 0; i < polled; ++i) {
      if (Take(completions[i], out[count], count)) ++count;
    }
    if (polled == 0) break;
  }
  if (parts_.datagrams->failed()) SetUp(false);
  return count;
}

// A card may give up what it was told to send while its port went down.
void VerbsLane::RepairDatagrams() {
  SetUp(false);  // what had been posted is lost, also where Send has found it out
  next_repair_ = now_ + kRepairEvery;
  if (parts_.datagrams->Restart().ok()) SetUp(true);
}

void VerbsLane::WakeIn(Duration duration) {
  timer_set_ = !duration.is_infinite();
  itimerspec spec{};
  if (timer_set_) spec.it_value.tv_nsec = duration.nanos();
  timerfd_settime(timer_.get(), 0, &spec, nullptr);
}

// True: `segment` is filled.
bool VerbsLane::Take(const VerbsCompletion& completion, RxSegment& segment, size_t at) {
  switch (WorkOf(completion.wr_id)) {
    case VerbsWork::kNothing:
      return false;
    case VerbsWork::kDatagramSent:
      parts_.datagrams->OnSent(completion);
      return false;
    case VerbsWork::kWriteSent:
      paths_->OnSent(completion);
      return false;
    case VerbsWork::kDatagramArrived: {
      VerbsDatagrams::Arrived arrived;
      if (!parts_.datagrams->Take(completion, arrived)) return false;
      if (arrived.own) {
        OnOwnMessage(arrived);
        return false;
      }
      sources_[at] = ToLaneAddress(arrived.source);
      segment = RxSegment{};
      segment.data = arrived.bytes.data();
      segment.data_bytes = static_cast<uint32_t>(arrived.bytes.size());
      segment.source = &sources_[at];
      segment.congestion_experienced = arrived.marked;
      segment.received_at = parts_.card->CameAt(completion, now_);
      ++counters_.rx_packets;
      counters_.rx_bytes += arrived.bytes.size();
      return true;
    }
    case VerbsWork::kFenced:
      segment = RxSegment{};
      segment.kind = SegmentKind::kFenced;
      segment.connection = static_cast<uint32_t>(WorkRest(completion.wr_id));
      segment.received_at = now_;
      parts_.targets->EndStopped(segment.connection, now_);
      return true;
    case VerbsWork::kWriteArrived: {
      parts_.card->OnWriteArrived();
      if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
        ++counters_.rx_drops;
        return false;
      }
      const auto writer = parts_.targets->OnArrival(completion.qp_num, now_);
      if (!writer.has_value()) {
        ++counters_.rx_drops;
        return false;
      }
      segment = RxSegment{};
      segment.kind = SegmentKind::kWrite;
      segment.connection = writer->connection;
      segment.entropy = writer->entropy;
      segment.immediate = be32toh(completion.imm_data);
      segment.placed_bytes = completion.byte_len;
      segment.received_at = parts_.card->CameAt(completion, now_);
      ++counters_.rx_packets;
      counters_.rx_bytes += completion.byte_len;
      return true;
    }
  }
  return false;
}

// What the card has placed by now it has told of, and Receive hands that out first. A card that does not stop a queue
// pair may go on placing: nothing is promised for it.
void VerbsLane::FenceWrites(uint32_t connection) {
  if (parts_.targets->Stop(connection)) parts_.card->PutBehind(WorkId(VerbsWork::kFenced, connection));
}

void VerbsLane::OnOwnMessage(const VerbsDatagrams::Arrived& arrived) {
  const auto message = ParseVerbsMessage(arrived.bytes);
  if (!message.has_value()) {
    ++counters_.rx_drops;
    return;
  }
  const uint32_t peer = parts_.peers->NumberOf(arrived.source);
  const bool as_writer = message->epoch == epoch_ && peer != VerbsPeers::kNowhere;
  if (as_writer && message->type != VerbsMessageType::kOpen) paths_->OnMessage(peer, *message, now_);
  const auto answer = parts_.targets->OnMessage(arrived.source, *message, now_);
  if (answer.has_value()) SendOwn(arrived.source, *answer);
}

void VerbsLane::SendOwn(const VerbsAddress& to, const VerbsMessage& message) {
  const uint32_t peer = parts_.peers->Open(to);
  if (peer == VerbsPeers::kNowhere) return;
  parts_.datagrams->Send(parts_.peers->Find(peer)->to(false), EncodeVerbsMessage(message), {}, true);
  parts_.datagrams->Flush();
  ClosePeer(peer);
}

bool VerbsLane::PrepareToWait() {
  prepared_ = true;
  if (RepairIsDue()) return false;
  if (AwaitsRepair()) WakeIn(next_repair_ - now_);
  VerbsCard& card = *parts_.card;
  if (card.calls().ReqNotifyCq(card.cq()) != 0) return false;
  return !card.Drain();
}

// ---- what the card says of itself

void VerbsLane::LookAtEvents() {
  VerbsCard& card = *parts_.card;
  ibv_cq* cq = nullptr;
  unsigned rings = 0;
  while (card.calls().GetCqEvent(card.channel(), &cq) == 0) ++rings;
  if (rings > 0) card.calls().AckCqEvents(card.cq(), rings);
  ibv_async_event event{};
  while (card.calls().GetAsyncEvent(card.context(), &event) == 0) {
    const ibv_async_event copy = event;
    card.calls().AckAsyncEvent(&event);  // first: destroying a QP waits for that
    OnEvent(copy);
  }
}

void VerbsLane::OnEvent(const ibv_async_event& event) {
  const VerbsPort& port = parts_.card->port();
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      OnQpError(event.element.qp);
      return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
      dead_ = true;
      port_up_ = false;
      SetUp(false);
      return;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
      if (event.element.port_num != port.number) return;
      // Its packets may take another route from here on, and overtake what still stands on the old one.
      if (event.event_type != IBV_EVENT_PORT_ERR) paths_->EndAll();
      port_up_ = !dead_ && IsVerbsPortAsFound(parts_.card->calls(), parts_.card->context(), port);
      SetUp(port_up_ && !parts_.datagrams->failed());
      return;
    default:
      return;
  }
}

void VerbsLane::OnQpError(const ibv_qp* qp) {
  if (paths_->OnQpError(qp)) return;
  if (const auto notice = parts_.targets->OnQpError(qp, now_); notice.has_value()) SendOwn(notice->to, notice->message);
}

void VerbsLane::SetUp(bool up) {
  if (up == status_.up) return;
  status_.up = up;
  ++status_.change_count;
}

absl::Status CheckOptions(const VerbsLaneOptions& options) {
  if (options.entropies < 1 || options.entropies > kMostVerbsEntropies) {
    return absl::InvalidArgumentError(
        absl::StrCat("verbs lane entropies ", options.entropies, ": may be 1 to ", kMostVerbsEntropies));
  }
  if (options.mtu != 0 && (options.mtu < 256 || options.mtu > 4096)) {
    return absl::InvalidArgumentError(
        absl::StrCat("verbs lane mtu ", options.mtu, ": may be 256 to 4096 bytes of payload, or 0 for the port's"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateVerbsLane(const VerbsLaneOptions& options, VerbsCalls* calls) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (calls == nullptr) {
    auto library = LoadVerbsLibrary();
    if (!library.ok()) return library.status();
    calls = *library;
  }
  auto port = FindVerbsPort(*calls, options.device);
  if (!port.ok()) return port.status();
  if (!port->reason().empty()) {
    return absl::FailedPreconditionError(absl::StrCat("RDMA port ", port->name(), ": ", port->reason()));
  }
  if (options.mtu != 0) port->mtu = std::min(port->mtu, options.mtu);
  auto parts =
      VerbsParts::Make(*calls, *port, {.traffic_class = static_cast<uint8_t>(options.traffic_class & ~kEcnBits)});
  if (!parts.ok()) return parts.status();
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "verbs lane: cannot make a descriptor to wait on");
  auto lane = std::make_unique<VerbsLane>(*std::move(parts), std::move(epoll));
  if (absl::Status status = lane->Start(options); !status.ok()) return status;
  return lane;
}

}  // namespace paceline
