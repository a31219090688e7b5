// How runs of segments become messages, and what happens when the kernel refuses them; the kernel is a stand-in here.
#include "transport/lane/udp/udp_sender.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <string>

namespace paceline {
namespace {

struct SentMessage {
  int socket = 0;
  std::string bytes;
  uint16_t port = 0;
  bool connected = false;      // goes where its socket is connected to
  uint16_t segment_bytes = 0;  // UDP_SEGMENT; 0: none
  size_t vectors = 0;
  bool unmarked = false;  // a note that takes the ECN mark away
};

// What the kernel does with the next messages: an errno each, 0 for success; success when the list is empty.
struct FakeKernel {
  std::deque<int> answers;
  std::vector<SentMessage> sent;
  std::vector<unsigned> calls;  // messages offered in each call
  bool refuse_gso = false;
  std::map<int, int> queued;          // bytes that wait, by socket
  std::map<int, uint16_t> connected;  // port, by socket
  int connects = 0;
  int connect_error = 0;
};
FakeKernel* kernel = nullptr;

SentMessage Read(int socket, const msghdr& header) {
  SentMessage message;
  message.socket = socket;
  message.connected = header.msg_name == nullptr;
  message.port =
      message.connected ? kernel->connected[socket] : ntohs(static_cast<const sockaddr_in*>(header.msg_name)->sin_port);
  message.vectors = header.msg_iovlen;
  for (size_t i = 0; i < header.msg_iovlen; ++i) {
    message.bytes.append(static_cast<const char*>(header.msg_iov[i].iov_base), header.msg_iov[i].iov_len);
  }
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
       entry = CMSG_NXTHDR(const_cast<msghdr*>(&header), entry)) {
    if (entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == UDP_SEGMENT) {
      std::memcpy(&message.segment_bytes, CMSG_DATA(entry), 2);
    } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_TOS) {
      int tos = -1;
      std::memcpy(&tos, CMSG_DATA(entry), sizeof(tos));
      message.unmarked = tos == 0;
    } else {
      ADD_FAILURE() << "unknown note to the kernel: " << entry->cmsg_level << "/" << entry->cmsg_type;
    }
  }
  return message;
}

int FakeSend(int socket, mmsghdr* messages, unsigned count, int) {
  kernel->calls.push_back(count);
  for (unsigned i = 0; i < count; ++i) {
    const SentMessage message = Read(socket, messages[i].msg_hdr);
    int answer = 0;
    if (!kernel->answers.empty()) {
      answer = kernel->answers.front();
      if (answer == 0 || i == 0) kernel->answers.pop_front();  // an error in the middle shows at the next call
    }
    if (kernel->refuse_gso && message.segment_bytes > 0) answer = EIO;
    if (answer != 0) {
      errno = answer;
      return i > 0 ? static_cast<int>(i) : -1;
    }
    kernel->sent.push_back(message);
  }
  return static_cast<int>(count);
}

int FakeQueued(int socket) { return kernel->queued[socket]; }

int FakeConnect(int socket, const SocketAddress& to) {
  ++kernel->connects;
  errno = kernel->connect_error;
  if (kernel->connect_error != 0) return -1;
  kernel->connected[socket] = ntohs(to.v4.sin_port);
  return 0;
}

class UdpSenderTest : public ::testing::Test {
 protected:
  UdpSenderTest() : peers_(Own()) {
    kernel = &kernel_;
    a_ = peers_.Open(ParseLaneAddress("192.0.2.2:1001").value());
    b_ = peers_.Open(ParseLaneAddress("192.0.2.2:1002").value());
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<uint8_t>(i * 7 + i / 256);
  }
  ~UdpSenderTest() override { kernel = nullptr; }

  static SocketAddress Own() {
    SocketAddress own;
    ToSocketAddress(ParseLaneAddress("192.0.2.1:1").value(), own);
    return own;
  }

  UdpSender Make(bool gso = true, bool ecn = true, std::vector<int> sockets = {10, 11, 12},
                 uint32_t max_packet_bytes = 1472) {
    return UdpSender(
        {std::move(sockets), false, gso, ecn, max_packet_bytes, &FakeSend, 1000, 99, &FakeQueued, 0, &FakeConnect});
  }

  // Adds a segment of `bytes` in all, 32 of them header, with contents of its own.
  void Add(uint32_t peer, uint16_t entropy, uint32_t bytes, bool ecn = true) {
    TxSegment segment;
    segment.peer = peer;
    segment.entropy = entropy;
    segment.ecn_capable = ecn;
    segment.header_bytes = static_cast<uint16_t>(std::min(bytes, 32u));
    segment.header = &data_[segments_.size() * 3 % 1000];
    segment.payload_bytes = bytes - segment.header_bytes;
    segment.payload = segment.payload_bytes > 0 ? &data_[2000 + segments_.size() * 11 % 5000] : nullptr;
    segments_.push_back(segment);
  }
  void AddRun(size_t count, uint32_t peer, uint16_t entropy, uint32_t bytes, bool ecn = true) {
    for (size_t i = 0; i < count; ++i) Add(peer, entropy, bytes, ecn);
  }

  std::string BytesOf(size_t from, size_t count) const {
    std::string bytes;
    for (size_t i = from; i < from + count; ++i) {
      bytes.append(reinterpret_cast<const char*>(segments_[i].header), segments_[i].header_bytes);
      bytes.append(reinterpret_cast<const char*>(segments_[i].payload), segments_[i].payload_bytes);
    }
    return bytes;
  }

  // Sends `count` messages of one segment, one by one.
  void SendOnes(UdpSender& sender, uint32_t count, uint32_t peer, uint16_t entropy) {
    segments_.clear();
    Add(peer, entropy, 100);
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(sender.Send(segments_, peers_, counters_), 1u);
  }

  FakeKernel kernel_;
  UdpPeers peers_;
  uint32_t a_ = 0, b_ = 0;
  std::vector<TxSegment> segments_;
  LaneCounters counters_;
  std::array<uint8_t, 10'000> data_{};
};

// Answers to strangers hold nobody up, however many of them the kernel keeps for addresses that nobody has.
TEST_F(UdpSenderTest, WhatIsExpendableTakesNoRoomFromTheRest) {
  auto sender = Make();
  const auto send_around_one = [&] {
    segments_.clear();
    kernel_.sent.clear();
    Add(a_, 0, 100);
    Add(b_, 0, 100);
    segments_.back().expendable = true;
    Add(b_, 0, 100);
    const size_t taken = sender.Send(segments_, peers_, counters_);
    EXPECT_EQ(sender.blocked_socket(), -1);
    return taken;
  };
  EXPECT_EQ(send_around_one(), 3u);
  ASSERT_EQ(kernel_.sent.size(), 3u);
  for (const SentMessage& message : kernel_.sent) EXPECT_EQ(message.socket, 10);
  kernel_.queued[10] = 1001;
  EXPECT_EQ(send_around_one(), 3u);
  ASSERT_EQ(kernel_.sent.size(), 3u);
  EXPECT_EQ(kernel_.sent[1].socket, 99);
  EXPECT_EQ(kernel_.sent[2].socket, 10);
  EXPECT_EQ(counters_.tx_drops, 0u);
  EXPECT_EQ(counters_.tx_packets, 6u);
  kernel_.answers = {0, EAGAIN};  // the spare one is full too
  EXPECT_EQ(send_around_one(), 3u);
  EXPECT_EQ(kernel_.sent.size(), 2u);
  EXPECT_EQ(counters_.tx_drops, 1u);
}

TEST_F(UdpSenderTest, ARunWithAShorterLastIsOneMessage) {
  auto sender = Make();
  AddRun(5, a_, 0, 1400);
  Add(a_, 0, 77);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 6u);
  ASSERT_EQ(kernel_.sent.size(), 1u);
  EXPECT_EQ(kernel_.sent[0].segment_bytes, 1400);
  EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(0, 6));
  EXPECT_EQ(kernel_.sent[0].port, 1001);
  EXPECT_EQ(kernel_.sent[0].socket, 10);
  EXPECT_FALSE(kernel_.sent[0].unmarked);
  EXPECT_EQ(counters_.tx_packets, 6u);
  EXPECT_EQ(counters_.tx_bytes, 5u * 1400 + 77);
  EXPECT_EQ(counters_.tx_calls, 1u);
  EXPECT_EQ(counters_.tx_drops, 0u);
}

TEST_F(UdpSenderTest, ShortSegmentsAreCopiedTogetherAndLongOnesAreNot) {
  auto sender = Make(true, true, {10}, 4000);
  AddRun(20, a_, 0, 2048);
  AddRun(4, b_, 0, 2049);
  Add(b_, 0, 77);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 25u);
  ASSERT_EQ(kernel_.sent.size(), 2u);
  EXPECT_EQ(kernel_.sent[0].vectors, 1u);
  EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(0, 20));
  EXPECT_EQ(kernel_.sent[1].vectors, 4u * 2 + 1);
  EXPECT_EQ(kernel_.sent[1].bytes, BytesOf(20, 5));
}

TEST_F(UdpSenderTest, WhatFindsNoRoomForCopiesGoesAsItIs) {
  auto sender = Make(true, true, {10}, 4000);
  AddRun(100, a_, 0, 2000);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 100u);
  std::string bytes;
  size_t vectors = 0;
  for (const SentMessage& message : kernel_.sent) {
    bytes += message.bytes;
    vectors += message.vectors;
  }
  EXPECT_EQ(bytes, BytesOf(0, 100));
  EXPECT_GT(vectors, kernel_.sent.size());
}

TEST_F(UdpSenderTest, RefusedGsoLosesNothingOfLongSegmentsEither) {
  auto sender = Make(true, true, {10}, 4000);
  kernel_.refuse_gso = true;
  AddRun(5, a_, 0, 3000);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 5u);
  ASSERT_EQ(kernel_.sent.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(kernel_.sent[i].bytes, BytesOf(i, 1));
}

TEST_F(UdpSenderTest, ALongerOneOrAShorterInTheMiddleEndsTheMessage) {
  auto sender = Make();
  AddRun(2, a_, 0, 500);
  Add(a_, 0, 100);  // last of the first message
  AddRun(2, a_, 0, 500);
  Add(a_, 0, 900);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 6u);
  ASSERT_EQ(kernel_.sent.size(), 3u);
  EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(0, 3));
  EXPECT_EQ(kernel_.sent[1].bytes, BytesOf(3, 2));
  EXPECT_EQ(kernel_.sent[2].bytes, BytesOf(5, 1));
  EXPECT_EQ(kernel_.sent[2].segment_bytes, 0) << "one segment needs no note";
  EXPECT_EQ(kernel_.calls, std::vector<unsigned>{3}) << "all in one system call";
}

// A socket that sends to one peer for long is connected to it; others still get theirs by it.
TEST_F(UdpSenderTest, ASocketIsConnectedToWhomItSendsToForLong) {
  auto sender = Make();
  SendOnes(sender, UdpSender::kRunBeforeConnect - 1, a_, 1);
  EXPECT_EQ(kernel_.connects, 0);
  SendOnes(sender, 10, a_, 1);
  EXPECT_EQ(kernel_.connects, 1);
  EXPECT_TRUE(kernel_.sent.back().connected);
  SendOnes(sender, 1, b_, 1);
  EXPECT_FALSE(kernel_.sent.back().connected);
  EXPECT_EQ(kernel_.sent.back().port, 1002);
  SendOnes(sender, 1, a_, 1);
  EXPECT_TRUE(kernel_.sent.back().connected);
  EXPECT_EQ(kernel_.sent.back().port, 1001);
  SendOnes(sender, 1, a_, 2);
  EXPECT_FALSE(kernel_.sent.back().connected) << "another socket";
  SendOnes(sender, UdpSender::kRunBeforeConnect, b_, 1);
  EXPECT_EQ(kernel_.connects, 2);
  EXPECT_EQ(kernel_.connected[11], 1002);
}

TEST_F(UdpSenderTest, PeersInTurnConnectNothing) {
  auto sender = Make();
  for (uint32_t i = 0; i < 3 * UdpSender::kRunBeforeConnect; ++i) SendOnes(sender, 1, i % 2 == 0 ? a_ : b_, 1);
  EXPECT_EQ(kernel_.connects, 0);
}

TEST_F(UdpSenderTest, TheSocketThatReceivesIsNotConnected) {
  auto sender = Make();
  SendOnes(sender, 5 * UdpSender::kRunBeforeConnect, a_, 0);
  EXPECT_EQ(kernel_.connects, 0);
}

TEST_F(UdpSenderTest, ANumberThatIsGivenAwayIsForgotten) {
  auto sender = Make();
  SendOnes(sender, UdpSender::kRunBeforeConnect, a_, 1);
  SendOnes(sender, UdpSender::kRunBeforeConnect - 1, a_, 2);
  ASSERT_EQ(kernel_.connects, 1);
  peers_.Close(a_);
  sender.Forget(a_);
  const uint32_t other = peers_.Open(ParseLaneAddress("192.0.2.2:1003").value());
  ASSERT_EQ(other, a_);
  SendOnes(sender, 1, other, 1);
  EXPECT_FALSE(kernel_.sent.back().connected);
  EXPECT_EQ(kernel_.sent.back().port, 1003);
  SendOnes(sender, 1, other, 2);
  EXPECT_EQ(kernel_.connects, 1) << "what another had sent counted";
}

TEST_F(UdpSenderTest, ASocketThatCannotBeConnectedSendsAsBefore) {
  kernel_.connect_error = ENETUNREACH;
  auto sender = Make();
  SendOnes(sender, 3 * UdpSender::kRunBeforeConnect, a_, 1);
  EXPECT_EQ(kernel_.connects, 3);
  EXPECT_EQ(kernel_.sent.size(), 3 * UdpSender::kRunBeforeConnect);
  EXPECT_FALSE(kernel_.sent.back().connected);
}

// To a connected socket the kernel tells what others answered to earlier packets.
TEST_F(UdpSenderTest, WhatIsToldOfAnEarlierPacketLosesNothing) {
  auto sender = Make();
  SendOnes(sender, UdpSender::kRunBeforeConnect, a_, 1);
  for (const int told : {ECONNREFUSED, EMSGSIZE, EHOSTUNREACH, ENOPROTOOPT}) {
    kernel_.answers = {told};
    const size_t before = kernel_.sent.size();
    segments_.clear();
    AddRun(5, a_, 1, 500);
    EXPECT_EQ(sender.Send(segments_, peers_, counters_), 5u);
    ASSERT_EQ(kernel_.sent.size(), before + 1);
    EXPECT_EQ(kernel_.sent.back().bytes, BytesOf(0, 5));
    EXPECT_TRUE(sender.gso());
  }
  EXPECT_EQ(counters_.tx_drops, 0u);
  kernel_.answers = {EHOSTUNREACH, EHOSTUNREACH};  // now it is this one
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 5u);
  EXPECT_EQ(counters_.tx_drops, 5u);
}

// Also in place of sending to somebody else by the same socket.
TEST_F(UdpSenderTest, WhatIsToldOfOnePeerLosesNothingToAnother) {
  auto sender = Make();
  SendOnes(sender, UdpSender::kRunBeforeConnect, a_, 1);
  for (const int told : {ECONNREFUSED, EMSGSIZE, EHOSTUNREACH, ENOPROTOOPT, EOPNOTSUPP}) {
    for (const bool expendable : {false, true}) {
      kernel_.answers = {told};
      const size_t before = kernel_.sent.size();
      segments_.clear();
      AddRun(expendable ? 1 : 5, b_, 1, 500);
      segments_.front().expendable = expendable;
      EXPECT_EQ(sender.Send(segments_, peers_, counters_), segments_.size());
      ASSERT_EQ(kernel_.sent.size(), before + 1) << told << expendable;
      EXPECT_EQ(kernel_.sent.back().bytes, BytesOf(0, segments_.size()));
      EXPECT_TRUE(sender.gso());
    }
  }
  EXPECT_EQ(counters_.tx_drops, 0u);
}

// A padded request may be larger than its path takes, and then all that is in its message is lost.
TEST_F(UdpSenderTest, APaddedRequestTakesNothingElseAlong) {
  auto sender = Make();
  AddRun(3, a_, 0, 500);
  segments_[0].control = true;
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 3u);
  ASSERT_EQ(kernel_.sent.size(), 2u);
  EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(0, 1));
  EXPECT_EQ(kernel_.sent[1].bytes, BytesOf(1, 2));
}

TEST_F(UdpSenderTest, PeerEntropyAndEcnPartMessages) {
  auto sender = Make();
  AddRun(2, a_, 0, 200);
  AddRun(2, b_, 0, 200);
  AddRun(2, b_, 3, 200);  // the same socket as entropy 0 (three sockets), but another path
  AddRun(2, b_, 3, 200, /*ecn=*/false);
  AddRun(2, b_, 1, 200);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 10u);
  ASSERT_EQ(kernel_.sent.size(), 5u);
  EXPECT_EQ(kernel_.sent[0].port, 1001);
  EXPECT_EQ(kernel_.sent[1].port, 1002);
  EXPECT_EQ(kernel_.sent[2].socket, 10);
  EXPECT_TRUE(kernel_.sent[3].unmarked);
  EXPECT_EQ(kernel_.sent[3].segment_bytes, 200);
  EXPECT_EQ(kernel_.sent[4].socket, 11);
  EXPECT_EQ(kernel_.calls, (std::vector<unsigned>{4, 1})) << "a call per socket";
}

TEST_F(UdpSenderTest, WithoutEcnNothingIsNoted) {
  auto sender = Make(true, /*ecn=*/false);
  Add(a_, 0, 200, false);
  Add(a_, 1, 200, true);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 2u);
  EXPECT_FALSE(kernel_.sent[0].unmarked);
  EXPECT_FALSE(kernel_.sent[1].unmarked);
}

TEST_F(UdpSenderTest, LimitsOfTheKernel) {
  auto sender = Make();
  AddRun(130, a_, 0, 64);    // 64 segments a message
  AddRun(100, b_, 0, 1472);  // 44 of them fit into 65,507 bytes
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 230u);
  std::vector<size_t> sizes;
  for (const SentMessage& message : kernel_.sent) {
    EXPECT_LE(message.bytes.size(), 65'507u);
    sizes.push_back(message.bytes.size() / (message.port == 1001 ? 64 : 1472));
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{64, 64, 2, 44, 44, 12}));
  EXPECT_EQ(counters_.tx_packets, 230u);
}

TEST_F(UdpSenderTest, ManyRunsTakeSeveralCalls) {
  auto sender = Make();
  for (int run = 0; run < 40; ++run) AddRun(44, run % 2 == 0 ? a_ : b_, 0, 1472);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 40u * 44);
  EXPECT_EQ(kernel_.sent.size(), 40u);
  std::string all;
  for (const SentMessage& message : kernel_.sent) all += message.bytes;
  EXPECT_EQ(all, BytesOf(0, segments_.size())) << "in order, nothing missing";
}

TEST_F(UdpSenderTest, WithoutGsoEachSegmentIsAMessage) {
  auto sender = Make(/*gso=*/false);
  AddRun(70, a_, 0, 300);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 70u);
  EXPECT_EQ(kernel_.sent.size(), 70u);
  for (const SentMessage& message : kernel_.sent) EXPECT_EQ(message.segment_bytes, 0);
  EXPECT_EQ(kernel_.calls, (std::vector<unsigned>{32, 32, 6}));
}

TEST_F(UdpSenderTest, RefusedGsoFallsBackOnceAndLosesNothing) {
  auto sender = Make();
  kernel_.refuse_gso = true;
  AddRun(10, a_, 0, 300, /*ecn=*/false);
  AddRun(10, b_, 0, 300);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 20u);
  EXPECT_FALSE(sender.gso());
  ASSERT_EQ(kernel_.sent.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(kernel_.sent[i].bytes, BytesOf(i, 1));
    EXPECT_EQ(kernel_.sent[i].unmarked, i < 10);
  }
  EXPECT_EQ(counters_.tx_drops, 0u);
  EXPECT_EQ(counters_.tx_packets, 20u);

  kernel_.calls.clear();
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 20u);
  EXPECT_EQ(kernel_.calls, std::vector<unsigned>{20}) << "not asked again";
}

TEST_F(UdpSenderTest, AnErrorThatOnlyLooksLikeRefusedGsoKeepsIt) {
  auto sender = Make();
  kernel_.answers = {EINVAL, EMSGSIZE};  // the message, then its first segment alone
  AddRun(10, a_, 0, 300);
  AddRun(10, b_, 0, 300);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 20u);
  EXPECT_TRUE(sender.gso());
  EXPECT_EQ(counters_.tx_drops, 10u);
  ASSERT_EQ(kernel_.sent.size(), 1u);
  EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(10, 10));
}

TEST_F(UdpSenderTest, FullWhileProbingTakesNothing) {
  auto sender = Make();
  kernel_.answers = {EIO, EAGAIN};
  AddRun(10, a_, 0, 300);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 0u);
  EXPECT_EQ(sender.blocked_socket(), 10);
  EXPECT_TRUE(sender.gso());
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 10u);
  EXPECT_EQ(sender.blocked_socket(), -1);
  EXPECT_EQ(kernel_.sent.size(), 1u);
}

TEST_F(UdpSenderTest, FullStopsAndTellsHowFarItCame) {
  auto sender = Make();
  for (const int full : {EAGAIN, ENOBUFS}) {
    segments_.clear();
    counters_ = {};
    AddRun(3, a_, 0, 300);
    AddRun(3, b_, 0, 300);
    AddRun(3, a_, 1, 300);
    kernel_.answers = {0, full};
    EXPECT_EQ(sender.Send(segments_, peers_, counters_), 3u);
    EXPECT_EQ(sender.blocked_socket(), 10);
    EXPECT_EQ(counters_.tx_packets, 3u);
    EXPECT_EQ(counters_.tx_drops, 0u);
    EXPECT_EQ(sender.Send(std::span(segments_).subspan(3), peers_, counters_), 6u);
    EXPECT_EQ(sender.blocked_socket(), -1);
  }
}

TEST_F(UdpSenderTest, OtherErrorsDropOneMessageAndGoOn) {
  for (const int error : {EMSGSIZE, ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EPERM, ENETDOWN}) {
    auto sender = Make();
    segments_.clear();
    counters_ = {};
    kernel_.sent.clear();
    AddRun(3, a_, 0, 300);
    AddRun(2, b_, 0, 300);
    kernel_.answers = {error, error};  // also when it is tried again
    EXPECT_EQ(sender.Send(segments_, peers_, counters_), 5u);
    EXPECT_EQ(counters_.tx_drops, 3u) << error;
    EXPECT_EQ(counters_.tx_packets, 2u);
    ASSERT_EQ(kernel_.sent.size(), 1u);
    EXPECT_EQ(kernel_.sent[0].bytes, BytesOf(3, 2));
    EXPECT_TRUE(sender.gso());
  }
}

TEST_F(UdpSenderTest, WhatCannotBeSentIsDroppedAndCounted) {
  auto sender = Make();
  Add(a_, 0, 100);
  Add(a_, 0, 1473);  // larger than a packet
  Add(UdpPeers::kNowhere, 0, 100);
  Add(a_, 0, 100);
  segments_.back().kind = SegmentKind::kWrite;
  Add(a_, 0, 100);
  segments_.back().payload = nullptr;  // phantom
  Add(a_, 0, 100);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 6u);
  EXPECT_EQ(counters_.tx_drops, 4u);
  EXPECT_EQ(counters_.tx_packets, 2u);
}

TEST_F(UdpSenderTest, InterruptedIsTriedAgain) {
  auto sender = Make();
  kernel_.answers = {EINTR};
  AddRun(2, a_, 0, 300);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 2u);
  EXPECT_EQ(counters_.tx_drops, 0u);
}

TEST_F(UdpSenderTest, HeadersOnlyAndEmptyPackets) {
  auto sender = Make();
  Add(a_, 0, 32);
  Add(a_, 0, 32);
  Add(a_, 0, 0);
  EXPECT_EQ(sender.Send(segments_, peers_, counters_), 3u);
  ASSERT_EQ(kernel_.sent.size(), 2u);
  EXPECT_EQ(kernel_.sent[0].segment_bytes, 32);
  EXPECT_EQ(kernel_.sent[1].bytes.size(), 0u);
}

}  // namespace
}  // namespace paceline
