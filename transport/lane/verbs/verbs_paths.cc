#include "transport/lane/verbs/verbs_paths.h"

#include <endian.h>

#include <algorithm>
#include <cstring>

#include "transport/lane/verbs/verbs_flow.h"

namespace paceline {
namespace {

constexpr uint32_t kMostTries = 8;
constexpr Duration kFirstPatience = Duration::Millis(20);
constexpr Duration kRefusedFor = Duration::Millis(200);
constexpr uint32_t kPsnMask = 0xffffff;

uint32_t PsnOf(uint32_t attempt) { return attempt * 2654435761u & kPsnMask; }

// Which QP a completion is of, and how many writes had been posted with it.
uint64_t SentId(uint32_t attempt, uint64_t posted) {
  return WorkId(VerbsWork::kWriteSent, uint64_t{attempt} << 24 | (posted & kPsnMask));
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsPaths>> VerbsPaths::Create(const Parts& parts, VerbsService service, uint32_t epoch,
                                                               uint32_t max_write_bytes) {
  std::unique_ptr<VerbsPaths> paths(new VerbsPaths(parts, service, epoch, max_write_bytes));
  if (absl::Status status = paths->Start(); !status.ok()) return status;
  return paths;
}

absl::Status VerbsPaths::Start() {
  slots_.resize(kSlots * max_write_bytes_);
  auto mr = parts_.card->Register(slots_.data(), slots_.size(), 0);
  if (!mr.ok()) return mr.status();
  slots_mr_ = *mr;
  free_slots_.reserve(kSlots);
  for (uint32_t slot = 0; slot < kSlots; ++slot) free_slots_.push_back(slot);
  batch_.reserve(kBatch);
  batch_pieces_.reserve(kBatch);
  return absl::OkStatus();
}

VerbsPaths::~VerbsPaths() {
  for (const auto& [key, path] : by_key_) {
    if (path->qp != nullptr) parts_.card->Destroy(path->qp);
  }
  if (slots_mr_ != nullptr) parts_.card->calls().DeregMr(slots_mr_);
}

// ---- opening and ending

VerbsPaths::Path* VerbsPaths::Find(const Key& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second.get();
}

VerbsPaths::Path* VerbsPaths::FindOrOpen(const Key& key, Time now) {
  if (last_ != nullptr && last_->key == key) return last_;
  last_ = Find(key);
  if (last_ != nullptr || parts_.peers->Find(std::get<0>(key)) == nullptr) return last_;
  if (by_key_.size() >= parts_.card->options().paths && !MakeRoomForPath()) return nullptr;
  uint32_t inline_bytes = 0;
  auto qp = parts_.card->MakePathQp(qp_type(), &inline_bytes);
  if (!qp.ok()) return nullptr;
  auto path = std::make_unique<Path>();
  path->key = key;
  path->attempt = ++attempts_;
  path->qp = *qp;
  path->inline_bytes = inline_bytes;
  path->slots.assign(parts_.card->options().writes_per_path, kNoSlot);
  last_ = path.get();
  by_attempt_[path->attempt] = last_;
  by_key_[key] = std::move(path);
  ++opening_;
  SendOpen(*last_, now);
  return last_;
}

// Ends the path that has been idle for longest.
bool VerbsPaths::MakeRoomForPath() {
  Path* oldest = nullptr;
  for (const auto& [key, path] : by_key_) {
    if (path->posted != path->retired || !path->waiting.empty()) continue;
    if (oldest == nullptr || path->last_used < oldest->last_used) oldest = path.get();
  }
  if (oldest == nullptr) return false;
  End(oldest, true);
  return true;
}

void VerbsPaths::SendMessage(const Path& path, VerbsMessageType type) {
  const auto& [peer_number, connection, entropy] = path.key;
  const VerbsPeers::Peer* peer = parts_.peers->Find(peer_number);
  if (peer == nullptr) return;
  const VerbsMessage message = {.type = type,
                                .entropy = entropy,
                                .connection = connection,
                                .epoch = epoch_,
                                .attempt = path.attempt,
                                .qp_number = path.qp->qp_num,
                                .psn = PsnOf(path.attempt),
                                .mtu = static_cast<uint16_t>(parts_.card->port().mtu),
                                .service = service_};
  parts_.datagrams->Send(peer->to(false), EncodeVerbsMessage(message), {}, true);
  parts_.datagrams->Flush();
}

void VerbsPaths::SendOpen(Path& path, Time now) {
  SendMessage(path, VerbsMessageType::kOpen);
  path.next_try = now + kFirstPatience * (int64_t{1} << path.tries++);
}

void VerbsPaths::OnMessage(uint32_t peer, const VerbsMessage& message, Time now) {
  if (message.epoch != epoch_) return;
  Path* path = Find({peer, message.connection, message.entropy});
  if (path == nullptr || path->attempt != message.attempt) return;
  if (message.type == VerbsMessageType::kClose) {
    End(path, false);
    return;
  }
  if (path->state != State::kOpening) return;
  if (message.type == VerbsMessageType::kRefuse) {
    --opening_;
    path->state = State::kRefused;
    path->next_try = now + kRefusedFor;
    for (const Request& request : path->waiting) {
      if (request.slot != kNoSlot) free_slots_.push_back(request.slot);
    }
    parts_.counters->tx_drops += path->waiting.size();
    path->waiting.clear();
    return;
  }
  const VerbsAddress& address = parts_.peers->Find(peer)->address;
  const uint32_t flow_label = VerbsFlowLabel(epoch_, path->attempt);
  const VerbsCard::Remote remote = {.gid = address.gid,
                                    .lid = address.lid,
                                    .qp_number = message.qp_number,
                                    .psn = message.psn,
                                    .mtu = message.mtu,
                                    .flow_label = flow_label};
  if (!parts_.card->ReadyToReceive(path->qp, qp_type(), remote).ok() ||
      !parts_.card->ReadyToSend(path->qp, qp_type(), PsnOf(path->attempt), flow_label).ok()) {
    End(path, true);
    return;
  }
  --opening_;
  path->state = State::kReady;
  for (const Request& request : path->waiting) Append(*path, request);
  path->waiting.clear();
  Post();
}

void VerbsPaths::Poll(Time now) {
  if (opening_ == 0 && !broken_) return;
  broken_ = false;
  EndIf([this, now](Path& path) {
    if (path.broken) return true;
    if (path.state != State::kOpening || path.next_try > now) return false;
    if (path.tries >= kMostTries) return true;
    SendOpen(path, now);
    return false;
  });
}

void VerbsPaths::End(Path* path, bool tell) {
  if (batch_path_ == path) ClearBatch();
  if (tell) SendMessage(*path, VerbsMessageType::kClose);
  parts_.card->Destroy(path->qp);  // the card reads none of its payloads any more
  for (uint64_t sent = path->retired; sent < path->posted; ++sent) {
    const uint32_t slot = path->slots[sent % path->slots.size()];
    if (slot != kNoSlot) free_slots_.push_back(slot);
  }
  for (const Request& request : path->waiting) {
    if (request.slot != kNoSlot) free_slots_.push_back(request.slot);
  }
  parts_.counters->tx_drops += path->posted - path->retired + path->waiting.size();
  path->posted = path->retired;
  SetFull(*path);
  if (path->state == State::kOpening) --opening_;
  if (last_ == path) last_ = nullptr;
  by_attempt_.erase(path->attempt);
  by_key_.erase(path->key);
}

template <typename Condition>
void VerbsPaths::EndIf(const Condition& condition) {
  std::vector<Path*> ending;
  for (const auto& [key, path] : by_key_) {
    if (condition(*path)) ending.push_back(path.get());
  }
  for (Path* path : ending) End(path, true);
}

bool VerbsPaths::OnQpError(const ibv_qp* qp) {
  const size_t before = by_key_.size();
  EndIf([qp](const Path& path) { return path.qp == qp; });
  return by_key_.size() < before;
}

void VerbsPaths::EndPeer(uint32_t peer) {
  EndIf([peer](const Path& path) { return std::get<0>(path.key) == peer; });
}

void VerbsPaths::EndConnection(uint32_t peer, uint32_t connection) {
  EndIf([peer, connection](const Path& path) {
    return std::get<0>(path.key) == peer && std::get<1>(path.key) == connection;
  });
}

void VerbsPaths::EndAll() {
  EndIf([](const Path&) { return true; });
}

void VerbsPaths::Reset(uint32_t peer, uint32_t connection, uint16_t entropy) {
  if (Path* path = Find({peer, connection, entropy}); path != nullptr && path->state == State::kReady) End(path, true);
}

// ---- writing

std::optional<VerbsPaths::Request> VerbsPaths::Prepare(const TxSegment& segment) {
  Request request;
  request.immediate = segment.immediate;
  request.bytes = segment.payload_bytes;
  request.remote_address = segment.remote_address;
  request.remote_key = VerbsMemory::RemoteKey(segment.remote_key);
  if (segment.payload_bytes == 0) return request;
  if (segment.payload == nullptr || segment.payload_bytes > max_write_bytes_) return std::nullopt;
  request.on_device = segment.payload_key != 0;
  const auto key = request.on_device ? parts_.memory->LocalKeyOf(segment.payload_key)
                                     : parts_.memory->LocalKey(segment.payload, segment.payload_bytes);
  if (key.has_value()) {
    request.address = reinterpret_cast<uint64_t>(segment.payload);
    request.local_key = *key;
    return request;
  }
  if (request.on_device) return std::nullopt;  // the processor cannot copy it
  if (free_slots_.empty()) return std::nullopt;
  request.slot = free_slots_.back();
  free_slots_.pop_back();
  uint8_t* const at = slots_.data() + size_t{request.slot} * max_write_bytes_;
  std::memcpy(at, segment.payload, segment.payload_bytes);
  request.address = reinterpret_cast<uint64_t>(at);
  request.local_key = slots_mr_->lkey;
  return request;
}

void VerbsPaths::Write(const TxSegment& segment, Time now) {
  Path* path = FindOrOpen({segment.peer, segment.connection, segment.entropy}, now);
  if (path != nullptr && path->state == State::kRefused && path->next_try <= now) {
    End(path, false);
    path = FindOrOpen({segment.peer, segment.connection, segment.entropy}, now);
  }
  const bool takes =
      path != nullptr &&
      ((path->state == State::kReady && path->posted - path->retired < path->slots.size()) ||
       (path->state == State::kOpening && path->waiting.size() < std::min(kMostWaiting, path->slots.size())));
  std::optional<Request> request;
  if (takes) request = Prepare(segment);
  if (!request.has_value()) {
    ++parts_.counters->tx_drops;
    return;
  }
  path->last_used = now;
  ++parts_.counters->tx_packets;
  parts_.counters->tx_bytes += segment.payload_bytes;
  if (path->state == State::kOpening) {
    path->waiting.push_back(*request);
  } else {
    Append(*path, *request);
  }
}

void VerbsPaths::Append(Path& path, const Request& request) {
  if (batch_path_ != &path || batch_.size() == kBatch) Post();
  batch_path_ = &path;
  path.slots[path.posted % path.slots.size()] = request.slot;
  ++path.posted;
  batch_pieces_.push_back({request.address, request.bytes, request.local_key});
  ibv_send_wr wr{};
  wr.wr_id = SentId(path.attempt, path.posted);
  wr.sg_list = &batch_pieces_.back();
  wr.num_sge = request.bytes > 0 ? 1 : 0;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = htobe32(request.immediate);
  if (path.posted % kSignalEvery == 0) wr.send_flags |= IBV_SEND_SIGNALED;
  if (request.bytes <= path.inline_bytes && !request.on_device) wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.rdma.remote_addr = request.remote_address;
  wr.wr.rdma.rkey = request.remote_key;
  batch_.push_back(wr);
  if (batch_.size() > 1) batch_[batch_.size() - 2].next = &batch_.back();
}

void VerbsPaths::Post() {
  if (batch_.empty()) return;
  // The last of a batch always tells, or the slots of what went before would wait for a write that may never come.
  batch_.back().send_flags |= IBV_SEND_SIGNALED;
  Path* const path = batch_path_;
  ibv_send_wr* bad = nullptr;
  ++parts_.counters->tx_calls;
  if (parts_.card->calls().PostSend(path->qp, batch_.data(), &bad) != 0) broken_ = path->broken = true;
  ClearBatch();
  SetFull(*path);
}

void VerbsPaths::ClearBatch() {
  batch_path_ = nullptr;
  batch_.clear();
  batch_pieces_.clear();
}

void VerbsPaths::OnSent(const ibv_wc& completion) {
  const uint64_t rest = WorkRest(completion.wr_id);
  const auto found = by_attempt_.find(static_cast<uint32_t>(rest >> 24));
  if (found == by_attempt_.end()) return;  // of a QP that is no more
  Path* const path = found->second;
  if (completion.status != IBV_WC_SUCCESS) {
    End(path, true);
    return;
  }
  const uint64_t newly = (rest - path->retired) & kPsnMask;
  if (newly > path->posted - path->retired) return;
  for (uint64_t i = 0; i < newly; ++i, ++path->retired) {
    const uint32_t slot = path->slots[path->retired % path->slots.size()];
    if (slot != kNoSlot) free_slots_.push_back(slot);
  }
  SetFull(*path);
}

void VerbsPaths::SetFull(Path& path) {
  const bool full = path.posted - path.retired > path.slots.size() / 2;
  if (full == path.full) return;
  path.full = full;
  VerbsPeers::Peer* peer = parts_.peers->Find(std::get<0>(path.key));
  if (peer != nullptr) full ? ++peer->full_paths : --peer->full_paths;
}

}  // namespace paceline
