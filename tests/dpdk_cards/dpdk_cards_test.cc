// The lane over two network cards that are joined by a link, frame by frame: what cards read by themselves of memory
// that was lent to them, and over which queues they spread what arrives. PACELINE_TEST_CARDS names them, by PCI
// address, with a space between, and PACELINE_TEST_QUEUES says how many queues they have; cards.sh and queues.sh run it
// in a virtual machine.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"

namespace paceline {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kHeader = 32, kPayload = 1400;

// Pages of their own, filled with numbers.
class Pages {
 public:
  explicit Pages(size_t bytes, void* at = nullptr)
      : bytes_(bytes),
        base_(static_cast<uint8_t*>(mmap(at, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED), -1, 0))) {
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~Pages() { munmap(base_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void Fill(uint32_t seed) const {
    for (size_t i = 0; i < bytes_; ++i) base_[i] = static_cast<uint8_t>((i * 2654435761u + seed * 40503u) >> 7);
  }
  uint8_t* data() const { return base_; }
  LaneMemory memory() const { return {.base = base_, .bytes = bytes_}; }

 private:
  size_t bytes_;
  uint8_t* base_;
};

class DpdkCardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const named = std::getenv("PACELINE_TEST_CARDS");
    if (named == nullptr) GTEST_SKIP() << "no network cards here (PACELINE_TEST_CARDS); ctest -R dpdk_cards has some";
    const std::vector<std::string> cards = absl::StrSplit(named, ' ');
    ASSERT_EQ(cards.size(), 2u);
    DpdkLaneOptions options;
    const char* const queues = std::getenv("PACELINE_TEST_QUEUES");
    ASSERT_TRUE(queues == nullptr || absl::SimpleAtoi(queues, &queues_));
    options.devices = {absl::StrCat(cards[0], ",address=192.0.2.1/24,queues=", queues_),
                       absl::StrCat(cards[1], ",address=192.0.2.2/24,queues=", queues_)};
    if (const char* const eal = std::getenv("PACELINE_DPDK_EAL")) options.eal_arguments = eal;
    auto lanes = OpenDpdkLanes(options);
    ASSERT_TRUE(lanes.ok()) << lanes.status();
    a_ = std::move((*lanes)[0]);
    b_ = std::move((*lanes)[1]);
    to_b_ = a_->OpenPeer(b_->address());
    ASSERT_NE(to_b_, 0u);
    ASSERT_TRUE(a_->capabilities().reads_later);
    for (const Time end = MonotonicNow() + Duration::Seconds(20); a_->RoomTo(to_b_) == 0 || !a_->status().up;) {
      ASSERT_LT(MonotonicNow(), end) << "the neighbour is not found";
      EXPECT_EQ(a_->Receive(out_, MonotonicNow()), 0u);
      EXPECT_EQ(b_->Receive(out_, MonotonicNow()), 0u);
    }
  }

  // Packet `number` with this payload.
  TxSegment Packet(uint32_t number, const uint8_t* payload, bool stays = true, uint32_t bytes = kPayload) {
    headers_.emplace_back(kHeader);
    std::memcpy(headers_.back().data(), &number, sizeof(number));
    TxSegment segment;
    segment.peer = to_b_;
    segment.header = headers_.back().data();
    segment.header_bytes = kHeader;
    segment.payload = payload;
    segment.payload_bytes = bytes;
    segment.payload_stays = stays;
    return segment;
  }
  // All of them; returns how many the card was left to read.
  uint64_t Send(const std::vector<TxSegment>& segments) {
    const uint64_t before = a_->counters().tx_in_place;
    size_t sent = 0;
    for (const Time end = MonotonicNow() + Duration::Seconds(20); sent < segments.size();) {
      EXPECT_LT(MonotonicNow(), end) << "the port takes nothing";
      if (MonotonicNow() >= end) break;
      sent += a_->Send(std::span(segments).subspan(sent));
    }
    return a_->counters().tx_in_place - before;
  }
  uint64_t Send(const TxSegment& segment) { return Send(std::vector<TxSegment>{segment}); }
  // By number; until `count` are there or none comes any more.
  std::map<uint32_t, std::string> Receive(size_t count) {
    std::map<uint32_t, std::string> payloads;
    for (const ReceivedSegment& segment : ReceiveSome(*b_, count, 64, 5000)) {
      uint32_t number = 0;
      std::memcpy(&number, segment.bytes.data(), sizeof(number));
      payloads[number] = segment.bytes.substr(kHeader);
    }
    return payloads;
  }

  // How many packets each of the queues of b has taken so far.
  std::vector<uint64_t> Taken() const {
    uint16_t port = 0;
    const std::vector<std::string> words = absl::StrSplit(std::string(b_->name()), ' ');
    EXPECT_EQ(rte_eth_dev_get_port_by_name(words[0].substr(std::strlen("dpdk:")).c_str(), &port), 0);
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(port, &stats), 0);
    return {stats.q_ipackets, stats.q_ipackets + queues_};
  }

  unsigned queues_ = 1;
  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0;
  std::array<RxSegment, 64> out_;
  std::vector<std::vector<uint8_t>> headers_;
};

TEST_F(DpdkCardsTest, ACardReadsPayloadsWhereTheyAre) {
  constexpr uint32_t kCount = 300;
  Pages pages(kCount * kPayload / kPage * kPage + kPage);  // which go before the lane
  pages.Fill(1);
  ASSERT_TRUE(a_->LendMemory(pages.memory()));
  for (uint32_t first = 0; first < kCount; first += 50) {
    std::vector<TxSegment> segments;
    for (uint32_t i = first; i < first + 50; ++i) segments.push_back(Packet(i, pages.data() + size_t{i} * kPayload));
    EXPECT_EQ(Send(segments), 50u);
    const auto got = Receive(50);
    EXPECT_EQ(got.size(), 50u);
    for (const auto& [number, payload] : got) {
      EXPECT_EQ(payload.size(), kPayload);
      EXPECT_EQ(std::memcmp(payload.data(), pages.data() + size_t{number} * kPayload, kPayload), 0) << number;
    }
  }
  // It is lent until the lane closes.
}

TEST_F(DpdkCardsTest, WhatItMayNotReadIsCopied) {
  Pages lent(4 * kPage), others(4 * kPage);
  lent.Fill(1);
  others.Fill(2);
  LaneMemory memory = lent.memory();
  memory.bytes -= 100;  // of the last page it has only a part
  ASSERT_TRUE(a_->LendMemory(memory));
  const std::vector<TxSegment> copied = {
      Packet(0, others.data()),                           // not lent
      Packet(1, lent.data(), false),                      // its owner may change it
      Packet(2, lent.data() + 3 * kPage),                 // not a whole page
      Packet(3, lent.data() + 3 * kPage - kPayload + 1),  // reaches into it
      Packet(4, lent.data(), true, 512),                  // little
  };
  EXPECT_EQ(Send(copied), 0u);
  EXPECT_EQ(Send(Packet(5, lent.data() + 3 * kPage - kPayload)), 1u);
  const auto got = Receive(6);
  ASSERT_EQ(got.size(), 6u);
  for (uint32_t i = 0; i < copied.size(); ++i) {
    EXPECT_EQ(std::memcmp(got.at(i).data(), copied[i].payload, copied[i].payload_bytes), 0) << i;
  }
  a_->ReturnMemory(memory);
  EXPECT_EQ(Send(Packet(6, lent.data())), 0u) << "no more";
  EXPECT_EQ(Receive(1).size(), 1u);
}

// Memory is given back, and its addresses are used anew, before the card has read the last of it: whatever arrives is
// what was there.
TEST_F(DpdkCardsTest, WhatWasSentOutlivesItsMemory) {
  constexpr uint32_t kCount = 48;
  constexpr size_t kBytes = kCount * kPage;
  std::vector<std::unique_ptr<Pages>> used;  // addresses that the next round shall not get again
  for (uint32_t round = 0; round < 20; ++round) {
    auto pages = std::make_unique<Pages>(kBytes);
    pages->Fill(round);
    const std::vector<uint8_t> was(pages->data(), pages->data() + kBytes);
    ASSERT_TRUE(a_->LendMemory(pages->memory()));
    std::vector<TxSegment> segments;
    for (uint32_t i = 0; i < kCount; ++i) segments.push_back(Packet(i, pages->data() + i * kPage));
    EXPECT_EQ(Send(segments), kCount);
    void* const at = pages->data();
    a_->ReturnMemory(pages->memory());
    pages.reset();
    used.push_back(std::make_unique<Pages>(kBytes, at));
    const Pages& anew = *used.back();
    anew.Fill(round + 1000);
    ASSERT_TRUE(a_->LendMemory(anew.memory()));  // not read by the card while it still has the old ones
    segments.clear();
    for (uint32_t i = 0; i < kCount; ++i) segments.push_back(Packet(kCount + i, anew.data() + i * kPage));
    const uint64_t in_place = Send(segments);
    EXPECT_TRUE(in_place == 0 || in_place == kCount) << in_place;
    const auto got = Receive(2 * kCount);
    EXPECT_EQ(got.size(), 2 * kCount);
    for (const auto& [number, payload] : got) {
      const uint8_t* expected = number < kCount ? was.data() + number * kPage : anew.data() + (number - kCount) * kPage;
      EXPECT_EQ(std::memcmp(payload.data(), expected, kPayload), 0) << number;
    }
    a_->ReturnMemory(anew.memory());
    a_->Receive(out_, MonotonicNow());
  }
}

// By their source ports, so that each path comes by one queue.
TEST_F(DpdkCardsTest, PathsAreSpreadOverTheQueues) {
  if (queues_ == 1) GTEST_SKIP() << "cards with one queue";
  constexpr uint32_t kCount = 20;
  constexpr uint64_t kStray = 3;  // frames of somebody else's: ARP, or the bridge between the cards
  std::vector<uint8_t> payload(200);
  std::vector<uint64_t> paths(queues_);
  for (uint16_t entropy = 0; entropy < a_->capabilities().entropies; ++entropy) {
    const std::vector<uint64_t> before = Taken();
    std::vector<TxSegment> segments;
    for (uint32_t i = 0; i < kCount; ++i) segments.push_back(Packet(i, payload.data()));
    for (TxSegment& segment : segments) segment.entropy = entropy;
    Send(segments);
    ASSERT_EQ(Receive(kCount).size(), kCount);
    const std::vector<uint64_t> after = Taken();
    for (unsigned queue = 0; queue < queues_; ++queue) {
      const uint64_t came = after[queue] - before[queue];
      EXPECT_TRUE(came <= kStray || came >= kCount) << "path " << entropy << ": " << came << " by queue " << queue;
      if (came >= kCount) ++paths[queue];
    }
  }
  for (unsigned queue = 0; queue < queues_; ++queue) EXPECT_GT(paths[queue], 8u) << queue;
}

}  // namespace
}  // namespace paceline
