// A card whose driver maps memory, that of GPUs too: what the lane lets it read, and that the processor does not touch
// it. The card is a net_ring port with another name and a driver of this program's; memory of a GPU is such that an
// access by the processor ends the process.
#include <gmock/gmock.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <sys/mman.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "tests/unit/transport/lane/dpdk/port_overlay.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

// While one exists, ports are cards.
class FakeCards final : public PortOverlay {
 public:
  FakeCards() { current_ = this; }
  ~FakeCards() override { current_ = nullptr; }
  static FakeCards* current() { return current_; }

  const char* driver = "mlx5_pci";
  bool takes_pieces = true, finishes_udp_checksums = false;
  bool maps = true;
  std::map<const void*, size_t> mapped;  // bytes, by address

 private:
  static constexpr uint64_t kOurs = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;

  void OnInfo(rte_eth_dev_info& info) const override {
    info.driver_name = driver;
    info.tx_offload_capa &= ~kOurs;
    if (takes_pieces) info.tx_offload_capa |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    if (finishes_udp_checksums) info.tx_offload_capa |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  }
  void OnConfigure(rte_eth_conf& conf) override { conf.txmode.offloads &= ~kOurs; }

  static inline FakeCards* current_ = nullptr;
};

}  // namespace
}  // namespace paceline

// The linker takes these for DPDK's.
extern "C" {

int rte_dev_dma_map(rte_device* device, void* address, uint64_t iova, size_t bytes) {
  EXPECT_NE(device, nullptr);
  EXPECT_EQ(reinterpret_cast<uint64_t>(address), iova);
  auto* const cards = paceline::FakeCards::current();
  if (cards == nullptr || !cards->maps) {
    rte_errno = EFAULT;
    return -1;
  }
  EXPECT_TRUE(cards->mapped.emplace(address, bytes).second);
  return 0;
}

int rte_dev_dma_unmap(rte_device*, void* address, uint64_t, size_t bytes) {
  auto* const cards = paceline::FakeCards::current();
  EXPECT_TRUE(cards != nullptr && cards->mapped[address] == bytes);
  if (cards != nullptr) cards->mapped.erase(address);
  return 0;
}

}  // extern "C"

namespace paceline {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 16;

// Nobody may touch it.
class GpuMemory {
 public:
  GpuMemory()
      : base_(static_cast<uint8_t*>(mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~GpuMemory() { munmap(base_, kPages * kPage); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  uint8_t* at(size_t offset) const { return base_ + offset; }
  LaneMemory memory() const { return {.base = base_, .bytes = kPages * kPage, .device = 0}; }

 private:
  uint8_t* base_;
};

class DpdkCardReadsTest : public DpdkTest {
 protected:
  void Start(const std::string& address = "192.0.2.1") {
    ports_ = RingPair::Make();
    lane_ = MakeLane(ports_.a + ",card_reads=1,address=" + address);
    ASSERT_TRUE(lane_ != nullptr);
    ASSERT_TRUE(lane_->capabilities().reads_later);
  }
  void Connect() {
    other_ = std::make_unique<BarePort>(ports_.b);
    peer_ = lane_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 2}, 777));
    Introduce(*lane_, *other_);
    ASSERT_EQ(rte_eth_dev_get_port_by_name(ports_.b.c_str(), &port_b_), 0);
  }
  // A packet of 24 bytes of header with this payload.
  TxSegment Segment(const uint8_t* payload, uint32_t bytes) {
    TxSegment segment;
    segment.peer = peer_;
    segment.header = header_.data();
    segment.header_bytes = static_cast<uint16_t>(header_.size());
    segment.payload = payload;
    segment.payload_bytes = bytes;
    segment.payload_stays = segment.on_device = true;
    return segment;
  }
  // What left, as the driver of a card would see it; it is the card's until the test frees it.
  std::vector<rte_mbuf*> Taken() {
    std::vector<rte_mbuf*> taken(64);
    taken.resize(rte_eth_rx_burst(port_b_, 0, taken.data(), 64));
    return taken;
  }

  FakeCards cards_;
  RingPair ports_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<BarePort> other_;
  uint16_t port_b_ = 0;
  uint32_t peer_ = 0;
  std::array<uint8_t, 24> header_{};
  std::array<RxSegment, 64> out_;
};

TEST_F(DpdkCardReadsTest, ItReadsMemoryOfAGpuThatNobodyElseTouches) {
  Start();
  Connect();
  GpuMemory gpu;
  EXPECT_FALSE(lane_->ReadsFromDevice(gpu.at(0), 1400)) << "it was not lent";
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  EXPECT_EQ(cards_.mapped.at(gpu.at(0)), kPages * kPage);
  EXPECT_TRUE(lane_->ReadsFromDevice(gpu.at(10'000), 1400));
  EXPECT_FALSE(lane_->ReadsFromDevice(gpu.at(10'000), 1023)) << "so little is better copied";
  EXPECT_FALSE(lane_->ReadsFromDevice(gpu.at(kPages * kPage - 1024), 1025));

  const std::array<TxSegment, 2> segments = {Segment(gpu.at(10'000), 1400), Segment(gpu.at(11'400), 1024)};
  EXPECT_EQ(lane_->Send(segments), 2u);
  EXPECT_EQ(lane_->counters().tx_in_place, 2u);
  const std::vector<rte_mbuf*> taken = Taken();
  ASSERT_EQ(taken.size(), 2u);
  const int flag = rte_mbuf_dynflag_lookup("mlx5_fine_granularity_inline", nullptr);
  ASSERT_GE(flag, 0);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(taken[i]->nb_segs, 2);
    EXPECT_EQ(taken[i]->data_len, FrameHeaderBytes(IpVersion::kV4) + header_.size());
    EXPECT_EQ(rte_pktmbuf_mtod(taken[i]->next, const uint8_t*), segments[i].payload);
    EXPECT_EQ(taken[i]->next->data_len, segments[i].payload_bytes);
    for (const rte_mbuf* piece : {taken[i], taken[i]->next}) EXPECT_NE(piece->ol_flags >> flag & 1, 0u);
  }
  // It goes, and stays mapped until the card has it.
  lane_->ReturnMemory(gpu.memory());
  EXPECT_FALSE(lane_->ReadsFromDevice(gpu.at(10'000), 1400));
  EXPECT_EQ(cards_.mapped.size(), 1u);
  for (rte_mbuf* packet : taken) rte_pktmbuf_free(packet);
  lane_->Receive(out_, MonotonicNow() + Duration::Seconds(1));
  EXPECT_TRUE(cards_.mapped.empty());
}

TEST_F(DpdkCardReadsTest, WhatWasGivenBackOrHasNoNeighbourIsDropped) {
  Start();
  Connect();
  GpuMemory gpu;
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  lane_->ReturnMemory(gpu.memory());
  const TxSegment gone = Segment(gpu.at(0), 1400);
  EXPECT_EQ(lane_->Send({&gone, 1}), 1u);
  EXPECT_EQ(lane_->counters().tx_drops, 1u);
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  peer_ = lane_->OpenPeer(ToLaneAddress(IpVersion::kV4, {192, 0, 2, 77}, 777));
  const TxSegment stranger = Segment(gpu.at(0), 1400);
  EXPECT_EQ(lane_->Send({&stranger, 1}), 1u);
  EXPECT_EQ(lane_->counters().tx_drops, 2u);
  EXPECT_TRUE(Taken().empty());
  lane_->ReturnMemory(gpu.memory());
}

TEST_F(DpdkCardReadsTest, WhatFindsNoBufferIsNotTaken) {
  Start();
  Connect();
  GpuMemory gpu;
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  std::vector<rte_mbuf*> all;
  const std::vector<TxSegment> segments(32, Segment(gpu.at(0), 1400));
  size_t left = 32;
  for (int i = 0; left == 32 && i < 10'000; ++i) {
    left = lane_->Send(segments);
    const std::vector<rte_mbuf*> taken = Taken();
    all.insert(all.end(), taken.begin(), taken.end());
  }
  EXPECT_LT(left, 32u);
  EXPECT_EQ(lane_->counters().tx_drops, 0u);
  for (rte_mbuf* packet : all) rte_pktmbuf_free(packet);
  EXPECT_EQ(lane_->Send(segments), 32u);
  for (rte_mbuf* packet : Taken()) rte_pktmbuf_free(packet);
  lane_->ReturnMemory(gpu.memory());
}

TEST_F(DpdkCardReadsTest, MemoryOfTheHostIsReadToo) {
  Start();
  Connect();
  std::vector<uint8_t> bytes(8 * kPage, 0x5a);
  const LaneMemory memory{.base = bytes.data(), .bytes = bytes.size()};
  ASSERT_TRUE(lane_->LendMemory(memory));
  EXPECT_EQ(cards_.mapped.size(), 1u);
  TxSegment segment = Segment(bytes.data() + 2 * kPage, 1400);
  segment.on_device = false;
  EXPECT_EQ(lane_->Send({&segment, 1}), 1u);
  const std::vector<rte_mbuf*> taken = Taken();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(rte_pktmbuf_mtod(taken[0]->next, const uint8_t*), segment.payload);
  rte_pktmbuf_free(taken[0]);
  lane_->ReturnMemory(memory);
  EXPECT_TRUE(cards_.mapped.empty());
}

TEST_F(DpdkCardReadsTest, WhatTheDriverDoesNotMapIsCopied) {
  Start();
  cards_.maps = false;
  GpuMemory gpu;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(lane_->LendMemory(gpu.memory()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the driver does not map it (Bad address)"));
  EXPECT_THAT(lane_->memory_problem(), HasSubstr("the driver does not map it"));
  EXPECT_FALSE(lane_->ReadsFromDevice(gpu.at(0), 1400));
}

// Over IPv6 there is a checksum over the payload, which the processor cannot compute.
TEST_F(DpdkCardReadsTest, OverIpv6TheCardHasToFinishChecksums) {
  for (const bool finishes : {false, true}) {
    cards_.finishes_udp_checksums = finishes;
    Start("fd00::1/64");
    GpuMemory gpu;
    ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
    EXPECT_EQ(lane_->ReadsFromDevice(gpu.at(0), 1400), finishes);
    lane_->ReturnMemory(gpu.memory());
  }
}

TEST_F(DpdkCardReadsTest, TheCardFinishesTheChecksumOverIt) {
  cards_.finishes_udp_checksums = true;
  Start();
  Connect();
  GpuMemory gpu;
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  const TxSegment segment = Segment(gpu.at(0), 1400);
  EXPECT_EQ(lane_->Send({&segment, 1}), 1u);
  const std::vector<rte_mbuf*> taken = Taken();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->ol_flags & RTE_MBUF_F_TX_L4_MASK, RTE_MBUF_F_TX_UDP_CKSUM);
  EXPECT_EQ(rte_pktmbuf_mtod(taken[0]->next, const uint8_t*), segment.payload);
  rte_pktmbuf_free(taken[0]);
  lane_->ReturnMemory(gpu.memory());
}

// The caller can stage it.
TEST_F(DpdkCardReadsTest, MemoryOfAGpuThatOverlapsOtherIsRefused) {
  Start();
  GpuMemory gpu;
  ASSERT_TRUE(lane_->LendMemory(gpu.memory()));
  LaneMemory part = gpu.memory();
  part.bytes /= 2;
  EXPECT_FALSE(lane_->LendMemory(part));
  EXPECT_THAT(lane_->memory_problem(), HasSubstr("overlaps"));
  lane_->ReturnMemory(gpu.memory());
  EXPECT_TRUE(lane_->LendMemory(part));
  lane_->ReturnMemory(part);
}

TEST_F(DpdkCardReadsTest, PortsWhoseDriverDoesNotMapMemoryAreRefused) {
  const auto error_of = [](const std::string& settings) {
    DpdkLaneOptions options;
    options.devices = {RingPair::Make().a + ",address=192.0.2.1," + settings};
    return std::string(OpenDpdkLanes(options).status().message());
  };
  cards_.takes_pieces = false;
  EXPECT_THAT(error_of("card_reads=1"), HasSubstr("card_reads=1: "));
  cards_.takes_pieces = true;
  EXPECT_THAT(error_of("card_reads=1,txq_inline_min=200"), HasSubstr("without txq_inline_min"));
  EXPECT_THAT(error_of("card_reads=yes"), HasSubstr("write 1 or 0"));
  cards_.driver = "net_ice";
  EXPECT_THAT(error_of("card_reads=1"), HasSubstr("not for net_ice"));
}

// Unless it is asked for.
TEST_F(DpdkCardReadsTest, ACardReadsNothingByItself) {
  ports_ = RingPair::Make();
  lane_ = MakeLane(ports_.a + ",address=192.0.2.1");
  ASSERT_TRUE(lane_ != nullptr);
  EXPECT_FALSE(lane_->capabilities().reads_later);
}

}  // namespace
}  // namespace paceline
