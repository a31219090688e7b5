#include "tests/simulation/oracle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tests/simulation/shared_receives.h"

namespace paceline::simulation {
namespace {

using support::FillPattern;
using support::FindDifference;

constexpr uint64_t kReadBytes = 200'000;                     // of the memory for reads
constexpr uint64_t kAddAt = 0, kSwapAt = 8, kVectorAt = 16;  // atomics
constexpr uint32_t kElements = 4;                            // of the vector; the n-th gets n times what the first does
constexpr uint64_t kReadAt = 64;
constexpr uint64_t kWriteAt = kReadAt + kReadBytes;
constexpr uint64_t kReadPattern = 0xabcdef;
constexpr uint64_t kSlotGap = 16;  // untouched bytes behind each slot
constexpr uint64_t kOfferedSlots = 8;
constexpr uint32_t kFlushesBesideHeld = 8;  // so that the bound of operations is not all theirs

uint64_t SlotBytes(const Scenario& scenario) { return std::min<uint64_t>(scenario.max_bytes, 100'000) + kSlotGap; }
// The first of what is offered for a while can be read; the slots follow.
uint64_t OfferedReadBytes(const Scenario& scenario) { return SlotBytes(scenario); }

}  // namespace

Side::Side(const Scenario& scenario, uint32_t number, support::TestHost* host, Findings* findings, Random* random)
    : scenario_(scenario),
      number_(number),
      host_(host),
      findings_(findings),
      random_(random),
      planned_(scenario.operations),
      memory_(kWriteAt + SlotBytes(scenario) * scenario.operations) {
  std::memset(memory_.data(), 0, kReadAt);
  FillPattern(memory_.data() + kReadAt, kReadBytes, kReadPattern + number);
}

Side::~Side() = default;

void Side::SetConnection(ConnectionId connection, SharedReceives* shared) {
  connection_ = connection;
  shared_ = shared;
  const RegionId region = host_->endpoint().RegisterMemory(
      memory_.data(), memory_.size(), kRemoteRead | kRemoteWrite | kRemoteAtomic, MemoryKind::kHost,
      scenario_.placed_writes ? kNoConnection : connection);  // (cards do not reach what is bound to a connection)
  if (region == kUnregistered) findings_->Note("a region could not be registered");
  region_ = region;
  if (scenario_.revocations > 0) MakeOffer();
}

void Side::MakeOffer() {
  auto offer = std::make_unique<Offer>(OfferedReadBytes(scenario_) + kOfferedSlots * SlotBytes(scenario_));
  FillPattern(offer->memory.data(), OfferedReadBytes(scenario_), kReadPattern + number_);
  Endpoint& endpoint = host_->endpoint();
  // What is bound to a connection is reached by packets only, the other by cards too.
  const ConnectionId bound = random_->Chance(0.5) ? connection_ : kNoConnection;
  offer->region = endpoint.RegisterMemory(offer->memory.data(), offer->memory.size(), kRemoteRead | kRemoteWrite,
                                          MemoryKind::kHost, bound);
  if (offer->region == kUnregistered) return findings_->Note("memory to be taken back could not be registered");
  offer->remote = endpoint.ExportMemory(offer->region);
  offers_.push_back(std::move(offer));
}

void Side::Revoke() {
  if (closed_ || offers_.empty()) return;
  Offer& offer = *offers_.back();
  host_->endpoint().DeregisterMemory(offer.region, host_->now());
  offer.revoked = true;
  offer.memory.Poison();  // from here on nobody may read or write it
  MakeOffer();
  host_->Touch();
}

void Side::DeregisterSome() {
  std::vector<RegionId> open;
  for (auto& [number, posted] : posted_) {
    if (!posted.done && posted.region != kUnregistered) open.push_back(posted.region);
  }
  if (open.empty()) return;
  host_->endpoint().DeregisterMemory(open[random_->Below(open.size())], host_->now());
  host_->Touch();
}

std::string Side::Name(const Posted& posted) const {
  return "side " + std::to_string(number_) + ", " + std::string(OperationName(posted.operation)) + " " +
         std::to_string(posted.number) + " of " + std::to_string(posted.buffer == nullptr ? 0 : posted.buffer->size()) +
         " bytes, tag " + std::to_string(posted.tag);
}

void Side::Finding(const Posted& posted, const std::string& what) { findings_->Note(Name(posted) + ": " + what); }

Side::Posted Side::NewPosted(Operation operation, size_t bytes) {
  Posted posted;
  posted.operation = operation;
  posted.number = next_number_++;
  posted.buffer = std::make_unique<support::GuardedBuffer>(bytes);
  return posted;
}

// ---- posting

bool Side::all_posted() const {
  return planned_ == 0 && receives_wanted_.empty() && held_receives_ == 0 && retry_ == nullptr &&
         (shared_ == nullptr || !shared_->wanted());
}

void Side::WantReceive(uint64_t tag) {
  if (shared_ != nullptr) {
    shared_->Want(this, tag);
  } else if (tag == kHeldTag) {
    ++held_receives_;
  } else {
    receives_wanted_.push_back(tag);
  }
}

bool Side::PostNext() {
  if (closed_) {
    planned_ = 0;
    receives_wanted_.clear();
    held_receives_ = 0;
    retry_.reset();
    return false;
  }
  if (shared_ != nullptr && shared_->wanted() && (planned_ == 0 || random_->Chance(0.5))) return shared_->PostNext();
  if (retry_ == nullptr) {
    if (planned_ == 0 && peer_->planned_ == 0 && receives_wanted_.empty()) {
      receives_wanted_.assign(std::exchange(held_receives_, 0), kHeldTag);
    }
    if (!receives_wanted_.empty() && (planned_ == 0 || random_->Chance(0.5))) {
      std::swap(receives_wanted_[random_->Below(receives_wanted_.size())], receives_wanted_.back());
      // Mostly long enough; else the message is truncated.
      const size_t bytes = random_->Chance(0.95) ? scenario_.max_bytes : random_->Below(scenario_.max_bytes + 1);
      retry_ = std::make_unique<Posted>(NewPosted(Operation::kReceive, bytes));
      retry_->tag = receives_wanted_.back();
      receives_wanted_.pop_back();
    } else if (planned_ > 0) {
      --planned_;
      uint64_t kind = random_->Below(10);
      if (kind == 9 && held_sends_ > 0 && ++flushes_ > kFlushesBesideHeld) kind = 0;
      const size_t bytes = random_->Chance(0.3) ? random_->Below(std::min(scenario_.max_bytes, 65u))
                                                : random_->Below(scenario_.max_bytes + 1);
      if (kind < 5) {
        retry_ = std::make_unique<Posted>(NewPosted(Operation::kSend, bytes));
        retry_->tag = random_->Below(kTags);
        if (held_sends_ < scenario_.held_receives && peer_->shared_ == nullptr && random_->Chance(0.5)) {
          ++held_sends_;
          retry_->tag = kHeldTag;
        }
        peer_->WantReceive(retry_->tag);
      } else if (kind < 7) {
        const bool immediate = random_->Chance(0.5);
        retry_ = std::make_unique<Posted>(NewPosted(immediate ? Operation::kWriteImmediate : Operation::kWrite,
                                                    std::min<uint64_t>(bytes, SlotBytes(scenario_) - kSlotGap)));
        retry_->immediate = immediate;
        retry_->offset = kWriteAt + next_slot_++ * SlotBytes(scenario_);
        if (!immediate) Aim(retry_.get());
      } else if (kind == 7) {
        retry_ = std::make_unique<Posted>(NewPosted(Operation::kRead, std::min<uint64_t>(bytes, kReadBytes)));
        retry_->offset = kReadAt + random_->Below(kReadBytes - retry_->buffer->size() + 1);
        Aim(retry_.get());
      } else if (kind == 8) {
        const bool add = random_->Chance(0.5), vector = add && next_number_ % 3 == 0;
        retry_ = std::make_unique<Posted>(vector ? NewPosted(Operation::kAtomic, kElements * sizeof(uint64_t))
                                                 : NewPosted(add ? Operation::kFetchAdd : Operation::kCompareSwap, 0));
        retry_->offset = vector ? kVectorAt : add ? kAddAt : kSwapAt;
        retry_->operand = retry_->number;
        retry_->compare = random_->Below(retry_->number);
      } else {
        retry_ = std::make_unique<Posted>(NewPosted(Operation::kFlush, 0));
      }
    } else {
      return false;
    }
  }
  const PostResult result = Post(*retry_);
  if (result == PostResult::kTryAgain) return false;
  if (result == PostResult::kOk) {
    ++pending_;
    const uint64_t number = retry_->number;
    if (!posted_.emplace(number, std::move(*retry_)).second) findings_->Note("oracle: a number was used twice");
  } else if (!failure_allowed_) {
    Finding(*retry_, "refused: " + std::string(PostResultName(result)));
  }
  retry_.reset();
  host_->Touch();
  return true;
}

void Side::Aim(Posted* posted) {
  if (peer_->offers_.empty() || random_->Chance(0.5)) return;
  const bool old = random_->Chance(0.2);
  Offer& offer = *(old ? peer_->offers_[random_->Below(peer_->offers_.size())] : peer_->offers_.back());
  if (posted->operation == Operation::kRead) {
    if (posted->buffer->size() > OfferedReadBytes(scenario_)) return;
    posted->offset = random_->Below(OfferedReadBytes(scenario_) - posted->buffer->size() + 1);
  } else {
    if (offer.next_slot == kOfferedSlots) return;
    posted->offset = OfferedReadBytes(scenario_) + offer.next_slot++ * SlotBytes(scenario_);
  }
  posted->offer = &offer;
}

RemoteMemory Side::TargetOf(const Posted& posted) const {
  return posted.offer != nullptr ? posted.offer->remote : peer_->host_->endpoint().ExportMemory(peer_->region_);
}

uint8_t* Side::PlaceOf(const Posted& posted) const {
  return (posted.offer != nullptr ? posted.offer->memory : peer_->memory_).data() + posted.offset;
}

// All who are told of the write have been: no copy of it may come any more.
void Side::FreePlace(Posted& posted) {
  if (!posted.ok || posted.told != posted.immediate) return;
  if (posted.offer != nullptr && posted.offer->revoked) return;
  std::memset(PlaceOf(posted), support::kPoison, posted.buffer->size());
  posted.place_free = true;
}

PostResult Side::Post(Posted& posted) {
  Endpoint& endpoint = host_->endpoint();
  const Time now = host_->now();
  const uint64_t pattern = posted.number * 1000 + number_;
  // Every other buffer is registered, so that placing lanes may use it.
  if (posted.number % 2 == 0 && posted.region == kUnregistered && posted.buffer->size() > 0) {
    posted.region = endpoint.RegisterMemory(posted.buffer->data(), posted.buffer->size(), kLocalOnly);
  }
  const LocalBuffer local = posted.buffer->local(posted.region);
  posted.revoked_before = posted.offer != nullptr && posted.offer->revoked;
  PostResult result = PostResult::kInvalidArgument;
  switch (posted.operation) {
    case Operation::kSend:
      posted.buffer->Fill(pattern);
      result = endpoint.PostSend(connection_,
                                 {.buffer = local,
                                  .tag = posted.tag,
                                  .immediate = posted.number,
                                  .has_immediate = true,
                                  .to_receive = scenario_.as_plugins && posted.number % 3 == 0,
                                  .awaited = posted.number % 4 != 0,
                                  .user_data = posted.number},
                                 now, &posted.id);
      break;
    case Operation::kReceive:
      result = endpoint.PostReceive(connection_, {.buffer = local, .tag = posted.tag, .user_data = posted.number}, now,
                                    &posted.id);
      break;
    case Operation::kWrite:
    case Operation::kWriteImmediate:
      posted.buffer->Fill(pattern);
      result = endpoint.PostWrite(connection_,
                                  {.buffer = local,
                                   .remote = TargetOf(posted),
                                   .remote_offset = posted.offset,
                                   .immediate = posted.number,
                                   .has_immediate = posted.immediate,
                                   .user_data = posted.number},
                                  now, &posted.id);
      break;
    case Operation::kRead:
      result = endpoint.PostRead(
          connection_,
          {.buffer = local, .remote = TargetOf(posted), .remote_offset = posted.offset, .user_data = posted.number},
          now, &posted.id);
      break;
    case Operation::kFetchAdd:
    case Operation::kCompareSwap:
      result = endpoint.PostAtomic(connection_,
                                   {.operation = posted.operation,
                                    .remote = peer_->host_->endpoint().ExportMemory(peer_->region_),
                                    .remote_offset = posted.offset,
                                    .operand = posted.operand,
                                    .compare = posted.compare,
                                    .user_data = posted.number},
                                   now, &posted.id);
      break;
    case Operation::kAtomic: {
      std::array<uint64_t, kElements> operands;
      for (uint32_t i = 0; i < kElements; ++i) operands[i] = posted.operand * (i + 1);
      result = endpoint.PostVectorAtomic(connection_,
                                         {.elements = kElements,
                                          .operands = operands.data(),
                                          .results = posted.buffer->data(),
                                          .remote = peer_->host_->endpoint().ExportMemory(peer_->region_),
                                          .remote_offset = posted.offset,
                                          .user_data = posted.number},
                                         now, &posted.id);
      break;
    }
    case Operation::kFlush:
      result = endpoint.PostFlush(connection_, {.user_data = posted.number}, now, &posted.id);
      break;
  }
  if (result == PostResult::kOk && posted.operation != Operation::kReceive) posted.order = next_order_++;
  return result;
}

bool Side::FillUp() {
  if (shared_ != nullptr) return false;
  PostResult result = PostResult::kOk;
  while (result == PostResult::kOk) {
    Posted filler = NewPosted(Operation::kReceive, 1);
    filler.tag = kTags;
    result = Post(filler);
    if (result != PostResult::kOk) break;
    ++pending_;
    const uint64_t number = filler.number;
    posted_.emplace(number, std::move(filler));
  }
  if (result != PostResult::kTryAgain && !failure_allowed_) {
    findings_->Note("side " + std::to_string(number_) + ": not told to try again but " +
                    std::string(PostResultName(result)));
  }
  return result == PostResult::kTryAgain;
}

void Side::MakeRoom() {
  for (auto& [number, posted] : posted_) {
    if (posted.tag != kTags || posted.done || posted.cancelled) continue;
    posted.cancelled = host_->endpoint().Cancel(connection_, posted.id, host_->now());
    if (!posted.cancelled && !failure_allowed_) Finding(posted, "could not be cancelled, though no message meets it");
  }
  host_->Touch();
}

void Side::CancelSome() {
  std::vector<Posted*> open;
  for (auto& [number, posted] : posted_) {
    if (!posted.done && !posted.cancelled && posted.tag != kTags) open.push_back(&posted);
  }
  if (open.empty()) return;
  Posted& chosen = *open[random_->Below(open.size())];
  if (host_->endpoint().Cancel(connection_, chosen.id, host_->now())) {
    chosen.cancelled = true;
    if (chosen.operation == Operation::kReceive) WantReceive(chosen.tag);  // its message needs another
  }
  host_->Touch();
}

bool Side::CancelLeftovers() {
  bool any = false;
  for (auto& [number, posted] : posted_) {
    if (posted.done || posted.cancelled || posted.operation != Operation::kReceive) continue;
    if (!host_->endpoint().Cancel(connection_, posted.id, host_->now())) continue;
    posted.cancelled = any = true;
  }
  host_->Touch();
  return any;
}

size_t Side::pending_without_receives() const {
  return static_cast<size_t>(std::count_if(posted_.begin(), posted_.end(), [](const auto& entry) {
    return !entry.second.done && entry.second.operation != Operation::kReceive;
  }));
}

// ---- completions

void Side::OnClosed(CloseReason reason) {
  closed_ = true;
  if (shared_ != nullptr) shared_->OnClosed(this);
  if (!failure_allowed_) {
    findings_->Note("side " + std::to_string(number_) +
                    ": the connection ended: " + std::string(CloseReasonName(reason)));
  }
}

void Side::OnCompletion(const Completion& completion) {
  if (completion.user_data == 0) {  // the peer's write with immediate
    ++told_;
    const auto write = peer_->posted_.find(completion.immediate);
    if (completion.operation != Operation::kWriteImmediate || write == peer_->posted_.end()) {
      findings_->Note("side " + std::to_string(number_) + ": told of a write that nobody posted");
      return;
    }
    Posted& posted = write->second;
    const uint64_t bytes = posted.buffer->size();
    if (completion.bytes != bytes) peer_->Finding(posted, "told at the target with another length");
    if (!received_.emplace(posted.number, true).second) peer_->Finding(posted, "told twice at the target");
    if (FindDifference(memory_.data() + posted.offset, bytes, posted.number * 1000 + peer_->number_) != bytes) {
      peer_->Finding(posted, "told at the target before it was in place");
    }
    posted.told = true;
    peer_->FreePlace(posted);
    return;
  }
  const auto found = posted_.find(completion.user_data);
  if (found == posted_.end()) {
    findings_->Note("side " + std::to_string(number_) + ": a completion of nothing that was posted");
    return;
  }
  Posted& posted = found->second;
  if (posted.done) {
    Finding(posted, "completed twice");
    return;
  }
  posted.done = true;
  --pending_;
  if (completion.operation != posted.operation) Finding(posted, "completed as another operation");
  if (posted.cancelled && completion.status == OperationStatus::kOk)
    Finding(posted, "done although its cancel said yes");
  const bool ok = posted.ok = completion.status == OperationStatus::kOk;
  const bool was_revoked = posted.offer != nullptr && posted.offer->revoked;
  if (ok || completion.status == OperationStatus::kTruncated) {
    CheckOk(posted, completion);
  } else if (completion.status == OperationStatus::kRemoteAccess ? !was_revoked
                                                                 : !failure_allowed_ && !posted.cancelled) {
    Finding(posted, "ended with " + std::string(OperationStatusName(completion.status)));
  }
  if (!posted.buffer->GuardsIntact()) Finding(posted, "written outside of its buffer");
  posted.buffer->Poison();  // it is the user's again: nobody may read or write it any more
  // Some keep their registration: what lands after the completion would show in the buffer, and not be refused.
  if (posted.region != kUnregistered && posted.number % 4 == 0) {
    host_->endpoint().DeregisterMemory(posted.region, host_->now());
    posted.region = kUnregistered;
  }
}

void Side::CheckOk(Posted& posted, const Completion& completion) {
  const uint64_t bytes = posted.buffer->size();
  if (posted.revoked_before && bytes > 0) Finding(posted, "went well with memory that had been taken back before");
  switch (posted.operation) {
    case Operation::kReceive:
      CheckReceive(posted, completion);
      break;
    case Operation::kSend:
      payload_bytes_ += bytes;
      break;
    case Operation::kWrite:
    case Operation::kWriteImmediate:
      payload_bytes_ += bytes;
      if (posted.offer != nullptr && posted.offer->revoked) break;  // it was in place
      if (FindDifference(PlaceOf(posted), bytes, posted.number * 1000 + number_) != bytes) {
        Finding(posted, "complete, but not in place at the target");
      }
      FreePlace(posted);
      break;
    case Operation::kRead:
      payload_bytes_ += bytes;
      if (FindDifference(posted.buffer->data(), bytes, kReadPattern + peer_->number_,
                         posted.offset - (posted.offer != nullptr ? 0 : kReadAt)) != bytes) {
        Finding(posted, "wrong contents");
      }
      break;
    case Operation::kFetchAdd:
    case Operation::kCompareSwap:
      posted.immediate = completion.result == posted.compare;  // of a swap: it was carried out
      break;
    case Operation::kAtomic: {
      std::array<uint64_t, kElements> before;
      std::memcpy(before.data(), posted.buffer->data(), sizeof(before));
      for (uint32_t i = 1; i < kElements; ++i) {
        if (before[i] != before[0] * (i + 1)) Finding(posted, "fetched elements of different times");
      }
      break;
    }
    case Operation::kFlush:
      for (const auto& [number, other] : posted_) {
        if (!other.done && other.operation != Operation::kReceive && other.order < posted.order) {
          Finding(posted, "complete before " + Name(other));
        }
      }
      break;
  }
}

void Side::CheckReceive(Posted& posted, const Completion& completion) {
  const auto finding = [this, &posted](const std::string& what) { Finding(posted, what); };
  const uint64_t message = TakeMessage(completion, posted.buffer->data(), posted.buffer->size(), finding);
  if (message == 0) return;
  if (completion.tag != posted.tag) Finding(posted, "met another tag");
  const uint64_t kept = std::min<uint64_t>(completion.bytes, posted.buffer->size());
  if (!posted.buffer->Untouched(kept)) Finding(posted, "written behind the end of the message");
  matches_.push_back({posted.number, message});
}

// ---- what arrives

uint64_t Side::TakeMessage(const Completion& completion, const uint8_t* data, uint64_t room,
                           const std::function<void(const std::string&)>& finding) {
  const auto send = peer_->posted_.find(completion.immediate);
  if (!completion.has_immediate || send == peer_->posted_.end() || send->second.operation != Operation::kSend) {
    finding("received a message that nobody sent");
    return 0;
  }
  const Posted& message = send->second;
  const uint64_t bytes = message.buffer->size();
  if (!received_.emplace(message.number, true).second) finding("received a second time: " + peer_->Name(message));
  if (message.tag != completion.tag) finding("told another tag than that of " + peer_->Name(message));
  if (completion.bytes != bytes) finding("another length than " + peer_->Name(message));
  const bool truncated = bytes > room;
  if (truncated != (completion.status == OperationStatus::kTruncated)) finding("wrong verdict on truncation");
  const uint64_t kept = std::min(bytes, room);
  if (FindDifference(data, kept, message.number * 1000 + peer_->number_) != kept) finding("wrong contents");
  return message.number;
}

std::optional<Side::Message> Side::FindMessage(uint64_t number) const {
  const auto send = peer_->posted_.find(number);
  if (send == peer_->posted_.end() || send->second.operation != Operation::kSend) return std::nullopt;
  return Message{send->second.buffer->size(), send->second.tag, received_.contains(number)};
}

size_t Side::messages_to_come() const {
  if (closed_) return 0;
  return static_cast<size_t>(std::count_if(peer_->posted_.begin(), peer_->posted_.end(), [this](const auto& entry) {
    const Posted& posted = entry.second;
    return posted.operation == Operation::kSend && (!posted.done || posted.ok) && !posted.cancelled &&
           !received_.contains(entry.first);
  }));
}

// ---- at the end

void Side::CheckAtEnd() {
  for (const auto& [number, posted] : posted_) {
    if (!posted.done) Finding(posted, "never completed");
    if (posted.done && !posted.buffer->Untouched()) Finding(posted, "written after its completion");
    if (!posted.buffer->GuardsIntact()) Finding(posted, "written outside of its buffer");
    const uint64_t bytes = posted.buffer->size();
    const bool is_free = posted.place_free && (posted.offer == nullptr || !posted.offer->revoked);
    if (is_free && !support::IsPoison(PlaceOf(posted), bytes)) Finding(posted, "written at its target once more");
  }
  if (!memory_.GuardsIntact()) findings_->Note("side " + std::to_string(number_) + ": written outside of the region");
  if (FindDifference(memory_.data() + kReadAt, kReadBytes, kReadPattern + number_) != kReadBytes) {
    findings_->Note("side " + std::to_string(number_) + ": memory that is only read was written");
  }
  for (const auto& offer : offers_) {
    const std::string name = "side " + std::to_string(number_) + ": memory offered for a while ";
    if (!offer->memory.GuardsIntact()) findings_->Note(name + "was written outside");
    if (offer->revoked && !offer->memory.Untouched()) findings_->Note(name + "was written after it was taken back");
    const uint64_t read_only = OfferedReadBytes(scenario_);
    if (!offer->revoked && FindDifference(offer->memory.data(), read_only, kReadPattern + number_) != read_only) {
      findings_->Note(name + "was written where it is only read");
    }
  }
  // Same tag: receives in posting order meet sends in posting order.
  std::sort(matches_.begin(), matches_.end());
  std::map<uint64_t, uint64_t> last;
  for (const auto& [receive, message] : matches_) {
    const Posted& posted = posted_.at(receive);
    uint64_t& before = last[posted.tag];
    if (message < before) Finding(posted, "overtaken by a later receive of its tag");
    before = message;
  }
  // Atomics of the peer on our words.
  uint64_t add = 0, swap = 0, sum = 0, vector_sum = 0;
  std::array<uint64_t, kElements> vector;
  std::memcpy(vector.data(), memory_.data() + kVectorAt, sizeof(vector));
  std::memcpy(&add, memory_.data() + kAddAt, 8);
  std::memcpy(&swap, memory_.data() + kSwapAt, 8);
  bool all_known = true, last_swap_known = swap == 0;
  for (const auto& [number, posted] : peer_->posted_) {
    if (posted.operation == Operation::kFetchAdd) sum += posted.operand;
    if (posted.operation == Operation::kAtomic) vector_sum += posted.operand;
    if (posted.operation == Operation::kCompareSwap) last_swap_known |= posted.operand == swap;
    all_known &= !posted.cancelled;
  }
  const bool complete = !failure_allowed_ && !peer_->failure_allowed_ && all_known;
  const auto check_sum = [this, complete](const char* what, uint64_t have, uint64_t want) {
    const std::string name = "side " + std::to_string(number_) + ": " + what;
    if (complete && have != want) {
      findings_->Note(name + " came to " + std::to_string(have) + ", not " + std::to_string(want));
    }
    if (have > want) findings_->Note(name + ": one was carried out twice");
  };
  check_sum("fetch-adds", add, sum);
  check_sum("sums of a vector", vector[0], vector_sum);
  for (uint32_t i = 1; i < kElements; ++i) {
    if (vector[i] != vector[0] * (i + 1)) {
      findings_->Note("side " + std::to_string(number_) + ": a vector was changed in part");
    }
  }
  if (!last_swap_known) findings_->Note("side " + std::to_string(number_) + ": a value that nobody swapped in");
}

}  // namespace paceline::simulation
