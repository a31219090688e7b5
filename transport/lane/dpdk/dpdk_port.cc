#include "transport/lane/dpdk/dpdk_port.h"

#include <rte_alarm.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_af_packet.h"
#include "transport/lane/dpdk/dpdk_eal.h"
#include "transport/lane/dpdk/dpdk_memif.h"
#include "transport/lane/dpdk/dpdk_memory.h"
#include "transport/lane/dpdk/dpdk_queues.h"
#include "transport/lane/udp/udp_mtu.h"

namespace paceline {
namespace {

constexpr unsigned kBuffersInHand = 1024;  // beside the queues: bursts, and what per-thread caches hold
// Of each thread that was ever here; what it holds is nobody else's. Two bursts.
constexpr unsigned kCacheBuffers = 64;
// That net_af_xdp keeps of each pair of queues, whatever their sizes: 2048 to receive into, and as many that were sent.
constexpr unsigned kAfXdpBuffers = 4096;
constexpr char kMemif[] = "net_memif";
constexpr char kMlx5[] = "mlx5_";    // how the names of its drivers begin
constexpr uint32_t kLeastMtu = 576;  // RFC 791
constexpr uint32_t kFrameOverhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
// What drivers of cards want room for in a receive buffer beside the frame: two VLAN tags, and the header of a
// virtio-net.
constexpr uint32_t kReceiveOverhead = 2 * 4 + 12;
// A process at the other end of a memif, or a card that finds its link, may take so long at the start.
constexpr int kStartAttempts = 200;
constexpr std::chrono::milliseconds kStartInterval(10);

// Drivers of ports made of software, and what their sources say (DPDK 22.11, drivers/net).
struct SoftwareDriver {
  const char* name;
  bool stays_here;     // whatever is at the other end: a ring or nothing, rather than a switch that leads to a network
  bool mac_by_chance;  // or has none, or the one that the kernel has at the other end
  bool copies_while_sending;
  DpdkSpreading spreading = DpdkSpreading::kNone;
};
constexpr SoftwareDriver kSoftwareDrivers[] = {
    {kMemif, false, true, true, DpdkSpreading::kTaken},
    {"net_ring", true, true, false, DpdkSpreading::kRegardless},
    {"net_null", true, true, true},
    {"net_af_packet", false, false, true, DpdkSpreading::kRegardless},
    {"net_af_xdp", false, false, false, DpdkSpreading::kRegardless},
    {"net_tap", false, true, true, DpdkSpreading::kTaken},
    {"net_pcap", false, false, false},
    {"net_vhost", false, true, false, DpdkSpreading::kRegardless},
    {"net_virtio_user", false, true, false, DpdkSpreading::kTaken},
};

const SoftwareDriver* FindSoftwareDriver(const std::string& name) {
  for (const SoftwareDriver& driver : kSoftwareDrivers) {
    if (name == driver.name) return &driver;
  }
  return nullptr;
}

// The hash by which a port spreads UDP of one family over its receive queues, if it offers that; else 0.
uint64_t UdpHash(const rte_eth_dev_info& info, IpVersion version) {
  return info.flow_type_rss_offloads &
         (version == IpVersion::kV4 ? RTE_ETH_RSS_NONFRAG_IPV4_UDP : RTE_ETH_RSS_NONFRAG_IPV6_UDP);
}

// The own address of a port that has none (net_ring, net_af_packet on lo), or has one by chance: processes forked from
// one that had loaded DPDK draw the same. A local one, and another for each IP address.
MacAddress MakeMac(const DpdkDevice& device) {
  MacAddress mac = {{0x02, 0, 0, 0, 0, 0}};
  for (size_t i = 0; i < device.address.size(); ++i) mac.bytes[1 + i % 5] ^= device.address[i];
  return mac;
}

// Runs `work` in the thread in which DPDK handles interrupts, and waits for it: net_memif ends a connection there when
// the other side has ended it, and does not bear that another thread does so at the same time.
void InInterruptThread(const std::function<void()>& work) {
  struct Job {
    const std::function<void()>& work;
    std::promise<void> done;
  } job{work, {}};
  const int result = rte_eal_alarm_set(
      1,
      [](void* argument) {
        auto* due = static_cast<Job*>(argument);
        due->work();
        due->done.set_value();
      },
      &job);
  if (result != 0) return work();
  job.done.get_future().wait();
}

// As rte_pktmbuf_pool_create, with one buffer right behind the other, across pages too. net_af_xdp takes them for lying
// so: it gives the kernel as much memory as they then need.
rte_mempool* MakePackedPool(const std::string& name, unsigned count, uint16_t room, int socket) {
  rte_mempool* pool = rte_mempool_create_empty(name.c_str(), count, sizeof(rte_mbuf) + room, kCacheBuffers,
                                               sizeof(rte_pktmbuf_pool_private), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_private layout{};
  layout.mbuf_data_room_size = room;
  rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr);
  rte_pktmbuf_pool_init(pool, &layout);
  if (rte_mempool_populate_default(pool) < 0) {
    rte_mempool_free(pool);
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

// What its driver was told when it was attached.
std::string_view ArgumentsOf(const rte_eth_dev_info& info) {
  const rte_devargs* arguments = rte_dev_devargs(info.device);
  return arguments != nullptr && arguments->args != nullptr ? arguments->args : "";
}

absl::StatusOr<uint16_t> FindOrAttach(const DpdkDevice& device, bool& attached, std::unique_ptr<MemifRelay>& relay) {
  uint16_t id = 0;
  attached = false;
  if (rte_eth_dev_get_port_by_name(device.name.c_str(), &id) == 0) return id;
  std::string devargs = device.devargs;
  if (absl::StartsWith(device.name, kMemif)) {
    auto between = MemifRelay::Open(devargs);
    if (!between.ok()) {
      return absl::Status(between.status().code(),
                          absl::StrCat("DPDK port ", device.name, ": ", between.status().message()));
    }
    relay = *std::move(between);
    devargs = relay->devargs();
  }
  LastDpdkErrors();
  const int result = rte_dev_probe(devargs.c_str());
  if (result < 0) {
    return absl::NotFoundError(absl::StrCat("DPDK port ", device.devargs, " cannot be attached (",
                                            rte_strerror(-result), "): ", LastDpdkErrors(),
                                            "; docs/lanes/dpdk.md has advice"));
  }
  attached = true;
  if (rte_eth_dev_get_port_by_name(device.name.c_str(), &id) == 0) return id;
  return absl::NotFoundError(absl::StrCat("DPDK attached ", device.devargs, " but no port has that name"));
}

// The driver of mlx5 copies the first bytes of packets into its queue, unless this flag tells it not to (DPDK 22.11,
// rte_pmd_mlx5.h). It has to be known before the port is started. 0: there is no bit left for it.
uint64_t RegisterNotInline() {
  rte_mbuf_dynflag flag{};
  std::snprintf(flag.name, sizeof(flag.name), "%s", "mlx5_fine_granularity_inline");
  const int bit = rte_mbuf_dynflag_register(&flag);
  return bit < 0 ? 0 : uint64_t{1} << bit;
}

}  // namespace

absl::Status DpdkPort::Failed(const char* what, int error) const {
  const std::string said = LastDpdkErrors();
  return absl::FailedPreconditionError(
      absl::StrCat("DPDK port ", name_, ": ", what, ": ", rte_strerror(-error), said.empty() ? "" : ": ", said));
}

absl::StatusOr<std::unique_ptr<DpdkPort>> DpdkPort::Open(const DpdkDevice& device, uint32_t mtu) {
  bool attached = false;
  std::unique_ptr<MemifRelay> relay;
  const auto id = FindOrAttach(device, attached, relay);
  if (!id.ok()) return id.status();
  std::unique_ptr<DpdkPort> port(new DpdkPort(*id, device.name, attached));
  port->relay_ = std::move(relay);
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(*id, &info); result != 0) return port->Failed("no information", result);
  if (rte_eth_dev_is_valid_port(*id) == 0) return port->Failed("not a port", -ENODEV);
  if (absl::Status status = port->Configure(device, mtu); !status.ok()) return status;
  if (absl::Status status = port->Start(); !status.ok()) return status;
  return port;
}

absl::Status DpdkPort::Configure(const DpdkDevice& device, uint32_t mtu) {
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(id_, &info);
  traits_.driver = info.driver_name;
  const SoftwareDriver* software = FindSoftwareDriver(traits_.driver);
  traits_.physical = software == nullptr;
  traits_.this_machine_only = device.is_own_pair || (software != nullptr && software->stays_here);
  traits_.is_memif_client = traits_.driver == kMemif && !absl::StrContains(device.devargs, "role=server") &&
                            !absl::StrContains(device.devargs, "role=master");
  const bool takes_pieces = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  traits_.copies_while_sending = software != nullptr && software->copies_while_sending && takes_pieces &&
                                 !absl::StrContains(device.devargs, "zero-copy=yes");
  const bool maps_itself = absl::StartsWith(traits_.driver, kMlx5);
  traits_.reads_later = traits_.physical && takes_pieces &&
                        (DpdkMemory::CanMapFor(rte_dev_name(info.device)) || (device.card_reads && maps_itself));
  if (device.card_reads) {
    if (!maps_itself || !takes_pieces || absl::StrContains(device.devargs, "txq_inline_min")) {
      return absl::InvalidArgumentError(
          absl::StrCat("DPDK port ", name_,
                       ": card_reads=1: is for cards whose driver is mlx5, without txq_inline_min, "
                       "not for ",
                       traits_.driver, " (cards of vfio-pci read memory of the host without it)"));
    }
    traits_.not_inline = RegisterNotInline();
    traits_.mapping = {.device = info.device, .takes_devices = traits_.not_inline != 0};
  }
  traits_.finishes_udp_checksums = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
  traits_.checks_udp_checksums = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) != 0;
  traits_.stamps_arrivals = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
  traits_.sends_on_time = device.send_on_time;
  if (device.send_on_time && (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("DPDK port ", name_, ": send_on_time=1: its driver, ", traits_.driver,
                     ", does not offer that (RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP; net_mlx5 may want tx_pp=500 too)"));
  }

  uint16_t driver_mtu = RTE_ETHER_MTU;
  rte_eth_dev_get_mtu(id_, &driver_mtu);
  uint32_t own_mtu = std::min<uint32_t>(driver_mtu, kJumboMtu);
  // Ports made of software state the largest frame of classic Ethernet and carry what their buffers hold.
  const bool is_tap = traits_.driver == "net_tap";
  const bool keeps_to_mtu = traits_.physical || is_tap || traits_.driver == "net_af_xdp";
  uint32_t most =
      keeps_to_mtu ? std::min<uint32_t>({info.max_mtu, kJumboMtu, info.max_rx_pktlen - kFrameOverhead}) : kJumboMtu;
  uint32_t least_buffer_bytes = 0;
  std::string limits;
  if (traits_.driver == "net_af_packet") {
    const auto room = AskAfPacket(info.if_index, ArgumentsOf(info));
    if (!room.ok())
      return absl::Status(room.status().code(), absl::StrCat("DPDK port ", name_, ": ", room.status().message()));
    own_mtu = most = std::min(room->mtu(), kJumboMtu);
    least_buffer_bytes = room->frame_bytes;  // which the driver wants to see
    limits = absl::StrCat("; interface ", room->interface, " has ", room->interface_mtu,
                          ", framesz=", room->frame_bytes, " carries ", room->frame_mtu());
  }
  if (traits_.driver == kMemif) {
    const uint32_t buffer_bytes = MemifBufferBytes(ArgumentsOf(info));
    most = std::min<uint32_t>(buffer_bytes - std::min<uint32_t>(buffer_bytes, RTE_ETHER_HDR_LEN), kJumboMtu);
    own_mtu = std::min(own_mtu, most);
    limits = absl::StrCat("; a frame has to fit into bsize=", buffer_bytes);
  }
  traits_.mtu = mtu != 0 ? mtu : own_mtu;
  if (traits_.mtu < kLeastMtu || traits_.mtu > most) {
    return absl::InvalidArgumentError(absl::StrCat("DPDK port ", name_, ": mtu ", traits_.mtu, ": may be ", kLeastMtu,
                                                   " to ", most, ", or 0 for the port's own (", own_mtu, limits, ")"));
  }

  rte_eth_conf conf{};
  conf.rxmode.mtu = keeps_to_mtu ? traits_.mtu : std::min<uint32_t>(traits_.mtu, driver_mtu);
  if (traits_.finishes_udp_checksums) conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  if (traits_.copies_while_sending || traits_.reads_later) conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  if (traits_.checks_udp_checksums) conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  if (traits_.stamps_arrivals) conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
  if (traits_.sends_on_time) {
    DpdkPacketTimes::AnnounceDepartures();
    conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
  }
  DpdkQueueOffer offer{info.max_rx_queues, info.max_tx_queues,
                       software != nullptr ? software->spreading : DpdkSpreading::kNone};
  const uint64_t hash = offer.spreading == DpdkSpreading::kNone ? UdpHash(info, device.version) : 0;
  if (hash != 0) offer.spreading = DpdkSpreading::kTaken;
  DpdkQueues queues = ChooseDpdkQueues(device.queues, offer);
  traits_.receive_queues = queues.receive;
  traits_.send_queues = queues.send;
  traits_.queue_shortfall = std::move(queues.shortfall);
  if (hash != 0 && queues.receive > 1) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = hash;
  }
  if (const int result = rte_eth_dev_configure(id_, queues.receive, queues.send, &conf); result != 0) {
    return Failed("configuration", result);
  }
  if (is_tap) {  // the kernel is to know it too
    if (const int result = rte_eth_dev_set_mtu(id_, static_cast<uint16_t>(traits_.mtu)); result != 0) {
      return Failed("MTU", result);
    }
  }
  if (absl::Status status = SetUpQueues(least_buffer_bytes); !status.ok()) return status;

  rte_ether_addr mac{};
  rte_eth_macaddr_get(id_, &mac);
  std::copy_n(mac.addr_bytes, traits_.mac.bytes.size(), traits_.mac.bytes.begin());
  const bool is_given = absl::StrContains(device.devargs, ",mac=") && !is_tap;  // of a tap it is the kernel's
  const bool by_chance = software != nullptr && software->mac_by_chance && !is_given;
  if (by_chance || traits_.mac == MacAddress{}) traits_.mac = MakeMac(device);
  return absl::OkStatus();
}

absl::Status DpdkPort::SetUpQueues(uint32_t least_buffer_bytes) {
  uint16_t receive = DpdkQueueEntries(traits_.receive_queues), send = DpdkQueueEntries(traits_.send_queues);
  if (const int result = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive, &send); result != 0) {
    return Failed("queue sizes", result);
  }
  traits_.receive_entries = receive;
  const int socket = std::max(rte_eth_dev_socket_id(id_), 0);
  if (absl::Status status =
          MakePools(std::max(traits_.mtu + kFrameOverhead + kReceiveOverhead, least_buffer_bytes),
                    traits_.receive_queues * receive + traits_.send_queues * send + kBuffersInHand, socket);
      !status.ok()) {
    return status;
  }
  const auto numa = static_cast<unsigned>(socket);
  for (uint16_t queue = 0; queue < traits_.receive_queues; ++queue) {
    const int result = rte_eth_rx_queue_setup(id_, queue, receive, numa, nullptr, pool_);
    if (result != 0) return Failed("receive queue", result);
  }
  for (uint16_t queue = 0; queue < traits_.send_queues; ++queue) {
    const int result = rte_eth_tx_queue_setup(id_, queue, send, numa, nullptr);
    if (result != 0) return Failed("send queue", result);
  }
  return absl::OkStatus();
}

absl::Status DpdkPort::MakePools(uint32_t frame_bytes, unsigned count, int socket) {
  static std::atomic<unsigned> made{0};
  const unsigned number = made++;
  // Drivers that hand buffers to the kernel want no smaller ones than usual.
  const uint32_t frame_room = std::max<uint32_t>((frame_bytes + 63) / 64 * 64, RTE_MBUF_DEFAULT_DATAROOM);
  const uint32_t room = RTE_PKTMBUF_HEADROOM + frame_room;
  const std::string name = absl::StrCat("paceline_", number);
  if (traits_.driver == "net_af_xdp") {
    count += kAfXdpBuffers * traits_.receive_queues;
    pool_ = MakePackedPool(name, count, static_cast<uint16_t>(room), socket);
  } else {
    pool_ = rte_pktmbuf_pool_create(name.c_str(), count, kCacheBuffers, 0, static_cast<uint16_t>(room), socket);
  }
  const bool refers = traits_.copies_while_sending || traits_.reads_later;
  if (pool_ != nullptr && refers) {
    const unsigned most = traits_.reads_later ? std::min(count, PayloadLoans::kMost) : kBuffersInHand;
    references_ =
        rte_pktmbuf_pool_create(absl::StrCat("paceline_ref_", number).c_str(), most, kCacheBuffers, 0, 0, socket);
  }
  if (pool_ != nullptr && (references_ != nullptr || !refers)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "DPDK port ", name_, ": no memory for ", count, " buffers of ", room, " bytes (", rte_strerror(rte_errno),
      "): reserve more hugepages, or give more without them: PACELINE_DPDK_EAL=\"-m 512\""));
}

int DpdkPort::StartDevice() {
  const int result = rte_eth_dev_start(id_);
  started_ = result == 0;
  return result;
}

absl::Status DpdkPort::Start() {
  // The server of a memif may be a moment late.
  int missing = 0, result = -1;  // errors
  const auto start = [&] {
    missing = relay_ == nullptr || !traits_.is_memif_client || relay_->FindServer() ? 0 : -errno;
    if (missing == 0) result = StartDevice();
    return result == 0;
  };
  for (int attempt = 0; !start() && traits_.is_memif_client && attempt < kStartAttempts; ++attempt) {
    std::this_thread::sleep_for(kStartInterval);
  }
  if (missing != 0) return Failed(absl::StrCat("start: no server at ", relay_->address()).c_str(), missing);
  if (result != 0) return Failed("start", result);
  rte_eth_link link{};
  if (traits_.physical && rte_eth_link_get_nowait(id_, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) {
    traits_.rate = Rate::Gbps(link.link_speed / 1e3);
  }
  packet_times_ = DpdkPacketTimes::Start(id_, traits_.stamps_arrivals, traits_.sends_on_time);
  if (traits_.sends_on_time && !(packet_times_ && packet_times_->departures())) {
    return absl::FailedPreconditionError(
        absl::StrCat("DPDK port ", name_, ": send_on_time=1: its clock cannot be read, or stands still"));
  }
  // Where frames to the groups of neighbour discovery would be kept from us; not every driver has the switch.
  rte_eth_allmulticast_enable(id_);
  return absl::OkStatus();
}

void DpdkPort::Stop() {
  const auto stop = [this] {
    if (std::exchange(started_, false)) rte_eth_dev_stop(id_);
  };
  if (traits_.driver == kMemif) {
    InInterruptThread(stop);
  } else {
    stop();
  }
}

DpdkPort::~DpdkPort() {
  Stop();
  if (attached_here_) {
    rte_eth_dev_info info{};
    rte_device* device = rte_eth_dev_info_get(id_, &info) == 0 ? info.device : nullptr;
    rte_eth_dev_close(id_);
    if (device != nullptr) rte_dev_remove(device);
  }
  // Buffers that a queue in memory still holds for another port must outlive this one.
  for (rte_mempool* pool : {pool_, references_}) {
    if (pool != nullptr && rte_mempool_full(pool) != 0) rte_mempool_free(pool);
  }
}

void DpdkPort::FreeSent() const {
  for (uint16_t queue = 0; is_usable() && queue < traits_.send_queues; ++queue) rte_eth_tx_done_cleanup(id_, queue, 0);
}

bool DpdkPort::LinkUp() const {
  rte_eth_link link{};
  return is_usable() && rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool DpdkPort::Restart() {
  if (relay_ && !relay_->FindServer()) return false;
  InInterruptThread([this] {
    if (started_) rte_eth_dev_stop(id_);
    StartDevice();
  });
  return started_;
}

}  // namespace paceline
