#include "api/libfabric/src/links.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <span>
#include <utility>

#include "api/libfabric/src/av.h"
#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/names.h"

namespace paceline::libfabric {

namespace {

using api::ConnectionState;

// What a connection says of who made it, as its private data: the address, and one byte more where nobody receives on
// it, as of a transmit context, who is not to be answered there.
constexpr size_t kAnsweredBytes = Address::kBytes;
constexpr size_t kOneWayBytes = Address::kBytes + 1;

}  // namespace

int Links::Listen(uint64_t service) {
  auto listener = paceline_->Listen({.receives = receives_, .service = service});
  if (!listener.ok() && listener.status().code() == api::StatusCode::kAlreadyExists) {
    listener = paceline_->Listen({.receives = receives_});
  }
  if (!listener.ok()) return ErrorOf(listener.status());
  listener_ = *std::move(listener);
  if (sets_identity_) *identity_ = NameOf(listener_->handle());
  return 0;
}

void Links::Close() {
  for (const auto& [id, link] : links_) link->connection.Close();
  listener_.reset();
}

bool Links::closed() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& item) { return item.second->connection.state() == ConnectionState::kClosed; });
}

void Links::Abort() {
  for (const auto& [id, link] : links_) link->connection.Abort();
  by_slot_.clear();
  over_.clear();
  links_.clear();
}

api::Connection* Links::Reach(fi_addr_t address, ssize_t* error) {
  const uint64_t context = av_ == nullptr ? 0 : av_->ContextOf(address);
  const fi_addr_t peer = av_ == nullptr ? FI_ADDR_NOTAVAIL : av_->FirstOf(address);
  if (peer == FI_ADDR_NOTAVAIL) {
    *error = -FI_EINVAL;
    return nullptr;
  }
  const uint64_t slot = SlotOf(peer, context);
  Link* link = LinkAt(slot);
  if (link != nullptr && link->was_established) return &link->connection;
  *error = -FI_EAGAIN;
  if (link == nullptr) {
    const Address& target = *av_->Find(peer);
    std::array<uint8_t, kOneWayBytes> said{};
    std::ranges::copy(identity_->bytes, said.begin());
    auto connection = paceline_->Connect(
        ToHandle(target.OfContext(context)),
        {.receives = receives_,
         .source = peer,
         .private_data = std::span(said).first(listener_.has_value() ? kAnsweredBytes : kOneWayBytes)});
    if (!connection.ok()) {
      *error = -ErrorOf(connection.status());
      return nullptr;
    }
    const uint32_t id = connection->id();
    auto fresh = std::make_unique<Link>(
        Link{.connection = *std::move(connection), .address = target, .peer = peer, .context = context, .slot = slot});
    SetLinkAt(slot, fresh.get());
    links_[id] = std::move(fresh);
    return nullptr;
  }
  const ConnectionState state = link->connection.state();
  if (state == ConnectionState::kEstablished) {
    link->was_established = true;
    return &link->connection;
  }
  if (state == ConnectionState::kClosed) {
    *error = -ErrorOf(link->connection.close_code());
    End(link);
  }
  return nullptr;
}

fi_addr_t Links::PeerOf(uint32_t connection) const {
  const auto found = links_.find(connection);
  return found == links_.end() ? FI_ADDR_NOTAVAIL : found->second->peer;
}

void Links::Care(bool drained) {
  if (drained) {
    for (const uint32_t id : over_) links_.erase(id);
    over_.clear();
  }
  while (listener_.has_value()) {
    auto connection = listener_->Accept();
    if (!connection.has_value()) break;
    Accept(*std::move(connection));
  }
  if (rounds_.empty()) {
    for (const auto& [id, link] : links_) rounds_.push_back(id);
  }
  if (rounds_.empty()) return;
  const auto found = links_.find(rounds_.back());
  rounds_.pop_back();
  if (found == links_.end()) return;
  Link* link = found->second.get();
  const ConnectionState state = link->connection.state();
  if (state == ConnectionState::kEstablished) link->was_established = true;
  // Of an attempt that failed Reach tells, while the peer has its address and no other connection.
  const bool untold = !link->was_established && LinkAt(link->slot) == link;
  if (state == ConnectionState::kClosed && !link->over && !untold) End(link);
}

void Links::Accept(api::Connection connection) {
  const std::vector<uint8_t> given = connection.private_data();
  const bool one_way = given.size() == kOneWayBytes;
  if (given.size() != kAnsweredBytes && !one_way) return;  // somebody else's: it ends here
  const uint32_t id = connection.id();
  auto link = std::make_unique<Link>(Link{.connection = std::move(connection), .address = Address::From(given.data())});
  link->one_way = one_way;
  link->was_established = true;
  const fi_addr_t peer = av_ == nullptr ? FI_ADDR_NOTAVAIL : av_->IndexOf(link->address);
  link->peer = peer;
  if (peer != FI_ADDR_NOTAVAIL) {
    link->connection.SetSource(peer);
    if (!one_way) TakeSlot(link.get(), SlotOf(peer, 0));
  }
  links_[id] = std::move(link);
}

void Links::End(Link* link) {
  const fi_addr_t peer = link->peer;
  const uint64_t slot = link->slot;
  if (LinkAt(slot) == link) SetLinkAt(slot, nullptr);
  link->over = true;
  over_.push_back(link->connection.id());
  const api::CloseCode code = link->connection.close_code();
  if (peer != FI_ADDR_NOTAVAIL && code != api::CloseCode::kLocal && code != api::CloseCode::kByPeer) {
    FI_WARN(Provider(), FI_LOG_EP_DATA, "the connection with peer %" PRIu64 " has ended: %s\n", peer,
            link->connection.close_reason().c_str());
  }
  if (!link->was_established || peer == FI_ADDR_NOTAVAIL) return;
  bool has_other = false;
  for (const auto& [id, other] : links_) {
    if (other->peer != peer || other->connection.state() != ConnectionState::kEstablished) continue;
    has_other = true;
    if (other->slot == slot && LinkAt(slot) == nullptr) SetLinkAt(slot, other.get());
  }
  if (!has_other) receives_->FailReceivesFrom(peer);
}

uint64_t Links::SlotOf(fi_addr_t peer, uint64_t context) const { return peer << av_->context_bits() | context; }

// An attempt of ours that is under way, or has failed, is no reason not to answer on a connection that is there.
void Links::TakeSlot(Link* link, uint64_t slot) {
  link->slot = slot;
  const Link* other = LinkAt(slot);
  if (other == nullptr || !other->was_established) SetLinkAt(slot, link);
}

void Links::SetLinkAt(uint64_t slot, Link* link) {
  if (slot == kNoSlot) return;
  if (slot >= by_slot_.size()) by_slot_.resize(slot + 1);
  by_slot_[slot] = link;
}

void Links::OnInserted(const Address& address, fi_addr_t index) {
  for (const auto& [id, link] : links_) {
    if (link->address != address) continue;
    link->peer = index;
    link->connection.SetSource(index);
    if (!link->was_established || link->over) continue;  // an attempt for an address that was removed: nobody's
    if (!link->one_way) TakeSlot(link.get(), SlotOf(index, link->context));
  }
}

void Links::OnRemoved(const Address& address, fi_addr_t index) {
  for (uint64_t context = 0; context < 1ull << av_->context_bits(); ++context) {
    SetLinkAt(SlotOf(index, context), nullptr);
  }
  for (const auto& [id, link] : links_) {
    if (link->address != address) continue;
    link->peer = FI_ADDR_NOTAVAIL;
    link->slot = kNoSlot;
    link->connection.SetSource(api::kAnySource);
  }
}

}  // namespace paceline::libfabric
