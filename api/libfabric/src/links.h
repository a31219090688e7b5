// The connections of one endpoint. One is made when something is first to be sent to a peer; a peer that has connected
// before is answered on its connection. All share the endpoint's receive queue, where a connection has the peer's index
// in the address vector as its name, once it is known.
//
// Thread rule: under the domain's guard. Owned by the endpoint.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/libfabric/src/address.h"
#include "paceline/context.h"

namespace paceline::libfabric {

class Av;

class Links {
 public:
  Links(api::Context* paceline, api::ReceiveQueue* receives) : paceline_(paceline), receives_(receives) {}

  // The endpoint can be reached from now on, under `service` if it is not 0 and still free; nonzero: why not, as FI_E*.
  int Listen(uint64_t service);
  void BindAv(Av* av) { av_ = av; }
  void UseReceives(api::ReceiveQueue* receives) { receives_ = receives; }
  const Address& own_address() const { return *identity_; }
  // Who we are to peers, where several are one; `sets`: listening makes it.
  void ShareIdentity(std::shared_ptr<Address> identity, bool sets) {
    identity_ = std::move(identity);
    sets_identity_ = sets;
  }

  // Ends all of them in order: what was posted is carried out, in the background.
  void Close();
  bool closed() const;
  // Ends them at once and lets them go.
  void Abort();

  // The connection to send to this peer on. nullptr: not yet (-FI_EAGAIN), or not at all, as *error says: an attempt
  // that fails is told once, and the next call makes another.
  api::Connection* Reach(fi_addr_t peer, ssize_t* error);
  // The peer's index, FI_ADDR_NOTAVAIL when it is not in the address vector; and whether the connection is one of
  // these.
  fi_addr_t PeerOf(uint32_t connection) const;
  bool Has(uint32_t connection) const { return links_.contains(connection); }

  // Takes connections that peers have made, and looks at one of the known: those that are over are let go, and receives
  // from a lost peer fail. They stay known for what they have still brought, until the context's queue of completions
  // has been found empty. To be called now and then; `drained`: it has been since the last call.
  void Care(bool drained);

  void OnInserted(const Address& address, fi_addr_t index);
  void OnRemoved(const Address& address, fi_addr_t index);

 private:
  static constexpr uint64_t kNoSlot = ~0ull;
  struct Link {
    api::Connection connection;
    Address address;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    uint64_t context = 0;  // of the peer's, that it leads to
    uint64_t slot = kNoSlot;
    bool one_way = false;  // the peer's, who receives nothing on it: never where to send
    bool was_established = false;
    bool over = false;  // known only for what it has brought
  };
  void Accept(api::Connection connection);
  void End(Link* link);
  // Peers have a slot for each of their receive contexts.
  uint64_t SlotOf(fi_addr_t peer, uint64_t context) const;
  Link* LinkAt(uint64_t slot) const { return slot < by_slot_.size() ? by_slot_[slot] : nullptr; }
  void TakeSlot(Link* link, uint64_t slot);
  void SetLinkAt(uint64_t slot, Link* link);

  api::Context* paceline_;
  api::ReceiveQueue* receives_;
  Av* av_ = nullptr;
  std::optional<api::Listener> listener_;
  std::shared_ptr<Address> identity_ = std::make_shared<Address>();
  bool sets_identity_ = true;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Link>> links_;  // by number of the connection
  std::vector<Link*> by_slot_;                                  // where to send
  std::vector<uint32_t> rounds_;                                // numbers still to be looked at
  std::vector<uint32_t> over_;                                  // numbers of those that are over
};

}  // namespace paceline::libfabric
