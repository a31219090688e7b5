#include "api/libfabric/src/links.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "api/libfabric/src/av.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {

using api::ConnectionState;

int Links::Listen() {
  auto listener = paceline_->Listen({.receives = receives_});
  if (!listener.ok()) return ErrorOf(listener.status());
  listener_ = *std::move(listener);
  own_address_ = ToAddress(listener_.handle());
  return 0;
}

void Links::Close() {
  for (const auto& [id, link] : links_) link->connection.Close();
  listener_ = {};
}

bool Links::closed() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& item) { return item.second->connection.state() == ConnectionState::kClosed; });
}

api::Connection* Links::Reach(fi_addr_t peer, ssize_t* error) {
  peer = av_ == nullptr ? FI_ADDR_NOTAVAIL : av_->FirstOf(peer);
  if (peer == FI_ADDR_NOTAVAIL) {
    *error = -FI_EINVAL;
    return nullptr;
  }
  Link* link = LinkOf(peer);
  if (link != nullptr && link->was_established) return &link->connection;
  *error = -FI_EAGAIN;
  if (link == nullptr) {
    const Address& address = *av_->Find(peer);
    auto connection = paceline_->Connect(ToHandle(address),
                                         {.receives = receives_, .source = peer, .private_data = own_address_.bytes});
    if (!connection.ok()) {
      *error = -ErrorOf(connection.status());
      return nullptr;
    }
    const uint32_t id = connection->id();
    auto fresh = std::make_unique<Link>(Link{.connection = *std::move(connection), .address = address, .peer = peer});
    SetLinkOf(peer, fresh.get());
    links_[id] = std::move(fresh);
    return nullptr;
  }
  const ConnectionState state = link->connection.state();
  if (state == ConnectionState::kEstablished) {
    link->was_established = true;
    return &link->connection;
  }
  if (state == ConnectionState::kClosed) {
    *error = -FI_ECONNREFUSED;
    Drop(link);
  }
  return nullptr;
}

fi_addr_t Links::PeerOf(uint32_t connection) const {
  const auto found = links_.find(connection);
  return found == links_.end() ? FI_ADDR_NOTAVAIL : found->second->peer;
}

void Links::Care() {
  while (auto connection = listener_.Accept()) Accept(*std::move(connection));
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
  // Of an attempt that failed Reach tells.
  if (state == ConnectionState::kClosed && link->was_established) Drop(link);
}

void Links::Accept(api::Connection connection) {
  const std::vector<uint8_t> given = connection.private_data();
  if (given.size() != Address::kBytes) return;  // somebody else's: it ends here
  const uint32_t id = connection.id();
  auto link = std::make_unique<Link>(Link{.connection = std::move(connection), .address = Address::From(given.data())});
  link->was_established = true;
  const fi_addr_t peer = av_ == nullptr ? FI_ADDR_NOTAVAIL : av_->IndexOf(link->address);
  link->peer = peer;
  if (peer != FI_ADDR_NOTAVAIL) {
    link->connection.SetSource(peer);
    if (LinkOf(peer) == nullptr) SetLinkOf(peer, link.get());
  }
  links_[id] = std::move(link);
}

void Links::Drop(Link* link) {
  const fi_addr_t peer = link->peer;
  const bool was_established = link->was_established;
  if (LinkOf(peer) == link) SetLinkOf(peer, nullptr);
  links_.erase(link->connection.id());
  if (!was_established || peer == FI_ADDR_NOTAVAIL) return;
  for (const auto& [id, other] : links_) {
    if (other->peer != peer || other->connection.state() != ConnectionState::kEstablished) continue;
    if (LinkOf(peer) == nullptr) SetLinkOf(peer, other.get());
    return;
  }
  receives_->FailReceivesFrom(peer);
}

void Links::SetLinkOf(fi_addr_t peer, Link* link) {
  if (peer == FI_ADDR_NOTAVAIL) return;
  if (peer >= by_peer_.size()) by_peer_.resize(peer + 1);
  by_peer_[peer] = link;
}

void Links::OnInserted(const Address& address, fi_addr_t index) {
  for (const auto& [id, link] : links_) {
    if (link->address != address) continue;
    link->peer = index;
    if (LinkOf(index) == nullptr) SetLinkOf(index, link.get());
    link->connection.SetSource(index);
  }
}

void Links::OnRemoved(const Address& address, fi_addr_t index) {
  SetLinkOf(index, nullptr);
  for (const auto& [id, link] : links_) {
    if (link->address != address) continue;
    link->peer = FI_ADDR_NOTAVAIL;
    link->connection.SetSource(api::kAnySource);
  }
}

}  // namespace paceline::libfabric
