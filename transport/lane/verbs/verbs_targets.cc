#include "transport/lane/verbs/verbs_targets.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "transport/lane/verbs/verbs_flow.h"

namespace paceline {
namespace {

constexpr Duration kIdle = Duration::Seconds(30);  // a path that nobody wrote on for so long makes way for another
// After so long nothing comes late any more. More stopped QPs than so many are not kept.
constexpr Duration kLatest = Duration::Seconds(2);
constexpr size_t kMostStopped = 256;

ibv_qp_type TypeOf(VerbsService service) { return service == VerbsService::kReliable ? IBV_QPT_RC : IBV_QPT_UC; }

}  // namespace

VerbsTargets::~VerbsTargets() {
  for (const auto& [number, target] : by_qp_) card_->Destroy(target->qp);
  while (!stopped_.empty()) DestroyOldest();
}

bool VerbsTargets::End(Target* target, Time now) {
  if (!target->stopped && !card_->Stop(target->qp)) return false;
  if (last_ == target) last_ = nullptr;
  by_key_.erase(KeyOf(*target));
  ibv_qp* const qp = target->qp;
  by_qp_.erase(qp->qp_num);
  stopped_.push_back({qp, now});
  return true;
}

bool VerbsTargets::Stop(uint32_t connection) {
  bool all = true;
  for (const auto& [number, target] : by_qp_) {
    if (target->opened.connection != connection) continue;
    target->stopped = card_->Stop(target->qp);
    all = all && target->stopped;
  }
  return all;
}

void VerbsTargets::EndStopped(uint32_t connection, Time now) {
  std::vector<Target*> ending;
  for (const auto& [number, target] : by_qp_) {
    if (target->stopped && target->opened.connection == connection) ending.push_back(target.get());
  }
  for (Target* target : ending) End(target, now);
}

void VerbsTargets::Poll(Time now) {
  while (!stopped_.empty() && (stopped_.size() > kMostStopped || now - stopped_.front().at >= kLatest)) DestroyOldest();
}

void VerbsTargets::DestroyOldest() {
  ibv_qp* const qp = stopped_.front().qp;
  stopped_.pop_front();
  // A card may forget completions of a QP that is destroyed, and the receives that they took.
  card_->Drain();
  for (ibv_wc& completion : card_->drained()) {
    const bool arrived = WorkOf(completion.wr_id) == VerbsWork::kWriteArrived;
    if (arrived && completion.qp_num == qp->qp_num) completion.status = IBV_WC_WR_FLUSH_ERR;  // nobody's any more
  }
  card_->Destroy(qp);
}

std::optional<VerbsTargets::Writer> VerbsTargets::OnArrival(uint32_t qp_number, Time now) {
  if (last_ == nullptr || last_->qp->qp_num != qp_number) {
    const auto found = by_qp_.find(qp_number);
    if (found == by_qp_.end()) return std::nullopt;
    last_ = found->second.get();
  }
  last_->last_used = now;
  return Writer{last_->opened.connection, last_->opened.entropy};
}

std::optional<VerbsMessage> VerbsTargets::OnMessage(const VerbsAddress& source, const VerbsMessage& message, Time now) {
  const auto found = by_key_.find({ToLaneAddress(source), message.connection, message.entropy});
  Target* target = found == by_key_.end() ? nullptr : found->second;
  const bool same_epoch = target != nullptr && target->opened.epoch == message.epoch;
  if (message.type == VerbsMessageType::kClose) {
    if (same_epoch && target->opened.attempt == message.attempt) End(target, now);
    return std::nullopt;
  }
  if (message.type != VerbsMessageType::kOpen) return std::nullopt;
  if (same_epoch && target->opened.attempt == message.attempt) return target->answer;  // ours was lost
  if (same_epoch && static_cast<int32_t>(message.attempt - target->opened.attempt) < 0) return std::nullopt;  // old
  VerbsMessage answer = message;
  answer.type = VerbsMessageType::kRefuse;
  if (target != nullptr && !End(target, now)) return answer;
  if (by_qp_.size() >= most_ && !MakeRoom(now)) return answer;
  uint32_t unused = 0;
  auto qp = card_->MakePathQp(TypeOf(message.service), &unused);
  if (!qp.ok()) return answer;
  const VerbsCard::Remote remote = {.gid = source.gid,
                                    .lid = source.lid,
                                    .qp_number = message.qp_number,
                                    .psn = message.psn,
                                    .mtu = message.mtu,
                                    .flow_label = VerbsFlowLabel(message.epoch, message.attempt)};
  if (!card_->ReadyToReceive(*qp, TypeOf(message.service), remote).ok()) {
    card_->Destroy(*qp);
    return answer;
  }
  answer.type = VerbsMessageType::kAccept;
  answer.qp_number = (*qp)->qp_num;
  answer.mtu = static_cast<uint16_t>(std::min<uint32_t>(message.mtu, card_->port().mtu));
  auto made = std::make_unique<Target>();
  *made = {.source = source, .opened = message, .answer = answer, .qp = *qp, .last_used = now};
  by_key_[KeyOf(*made)] = made.get();
  by_qp_[(*qp)->qp_num] = std::move(made);
  return answer;
}

// The writer is not told: it has not written for long, and when it does, the transport finds the path silent and has
// it reset.
bool VerbsTargets::MakeRoom(Time now) {
  std::vector<Target*> idle;
  for (const auto& [number, target] : by_qp_) {
    if (now - target->last_used >= kIdle) idle.push_back(target.get());
  }
  std::sort(idle.begin(), idle.end(), [](const Target* a, const Target* b) { return a->last_used < b->last_used; });
  return std::any_of(idle.begin(), idle.end(), [&](Target* target) { return End(target, now); });
}

std::optional<VerbsTargets::Notice> VerbsTargets::OnQpError(const ibv_qp* qp, Time now) {
  const auto found = by_qp_.find(qp->qp_num);
  if (found == by_qp_.end() || found->second->qp != qp) return std::nullopt;
  Notice notice{found->second->source, found->second->opened};
  notice.message.type = VerbsMessageType::kClose;
  End(found->second.get(), now);
  return notice;
}

}  // namespace paceline
