#include "tests/simulation/shared_receives.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace paceline::simulation {

SharedReceives::SharedReceives(const Scenario& scenario, uint32_t number, support::TestHost* host, Findings* findings,
                               Random* random)
    : scenario_(scenario),
      number_(number),
      host_(host),
      findings_(findings),
      random_(random),
      queue_(host->endpoint().NewReceiveQueue()) {}

std::string SharedReceives::Name(const Posted& posted) const {
  const ReceiveRequest& request = posted.request;
  std::string name = "queue " + std::to_string(number_) + ", receive " + std::to_string(posted.number) + " of " +
                     std::to_string(posted.buffer->size()) + " bytes";
  if (posted.claimed.claim != 0) return name + " for a claimed send";
  if (request.min_free > 0) name += ", for many";
  if (request.source != kAnySource) name += ", from " + std::to_string(request.source);
  if (request.ignore == ~0ull) return name + ", any tag";
  return name + ", tag " + std::to_string(request.tag) + " but for bits " + std::to_string(request.ignore);
}

// ---- connections

ConnectionSetup SharedReceives::NewSetup(Source name) {
  const bool late = random_->Chance(scenario_.late_names);
  next_member_ = Member{.name = name, .named = !late};
  return {.receives = queue_, .source = late ? kAnySource : name};
}

void SharedReceives::Join(Side* side) {
  members_.push_back(std::make_unique<Member>(*std::exchange(next_member_, std::nullopt)));
  members_.back()->side = side;
}

SharedReceives::Member* SharedReceives::MemberOf(const Side* side) {
  for (auto& member : members_) {
    if (member->side == side) return member.get();
  }
  return nullptr;
}

SharedReceives::Member* SharedReceives::MemberOf(ConnectionId connection) {
  for (auto& member : members_) {
    if (member->side->connection() == connection) return member.get();
  }
  return nullptr;
}

void SharedReceives::GiveName(Member& member) {
  if (member.named || member.side->closed()) return;
  member.named = true;
  member.named_from = member.side->next_message();
  host_->endpoint().SetSource(member.side->connection(), member.name, host_->now());
  host_->Touch();
}

void SharedReceives::OnClosed(Side* side) {
  std::erase_if(wanted_, [side](const Wanted& wanted) { return wanted.side == side; });
  std::erase_if(claims_, [side](const Claim& claim) { return claim.side == side; });
  const Source name = MemberOf(side)->name;
  const bool last = std::all_of(members_.begin(), members_.end(),
                                [name](const auto& member) { return member->name != name || member->side->closed(); });
  if (!last || gone_ || random_->Chance(0.3)) return;
  failed_names_.push_back(name);
  host_->endpoint().FailReceivesFrom(queue_, name, OperationStatus::kPeerLost, host_->now());
}

void SharedReceives::Delete() {
  if (gone_) return;
  gone_ = true;
  wanted_.clear();
  claims_.clear();
  host_->endpoint().DeleteReceiveQueue(queue_, host_->now());
  host_->Touch();
}

void SharedReceives::DeregisterSome() {
  for (auto& [number, posted] : posted_) {
    if (posted.done || posted.region == kUnregistered || random_->Chance(0.5)) continue;
    receives_may_fail_ = true;
    host_->endpoint().DeregisterMemory(std::exchange(posted.region, kUnregistered), host_->now());
    host_->Touch();
    return;
  }
}

// ---- posting

bool SharedReceives::PostNext() {
  if (Member& member = *members_[random_->Below(members_.size())]; !member.named && random_->Chance(0.1)) {
    GiveName(member);
  }
  if (random_->Chance(scenario_.claims)) Look();
  if (!claims_.empty() && random_->Chance(0.5)) return PostClaimed();
  std::swap(wanted_[random_->Below(wanted_.size())], wanted_.back());
  const Wanted wanted = wanted_.back();
  ReceiveRequest request{.tag = wanted.tag};
  const uint64_t kind = random_->Below(10);
  if (kind >= 6) request.ignore = kind == 9 ? ~0ull : kTags - 2;  // any, or those that are odd alike
  if (random_->Chance(0.6)) request.source = MemberOf(wanted.side)->name;
  size_t bytes = random_->Chance(0.95) ? scenario_.max_bytes : random_->Below(scenario_.max_bytes + 1);
  if (random_->Chance(scenario_.many)) {
    request.min_free = 1 + random_->Below(scenario_.max_bytes);
    bytes = request.min_free + random_->Below(2ull * scenario_.max_bytes);
  }
  if (!Post(request, bytes, {})) return false;
  wanted_.pop_back();
  return true;
}

bool SharedReceives::Post(const ReceiveRequest& request, size_t bytes, const Claim& claimed) {
  Posted posted{.number = next_number_, .request = request, .claimed = claimed};
  posted.buffer = std::make_unique<support::GuardedBuffer>(bytes);
  if (posted.number % 2 == 0 && bytes > 0) {  // so that placing lanes may use it
    posted.region = host_->endpoint().RegisterMemory(posted.buffer->data(), bytes, kLocalOnly);
  }
  posted.request.buffer = posted.buffer->local(posted.region);
  posted.request.claimed = claimed.claim;
  posted.request.user_data = static_cast<uint64_t>(number_ + 1) << kNumberBits | posted.number;
  const PostResult result = host_->endpoint().PostSharedReceive(queue_, posted.request, host_->now(), &posted.id);
  host_->Touch();
  if (result == PostResult::kOk) {
    ++next_number_;
    ++pending_;
    posted_.emplace(posted.number, std::move(posted));
    return true;
  }
  if (posted.region != kUnregistered) host_->endpoint().DeregisterMemory(posted.region, host_->now());
  if (result == PostResult::kTryAgain) return false;
  // The claimed send may be gone with its connection before we were told.
  const bool may = claimed.claim != 0 ? claimed.side->failure_allowed() : gone_;
  if (!may) Finding(posted, "refused: " + std::string(PostResultName(result)));
  return true;
}

bool SharedReceives::PostClaimed() {
  std::swap(claims_[random_->Below(claims_.size())], claims_.back());
  // Some only throw it away.
  const size_t bytes = random_->Chance(0.8) ? scenario_.max_bytes : 0;
  if (!Post({}, bytes, claims_.back())) return false;
  claims_.pop_back();
  return true;
}

void SharedReceives::Look() {
  ReceiveRequest request{.tag = random_->Below(kTags), .ignore = random_->Chance(0.5) ? 0 : ~0ull};
  const bool claim = random_->Chance(0.5);
  Member& named = *members_[random_->Below(members_.size())];
  if (random_->Chance(0.5)) request.source = named.name;
  const std::optional<WaitingSend> seen = host_->endpoint().Peek(queue_, request, claim);
  if (!seen.has_value()) return;
  const std::string name = "queue " + std::to_string(number_) + ": a look at what waits ";
  Member* member = MemberOf(seen->connection);
  const std::optional<Side::Message> message =
      member == nullptr || !seen->has_immediate ? std::nullopt : member->side->FindMessage(seen->immediate);
  if (!message.has_value()) return findings_->Note(name + "finds a message that nobody sent");
  if (message->taken) findings_->Note(name + "finds a message that has been received");
  if (member->claimed.contains(seen->immediate)) findings_->Note(name + "finds a claimed message");
  if (message->bytes != seen->bytes || message->tag != seen->tag) findings_->Note(name + "tells other bytes or tag");
  if (!TagAgrees(request, message->tag)) findings_->Note(name + "finds another tag");
  if (seen->source != (member->named ? member->name : kAnySource)) findings_->Note(name + "tells another source");
  if (request.source != kAnySource && request.source != seen->source) findings_->Note(name + "finds another source");
  if (claim != (seen->claimed != 0)) findings_->Note(name + "claims what it should not, or does not");
  PassOver(*member, seen->immediate, next_number_);
  matches_.push_back({.receive = next_number_++, .member = member, .message = seen->immediate, .request = request});
  if (claim) {
    member->claimed[seen->immediate] = true;
    claims_.push_back({.claim = seen->claimed, .side = member->side, .message = seen->immediate});
  }
}

void SharedReceives::TakeTheRest() {
  if (gone_) return;
  for (auto& member : members_) {
    if (random_->Chance(0.7)) GiveName(*member);
  }
  while (!claims_.empty() && PostClaimed()) {
  }
  size_t to_come = 0;
  for (auto& member : members_) to_come += member->side->messages_to_come();
  while (to_come > 0 && Post({.ignore = ~0ull}, scenario_.max_bytes, {})) --to_come;
}

void SharedReceives::Cancel(Posted& posted) {
  posted.cancelled = host_->endpoint().CancelReceive(queue_, posted.id, host_->now());
  if (posted.cancelled && !posted.passed_over.empty()) {
    Finding(posted, "could be cancelled, but was passed over by " + posted.passed_over);
  }
  if (posted.cancelled && posted.claimed.claim != 0) Finding(posted, "could be cancelled, but its send was there");
}

void SharedReceives::CancelSome() {
  std::vector<Posted*> open;
  for (auto& [number, posted] : posted_) {
    if (!posted.done && !posted.cancelled && posted.claimed.claim == 0) open.push_back(&posted);
  }
  if (open.empty()) return;
  Posted& chosen = *open[random_->Below(open.size())];
  Cancel(chosen);
  host_->Touch();
}

void SharedReceives::CancelLeftovers() {
  for (auto& [number, posted] : posted_) {
    if (!posted.done && !posted.cancelled) Cancel(posted);
  }
  host_->Touch();
}

// ---- completions

bool SharedReceives::IsOpenTo(const ReceiveRequest& request, const Member& member, uint64_t message, uint64_t tag) {
  const bool source =
      request.source == kAnySource || (request.source == member.name && member.named && message >= member.named_from);
  return source && request.claimed == 0 && TagAgrees(request, tag) && !member.claimed.contains(message);
}

// The message waits, or has met a receive, and the receives before `before` that are open to it have not taken it.
void SharedReceives::PassOver(Member& member, uint64_t message, uint64_t before) {
  const uint64_t tag = member.side->FindMessage(message)->tag;
  for (auto& [number, posted] : posted_) {
    if (number >= before) return;
    if (posted.done || posted.cancelled || !IsOpenTo(posted.request, member, message, tag)) continue;
    posted.passed_over = "send " + std::to_string(message) + " from " + std::to_string(member.name);
  }
}

void SharedReceives::OnCompletion(const Completion& completion) {
  const auto found = posted_.find(completion.user_data & ((1ull << kNumberBits) - 1));
  if (found == posted_.end()) {
    return findings_->Note("queue " + std::to_string(number_) + ": a completion of nothing that was posted");
  }
  Posted& posted = found->second;
  if (posted.done) return Finding(posted, "completed twice");
  if (completion.operation != Operation::kReceive) Finding(posted, "completed as another operation");
  if (++posted.completions > 1) ++further_completions_;
  if (!completion.released && posted.request.min_free == 0) Finding(posted, "is told not to be released");
  const bool ok = completion.status == OperationStatus::kOk || completion.status == OperationStatus::kTruncated;
  if (ok) {
    TakePart(posted, completion);
  } else {
    CheckFailure(posted, completion);
  }
  if (completion.released) GiveBack(posted);
}

void SharedReceives::TakePart(Posted& posted, const Completion& completion) {
  const bool many = posted.request.min_free > 0;
  const uint64_t size = posted.buffer->size();
  if (posted.cancelled && !many) Finding(posted, "done although its cancel said yes");
  Member* member = MemberOf(completion.connection);
  if (member == nullptr) return Finding(posted, "met a send of a connection that has other receives");
  if (completion.offset > (many ? size - posted.request.min_free : 0)) {
    return Finding(posted, "placed at an offset where it may not");
  }
  uint8_t* data = posted.buffer->data() + completion.offset;
  const uint64_t room = size - completion.offset;
  const uint64_t message = member->side->TakeMessage(
      completion, data, room, [this, &posted](const std::string& what) { Finding(posted, what); });
  if (message == 0) return;
  const Claim& claimed = posted.claimed;
  if (claimed.claim != 0 && (claimed.side != member->side || claimed.message != message)) {
    Finding(posted, "has another send than the claimed one");
  }
  if (claimed.claim == 0 && member->claimed.contains(message)) Finding(posted, "has a send that was claimed");
  if (claimed.claim == 0 && !TagAgrees(posted.request, completion.tag)) Finding(posted, "met another tag");
  const Source source = posted.request.source;
  if (source != kAnySource && (source != member->name || !member->named)) Finding(posted, "met another source");
  const uint64_t kept = std::min(completion.bytes, room);
  if (!many && !posted.buffer->Untouched(kept)) Finding(posted, "written behind the end of the message");
  std::memset(data, support::kPoison, kept);  // it is whole: nobody writes there any more
  posted.parts[completion.offset] += kept;
  matches_.push_back({.receive = posted.number,
                      .offset = completion.offset,
                      .member = member,
                      .message = message,
                      .posted = &posted,
                      .request = posted.request});
  if (claimed.claim == 0) PassOver(*member, message, posted.number);
}

void SharedReceives::CheckFailure(Posted& posted, const Completion& completion) {
  // It had met a send, whose connection ended.
  if (completion.connection != kNoConnection) {
    posted.any_failed = true;
    Member* member = MemberOf(completion.connection);
    if (member == nullptr || !member->side->failure_allowed()) {
      Finding(posted, "ended with " + std::string(OperationStatusName(completion.status)));
    }
    return;
  }
  const auto failed = std::find(failed_names_.begin(), failed_names_.end(), posted.request.source);
  const bool told =
      completion.status == OperationStatus::kCancelled && (posted.cancelled || gone_ || receives_may_fail_);
  const bool lost = completion.status == OperationStatus::kPeerLost && failed != failed_names_.end();
  if (!told && !lost) Finding(posted, "ended by itself with " + std::string(OperationStatusName(completion.status)));
  if (posted.told_cancelled) Finding(posted, "is told twice to have ended");
  if (!posted.passed_over.empty())
    Finding(posted, "ended without a send, but was passed over by " + posted.passed_over);
  posted.cancelled = posted.told_cancelled = true;
}

// The buffer is the user's again: nobody may read or write it any more.
void SharedReceives::GiveBack(Posted& posted) {
  posted.done = true;
  --pending_;
  if (!posted.buffer->GuardsIntact()) Finding(posted, "written outside of its buffer");
  if (!posted.any_failed) {
    uint64_t end = 0;
    for (const auto& [offset, bytes] : posted.parts) {
      if (offset != end) Finding(posted, "has parts that overlap or leave room between them");
      end = offset + bytes;
    }
    const bool used_up = posted.buffer->size() - end < posted.request.min_free;
    if (posted.request.min_free > 0 && used_up == posted.told_cancelled) {
      Finding(posted, used_up ? "cancelled, but used up" : "released, but not used up");
    }
    if (!posted.buffer->Untouched()) Finding(posted, "written where no message is");
  }
  posted.buffer->Poison();
  // Some keep their registration: what lands later would show in the buffer, and not be refused.
  if (posted.region != kUnregistered && posted.number % 4 == 0) {
    host_->endpoint().DeregisterMemory(std::exchange(posted.region, kUnregistered), host_->now());
  }
}

// ---- at the end

void SharedReceives::CheckAtEnd() {
  for (const auto& [number, posted] : posted_) {
    if (!posted.done) Finding(posted, "never completed");
    if (posted.done && !posted.buffer->Untouched()) Finding(posted, "written after its completion");
    if (!posted.buffer->GuardsIntact()) Finding(posted, "written outside of its buffer");
  }
  for (const auto& member : members_) {
    if (member->side->failure_allowed() || gone_) continue;
    if (const size_t missing = member->side->messages_to_come(); missing > 0) {
      findings_->Note("queue " + std::to_string(number_) + ": " + std::to_string(missing) + " sends from " +
                      std::to_string(member->name) + " met no receive");
    }
  }
  CheckOrder();
}

void SharedReceives::CheckOrder() {
  std::sort(matches_.begin(), matches_.end(), [](const Match& a, const Match& b) {
    return std::tie(a.receive, a.offset) < std::tie(b.receive, b.offset);
  });
  for (const Match& later : matches_) {
    if (later.posted == nullptr) continue;
    const uint64_t tag = later.member->side->FindMessage(later.message)->tag;
    for (const Match& earlier : matches_) {
      if (std::tie(earlier.receive, earlier.offset) >= std::tie(later.receive, later.offset)) break;
      if (earlier.member != later.member || earlier.message <= later.message) continue;
      if (earlier.posted != nullptr && earlier.posted->claimed.claim != 0) continue;
      if (!IsOpenTo(earlier.request, *later.member, later.message, tag)) continue;
      Finding(*later.posted,
              "has send " + std::to_string(later.message) + ", overtaken by send " + std::to_string(earlier.message) +
                  (earlier.posted != nullptr ? " in receive " : " at look ") + std::to_string(earlier.receive));
    }
  }
}

}  // namespace paceline::simulation
