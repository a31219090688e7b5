#include "tests/interop/udp_pingpong/windowed_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/interop/udp_pingpong/raw_socket.h"

namespace paceline::interop {
namespace {

constexpr uint32_t kHeaderBytes = 32;

}  // namespace

StreamTotals DriveStream(const WindowedStream& stream, const std::function<uint64_t()>& send_burst,
                         const std::function<uint64_t()>& poll_reply) {
  StreamTotals totals;
  const double cpu_before = CpuSeconds();
  const int64_t start = NowNanos();
  const auto end = start + static_cast<int64_t>(stream.seconds * 1e9);
  const uint64_t burst_bytes = uint64_t{stream.burst} * stream.packet;
  int64_t last_progress = start;
  uint64_t forgiven = 0;  // taken for lost, so that the window opens again
  for (;;) {
    const uint64_t in_flight = totals.sent - totals.arrived - forgiven;
    const int64_t now = NowNanos();
    const bool sending = now < end;
    if (sending && in_flight + burst_bytes <= std::max(stream.window, burst_bytes)) totals.sent += send_burst();
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
  totals.cpu = CpuSeconds() - cpu_before;
  return totals;
}

void ServeStream(Lane& lane, const Publish& publish) {
  publish(FormatLaneAddress(lane.address()));
  uint64_t arrived = 0;
  LaneAddress from;
  uint32_t peer = 0;
  std::array<RxSegment, 256> out;
  for (;;) {
    const size_t count = lane.Receive(out, Time::FromNanos(NowNanos()));
    if (count == 0) continue;
    if (!(*out[0].source == from)) {
      lane.ClosePeer(peer);
      from = *out[0].source;
      peer = lane.OpenPeer(from);
      arrived = 0;
    }
    for (size_t i = 0; i < count; ++i) arrived += out[i].data_bytes;
    TxSegment reply;
    reply.peer = peer;
    reply.header = reinterpret_cast<const uint8_t*>(&arrived);
    reply.header_bytes = sizeof(arrived);
    lane.Send({&reply, 1});
  }
}

StreamTotals AskStream(const WindowedStream& stream, Lane& lane, const LaneAddress& server) {
  if (lane.capabilities().max_packet_bytes < stream.packet) {
    Fail("packets hold at most " + std::to_string(lane.capabilities().max_packet_bytes) + " bytes here");
  }
  const uint32_t peer = lane.OpenPeer(server);
  std::vector<uint8_t> header(kHeaderBytes, 1);
  std::vector<uint8_t> payload(kStreamMemory, 2);
  std::vector<TxSegment> burst(stream.burst);
  size_t offset = 0;
  const uint32_t payload_bytes = stream.packet - kHeaderBytes;
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
    return lane.Send(burst) * uint64_t{stream.packet};
  };
  std::array<RxSegment, 64> out;
  const auto poll_reply = [&] {
    uint64_t arrived = 0;
    const size_t count = lane.Receive(out, Time::FromNanos(NowNanos()));
    if (count > 0) std::memcpy(&arrived, out[count - 1].data, sizeof(arrived));
    return arrived;
  };
  return DriveStream(stream, send_burst, poll_reply);
}

nlohmann::ordered_json DescribeStream(const std::string& program, const WindowedStream& stream,
                                      const StreamTotals& totals, double server_cpu) {
  const double packets = static_cast<double>(totals.arrived) / stream.packet;
  nlohmann::ordered_json result;
  result["program"] = program;
  result["packet_bytes"] = stream.packet;
  result["burst"] = stream.burst;
  result["window_bytes"] = stream.window;
  result["seconds"] = totals.seconds;
  result["gbps"] = static_cast<double>(totals.arrived) * 8e-9 / totals.seconds;
  result["lost_bytes"] = totals.sent - totals.arrived;
  result["client_cpu_ns_per_packet"] = totals.cpu * 1e9 / packets;
  if (server_cpu > 0) result["server_cpu_ns_per_packet"] = server_cpu * 1e9 / packets;
  return result;
}

}  // namespace paceline::interop
