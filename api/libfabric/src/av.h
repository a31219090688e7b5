// An address vector: addresses by index, for both of libfabric's types. The endpoints bound to it hear of each address
// that comes or goes, as peers may have connected before anybody inserted them.
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
#pragma once

#include <rdma/fi_domain.h>

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/libfabric/src/address.h"
#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/use.h"

namespace paceline::libfabric {

class Av : public fid_av, public Usable {
 public:
  Av(Domain* domain, bool asynchronous, uint32_t context_bits);
  ~Av();

  Domain* domain() const { return domain_; }
  void BindEq(Eq* eq);
  bool asynchronous() const { return asynchronous_; }
  void Add(Endpoint* endpoint) { endpoints_.push_back(endpoint); }
  void Remove(Endpoint* endpoint) { std::erase(endpoints_, endpoint); }

  // As fi_av_insert, _remove and _lookup.
  int Insert(const void* addresses, size_t count, fi_addr_t* indices, uint64_t flags, void* context);
  int RemoveAddresses(const fi_addr_t* indices, size_t count);
  int Lookup(fi_addr_t index, void* address, size_t* size) const;

  // The index under which a peer is known: of an address that was inserted several times, the first. FI_ADDR_NOTAVAIL:
  // none.
  fi_addr_t IndexOf(const Address& address) const;
  // The same of an index; and its address, or nullptr.
  fi_addr_t FirstOf(fi_addr_t index) const;
  const Address* Find(fi_addr_t index) const;
  // Addresses may name a receive context of their peer in so many of their highest bits.
  uint32_t context_bits() const { return context_bits_; }
  uint64_t ContextOf(fi_addr_t address) const { return context_bits_ == 0 ? 0 : address >> (64 - context_bits_); }

 private:
  struct Entry {
    Address address;
    bool live = false;
  };

  fi_addr_t NewEntry(const Address& address);

  Domain* domain_;
  Use<Eq> eq_;
  const bool asynchronous_;
  const uint32_t context_bits_;
  std::vector<Entry> entries_;
  std::vector<fi_addr_t> free_;                                      // indices of addresses that were removed
  absl::flat_hash_map<Address, std::vector<fi_addr_t>> indices_of_;  // in the order of their insertion; never empty
  std::vector<Endpoint*> endpoints_;
};

int OpenAv(fid_domain* domain, fi_av_attr* attributes, fid_av** av, void* context);

}  // namespace paceline::libfabric
