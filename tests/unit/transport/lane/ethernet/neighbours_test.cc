#include "transport/lane/ethernet/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "transport/lane/ethernet/internet_checksum.h"

namespace paceline {
namespace {

using State = Neighbours::State;

constexpr Time kStart = Time::FromNanos(1'000'000'000);

IpAddress V4(uint8_t last, uint8_t third = 2) { return {192, 0, third, last}; }
IpAddress V6(uint8_t last) { return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, last}; }
MacAddress Mac(uint8_t last) { return {{0x02, 0, 0, 0, 0, last}}; }

Neighbours Make(uint8_t last, IpVersion version, uint8_t prefix_bits = 24) {
  Neighbours::Options options;
  options.mac = Mac(last);
  options.version = version;
  options.address = version == IpVersion::kV4 ? V4(last) : V6(last);
  options.prefix_bits = prefix_bits;
  return Neighbours(options);
}

// All frames that are due, at most 100.
std::vector<NeighbourFrame> Drain(Neighbours& from, Time now) {
  std::vector<NeighbourFrame> frames;
  while (frames.size() < 100) {
    const auto frame = from.PollTransmit(now);
    if (!frame) break;
    frames.push_back(*frame);
  }
  return frames;
}

void Carry(Neighbours& from, Neighbours& to, Time now) {
  for (const NeighbourFrame& frame : Drain(from, now)) EXPECT_TRUE(to.HandleFrame(frame.view(), now));
}

MacAddress DestinationOf(const NeighbourFrame& frame) {
  MacAddress mac;
  std::copy_n(frame.bytes.begin(), 6, mac.bytes.begin());
  return mac;
}

// Of a whole frame of neighbour discovery, as long as its IP header says.
void FixChecksum(std::span<uint8_t> frame) {
  const size_t bytes = std::clamp<size_t>(static_cast<size_t>(frame[18]) << 8 | frame[19], 4, frame.size() - 54);
  const std::span<uint8_t> icmp = frame.subspan(54, bytes);
  icmp[2] = icmp[3] = 0;
  InternetChecksum sum;
  sum.Add(frame.subspan(22, 32));
  sum.AddWord(static_cast<uint16_t>(bytes));
  sum.AddWord(58);
  sum.Add(icmp);
  icmp[2] = static_cast<uint8_t>(sum.Checksum() >> 8);
  icmp[3] = static_cast<uint8_t>(sum.Checksum());
}
void FixChecksum(NeighbourFrame& frame) { FixChecksum(std::span(frame.bytes).first(frame.size)); }

class NeighboursOf : public ::testing::TestWithParam<IpVersion> {
 protected:
  IpAddress Address(uint8_t last) const { return GetParam() == IpVersion::kV4 ? V4(last) : V6(last); }
  Neighbours a_ = Make(1, GetParam());
  Neighbours b_ = Make(2, GetParam());
  Time now_ = kStart;
};

TEST_P(NeighboursOf, OneAsksTheOtherAnswersAndBothKnow) {
  const uint32_t b = a_.Open(Address(2)), a = b_.Open(Address(1));
  ASSERT_NE(b, Neighbours::kNowhere);
  EXPECT_EQ(a_.state(b), State::kAsking);
  EXPECT_EQ(a_.Find(b), nullptr);
  EXPECT_LE(a_.next_due(), now_);
  Carry(a_, b_, now_);
  EXPECT_EQ(b_.state(a), State::kKnown) << "who is asked learns from the question";
  Carry(b_, a_, now_);
  ASSERT_NE(a_.Find(b), nullptr);
  EXPECT_EQ(*a_.Find(b), Mac(2));
  EXPECT_EQ(*b_.Find(a), Mac(1));
  EXPECT_GT(a_.next_due(), now_);
}

TEST_P(NeighboursOf, AsksAgainLessAndLessOftenAndGivesUp) {
  const uint32_t b = a_.Open(Address(2));
  std::vector<int64_t> millis;
  for (int i = 0; i < 10'000 && a_.state(b) == State::kAsking; ++i) {
    for (size_t n = Drain(a_, now_).size(); n > 0; --n) millis.push_back((now_ - kStart).nanos() / 1'000'000);
    now_ = now_ + Duration::Millis(1);
  }
  EXPECT_EQ(a_.state(b), State::kFailed);
  ASSERT_EQ(millis.size(), 6u);
  const std::vector<int64_t> expected = {0, 100, 300, 700, 1500, 2500};
  for (size_t i = 0; i < millis.size(); ++i) EXPECT_NEAR(static_cast<double>(millis[i]), expected[i], 60) << i;
  // Nobody wants it: silence. Somebody does: at most once a second.
  size_t asked = 0;
  for (int i = 0; i < 3000; ++i, now_ = now_ + Duration::Millis(1)) asked += Drain(a_, now_).size();
  EXPECT_EQ(asked, 0u);
  for (int i = 0; i < 3000; ++i, now_ = now_ + Duration::Millis(1)) {
    a_.Find(b);
    asked += Drain(a_, now_).size();
  }
  EXPECT_GE(asked, 2u);
  EXPECT_LE(asked, 4u);
  const uint32_t changes = a_.change_count();
  b_.Open(Address(1));
  Carry(b_, a_, now_);
  EXPECT_EQ(a_.state(b), State::kKnown) << "it asked us: it is there again";
  EXPECT_NE(a_.change_count(), changes);
}

TEST_P(NeighboursOf, WhatIsUsedIsConfirmedDirectlyFirst) {
  const uint32_t b = a_.Open(Address(2));
  Carry(a_, b_, now_);
  Carry(b_, a_, now_);
  now_ = now_ + Duration::Seconds(40);
  EXPECT_TRUE(Drain(a_, now_).empty()) << "nobody has used it";
  a_.Find(b);
  now_ = now_ + Duration::Seconds(2);
  const auto probe = Drain(a_, now_);
  ASSERT_EQ(probe.size(), 1u);
  EXPECT_EQ(DestinationOf(probe[0]), Mac(2));
  EXPECT_NE(a_.Find(b), nullptr) << "serves until it is refuted";
  size_t direct = 0, to_all = 0;
  for (int i = 0; i < 10'000 && a_.state(b) == State::kKnown; ++i, now_ = now_ + Duration::Millis(1)) {
    for (const NeighbourFrame& frame : Drain(a_, now_)) ++(DestinationOf(frame).is_group() ? to_all : direct);
  }
  EXPECT_EQ(direct, 2u);
  EXPECT_EQ(to_all, 3u);
  EXPECT_EQ(a_.state(b), State::kFailed);
}

TEST_P(NeighboursOf, OneThatWasClosedIsRememberedUntilItsPlaceIsNeeded) {
  uint32_t b = a_.Open(Address(2));
  a_.Close(b);
  Carry(a_, b_, now_);
  Carry(b_, a_, now_);
  b = a_.Open(Address(2));
  EXPECT_EQ(a_.state(b), State::kKnown);
  a_.Close(b);
}

TEST_P(NeighboursOf, AtTheBoundTheLongestClosedMakesWayAndOpenOnesStay) {
  const size_t last = GetParam() == IpVersion::kV4 ? 3 : 15;
  a_ = Make(1, GetParam(), 16);
  const auto open = [&](size_t i) {
    IpAddress address = Address(0);
    address[last] = static_cast<uint8_t>(i);
    address[last - 1] = static_cast<uint8_t>(0x40 + i / 256);
    return a_.Open(address);
  };
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < Neighbours::kMostEntries; ++i) numbers.push_back(open(i));
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), Neighbours::kNowhere), 0);
  EXPECT_EQ(open(5000), Neighbours::kNowhere) << "all are in use";
  a_.Close(numbers[7]);
  a_.Close(numbers[8]);
  EXPECT_EQ(open(7), numbers[7]) << "opened again: not to be given away";
  EXPECT_EQ(open(5000), numbers[8]);
  EXPECT_EQ(open(8), Neighbours::kNowhere);
}

TEST_P(NeighboursOf, AnotherEthernetAddressOfAKnownNeighbourIsTaken) {
  const uint32_t b = a_.Open(Address(2));
  Carry(a_, b_, now_);
  Carry(b_, a_, now_);
  Neighbours::Options moved;
  moved.mac = Mac(99);
  moved.version = GetParam();
  moved.address = Address(2);
  Neighbours replaced(moved);
  replaced.Open(Address(1));
  const uint32_t changes = a_.change_count();
  Carry(replaced, a_, now_);
  EXPECT_EQ(*a_.Find(b), Mac(99));
  EXPECT_NE(a_.change_count(), changes);
}

TEST_P(NeighboursOf, SomebodyElseUnderOurAddressIsCountedAndChangesNothing) {
  const uint32_t b = a_.Open(Address(2));
  Neighbours::Options options;
  options.mac = Mac(66);
  options.version = GetParam();
  options.address = Address(1);  // ours
  Neighbours thief(options);
  thief.Open(Address(1));
  Carry(thief, a_, now_);
  EXPECT_EQ(a_.conflicts(), 1u);
  EXPECT_EQ(a_.last_conflict(), Mac(66));
  EXPECT_EQ(a_.state(b), State::kAsking);
}

TEST_P(NeighboursOf, OwnFramesThatComeBackAreNobodyElses) {
  a_.Open(Address(2));
  a_.Open(Address(1));  // as who looks whether somebody has it
  Carry(a_, a_, now_);
  EXPECT_EQ(a_.conflicts(), 0u);
}

TEST_P(NeighboursOf, AnswersAndQuestionsTakeTurns) {
  b_.Open(Address(1));
  const auto asks = Drain(b_, now_);
  ASSERT_EQ(asks.size(), 1u);
  for (int i = 0; i < 10; ++i) a_.HandleFrame(asks[0].view(), now_);
  a_.Open(Address(3));
  a_.Open(Address(4));
  const auto frames = Drain(a_, now_);
  ASSERT_EQ(frames.size(), 12u);
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(DestinationOf(frames[i]).is_group(), i == 1 || i == 3) << i << ": questions go to all";
  }
}

TEST_P(NeighboursOf, AnswersAreBounded) {
  b_.Open(Address(1));
  const auto question = Drain(b_, now_);
  ASSERT_EQ(question.size(), 1u);
  for (size_t i = 0; i < 3 * Neighbours::kMostAnswers; ++i) a_.HandleFrame(question[0].view(), now_);
  EXPECT_EQ(Drain(a_, now_).size(), Neighbours::kMostAnswers);
}

// Whatever a frame holds: no read beyond its end (the sanitizers see it), and nothing learned from damaged ones.
TEST_P(NeighboursOf, HostileFramesDoNoHarm) {
  const uint32_t b = a_.Open(Address(2));
  b_.Open(Address(1));
  const NeighbourFrame good = Drain(b_, now_).at(0);
  for (size_t size = 0; size < good.size; ++size) {
    const std::vector<uint8_t> cut(good.bytes.begin(), good.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    a_.HandleFrame(cut, now_);
    // ARP is shorter than the least frame.
    if (size < 42) {
      EXPECT_EQ(a_.state(b), State::kAsking) << size;
    }
  }
  std::mt19937 random(7);
  size_t learned = 0;
  for (int i = 0; i < 20'000; ++i) {
    Neighbours fresh = Make(1, GetParam());
    const uint32_t known = fresh.Open(Address(2));
    std::vector<uint8_t> frame(good.bytes.begin(), good.bytes.begin() + static_cast<std::ptrdiff_t>(good.size));
    const size_t changes = 1 + random() % 3;
    for (size_t c = 0; c < changes; ++c) frame[random() % frame.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
    // Behind a wrong checksum nobody looks at the options: half of the frames have the right one.
    if (GetParam() == IpVersion::kV6 && i % 2 == 0 && frame.size() == good.size) FixChecksum(frame);
    fresh.HandleFrame(frame, now_);
    learned += fresh.state(known) == State::kKnown ? 1 : 0;
    if (const MacAddress* mac = fresh.Find(known)) {
      EXPECT_FALSE(mac->is_group());
      EXPECT_FALSE(*mac == MacAddress{});
    }
  }
  EXPECT_GT(learned, 2000u) << "frames that were taken, or this tested nothing";
}

INSTANTIATE_TEST_SUITE_P(Versions, NeighboursOf, ::testing::Values(IpVersion::kV4, IpVersion::kV6),
                         [](const auto& test) { return test.param == IpVersion::kV4 ? "Arp" : "Discovery"; });

TEST(Neighbours, OthersThanThoseOnTheLinkAreReachedByTheGatewayOrNot) {
  Neighbours without = Make(1, IpVersion::kV4);
  EXPECT_EQ(without.Open(V4(9, 3)), Neighbours::kNowhere);
  Neighbours::Options options;
  options.mac = Mac(1);
  options.address = V4(1);
  options.prefix_bits = 25;
  options.gateway = V4(126);
  Neighbours with(options);
  const uint32_t far = with.Open(V4(9, 3));
  EXPECT_EQ(with.Open(V4(200)), far) << "beyond 25 bits";
  EXPECT_NE(with.Open(V4(100)), far);
  const auto asked = Drain(with, kStart);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].bytes[14 + 24 + 3], 126);
}

TEST(Neighbours, ArpIsAsItStandsInTheRfc) {
  Neighbours neighbours = Make(1, IpVersion::kV4);
  neighbours.Open(V4(2));
  const NeighbourFrame frame = Drain(neighbours, kStart).at(0);
  const std::vector<uint8_t> expected = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,   0, 0, 0, 0, 1, 0x08, 0x06,  //
                                         0,    1,    8,    0,    6,    4,    0,   1,                          //
                                         2,    0,    0,    0,    0,    1,    192, 0, 2, 1,                    //
                                         0,    0,    0,    0,    0,    0,    192, 0, 2, 2};
  ASSERT_EQ(frame.size, 60u);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), frame.bytes.begin()));
}

TEST(Neighbours, WhatArpTellsOthersSaysNothingToUs) {
  Neighbours neighbours = Make(1, IpVersion::kV4);
  const uint32_t b = neighbours.Open(V4(2));
  Neighbours other = Make(2, IpVersion::kV4);
  other.Open(V4(3));
  Carry(other, neighbours, kStart);
  EXPECT_EQ(neighbours.state(b), State::kAsking);
}

TEST(Neighbours, AGroupIsNobodysEthernetAddress) {
  Neighbours neighbours = Make(1, IpVersion::kV4), other = Make(2, IpVersion::kV4);
  const uint32_t b = neighbours.Open(V4(2));
  Drain(neighbours, kStart);
  other.Open(V4(1));
  NeighbourFrame question = Drain(other, kStart).at(0);
  question.bytes[14 + 8] |= 1;  // the sender's
  neighbours.HandleFrame(question.view(), kStart);
  EXPECT_TRUE(Drain(neighbours, kStart).empty()) << "an answer to a group";
  EXPECT_EQ(neighbours.state(b), State::kAsking);

  Neighbours asking = Make(1, IpVersion::kV6), answering = Make(2, IpVersion::kV6);
  const uint32_t c = asking.Open(V6(2));
  Carry(asking, answering, kStart);
  NeighbourFrame answer = Drain(answering, kStart).at(0);
  answer.bytes[80] |= 1;  // the target's, in the option
  FixChecksum(answer);
  asking.HandleFrame(answer.view(), kStart);
  EXPECT_EQ(asking.state(c), State::kAsking);
  answer.bytes[80] &= 0xfe;
  FixChecksum(answer);
  asking.HandleFrame(answer.view(), kStart);
  EXPECT_EQ(asking.state(c), State::kKnown);
}

TEST(Neighbours, AnAnswerWithoutAnAddressConfirmsTheOneThatIsKnown) {
  Neighbours asking = Make(1, IpVersion::kV6), answering = Make(2, IpVersion::kV6);
  const uint32_t b = asking.Open(V6(2));
  Carry(asking, answering, kStart);
  NeighbourFrame answer = Drain(answering, kStart).at(0);
  const NeighbourFrame whole = answer;
  answer.size -= 8;  // the option
  answer.bytes[14 + 5] -= 8;
  const auto send = [&](Time now) {
    FixChecksum(answer);
    asking.HandleFrame(answer.view(), now);
  };
  send(kStart);
  EXPECT_EQ(asking.state(b), State::kAsking) << "it says nothing of one that is not known";
  asking.HandleFrame(whole.view(), kStart);
  ASSERT_EQ(asking.state(b), State::kKnown);
  Time now = kStart + Duration::Seconds(40);
  asking.Find(b);
  EXPECT_EQ(Drain(asking, now).size(), 1u) << "asked directly";
  answer.bytes[58] &= 0xbf;  // unsolicited: from anybody, of no time
  send(now);
  now = now + Duration::Millis(150);
  EXPECT_EQ(Drain(asking, now).size(), 1u) << "asked again";
  answer.bytes[58] |= 0x40;
  send(now);
  for (int i = 0; i < 3000; ++i, now = now + Duration::Millis(10)) {
    asking.Find(b);
    if (i < 2900) {
      ASSERT_TRUE(Drain(asking, now).empty()) << i;
    }
  }
  EXPECT_EQ(asking.state(b), State::kKnown);
}

TEST(Neighbours, SolicitationsGoToTheGroupOfTheAddress) {
  Neighbours neighbours = Make(1, IpVersion::kV6);
  neighbours.Open(V6(2));
  const NeighbourFrame frame = Drain(neighbours, kStart).at(0);
  EXPECT_EQ(DestinationOf(frame), (MacAddress{{0x33, 0x33, 0xff, 0, 0x12, 2}}));
  EXPECT_EQ(frame.size, 86u);
  EXPECT_EQ(frame.bytes[14 + 7], 255) << "hop limit";
}

TEST(Neighbours, DiscoveryFromBeyondARouterOrWithAWrongChecksumIsRefused) {
  Neighbours asked = Make(1, IpVersion::kV6), asking = Make(2, IpVersion::kV6);
  const uint32_t b = asked.Open(V6(2));
  Drain(asked, kStart);
  asking.Open(V6(1));
  const NeighbourFrame good = Drain(asking, kStart).at(0);
  NeighbourFrame forwarded = good;
  forwarded.bytes[14 + 7] = 254;  // not under the checksum
  asked.HandleFrame(forwarded.view(), kStart);
  NeighbourFrame damaged = good;
  damaged.bytes[85] ^= 1;  // the Ethernet address in the option
  asked.HandleFrame(damaged.view(), kStart);
  NeighbourFrame endless = good;
  endless.bytes[14 + 40 + 25] = 0;  // an option of no length
  FixChecksum(endless);
  asked.HandleFrame(endless.view(), kStart);
  EXPECT_EQ(asked.state(b), State::kAsking);
  asked.HandleFrame(good.view(), kStart);
  EXPECT_EQ(asked.state(b), State::kKnown);
}

TEST(Neighbours, WhoWantsOurAddressForHimselfIsToldThatItIsTaken) {
  Neighbours neighbours = Make(1, IpVersion::kV6), other = Make(2, IpVersion::kV6);
  other.Open(V6(1));
  NeighbourFrame probe = Drain(other, kStart).at(0);
  std::fill_n(probe.bytes.begin() + 22, 16, uint8_t{0});  // from nobody, as duplicate address detection asks
  FixChecksum(probe);
  neighbours.HandleFrame(probe.view(), kStart);
  const auto told = Drain(neighbours, kStart);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(DestinationOf(told[0]), (MacAddress{{0x33, 0x33, 0, 0, 0, 1}}));
  EXPECT_EQ(neighbours.conflicts(), 1u);
}

TEST(Neighbours, OtherFramesAreNotItsBusiness) {
  Neighbours neighbours = Make(1, IpVersion::kV6);
  std::vector<uint8_t> udp(100, 0);
  udp[12] = 0x86, udp[13] = 0xdd, udp[14] = 0x60, udp[20] = 17;
  EXPECT_FALSE(neighbours.HandleFrame(udp, kStart));
  udp[20] = 58, udp[54] = 128;  // an echo request
  EXPECT_FALSE(neighbours.HandleFrame(udp, kStart));
}

}  // namespace
}  // namespace paceline
