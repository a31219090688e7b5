// The connections of one endpoint. One is made when something is first to be sent to a peer; a peer that has connected
// before is answered on its connection. All share the endpoint's receive queue, where a connection has the peer's index
// in the address vector as its name, once it is known.
//
// Thread rule: under the domain's guard. Owned by the endpoint.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/libfabric/src/address.h"
#include "paceline/context.h"

namespace paceline::libfabric {

class Av;

class Links {
 public:
  Links(api::Context* paceline, api::ReceiveQueue* receives) : paceline_(paceline), receives_(receives) {}

  // The endpoint can be reached from now on; nonzero: why not, as FI_E*.
  int Listen();
  void BindAv(Av* av) { av_ = av; }
  const Address& own_address() const { return own_address_; }

  // Ends all of them in order: what was posted is carried out, in the background.
  void Close();
  bool closed() const;

  // The connection to send to this peer on. nullptr: not yet (-FI_EAGAIN), or not at all, as *error says: an attempt
  // that fails is told once, and the next call makes another.
  api::Connection* Reach(fi_addr_t peer, ssize_t* error);
  // The peer's index, FI_ADDR_NOTAVAIL when it is not in the address vector; and whether the connection is one of
  // these.
  fi_addr_t PeerOf(uint32_t connection) const;
  bool Has(uint32_t connection) const { return links_.contains(connection); }

  // Takes connections that peers have made, and looks at one of the known: those that are over are let go, and receives
  // from a lost peer fail. To be called now and then.
  void Care();

  void OnInserted(const Address& address, fi_addr_t index);
  void OnRemoved(const Address& address, fi_addr_t index);

 private:
  struct Link {
    api::Connection connection;
    Address address;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    bool was_established = false;
  };
  void Accept(api::Connection connection);
  void Drop(Link* link);
  Link* LinkOf(fi_addr_t peer) const { return peer < by_peer_.size() ? by_peer_[peer] : nullptr; }
  void SetLinkOf(fi_addr_t peer, Link* link);

  api::Context* paceline_;
  api::ReceiveQueue* receives_;
  Av* av_ = nullptr;
  api::Listener listener_;
  Address own_address_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Link>> links_;  // by number of the connection
  std::vector<Link*> by_peer_;                                  // where to send
  std::vector<uint32_t> rounds_;                                // numbers still to be looked at
};

}  // namespace paceline::libfabric
