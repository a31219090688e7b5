// An event queue: of a fabric, for events that the provider and the program write. Reading takes the oldest, and makes
// progress for the domains whose connections it tells of.
//
// Thread rule: any thread; it has locks of its own, of which that of its domains is taken before their guards, and that
// of its events after.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "api/libfabric/src/address.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/use.h"
#include "api/libfabric/src/wait_descriptor.h"
#include "paceline/types.h"

namespace paceline::libfabric {

class Domain;

class Eq : public fid_eq, public Usable {
 public:
  // `api_version`: of the interface, that the program has.
  Eq(const fi_eq_attr& attributes, uint32_t api_version);

  // Not under a guard: this domain has events for the queue; as many times as it is said, until it is taken back.
  void Watch(Domain* domain);
  void Unwatch(Domain* domain);

  // As fi_eq_write.
  ssize_t Write(uint32_t event, const void* bytes, size_t size);
  // `detail`: what err_data is to be.
  void WriteError(const fi_eq_err_entry& error, std::vector<uint8_t> detail = {});
  // FI_CONNREQ of a passive endpoint: who asks, and data of its program. It waits while news of a connection with the
  // same context is due: a program that has FI_CONNECTED or FI_SHUTDOWN may ask anew before that has come here, and who
  // accepts one connection after the other is to read of the first before it reads of the second.
  void WriteRequest(fid_t passive, OwnedInfo info, const Address& from, std::span<const uint8_t> data);
  // News of the connection of `endpoint` is due, which its peer may already have: until anything is written of the
  // endpoint here, requests of `peer` wait.
  void Await(fid_t endpoint, const Address& peer);
  // FI_CONNECTED or FI_SHUTDOWN of an endpoint, and data of its peer's program.
  void WriteConnection(uint32_t event, fid_t endpoint, std::span<const uint8_t> data);
  // What nobody has read of an object that closes is dropped.
  void Forget(fid_t object);
  ssize_t Read(uint32_t* event, void* bytes, size_t size, uint64_t flags);
  ssize_t ReadError(fi_eq_err_entry* error, uint64_t flags);
  ssize_t WaitRead(uint32_t* event, void* bytes, size_t size, int timeout, uint64_t flags);
  int TryWait();
  int Descriptor();  // or a negative error
  bool may_be_written() const { return writable_; }
  fi_wait_obj wait_object() const { return wait_; }

 private:
  struct Event {
    bool is_error = false;
    uint32_t event = 0;
    std::vector<uint8_t> bytes;  // of an error: its detail
    size_t least = 0;            // bytes that the program must have room for; the rest may be cut off
    fid_t about = nullptr;       // an endpoint
    OwnedInfo info;              // the program's when it has read the event
    fi_eq_err_entry error{};
  };
  struct Due {
    fid_t endpoint = nullptr;
    Address peer;
  };
  struct Held {
    Event request;
    Address from;
  };
  struct Watched {
    Domain* domain = nullptr;
    int times = 0;
  };
  static Event ConnectionEvent(uint32_t event, fid_t about, OwnedInfo info, std::span<const uint8_t> data);
  void Push(Event event);
  // With mutex_.
  void PushLocked(Event event);
  void EndWait(fid_t endpoint);
  bool IsAwaiting(const Address& peer) const;
  void Pop();
  ssize_t Take(uint32_t* event, void* bytes, size_t size, uint64_t flags);
  void Progress();
  bool Arm();

  const uint32_t api_version_;
  const bool writable_;
  const fi_wait_obj wait_;
  std::mutex domains_mutex_;
  std::vector<Watched> domains_;
  std::mutex mutex_;  // of all below
  WaitDescriptor descriptor_;
  std::deque<Event> events_;
  std::vector<Due> due_;         // what Await was told
  std::deque<Held> held_;        // as many as requests may wait for an answer, at most
  std::vector<uint8_t> detail_;  // of the error that was read last
};

// prov_errno of an error event about a connection: negative, to be told from FI_E*.
inline int ProviderError(api::CloseCode code) { return -static_cast<int>(code); }

int OpenEq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context);

}  // namespace paceline::libfabric
