// Throughput of the xdp lane, next to AF_XDP in copy mode by hand (--raw: no payload is copied, no header built or
// read) and the UDP lane (--udp), between two network namespaces of its own that a virtual cable joins. Needs root.
//
//   xdp_throughput [--raw | --udp] [--packet 1472] [--mtu 1500]
//
// Prints JSON: gbps (payload that arrived), lost_bytes, cpu_ns_per_packet of each end. Status 77: not possible here.
#include <CLI/CLI.hpp>
#include <iostream>

#include "tests/interop/udp_pingpong/raw_socket.h"
#include "tests/interop/udp_pingpong/windowed_stream.h"
#include "tests/interop/xdp/raw_xdp.h"
#include "tests/support/cabled_namespaces.h"
#include "transport/lane/udp/udp_lane.h"
#include "transport/lane/xdp/xdp_lane.h"

namespace paceline::interop {
namespace {

constexpr int kNotPossible = 77;
constexpr uint16_t kRawPort = 7000;

struct Settings {
  WindowedStream stream;
  uint32_t mtu = 1500;
  bool raw = false, udp = false;
  std::vector<int> cpus;
};

FrameFlow FlowFrom(size_t side) {
  FrameFlow flow;
  flow.source_mac = {{2, 0, 0, 0, 0, static_cast<uint8_t>(side + 1)}};
  flow.destination_mac = {{2, 0, 0, 0, 0, static_cast<uint8_t>(2 - side)}};
  flow.source = {198, 51, 100, static_cast<uint8_t>(side + 1)};
  flow.destination = {198, 51, 100, static_cast<uint8_t>(2 - side)};
  flow.source_port = flow.destination_port = kRawPort;
  return flow;
}

std::unique_ptr<Lane> MakeLane(const Settings& settings) {
  absl::StatusOr<std::unique_ptr<Lane>> lane;
  if (settings.udp) {
    UdpLaneOptions options;
    options.bind_address = CabledNamespaces::kDevice;
    lane = CreateUdpLane(options);
  } else {
    XdpLaneOptions options;
    options.bind_address = CabledNamespaces::kDevice;
    lane = CreateXdpLane(options);
  }
  if (!lane.ok()) Fail(std::string(lane.status().message()));
  return *std::move(lane);
}

void PinToOneOf(const Settings& settings, size_t which) {
  if (settings.cpus.size() > 1) PinTo(settings.cpus[which]);
}

void Serve(const Settings& settings, CabledNamespaces& cable, const Publish& publish) {
  cable.Enter(1);
  PinToOneOf(settings, 1);
  if (!settings.raw) return ServeStream(*MakeLane(settings), publish);
  RawXdp xdp({CabledNamespaces::kDevice, FlowFrom(1), sizeof(uint64_t)});
  publish("198.51.100.2:7000");
  uint64_t arrived = 0, value = 0;
  for (;;) {
    const uint64_t bytes = xdp.Receive(&value);
    if (bytes == 0) continue;
    arrived += bytes;
    xdp.SendValue(arrived);
  }
}

StreamTotals Ask(const Settings& settings, CabledNamespaces& cable, const std::string& server) {
  cable.Enter(0);
  PinToOneOf(settings, 0);
  if (!settings.raw) return AskStream(settings.stream, *MakeLane(settings), *ParseLaneAddress(server));
  RawXdp xdp({CabledNamespaces::kDevice, FlowFrom(0), settings.stream.packet});
  const auto send_burst = [&] { return xdp.Send(settings.stream.burst) * uint64_t{settings.stream.packet}; };
  const auto poll_reply = [&] {
    uint64_t arrived = 0;
    return xdp.Receive(&arrived) > 0 ? arrived : 0;
  };
  return DriveStream(settings.stream, send_burst, poll_reply);
}

int Main(int argc, char** argv) {
  Settings settings;
  settings.stream.burst = 32;
  settings.stream.window = 256 << 10;
  CLI::App app("Throughput of the xdp lane, of AF_XDP by hand or of the UDP lane over a virtual cable, windowed");
  app.add_option("--packet", settings.stream.packet, "bytes of a packet (UDP payload)")->check(CLI::Range(64, 3798));
  app.add_option("--burst", settings.stream.burst, "packets of a burst")->check(CLI::Range(1, 1024));
  app.add_option("--window", settings.stream.window, "bytes in flight at most");
  app.add_option("--seconds", settings.stream.seconds, "how long")->check(CLI::Range(0.01, 600.0));
  app.add_option("--mtu", settings.mtu, "of the cable")->check(CLI::Range(576, 9000));
  app.add_flag("--raw", settings.raw, "AF_XDP by hand rather than a lane");
  app.add_flag("--udp", settings.udp, "the UDP lane rather than the xdp lane");
  CLI11_PARSE(app, argc, argv);
  if (settings.stream.packet + 28 > settings.mtu) {
    Fail("--packet: at most " + std::to_string(settings.mtu - 28) + " with this --mtu");
  }

  if (const absl::Status status = CheckXdpLane(); !status.ok()) {
    std::cerr << "not possible here: " << status.message() << std::endl;
    return kNotPossible;
  }
  CabledNamespaces cable;
  const std::string set_mtu = "ip link set v0 mtu " + std::to_string(settings.mtu);
  if (!cable.why_not().empty() || !cable.Introduce() || !cable.Run(0, set_mtu) || !cable.Run(1, set_mtu)) {
    std::cerr << "not possible here: " << cable.why_not() << std::endl;
    return kNotPossible;
  }
  settings.cpus = AllowedCpus();
  StreamTotals totals;
  const double server_cpu = RunBoth([&](const Publish& publish) { Serve(settings, cable, publish); },
                                    [&](const std::string& address) { totals = Ask(settings, cable, address); });
  const char* program = settings.raw   ? "xdp_throughput --raw"
                        : settings.udp ? "xdp_throughput --udp"
                                       : "xdp_throughput";
  std::cout << DescribeStream(program, settings.stream, totals, server_cpu).dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
