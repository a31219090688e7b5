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
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/interop/udp_pingpong/raw_socket.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline::interop {
namespace {

constexpr uint32_t kHeaderBytes = 32;
constexpr size_t kPayloadMemory = 1 << 20;

struct Settings {
  std::string bind = "127.0.0.1:0";
  std::string peer;
  uint32_t packet = 1472;
  uint32_t burst = 44;
  uint64_t window = 512 << 10;
  double seconds = 2;
  int cpu = -1;
  bool raw = false;
  bool gso = true;
  bool gro = true;
  bool timestamps = true;
  bool ecn = true;
  uint32_t mtu = 0;
};

struct Totals {
  uint64_t sent = 0;
  uint64_t arrived = 0;
  double seconds = 0;
  double cpu = 0;
  double cpu_before = 0;
};

using Publish = std::function<void(const std::string&)>;

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

void ServeLane(const Settings& settings, const Publish& publish) {
  const auto lane = MakeLane(settings);
  publish(FormatLaneAddress(lane->address()));
  uint64_t arrived = 0;
  LaneAddress from;
  uint32_t peer = 0;
  std::array<RxSegment, 256> out;
  for (;;) {
    const size_t count = lane->Receive(out, Time::FromNanos(NowNanos()));
    if (count == 0) continue;
    for (size_t i = 0; i < count; ++i) arrived += out[i].data_bytes;
    if (!(*out[0].source == from)) {
      lane->ClosePeer(peer);
      from = *out[0].source;
      peer = lane->OpenPeer(from);
      arrived = 0;
      for (size_t i = 0; i < count; ++i) arrived += out[i].data_bytes;
    }
    TxSegment reply;
    reply.peer = peer;
    reply.header = reinterpret_cast<const uint8_t*>(&arrived);
    reply.header_bytes = sizeof(arrived);
    lane->Send({&reply, 1});
  }
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

// Calls `send_burst` while the window is open and `poll_reply` always; ends after the time set, plus what it takes for
// the last answers to come. `poll_reply` gives the bytes that arrived so far, or 0 when there is no answer.
Totals Drive(const Settings& settings, const std::function<uint64_t()>& send_burst,
             const std::function<uint64_t()>& poll_reply) {
  Totals totals;
  totals.cpu_before = CpuSeconds();
  const int64_t start = NowNanos();
  const auto end = start + static_cast<int64_t>(settings.seconds * 1e9);
  const uint64_t burst_bytes = uint64_t{settings.burst} * settings.packet;
  int64_t last_progress = start;
  uint64_t forgiven = 0;  // taken for lost, so that the window opens again
  for (uint32_t polls = 0;; ++polls) {
    const uint64_t in_flight = totals.sent - totals.arrived - forgiven;
    const int64_t now = NowNanos();
    const bool sending = now < end;
    if (sending && in_flight + burst_bytes <= std::max(settings.window, burst_bytes)) totals.sent += send_burst();
    if (const uint64_t arrived = poll_reply(); arrived > totals.arrived) {
      totals.arrived = arrived;
      last_progress = now;
    } else if (now - last_progress > 50'000'000) {
      if (!sending) break;
      forgiven = totals.sent - totals.arrived;
      last_progress = now;
    }
    if (!sending && totals.arrived == totals.sent) break;
  }
  totals.seconds = static_cast<double>(std::min(NowNanos(), last_progress) - start) / 1e9;
  totals.cpu = CpuSeconds() - totals.cpu_before;
  return totals;
}

Totals AskLane(const Settings& settings, const LaneAddress& server) {
  const auto lane = MakeLane(settings);
  if (lane->capabilities().max_packet_bytes < settings.packet) {
    Fail("packets hold at most " + std::to_string(lane->capabilities().max_packet_bytes) + " bytes here");
  }
  const uint32_t peer = lane->OpenPeer(server);
  std::vector<uint8_t> header(kHeaderBytes, 1);
  std::vector<uint8_t> payload(kPayloadMemory, 2);
  std::vector<TxSegment> burst(settings.burst);
  size_t offset = 0;
  const uint32_t payload_bytes = settings.packet - kHeaderBytes;
  const auto send_burst = [&] {
    for (TxSegment& segment : burst) {
      segment.peer = peer;
      segment.ecn_capable = true;
      segment.header = header.data();
      segment.header_bytes = kHeaderBytes;
      if (offset + payload_bytes > payload.size()) offset = 0;
      segment.payload = &payload[offset];
      segment.payload_bytes = payload_bytes;
      offset += payload_bytes;
    }
    return lane->Send(burst) * uint64_t{settings.packet};
  };
  std::array<RxSegment, 64> out;
  const auto poll_reply = [&] {
    uint64_t arrived = 0;
    const size_t count = lane->Receive(out, Time::FromNanos(NowNanos()));
    if (count > 0) std::memcpy(&arrived, out[count - 1].data, sizeof(arrived));
    return arrived;
  };
  return Drive(settings, send_burst, poll_reply);
}

Totals AskRaw(const Settings& settings, const LaneAddress& server) {
  SocketAddress bound, to;
  const int fd = OpenRawSocket(settings.bind, 1 << 20, false, bound);
  ToSocketAddress(server, to);
  if (connect(fd, &to.generic, to.size) != 0) Fail("connect failed");
  const int segment = static_cast<int>(settings.packet);
  setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
  const size_t burst_bytes = size_t{settings.packet} * settings.burst;
  std::vector<uint8_t> payload(kPayloadMemory + burst_bytes, 2);
  size_t offset = 0;
  const auto send_burst = [&]() -> uint64_t {
    if (offset + burst_bytes > payload.size()) offset = 0;
    const ssize_t sent = send(fd, &payload[offset], burst_bytes, MSG_DONTWAIT);
    offset += burst_bytes;
    return sent > 0 ? static_cast<uint64_t>(sent) : 0;
  };
  const auto poll_reply = [&] {
    uint64_t arrived = 0;
    return recv(fd, &arrived, sizeof(arrived), MSG_DONTWAIT) == sizeof(arrived) ? arrived : 0;
  };
  return Drive(settings, send_burst, poll_reply);
}

void Serve(const Settings& settings, const Publish& publish) {
  PinTo(settings.cpu);
  if (settings.raw) {
    ServeRaw(settings, publish);
  } else {
    ServeLane(settings, publish);
  }
}

Totals Ask(const Settings& settings, const std::string& server) {
  PinTo(settings.cpu);
  const auto peer = ParseLaneAddress(server);
  if (!peer.ok()) Fail(std::string(peer.status().message()));
  return settings.raw ? AskRaw(settings, *peer) : AskLane(settings, *peer);
}

void Print(const Settings& settings, const Totals& totals, double server_cpu) {
  const double packets = static_cast<double>(totals.arrived) / settings.packet;
  nlohmann::ordered_json result;
  result["program"] = settings.raw ? "udp_throughput --raw" : "udp_throughput";
  result["packet_bytes"] = settings.packet;
  result["burst"] = settings.burst;
  result["window_bytes"] = settings.window;
  result["seconds"] = totals.seconds;
  result["gbps"] = static_cast<double>(totals.arrived) * 8e-9 / totals.seconds;
  result["lost_bytes"] = totals.sent - totals.arrived;
  result["client_cpu_ns_per_packet"] = totals.cpu * 1e9 / packets;
  if (server_cpu > 0) result["server_cpu_ns_per_packet"] = server_cpu * 1e9 / packets;
  std::cout << result.dump() << std::endl;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Throughput of the UDP lane or of plain sockets, windowed, both ends spinning");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--packet", settings.packet, "bytes of a packet")->check(CLI::Range(64, 65'000));
  app.add_option("--burst", settings.burst, "packets of a burst")->check(CLI::Range(1, 4096));
  app.add_option("--window", settings.window, "bytes in flight at most");
  app.add_option("--seconds", settings.seconds, "how long")->check(CLI::Range(0.01, 600.0));
  app.add_option("--bind", settings.bind, "own address and port");
  app.add_option("--cpu", settings.cpu, "CPU to run on (local: the client's)");
  app.add_option("--mtu", settings.mtu, "the lane's mtu; 0: the interface's");
  app.add_flag("--raw", settings.raw, "plain sockets rather than the lane");
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
  Totals totals;
  const double server_cpu = RunBoth([&](const Publish& publish) { Serve(other, publish); },
                                    [&](const std::string& address) { totals = Ask(settings, address); });
  Print(settings, totals, server_cpu);
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
