// Throughput of the UDP lane, next to the same thing done by hand (--raw: one UDP_SEGMENT message a burst from one
// buffer, UDP_GRO at the far end). A window bounds what is in flight, so that nothing is lost for want of buffers; the
// receiver answers each poll that found something with the bytes it has so far.
//
//   udp_throughput local [--raw]
//   udp_throughput server --bind 192.0.2.1:7000 [--raw]
//   udp_throughput client --bind 192.0.2.2:0 --peer 192.0.2.1:7000 [--raw]
//
// Prints JSON: gbps (payload that arrived), lost_bytes, cpu_ns_per_packet of each end (the server's: local only).
#include <netinet/udp.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/interop/udp_pingpong/raw_socket.h"
#include "tests/interop/udp_pingpong/ring_socket.h"
#include "tests/interop/udp_pingpong/windowed_stream.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline::interop {
namespace {

struct Settings {
  std::string bind = "127.0.0.1:0";
  std::string peer;
  WindowedStream stream;
  int cpu = -1;
  bool raw = false;
  bool io_uring = false;
  bool gso = true;
  bool gro = true;
  bool timestamps = true;
  bool ecn = true;
  uint32_t mtu = 0;
};

std::unique_ptr<Lane> MakeLane(const Settings& settings) {
  UdpLaneOptions options;
  options.bind_address = settings.bind;
  options.gso = settings.gso;
  options.gro = settings.gro;
  options.timestamps = settings.timestamps;
  options.ecn = settings.ecn;
  options.mtu = settings.mtu;
  auto lane = CreateUdpLane(options);
  if (!lane.ok()) Fail(std::string(lane.status().message()));
  return *std::move(lane);
}

void ServeRaw(const Settings& settings, const Publish& publish) {
  SocketAddress bound;
  const int fd = OpenRawSocket(settings.bind, 8 << 20, settings.gro, bound);
  publish(FormatLaneAddress(FromSocketAddress(bound, false)));
  constexpr size_t kBatch = 16;
  std::vector<uint8_t> memory(kBatch * 65536);
  std::array<SocketAddress, kBatch> sources;
  std::array<iovec, kBatch> vectors{};
  std::array<mmsghdr, kBatch> messages{};
  for (size_t i = 0; i < kBatch; ++i) {
    vectors[i] = {&memory[i * 65536], 65536};
    messages[i].msg_hdr.msg_name = &sources[i].generic;
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  uint64_t arrived = 0;
  LaneAddress from;
  for (;;) {
    for (mmsghdr& message : messages) message.msg_hdr.msg_namelen = sizeof(sockaddr_in6);
    const int count = recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) continue;
    const LaneAddress source = FromSocketAddress(sources[0], false);
    if (!(source == from)) arrived = 0;
    from = source;
    for (int i = 0; i < count; ++i) arrived += messages[static_cast<size_t>(i)].msg_len;
    sendto(fd, &arrived, sizeof(arrived), MSG_DONTWAIT, &sources[0].generic, messages[0].msg_hdr.msg_namelen);
  }
}

void ServeRing(const Settings& settings, const Publish& publish) {
  SocketAddress bound;
  const int fd = OpenRawSocket(settings.bind, 8 << 20, settings.gro, bound);
  publish(FormatLaneAddress(FromSocketAddress(bound, false)));
  const auto ring = OpenRingSocket(fd);
  uint64_t arrived_bytes = 0;
  LaneAddress from;
  RingSocket::Arrived arrived;
  for (;;) {
    if (!ring->Receive(arrived)) continue;
    const SocketAddress source = *arrived.from;
    const LaneAddress address = FromSocketAddress(source, false);
    if (!(address == from)) arrived_bytes = 0;
    from = address;
    arrived_bytes += arrived.bytes;
    ring->Send(reinterpret_cast<const uint8_t*>(&arrived_bytes), sizeof(arrived_bytes), &source);
  }
}

StreamTotals AskRaw(const Settings& settings, const LaneAddress& server) {
  SocketAddress bound, to;
  const int fd = OpenRawSocket(settings.bind, 1 << 20, false, bound);
  ToSocketAddress(server, to);
  if (connect(fd, &to.generic, to.size) != 0) Fail("connect failed");
  const int segment = static_cast<int>(settings.stream.packet);
  setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
  const size_t burst_bytes = size_t{settings.stream.packet} * settings.stream.burst;
  std::vector<uint8_t> payload(kStreamMemory + burst_bytes, 2);
  const std::unique_ptr<RingSocket> ring = settings.io_uring ? OpenRingSocket(fd) : nullptr;
  size_t offset = 0;
  const auto send_burst = [&]() -> uint64_t {
    if (offset + burst_bytes > payload.size()) offset = 0;
    if (ring != nullptr) {
      ring->Send(&payload[offset], burst_bytes, nullptr);
      offset += burst_bytes;
      return burst_bytes;
    }
    const ssize_t sent = send(fd, &payload[offset], burst_bytes, MSG_DONTWAIT);
    offset += burst_bytes;
    return sent > 0 ? static_cast<uint64_t>(sent) : 0;
  };
  const auto poll_reply = [&] {
    uint64_t arrived = 0;
    if (RingSocket::Arrived reply; ring != nullptr) {
      if (ring->Receive(reply) && reply.bytes == sizeof(arrived)) std::memcpy(&arrived, reply.data, sizeof(arrived));
      return arrived;
    }
    return recv(fd, &arrived, sizeof(arrived), MSG_DONTWAIT) == sizeof(arrived) ? arrived : 0;
  };
  return DriveStream(settings.stream, send_burst, poll_reply);
}

void Serve(const Settings& settings, const Publish& publish) {
  PinTo(settings.cpu);
  if (settings.raw && settings.io_uring) {
    ServeRing(settings, publish);
  } else if (settings.raw) {
    ServeRaw(settings, publish);
  } else {
    ServeStream(*MakeLane(settings), publish);
  }
}

StreamTotals Ask(const Settings& settings, const std::string& server) {
  PinTo(settings.cpu);
  const auto peer = ParseLaneAddress(server);
  if (!peer.ok()) Fail(std::string(peer.status().message()));
  return settings.raw ? AskRaw(settings, *peer) : AskStream(settings.stream, *MakeLane(settings), *peer);
}

void Print(const Settings& settings, const StreamTotals& totals, double server_cpu) {
  const char* program = settings.io_uring ? "udp_throughput --raw --io-uring"
                        : settings.raw    ? "udp_throughput --raw"
                                          : "udp_throughput";
  std::cout << DescribeStream(program, settings.stream, totals, server_cpu).dump() << std::endl;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Throughput of the UDP lane or of plain sockets, windowed, both ends spinning");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--packet", settings.stream.packet, "bytes of a packet")->check(CLI::Range(64, 65'000));
  app.add_option("--burst", settings.stream.burst, "packets of a burst")->check(CLI::Range(1, 4096));
  app.add_option("--window", settings.stream.window, "bytes in flight at most");
  app.add_option("--seconds", settings.stream.seconds, "how long")->check(CLI::Range(0.01, 600.0));
  app.add_option("--bind", settings.bind, "own address and port");
  app.add_option("--cpu", settings.cpu, "CPU to run on (local: the client's)");
  app.add_option("--mtu", settings.mtu, "the lane's mtu; 0: the interface's");
  auto* raw = app.add_flag("--raw", settings.raw, "plain sockets rather than the lane");
  app.add_flag("--io-uring", settings.io_uring, "plain sockets: by io_uring")->needs(raw);
  app.add_flag("!--no-gso", settings.gso, "lane: without UDP_SEGMENT");
  app.add_flag("!--no-gro", settings.gro, "without UDP_GRO");
  app.add_flag("!--no-timestamps", settings.timestamps, "lane: without arrival times");
  app.add_flag("!--no-ecn", settings.ecn, "lane: without ECN");
  auto* server = app.add_subcommand("server", "receive until ended");
  auto* client = app.add_subcommand("client", "send and measure");
  client->add_option("--peer", settings.peer, "the server's address and port")->required();
  app.add_subcommand("local", "both ends on this machine");
  CLI11_PARSE(app, argc, argv);

  if (*server)
    Serve(settings, [](const std::string& address) { std::cerr << "listening on " << address << std::endl; });
  if (*client) {
    Print(settings, Ask(settings, settings.peer), 0);
    return 0;
  }
  const std::vector<int> cpus = AllowedCpus();
  Settings other = settings;
  if (settings.cpu < 0 && cpus.size() > 1) {
    settings.cpu = cpus[0];
    other.cpu = cpus[1];
  }
  StreamTotals totals;
  const double server_cpu = RunBoth([&](const Publish& publish) { Serve(other, publish); },
                                    [&](const std::string& address) { totals = Ask(settings, address); });
  Print(settings, totals, server_cpu);
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
