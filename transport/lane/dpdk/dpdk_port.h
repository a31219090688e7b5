// One Ethernet port of DPDK: found by name or attached, set up with its queues and buffers, and what it can
// do for us. A port that the application attached is set up and started here, and only stopped again at the end; one
// that was attached here is removed.
//
// Thread rule: control path; the queues belong to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/lane/dpdk/card_mapping.h"
#include "transport/lane/dpdk/dpdk_device.h"
#include "transport/lane/dpdk/dpdk_packet_times.h"
#include "transport/lane/dpdk/memif_relay.h"

struct rte_mempool;

namespace paceline {

// What of the port the lane adapts to.
struct DpdkPortTraits {
  std::string driver;              // "net_mlx5"
  bool physical = false;           // rather than made of software
  bool this_machine_only = false;  // nothing at its other end leads to a network, as a switch of software may
  bool is_memif_client = false;    // who connects; if the server goes, it has to do so again
  // The driver has copied what a buffer refers to when its send call returns, and takes buffers in pieces: payload then
  // leaves from where it lies.
  bool copies_while_sending = false;
  // A card that takes buffers in pieces and reads them later, and for which memory can be mapped (DpdkMemory), so.
  bool reads_later = false;
  CardMapping mapping;
  uint64_t not_inline = 0;              // of a packet whose bytes only the card may read (rte_mbuf::ol_flags)
  bool finishes_udp_checksums = false;  // of what is sent
  bool checks_udp_checksums = false;    // of what arrives
  bool stamps_arrivals = false;         // it says so; see DpdkPort::packet_times
  bool sends_on_time = false;           // it is to, and says that it can
  uint32_t mtu = 0;                     // bytes of the largest IP packet
  uint16_t receive_queues = 1, send_queues = 1;
  std::string queue_shortfall;   // see DpdkQueues
  uint16_t receive_entries = 0;  // packets that wait for us, of each queue
  Rate rate;                     // zero: made of software, or not known
  MacAddress mac;
};

class DpdkPort {
 public:
  // EAL runs. `mtu`: bytes of an IP packet; 0: the port's own.
  static absl::StatusOr<std::unique_ptr<DpdkPort>> Open(const DpdkDevice& device, uint32_t mtu);
  ~DpdkPort();
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;

  uint16_t id() const { return id_; }
  const std::string& name() const { return name_; }
  const DpdkPortTraits& traits() const { return traits_; }
  rte_mempool* pool() const { return pool_; }  // buffers that hold a whole frame
  // Ones that refer to memory elsewhere; with copies_while_sending or reads_later.
  rte_mempool* references() const { return references_; }

  // When packets came, and are to leave. Nothing: the port knows of neither, or its clock cannot be read.
  const std::optional<DpdkPacketTimes>& packet_times() const { return packet_times_; }
  // What has to be done every few milliseconds, and oftener while needs_care(), between calls that touch the queues:
  // compares the port's clock with the host's, if it knows the time, and lets a memif and its peer talk.
  void Attend() {
    if (packet_times_) packet_times_->ReadClock();
    if (relay_) relay_->Pass();
  }
  bool needs_care() const { return relay_ != nullptr && relay_->is_meeting(); }
  // Of a memif: it and its peer are getting on.
  bool is_coming_up() const { return relay_ != nullptr && relay_->has_moved(); }

  // False after a restart that failed, and of a memif without a peer: then its queues must not be touched.
  bool is_usable() const { return started_ && (relay_ == nullptr || relay_->connected()); }
  // Whether the other end is there. A few reads of memory or of a register.
  bool LinkUp() const;
  // Nothing arrives and leaves any more.
  void Stop();
  // Stops and starts it: a memif client connects to a server that has come back. False: there is none.
  bool Restart();
  // Asks the driver to let go of the buffers that have been sent, which it does by and by; not every driver can.
  void FreeSent() const;

 private:
  DpdkPort(uint16_t id, std::string name, bool attached_here)
      : id_(id), name_(std::move(name)), attached_here_(attached_here) {}

  absl::Status Configure(const DpdkDevice& device, uint32_t mtu);
  absl::Status SetUpQueues(uint32_t least_buffer_bytes);
  absl::Status MakePools(uint32_t frame_bytes, unsigned count, int socket);
  absl::Status Start();
  int StartDevice();  // as rte_eth_dev_start
  absl::Status Failed(const char* what, int error) const;

  uint16_t id_;
  std::string name_;
  bool attached_here_;
  bool started_ = false;
  rte_mempool* pool_ = nullptr;
  rte_mempool* references_ = nullptr;
  DpdkPortTraits traits_;
  std::optional<DpdkPacketTimes> packet_times_;
  std::unique_ptr<MemifRelay> relay_;  // of a memif that was attached here
};

}  // namespace paceline
