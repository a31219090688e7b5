// Stands between DPDK's driver of a memif and the peer, on the unix socket over which the two agree on the memory that
// they share. The driver gives that memory back on a thread of its own as soon as it hears that the peer has gone, also
// while another is in its receive or send call, which then reads what is no longer there. So it hears of it from here,
// between those calls.
//
// Messages pass as they are, with their descriptors (the memory, and events that say there is something in a ring). Of
// their contents the relay knows the kind and, of the one that opens a connection, for which port it is (memif.h of
// DPDK, as of libmemif).
//
// Thread rule: each belongs to the thread that polls its port. Ports that listen at one address may belong to several.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {

class MemifSocket;

class MemifRelay {
 public:
  // `devargs`: what names the port to DPDK, "net_memif0,role=server,socket=/run/a.sock,socket-abstract=no". The port of
  // a server listens from here on. Errors: the address, or the port's number (id=) there, is taken or cannot be had.
  static absl::StatusOr<std::unique_ptr<MemifRelay>> Open(std::string_view devargs);
  ~MemifRelay();
  MemifRelay(const MemifRelay&) = delete;
  MemifRelay& operator=(const MemifRelay&) = delete;

  // The same for the driver, which meets the relay instead.
  const std::string& devargs() const { return devargs_; }
  // "/run/a.sock".
  const std::string& address() const;

  // Of a client: whether a server listens, else errno says why none answers. The driver's next connection is to that
  // one.
  bool FindServer();
  // Passes on what has come. Not during a call of the driver's that touches the port's queues.
  void Pass();
  // Driver and peer have agreed: the queues may be used, until Pass says otherwise.
  bool connected() const { return connected_; }
  // They are at it: Pass is to be called soon again.
  bool is_meeting() const { return is_meeting_; }
  // And had something to say, when Pass last looked.
  bool has_moved() const { return has_moved_; }

 private:
  MemifRelay(std::shared_ptr<MemifSocket> socket, uint32_t id, std::string devargs);

  std::shared_ptr<MemifSocket> socket_;
  uint32_t id_;
  std::string devargs_;
  bool connected_ = false, is_meeting_ = false, has_moved_ = false;
};

}  // namespace paceline
