#include "api/libfabric/src/av.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/names.h"

namespace paceline::libfabric {
namespace {

int Close(fid* object) {
  auto* av = FromFid<Av, fid_av>(object);
  const Domain::Guard guard(av->domain());
  if (av->in_use()) return -FI_EBUSY;
  delete av;
  return 0;
}

int Bind(fid* object, fid* other, uint64_t) {
  if (other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  FromFid<Av, fid_av>(object)->BindEq(FromFid<Eq, fid_eq>(other));
  return 0;
}

const char* Text(fid_av*, const void* address, char* buffer, size_t* size) {
  const std::string text = ToText(Address::From(address));
  if (buffer != nullptr && *size > 0) {
    const size_t count = std::min(*size - 1, text.size());
    std::memcpy(buffer, text.data(), count);
    buffer[count] = '\0';
  }
  *size = text.size() + 1;
  return buffer;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = Bind, .control = NotSupported(), .ops_open = NotSupported()};
fi_ops_av calls = {
    .size = sizeof(fi_ops_av),
    .insert = [](fid_av* av, const void* addresses, size_t count, fi_addr_t* indices, uint64_t flags,
                 void* context) { return static_cast<Av*>(av)->Insert(addresses, count, indices, flags, context); },
    .insertsvc =
        [](fid_av* av, const char* node, const char* service, fi_addr_t* index, uint64_t flags, void* context) {
          const auto address = PeerAddress(node, service, false);
          return address.has_value() ? static_cast<Av*>(av)->Insert(address->bytes.data(), 1, index, flags, context)
                                     : -FI_EINVAL;
        },
    .insertsym = NotSupported(),
    .remove = [](fid_av* av, fi_addr_t* indices, size_t count,
                 uint64_t) { return static_cast<Av*>(av)->RemoveAddresses(indices, count); },
    .lookup = [](fid_av* av, fi_addr_t index, void* address,
                 size_t* size) { return static_cast<Av*>(av)->Lookup(index, address, size); },
    .straddr = Text,
    .av_set = NotSupported(),
};

}  // namespace

Av::Av(Domain* domain, bool asynchronous, uint32_t context_bits)
    : fid_av{}, domain_(domain), asynchronous_(asynchronous), context_bits_(context_bits) {
  ++domain_->references;
}
Av::~Av() { --domain_->references; }

void Av::BindEq(Eq* eq) {
  const Domain::Guard guard(domain_);
  eq_ = eq;
}

int Av::Insert(const void* addresses, size_t count, fi_addr_t* indices, uint64_t flags, void* context) {
  const Domain::Guard guard(domain_);
  if ((flags & FI_AV_USER_ID) != 0) return -FI_ENOSYS;  // completions name indices alone
  if (asynchronous_ && !eq_) return -FI_ENOEQ;
  int inserted = 0;
  for (size_t i = 0; i < count; ++i) {
    const Address address = Address::From(static_cast<const uint8_t*>(addresses) + i * Address::kBytes);
    const bool good = address.bytes[8] > 0;
    if ((flags & FI_SYNC_ERR) != 0 && context != nullptr) static_cast<int*>(context)[i] = good ? 0 : FI_EINVAL;
    if (!good) {
      if (indices != nullptr) indices[i] = FI_ADDR_NOTAVAIL;
      if (asynchronous_) {
        eq_->WriteError({.fid = &fid, .context = context, .data = i, .err = FI_EINVAL, .prov_errno = FI_EINVAL});
      }
      continue;
    }
    ++inserted;
    const fi_addr_t index = NewEntry(address);
    if (indices != nullptr) indices[i] = index;
    std::vector<fi_addr_t>& all = indices_of_[address];
    all.push_back(index);
    if (all.size() > 1) continue;
    for (Endpoint* endpoint : endpoints_) endpoint->links().OnInserted(address, index);
  }
  if (!asynchronous_) return inserted;
  const fi_eq_entry done = {.fid = &fid, .context = context, .data = static_cast<uint64_t>(inserted)};
  eq_->Write(FI_AV_COMPLETE, &done, sizeof(done));
  return 0;
}

// The index of an address that is gone where there is one: a server's clients come and go for ever.
fi_addr_t Av::NewEntry(const Address& address) {
  fi_addr_t index = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  entries_[index] = {.address = address, .live = true};
  return index;
}

int Av::RemoveAddresses(const fi_addr_t* indices, size_t count) {
  const Domain::Guard guard(domain_);
  for (size_t i = 0; i < count; ++i) {
    const fi_addr_t index = indices[i];
    if (Find(index) == nullptr || ContextOf(index) != 0) return -FI_EINVAL;
    const Address address = entries_[index].address;
    entries_[index].live = false;
    std::vector<fi_addr_t>& all = indices_of_[address];
    const bool was_first = all.front() == index;
    std::erase(all, index);
    // A receive that names a peer waits for its first index, which nobody else gets while the peer has another one.
    if (!was_first || all.empty()) free_.push_back(index);
    if (was_first) {
      for (Endpoint* endpoint : endpoints_) endpoint->links().OnRemoved(address, index);
    }
    if (all.empty()) {
      indices_of_.erase(address);
    } else if (was_first) {
      for (Endpoint* endpoint : endpoints_) endpoint->links().OnInserted(address, all.front());
    }
  }
  return 0;
}

int Av::Lookup(fi_addr_t index, void* address, size_t* size) const {
  const Domain::Guard guard(domain_);
  const Address* found = Find(index);
  if (found == nullptr) return -FI_EINVAL;
  std::memcpy(address, found->bytes.data(), std::min(*size, Address::kBytes));
  *size = Address::kBytes;
  return 0;
}

fi_addr_t Av::IndexOf(const Address& address) const {
  const auto found = indices_of_.find(address);
  return found == indices_of_.end() ? FI_ADDR_NOTAVAIL : found->second.front();
}

fi_addr_t Av::FirstOf(fi_addr_t index) const {
  const Address* address = Find(index);
  return address == nullptr ? FI_ADDR_NOTAVAIL : IndexOf(*address);
}

const Address* Av::Find(fi_addr_t address) const {
  const fi_addr_t index = context_bits_ == 0 ? address : address & (~0ull >> context_bits_);
  return index < entries_.size() && entries_[index].live ? &entries_[index].address : nullptr;
}

int OpenAv(fid_domain* domain, fi_av_attr* attributes, fid_av** result, void* context) {
  const fi_av_attr wanted = attributes == nullptr ? fi_av_attr{} : *attributes;
  if (wanted.name != nullptr || (wanted.flags & FI_AV_USER_ID) != 0) return -FI_ENOSYS;
  if (wanted.rx_ctx_bits < 0 || wanted.rx_ctx_bits > kMaxContextBits) return -FI_EINVAL;
  auto* av = new (std::nothrow)
      Av(static_cast<Domain*>(domain), (wanted.flags & FI_EVENT) != 0, static_cast<uint32_t>(wanted.rx_ctx_bits));
  if (av == nullptr) return -FI_ENOMEM;
  av->fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &object_calls};
  av->ops = &calls;
  if (attributes != nullptr && attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
  *result = av;
  return 0;
}

}  // namespace paceline::libfabric
