#include "transport/lane/ethernet/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "transport/base/random.h"
#include "transport/lane/ethernet/internet_checksum.h"

namespace paceline {
namespace {

using Bytes = std::vector<uint8_t>;

FrameFlow Flow(IpVersion version) {
  FrameFlow flow;
  flow.source_mac = {{2, 0, 0, 0, 0, 1}};
  flow.destination_mac = {{2, 0, 0, 0, 0, 2}};
  flow.version = version;
  if (version == IpVersion::kV4) {
    flow.source = {192, 168, 0, 1};
    flow.destination = {192, 168, 0, 199};
  } else {
    flow.source = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    flow.destination = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    flow.flow_label = 0xabcde;
  }
  flow.source_port = 49152;
  flow.destination_port = 4791;
  return flow;
}

Bytes Payload(size_t bytes) {
  Bytes payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<uint8_t>(i * 7 + 3);
  return payload;
}

// The payload in two pieces, cut at `cut`.
Bytes Build(const FrameFlow& flow, const Bytes& payload, UdpChecksumMode mode = UdpChecksumMode::kComputed,
            size_t cut = 0) {
  Bytes frame(FrameHeaderBytes(flow.version));
  const std::span<const uint8_t> all(payload);
  const std::array<std::span<const uint8_t>, 2> pieces = {all.first(cut), all.subspan(cut)};
  EXPECT_EQ(WriteFrameHeaders(flow, pieces, mode, frame.data()), frame.size());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

size_t IpAt() { return kEthernetHeaderBytes; }
size_t UdpAt(IpVersion version) { return FrameHeaderBytes(version) - kUdpHeaderBytes; }
uint16_t UdpChecksumOf(const Bytes& frame, IpVersion version) {
  return static_cast<uint16_t>(frame[UdpAt(version) + 6] << 8 | frame[UdpAt(version) + 7]);
}

// After a change of the IPv4 header on purpose, so that nothing but the change is wrong.
void MendIpv4Checksum(Bytes& frame) {
  frame[IpAt() + 10] = frame[IpAt() + 11] = 0;
  InternetChecksum sum;
  sum.Add({frame.data() + IpAt(), kIpv4HeaderBytes});
  frame[IpAt() + 10] = static_cast<uint8_t>(sum.Checksum() >> 8);
  frame[IpAt() + 11] = static_cast<uint8_t>(sum.Checksum());
}

TEST(MacAddressTest, TextThereAndBack) {
  const auto address = ParseMacAddress("02:00:5E:10:00:fa");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(FormatMacAddress(*address), "02:00:5e:10:00:fa");
  for (const char* wrong : {"", "02:00:5e:10:00", "02:00:5e:10:00:0g", "02:00:5e:10:00:0a:", "02-00-5e-10-00-0a",
                            "2:0:5e:10:0:a      ", "+2:00:5e:10:00:0a"}) {
    EXPECT_FALSE(ParseMacAddress(wrong).has_value()) << wrong;
  }
  EXPECT_FALSE(address->is_group());
  EXPECT_TRUE(ParseMacAddress("ff:ff:ff:ff:ff:ff")->is_group());
}

TEST(FrameTest, AnIpv4HeaderByteByByte) {
  FrameFlow flow = Flow(IpVersion::kV4);
  const Bytes frame = Build(flow, Payload(87), UdpChecksumMode::kWhereRequired);
  const Bytes expected = {2,    0,    0,    0,    0,    2, 2,    0,    0,    0,    0,    1,    0x08, 0x00,  // Ethernet
                          0x45, 0x00, 0x00, 0x73, 0,    0, 0x40, 0,    0x40, 0x11, 0xb8, 0x61, 192,  168,
                          0,    1,                                                            // IPv4
                          192,  168,  0,    199,  0xc0, 0, 0x12, 0xb7, 0x00, 0x5f, 0,    0};  // and UDP
  EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 42), expected);
}

TEST(FrameTest, AnIpv6HeaderByteByByte) {
  FrameFlow flow = Flow(IpVersion::kV6);
  flow.traffic_class = 0xb9;
  const Bytes frame = Build(flow, Payload(8));
  const Bytes expected = {0x86, 0xdd, 0x6b, 0x9a, 0xbc, 0xde, 0, 16, 17, 64, 0xfd, 0};
  EXPECT_EQ(Bytes(frame.begin() + 12, frame.begin() + 24), expected);
}

class Versions : public ::testing::TestWithParam<IpVersion> {};

TEST_P(Versions, WhatIsWrittenIsRead) {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    FrameFlow flow = Flow(GetParam());
    flow.traffic_class = static_cast<uint8_t>(random.Below(256));
    flow.hop_limit = static_cast<uint8_t>(random.Below(256));
    flow.source_port = static_cast<uint16_t>(1 + random.Below(65535));
    flow.destination_port = static_cast<uint16_t>(random.Below(65536));
    const Bytes payload = Payload(random.Below(300));
    const Bytes frame = Build(flow, payload, UdpChecksumMode::kComputed, random.Below(payload.size() + 1));
    const auto parsed = ParseFrame(frame, true);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_TRUE(parsed->flow == flow);
    EXPECT_EQ(Bytes(parsed->payload.begin(), parsed->payload.end()), payload);
    EXPECT_EQ(parsed->congestion_experienced(), (flow.traffic_class & 3) == 3);
  }
}

TEST_P(Versions, TheLargestPayloadHasItsLength) {
  const Bytes payload = Payload(MaxUdpPayload(GetParam()));
  const auto parsed = ParseFrame(Build(Flow(GetParam()), payload), true);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->payload.size(), payload.size());
}

TEST_P(Versions, WhatPadsAFrameIsNoPayload) {
  Bytes frame = Build(Flow(GetParam()), Payload(1));
  frame.resize(frame.size() + 17, 0xaa);
  const auto parsed = ParseFrame(frame, true);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->payload.size(), 1u);
}

TEST_P(Versions, EveryDamagedBitIsFoundOrChangesWhatNoChecksumCovers) {
  const FrameFlow flow = Flow(GetParam());
  const Bytes whole = Build(flow, Payload(33));
  const size_t ip = IpAt();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes frame = whole;
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const auto parsed = ParseFrame(frame, true);
    if (!parsed.has_value()) continue;
    const size_t byte = bit / 8;
    // The card's own checksum covers all; IPv6 has none over its traffic class, flow label and hop limit.
    const bool uncovered = byte < 12 || (GetParam() == IpVersion::kV6 && (byte < ip + 4 || byte == ip + 7));
    EXPECT_TRUE(uncovered) << "bit " << bit;
    EXPECT_FALSE(parsed->flow == flow) << "bit " << bit;
  }
}

TEST_P(Versions, AFrameThatIsCutAnywhereIsRefused) {
  const Bytes whole = Build(Flow(GetParam()), Payload(20));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto copy = std::make_unique<uint8_t[]>(bytes);  // of that size, so that a sanitizer sees what is beyond
    std::copy_n(whole.begin(), bytes, copy.get());
    EXPECT_FALSE(ParseFrame({copy.get(), bytes}, false).has_value()) << bytes;
  }
}

TEST_P(Versions, MutatedFramesGiveNothingOrWhatLiesWithin) {
  Random random(3);
  const Bytes whole = Build(Flow(GetParam()), Payload(40));
  size_t taken = 0;
  for (int round = 0; round < 200000; ++round) {
    Bytes frame = whole;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(4) == 0 ? random.Below(frame.size()) : 12 + random.Below(40);
      frame[at] = static_cast<uint8_t>(random.Below(256));
    }
    if (random.Below(2) == 0) MendIpv4Checksum(frame);
    const size_t bytes = random.Below(3) == 0 ? random.Below(frame.size() + 1) : frame.size();
    const auto copy = std::make_unique<uint8_t[]>(bytes);
    std::copy_n(frame.begin(), bytes, copy.get());
    const auto parsed = ParseFrame({copy.get(), bytes}, false);
    if (!parsed.has_value()) continue;
    ++taken;
    const size_t header = FrameHeaderBytes(parsed->flow.version);
    ASSERT_EQ(parsed->payload.data(), copy.get() + header);
    ASSERT_LE(header + parsed->payload.size(), bytes);
    // What was read would be written the same, but for what nobody looks at.
    const auto again = ParseFrame(Build(parsed->flow, Bytes(parsed->payload.begin(), parsed->payload.end())), true);
    ASSERT_TRUE(again.has_value() && again->flow == parsed->flow);
  }
  EXPECT_GT(taken, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Ip, Versions, ::testing::Values(IpVersion::kV4, IpVersion::kV6),
                         [](const auto& test) { return test.param == IpVersion::kV4 ? "V4" : "V6"; });

TEST(FrameTest, ChecksumModes) {
  const Bytes payload = Payload(51);
  const FrameFlow v4 = Flow(IpVersion::kV4), v6 = Flow(IpVersion::kV6);
  EXPECT_EQ(UdpChecksumOf(Build(v4, payload, UdpChecksumMode::kWhereRequired), IpVersion::kV4), 0);
  EXPECT_TRUE(ParseFrame(Build(v4, payload, UdpChecksumMode::kWhereRequired), true).has_value());
  EXPECT_EQ(Build(v6, payload, UdpChecksumMode::kWhereRequired), Build(v6, payload, UdpChecksumMode::kComputed));
  for (const FrameFlow& flow : {v4, v6}) {
    Bytes frame = Build(flow, payload, UdpChecksumMode::kPseudoHeader);
    EXPECT_FALSE(ParseFrame(frame, true).has_value()) << "unfinished";
    // What a card does: the sum over header and payload, the field as it stands included, goes into the field.
    InternetChecksum sum;
    sum.Add(std::span<const uint8_t>(frame).subspan(UdpAt(flow.version)));
    frame[UdpAt(flow.version) + 6] = static_cast<uint8_t>(sum.Checksum() >> 8);
    frame[UdpAt(flow.version) + 7] = static_cast<uint8_t>(sum.Checksum());
    EXPECT_EQ(frame, Build(flow, payload, UdpChecksumMode::kComputed));
  }
}

TEST(FrameTest, AChecksumOfZeroIsWrittenAsAllOnes) {
  FrameFlow flow = Flow(IpVersion::kV4);
  const Bytes without = Build(flow, {0, 0});
  const uint16_t checksum = UdpChecksumOf(without, IpVersion::kV4);
  const Bytes frame = Build(flow, {static_cast<uint8_t>(checksum >> 8), static_cast<uint8_t>(checksum)});
  EXPECT_EQ(UdpChecksumOf(frame, IpVersion::kV4), 0xffff);
  EXPECT_TRUE(ParseFrame(frame, true).has_value());
}

TEST(FrameTest, AnIpv6DatagramWithoutChecksumIsRefusedWhereItIsLookedAt) {
  Bytes frame = Build(Flow(IpVersion::kV6), Payload(5));
  frame[UdpAt(IpVersion::kV6) + 6] = frame[UdpAt(IpVersion::kV6) + 7] = 0;
  EXPECT_FALSE(ParseFrame(frame, true).has_value());
  EXPECT_TRUE(ParseFrame(frame, false).has_value());
}

// Each of these is a well-formed packet that some host might take; a lane's peer never sends it.
TEST(FrameTest, WhatIsRefused) {
  const auto refused = [](const char* what, auto change) {
    Bytes frame = Build(Flow(IpVersion::kV4), Payload(10));
    change(frame);
    MendIpv4Checksum(frame);
    EXPECT_FALSE(ParseFrame(frame, false).has_value()) << what;
  };
  const size_t ip = IpAt(), udp = UdpAt(IpVersion::kV4);
  refused("a VLAN tag", [&](Bytes& f) { f[12] = 0x81, f[13] = 0x00; });
  refused("ARP", [&](Bytes& f) { f[13] = 0x06; });
  refused("IPv6 under the type of IPv4", [&](Bytes& f) { f[ip] = 0x60; });
  refused("options", [&](Bytes& f) { f[ip] = 0x46; });
  refused("a header of 16 bytes", [&](Bytes& f) { f[ip] = 0x44; });
  refused("the first fragment", [&](Bytes& f) { f[ip + 6] = 0x20; });
  refused("the last fragment", [&](Bytes& f) { f[ip + 6] = 0, f[ip + 7] = 1; });
  refused("TCP", [&](Bytes& f) { f[ip + 9] = 6; });
  refused("an IP length beyond the frame", [&](Bytes& f) { ++f[ip + 3]; });
  refused("an IP length that the UDP length does not have", [&](Bytes& f) { --f[ip + 3]; });
  refused("an IP length below its headers", [&](Bytes& f) { f[ip + 3] = 27, f[udp + 5] = 7; });
  refused("a UDP length of zero", [&](Bytes& f) { f[udp + 5] = 0; });
  refused("a UDP length beyond the packet", [&](Bytes& f) { ++f[udp + 5]; });
  refused("source port 0", [&](Bytes& f) { f[udp] = f[udp + 1] = 0; });
  refused("a source of no host", [&](Bytes& f) { f[ip + 12] = 0; });
  refused("a multicast source", [&](Bytes& f) { f[ip + 12] = 224; });
  refused("the broadcast source", [&](Bytes& f) { std::memset(&f[ip + 12], 0xff, 4); });
  refused("a group as source card", [&](Bytes& f) { f[6] |= 1; });

  const auto refused_v6 = [](const char* what, auto change) {
    Bytes frame = Build(Flow(IpVersion::kV6), Payload(10));
    change(frame);
    EXPECT_FALSE(ParseFrame(frame, false).has_value()) << what;
  };
  refused_v6("a fragment header", [&](Bytes& f) { f[ip + 6] = 44; });
  refused_v6("hop-by-hop options", [&](Bytes& f) { f[ip + 6] = 0; });
  refused_v6("a jumbogram", [&](Bytes& f) { f[ip + 4] = f[ip + 5] = 0; });
  refused_v6("a length beyond the frame", [&](Bytes& f) { ++f[ip + 5]; });
  refused_v6("a multicast source", [&](Bytes& f) { f[ip + 8] = 0xff; });
  refused_v6("the source of no host", [&](Bytes& f) { std::memset(&f[ip + 8], 0, 16); });
  Bytes frame = Build(Flow(IpVersion::kV4), Payload(10));
  frame[ip + 11] ^= 1;
  EXPECT_FALSE(ParseFrame(frame, false).has_value()) << "a wrong header checksum";
}

}  // namespace
}  // namespace paceline
