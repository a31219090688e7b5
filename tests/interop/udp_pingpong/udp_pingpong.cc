// Round trip of one small UDP packet: the yardstick for the transport's own round trip. Both ends spin on
// recvmmsg(MSG_DONTWAIT) over plain sockets; with --lane both ends use the UDP lane instead, which shows what the lane
// by itself adds, with --io-uring a ring, and with --connected the sockets are connected, so that the kernel keeps the
// route.
//
//   udp_pingpong local                                  both ends here, over loopback
//   udp_pingpong server --bind 192.0.2.1:7000           runs until it is ended
//   udp_pingpong client --bind 192.0.2.2:0 --peer 192.0.2.1:7000
//
// Prints JSON: round_trip_us {p50, p90, p99, max}.
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstring>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/interop/udp_pingpong/raw_socket.h"
#include "tests/interop/udp_pingpong/ring_socket.h"
#include "transport/lane/udp/udp_lane.h"

namespace paceline::interop {
namespace {

struct Settings {
  std::string bind = "127.0.0.1:0";
  std::string peer;
  size_t bytes = 64;
  int iterations = 20'000;
  int cpu = -1;
  bool lane = false;
  bool io_uring = false;
  bool connected = false;
  bool gro = true;
  bool timestamps = true;
  bool ecn = true;
};

using Publish = std::function<void(const std::string&)>;

// One end: sends one packet, waits for one.
class End {
 public:
  virtual ~End() = default;
  virtual LaneAddress address() const = 0;
  virtual void Send(const LaneAddress& to, const uint8_t* data, size_t bytes) = 0;
  // Spins until a packet is there or `deadline` (nanoseconds of the monotonic clock) has passed; 0 bytes then.
  virtual size_t Receive(uint8_t* data, size_t room, LaneAddress& from, int64_t deadline) = 0;
};

class RawEnd final : public End {
 public:
  explicit RawEnd(const Settings& settings)
      : connects_(settings.connected), fd_(OpenRawSocket(settings.bind, 1 << 20, false, bound_)) {}
  LaneAddress address() const override { return FromSocketAddress(bound_, false); }
  void Send(const LaneAddress& to, const uint8_t* data, size_t bytes) override {
    SocketAddress target;
    ToSocketAddress(to, target);
    if (connects_ && !connected_) connected_ = connect(fd_, &target.generic, target.size) == 0;
    if (connected_) {
      send(fd_, data, bytes, MSG_DONTWAIT);
    } else {
      sendto(fd_, data, bytes, MSG_DONTWAIT, &target.generic, target.size);
    }
  }
  size_t Receive(uint8_t* data, size_t room, LaneAddress& from, int64_t deadline) override {
    SocketAddress source;
    iovec vector{data, room};
    mmsghdr message{};
    message.msg_hdr.msg_name = &source.generic;
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
    for (uint32_t spins = 1;; ++spins) {
      message.msg_hdr.msg_namelen = sizeof(source.v6);
      if (recvmmsg(fd_, &message, 1, MSG_DONTWAIT, nullptr) == 1) {
        from = FromSocketAddress(source, false);
        return message.msg_len;
      }
      if (spins % 1024 == 0 && NowNanos() > deadline) return 0;
    }
  }

 private:
  bool connects_;
  bool connected_ = false;
  SocketAddress bound_;
  int fd_;
};

class RingEnd final : public End {
 public:
  explicit RingEnd(const Settings& settings)
      : ring_(OpenRingSocket(OpenRawSocket(settings.bind, 1 << 20, false, bound_))) {}
  LaneAddress address() const override { return FromSocketAddress(bound_, false); }
  void Send(const LaneAddress& to, const uint8_t* data, size_t bytes) override {
    SocketAddress target;
    ToSocketAddress(to, target);
    ring_->Send(data, bytes, &target);
  }
  size_t Receive(uint8_t* data, size_t room, LaneAddress& from, int64_t deadline) override {
    RingSocket::Arrived arrived;
    for (uint32_t spins = 1;; ++spins) {
      if (ring_->Receive(arrived)) {
        from = FromSocketAddress(*arrived.from, false);
        const size_t bytes = std::min(room, arrived.bytes);
        std::memcpy(data, arrived.data, bytes);
        return bytes;
      }
      if (spins % 1024 == 0 && NowNanos() > deadline) return 0;
    }
  }

 private:
  SocketAddress bound_;
  std::unique_ptr<RingSocket> ring_;
};

class LaneEnd final : public End {
 public:
  explicit LaneEnd(const Settings& settings) {
    UdpLaneOptions options;
    options.bind_address = settings.bind;
    options.gro = settings.gro;
    options.timestamps = settings.timestamps;
    options.ecn = settings.ecn;
    auto lane = CreateUdpLane(options);
    if (!lane.ok()) Fail(std::string(lane.status().message()));
    lane_ = *std::move(lane);
  }
  LaneAddress address() const override { return lane_->address(); }
  void Send(const LaneAddress& to, const uint8_t* data, size_t bytes) override {
    if (!(to == last_to_)) {
      peer_ = lane_->OpenPeer(to);
      last_to_ = to;
    }
    TxSegment segment;
    segment.peer = peer_;
    segment.ecn_capable = true;
    segment.header = data;
    segment.header_bytes = static_cast<uint16_t>(bytes);
    lane_->Send({&segment, 1});
  }
  size_t Receive(uint8_t* data, size_t room, LaneAddress& from, int64_t deadline) override {
    std::array<RxSegment, 64> out;
    for (uint32_t spins = 1;; ++spins) {
      const int64_t now = NowNanos();  // as an engine does, once a poll
      if (lane_->Receive(out, Time::FromNanos(now)) > 0) {
        const size_t bytes = std::min<size_t>(room, out[0].data_bytes);
        std::memcpy(data, out[0].data, bytes);
        from = *out[0].source;
        return bytes;
      }
      if (spins % 1024 == 0 && now > deadline) return 0;
    }
  }

 private:
  std::unique_ptr<Lane> lane_;
  uint32_t peer_ = 0;
  LaneAddress last_to_;
};

std::unique_ptr<End> MakeEnd(const Settings& settings) {
  if (settings.lane) return std::make_unique<LaneEnd>(settings);
  if (settings.io_uring) return std::make_unique<RingEnd>(settings);
  return std::make_unique<RawEnd>(settings);
}

void Serve(const Settings& settings, const Publish& publish) {
  PinTo(settings.cpu);
  const auto end = MakeEnd(settings);
  publish(FormatLaneAddress(end->address()));
  std::vector<uint8_t> data(65536);
  LaneAddress from;
  for (;;) {
    const size_t bytes = end->Receive(data.data(), data.size(), from, std::numeric_limits<int64_t>::max());
    end->Send(from, data.data(), bytes);
  }
}

void Ask(const Settings& settings, const std::string& server) {
  PinTo(settings.cpu);
  const auto end = MakeEnd(settings);
  const auto peer = ParseLaneAddress(server);
  if (!peer.ok()) Fail(std::string(peer.status().message()));
  std::vector<uint8_t> data(std::max<size_t>(settings.bytes, 64), 1);
  LaneAddress from;
  std::vector<double> samples;
  int lost = 0;
  const int warmup = settings.iterations / 10;
  for (int i = -warmup; i < settings.iterations; ++i) {
    const int64_t start = NowNanos();
    end->Send(*peer, data.data(), settings.bytes);
    if (end->Receive(data.data(), data.size(), from, start + 1'000'000'000) == 0) {
      if (++lost > 10) Fail("no answer from " + server);
    } else if (i >= 0) {
      samples.push_back(static_cast<double>(NowNanos() - start) / 1e3);
    }
  }
  nlohmann::ordered_json result;
  result["program"] = settings.lane       ? "udp_pingpong --lane"
                      : settings.io_uring ? "udp_pingpong --io-uring"
                                          : "udp_pingpong";
  result["bytes"] = settings.bytes;
  result["iterations"] = settings.iterations;
  result["lost"] = lost;
  result["round_trip_us"] = {{"p50", Percentile(samples, 0.5)},
                             {"p90", Percentile(samples, 0.9)},
                             {"p99", Percentile(samples, 0.99)},
                             {"max", Percentile(samples, 1)}};
  std::cout << result.dump() << std::endl;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Round trip of one small UDP packet, both ends spinning");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--bytes", settings.bytes, "bytes of a packet")->check(CLI::Range(1, 1400));
  app.add_option("--iterations", settings.iterations, "round trips to measure")->check(CLI::Range(1, 100'000'000));
  app.add_option("--bind", settings.bind, "own address and port");
  app.add_option("--cpu", settings.cpu, "CPU to run on (local: the client's)");
  auto* lane = app.add_flag("--lane", settings.lane, "through the UDP lane rather than plain sockets");
  auto* ring = app.add_flag("--io-uring", settings.io_uring, "plain sockets by io_uring")->excludes(lane);
  app.add_flag("--connected", settings.connected, "plain sockets, connected")->excludes(lane)->excludes(ring);
  app.add_flag("!--no-gro", settings.gro, "lane: without UDP_GRO");
  app.add_flag("!--no-timestamps", settings.timestamps, "lane: without arrival times");
  app.add_flag("!--no-ecn", settings.ecn, "lane: without ECN");
  auto* server = app.add_subcommand("server", "answer until ended");
  auto* client = app.add_subcommand("client", "measure");
  client->add_option("--peer", settings.peer, "the server's address and port")->required();
  app.add_subcommand("local", "both ends on this machine");
  CLI11_PARSE(app, argc, argv);

  if (*server)
    Serve(settings, [](const std::string& address) { std::cerr << "listening on " << address << std::endl; });
  if (*client) {
    Ask(settings, settings.peer);
    return 0;
  }
  const std::vector<int> cpus = AllowedCpus();
  Settings other = settings;
  if (settings.cpu < 0 && cpus.size() > 1) {
    settings.cpu = cpus[0];
    other.cpu = cpus[1];
  }
  RunBoth([&](const Publish& publish) { Serve(other, publish); },
          [&](const std::string& address) { Ask(settings, address); });
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
