#include "cc/algorithms/tita_budget.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

constexpr double kFastPort = 390e9 / 8;  // from here on a grain is two segments (UEC: 4 MTU a pull at 400 Gb/s)

uint64_t GrainSegments(const TitaParameters& parameters, const PortInfo& port) {
  const uint64_t by_rate = LinkRate(port).bytes_per_second() >= kFastPort ? 2 : 1;
  const uint64_t wanted = parameters.grain_segments > 0 ? static_cast<uint64_t>(parameters.grain_segments) : by_rate;
  return std::max<uint64_t>(wanted, std::min<uint32_t>(port.burst_segments, 1024));
}

}  // namespace

TitaSizes TitaSizesFor(const TitaParameters& parameters, const PortInfo& port) {
  TitaSizes sizes;
  sizes.segment = SegmentBytes(port);
  sizes.overhead = port.overhead_bytes;
  sizes.rtt = BaseRtt(port);
  sizes.park = sizes.rtt.Scaled(parameters.park_rtts);
  sizes.line_rate = LinkRate(port).bytes_per_second();
  sizes.grant_rate = sizes.line_rate * parameters.rho;
  sizes.bdp = BdpBytes(port, sizes.rtt);

  const uint64_t room = port.receive_buffer_bytes > 0 ? std::max(port.receive_buffer_bytes, sizes.segment) : kMaxBytes;
  const uint64_t wanted_grain = GrainSegments(parameters, port) * sizes.segment;
  // A grain is at most a quarter of the room, so that several senders share it.
  const uint64_t room_grain = std::max(room / 4 / sizes.segment, uint64_t{1}) * sizes.segment;
  sizes.grain = std::min(wanted_grain, room_grain);
  sizes.tail = sizes.grain / sizes.segment / 4 * sizes.segment;
  // Arrivals come unevenly by a grain at most; where a lane hands over bursts, many of them in one pass of the engine,
  // all that is out may seem to come at once.
  const Rate grant_rate = Rate::BytesPerSecond(sizes.grant_rate);
  sizes.lag = std::min(grant_rate.TimeFor(static_cast<int64_t>(sizes.WireBytes(sizes.grain))), sizes.park);
  if (port.burst_segments > 1) sizes.lag = std::max(sizes.lag, sizes.rtt);
  const uint64_t most = std::max(BdpScaled(port, sizes.rtt, parameters.budget), 2 * sizes.grain);
  sizes.budget_most = std::min(most, room);
  // More than the path holds by a grain at least (where the parameter allows it): less can never fill the port.
  const uint64_t least = std::max(BdpScaled(port, sizes.rtt, parameters.budget_floor), 2 * sizes.grain);
  sizes.budget_least = std::min(std::max(least, std::min(sizes.bdp + sizes.grain, most)), sizes.budget_most);
  const uint64_t bucket = std::max(BdpScaled(port, sizes.rtt, parameters.bucket), 2 * sizes.grain);
  sizes.bucket = std::min(bucket, sizes.budget_most);
  return sizes;
}

uint64_t TitaSizes::Budget(double cap_sum) const {
  const double x = std::max(cap_sum / line_rate, 1.0);
  return budget_least + static_cast<uint64_t>(static_cast<double>(budget_most - budget_least) / x);
}

}  // namespace paceline
