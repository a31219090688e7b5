// What the UDP lane costs by itself: a burst is sent and received by one thread over loopback, through the lane and by
// hand (one UDP_SEGMENT message from one piece of memory or, as the lane must, from a header and a payload each; one
// recvmmsg). CPU time, so that it can be compared on a machine that does other things.
#include <benchmark/benchmark.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>

#include "tests/interop/udp_pingpong/raw_socket.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline::interop {
namespace {

constexpr uint32_t kHeaderBytes = 32;

void CountPackets(benchmark::State& state, int64_t burst, int64_t packet) {
  state.SetItemsProcessed(state.iterations() * burst);
  state.SetBytesProcessed(state.iterations() * burst * packet);
}

void RawBurst(benchmark::State& state) {
  const auto burst = static_cast<size_t>(state.range(0));
  const auto packet = static_cast<size_t>(state.range(1));
  SocketAddress from, to;
  const int tx = OpenRawSocket("127.0.0.1:0", 1 << 20, false, from);
  const int rx = OpenRawSocket("127.0.0.1:0", 8 << 20, true, to);
  const int segment = static_cast<int>(packet);
  if (burst > 1) setsockopt(tx, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
  std::vector<uint8_t> out(burst * packet, 1);
  std::vector<uint8_t> headers(burst * kHeaderBytes, 1);
  std::vector<iovec> parts;
  if (state.range(2) == 0) {
    parts.push_back({out.data(), out.size()});
  } else {
    for (size_t i = 0; i < burst; ++i) {
      parts.push_back({&headers[i * kHeaderBytes], kHeaderBytes});
      parts.push_back({&out[i * (packet - kHeaderBytes)], packet - kHeaderBytes});
    }
  }
  msghdr outgoing{};
  outgoing.msg_name = &to.generic;
  outgoing.msg_namelen = to.size;
  outgoing.msg_iov = parts.data();
  outgoing.msg_iovlen = parts.size();
  std::vector<uint8_t> in(65536);
  iovec vector{in.data(), in.size()};
  mmsghdr message{};
  message.msg_hdr.msg_iov = &vector;
  message.msg_hdr.msg_iovlen = 1;
  for (auto _ : state) {
    sendmsg(tx, &outgoing, MSG_DONTWAIT);
    for (size_t bytes = 0; bytes < out.size();) {
      if (recvmmsg(rx, &message, 1, MSG_DONTWAIT, nullptr) == 1) bytes += message.msg_len;
    }
  }
  CountPackets(state, state.range(0), state.range(1));
}

void LaneBurst(benchmark::State& state) {
  const auto burst = static_cast<size_t>(state.range(0));
  const auto packet = static_cast<uint32_t>(state.range(1));
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  options.timestamps = state.range(2) != 0;
  options.ecn = state.range(3) != 0;
  options.mtu = 65536;
  const auto tx = CreateUdpLane(options).value();
  const auto rx = CreateUdpLane(options).value();
  const uint32_t peer = tx->OpenPeer(rx->address());
  std::vector<uint8_t> headers(burst * kHeaderBytes, 1);
  std::vector<uint8_t> payload(burst * packet, 1);
  std::vector<TxSegment> segments(burst);
  for (size_t i = 0; i < burst; ++i) {
    segments[i].peer = peer;
    segments[i].ecn_capable = true;
    segments[i].header = &headers[i * kHeaderBytes];
    segments[i].header_bytes = kHeaderBytes;
    segments[i].payload = &payload[i * (packet - kHeaderBytes)];
    segments[i].payload_bytes = packet - kHeaderBytes;
  }
  std::array<RxSegment, 256> out;
  for (auto _ : state) {
    tx->Send(segments);
    const Time now = Time::FromNanos(NowNanos());
    for (size_t count = 0; count < burst;) count += rx->Receive(out, now);
  }
  CountPackets(state, state.range(0), state.range(1));
}

void LaneIdlePoll(benchmark::State& state) {
  UdpLaneOptions options;
  options.bind_address = "127.0.0.1:0";
  const auto lane = CreateUdpLane(options).value();
  std::array<RxSegment, 64> out;
  for (auto _ : state) benchmark::DoNotOptimize(lane->Receive(out, Time::FromNanos(1)));
}

BENCHMARK(RawBurst)
    ->ArgNames({"burst", "packet", "vectors"})
    ->Args({44, 1472, 0})
    ->Args({44, 1472, 1})
    ->Args({16, 1472, 0})
    ->Args({16, 1472, 1})
    ->Args({1, 64, 0})
    ->Args({4, 16344, 1});
BENCHMARK(LaneBurst)
    ->ArgNames({"burst", "packet", "stamps", "ecn"})
    ->Args({44, 1472, 1, 1})
    ->Args({44, 1472, 0, 0})
    ->Args({16, 1472, 1, 1})
    ->Args({1, 64, 1, 1})
    ->Args({1, 64, 0, 1})
    ->Args({1, 64, 0, 0})
    ->Args({1, 1472, 1, 1})
    ->Args({7, 8960, 1, 1})
    ->Args({4, 16344, 1, 1})
    ->Args({2, 32728, 1, 1})
    ->Args({1, 65464, 1, 1});
BENCHMARK(LaneIdlePoll);

}  // namespace
}  // namespace paceline::interop

BENCHMARK_MAIN();
