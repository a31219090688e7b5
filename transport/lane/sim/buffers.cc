#include "transport/lane/sim/buffers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace paceline::sim {
namespace {

// After a pause was sent there still come: what the link holds, what its sender puts on it until the pause is there,
// the packet that it is sending then, and the one that made the switch send the pause. One more for good measure.
uint64_t HeadroomFor(const LinkInfo& link, const LinkInfo& back, uint32_t full_wire_bytes) {
  const auto in_flight =
      static_cast<double>(link.delay + back.delay) / 1e12 * static_cast<double>(link.bits_per_second) / 8;
  return static_cast<uint64_t>(in_flight) + 3 * uint64_t{full_wire_bytes};
}

struct Thresholds {
  uint64_t xoff = 0, xon = 0, headroom = 0;
};

Thresholds ThresholdsFor(const BufferConfig& config, const Topology& topology, uint32_t link, uint32_t queue_bytes,
                         uint32_t full_wire_bytes) {
  const LinkInfo& info = topology.links()[link];
  Thresholds result;
  result.headroom = config.headroom_bytes != 0 ? config.headroom_bytes
                                               : HeadroomFor(info, topology.links()[info.reverse], full_wire_bytes);
  result.xoff = config.xoff_bytes;
  if (result.xoff == 0) result.xoff = queue_bytes > result.headroom ? queue_bytes - result.headroom : 0;
  result.xon = config.xon_bytes;
  const uint64_t below = 2 * uint64_t{full_wire_bytes};
  if (result.xon == 0) result.xon = result.xoff > below ? result.xoff - below : 0;
  return result;
}

}  // namespace

absl::Status SwitchBuffers::Check(const BufferConfig& config, const Topology& topology, uint32_t queue_bytes,
                                  uint32_t full_wire_bytes) {
  if (config.shared && config.lossless) {
    return absl::InvalidArgumentError(
        "fabric.pfc = true goes with fabric.buffer = \"ports\": its pauses count what came in by each link");
  }
  if (config.shared) {
    if (config.shared_bytes < full_wire_bytes || config.shared_bytes > (1u << 30)) {
      return absl::InvalidArgumentError(absl::StrCat("fabric.shared_buffer_bytes = ", config.shared_bytes,
                                                     " must hold at least one packet (", full_wire_bytes,
                                                     ") and at most 2^30"));
    }
    if (!(config.alpha > 0) || config.alpha > 1024) {
      return absl::InvalidArgumentError(
          absl::StrCat("fabric.alpha = ", config.alpha, " must be above 0 and at most 1024"));
    }
  }
  if (!config.lossless) return absl::OkStatus();
  for (uint32_t link = 0; link < topology.links().size(); ++link) {
    const Thresholds t = ThresholdsFor(config, topology, link, queue_bytes, full_wire_bytes);
    if (t.xoff < 2 * uint64_t{full_wire_bytes}) {
      return absl::InvalidArgumentError(
          absl::StrCat("fabric.pfc_xoff_bytes = ", t.xoff, " must hold two packets (", 2 * full_wire_bytes,
                       "); unless given it is fabric.queue_bytes = ", queue_bytes, " without the headroom, which is ",
                       t.headroom, " on ", topology.PortName(link)));
    }
    if (t.xon >= t.xoff) {
      return absl::InvalidArgumentError(
          absl::StrCat("fabric.pfc_xon_bytes = ", t.xon, " must be below fabric.pfc_xoff_bytes = ", t.xoff));
    }
    if (t.xoff + t.headroom > (1u << 26)) {
      return absl::InvalidArgumentError(absl::StrCat("fabric.pfc_xoff_bytes and pfc_headroom_bytes make ",
                                                     t.xoff + t.headroom, " bytes a port: at most 2^26"));
    }
  }
  return absl::OkStatus();
}

SwitchBuffers::SwitchBuffers(const BufferConfig& config, const Topology& topology, uint32_t queue_bytes,
                             uint32_t full_wire_bytes)
    : shared_(config.shared),
      lossless_(config.lossless),
      shared_bytes_(config.shared_bytes),
      alpha_(config.alpha),
      longest_queue_bytes_(queue_bytes) {
  if (!managed()) return;
  const auto ports = static_cast<uint32_t>(topology.links().size());
  if (shared_) {
    longest_queue_bytes_ = shared_bytes_ + full_wire_bytes;
    used_.resize(topology.switches().size());
    switch_of_port_.resize(ports);
    for (uint32_t port = topology.nics(); port < ports; ++port) {
      switch_of_port_[port] = topology.links()[port].from - topology.nics();
    }
    return;
  }
  ingress_.resize(ports);
  std::vector<uint64_t> of_switch(topology.switches().size());
  for (uint32_t link = 0; link < ports; ++link) {
    const Thresholds t = ThresholdsFor(config, topology, link, queue_bytes, full_wire_bytes);
    ingress_[link].xoff = static_cast<uint32_t>(t.xoff);
    ingress_[link].xon = static_cast<uint32_t>(t.xon);
    ingress_[link].limit = static_cast<uint32_t>(t.xoff + t.headroom);
    const uint32_t to = topology.links()[link].to;
    if (to >= topology.nics()) of_switch[to - topology.nics()] += ingress_[link].limit;
  }
  // Everything that came in may wait at one port.
  const uint64_t longest = *std::max_element(of_switch.begin(), of_switch.end()) + full_wire_bytes;
  longest_queue_bytes_ = static_cast<uint32_t>(std::min<uint64_t>(longest, 1u << 31));
}

bool SwitchBuffers::HasRoom(uint32_t port, uint32_t packet, uint32_t waiting, uint32_t bytes) const {
  if (lossless_) {
    const Ingress& ingress = ingress_[ingress_of_packet_[packet]];
    return ingress.bytes + bytes <= ingress.limit;
  }
  const uint32_t free = shared_bytes_ - used_[switch_of_port_[port]];
  return bytes <= free && waiting < alpha_ * free;
}

SwitchBuffers::Signal SwitchBuffers::Take(uint32_t port, uint32_t packet, uint32_t bytes) {
  if (shared_) {
    used_[switch_of_port_[port]] += bytes;
    return Signal::kNone;
  }
  Ingress& ingress = ingress_[ingress_of_packet_[packet]];
  ingress.bytes += bytes;
  if (ingress.paused || ingress.bytes <= ingress.xoff) return Signal::kNone;
  ingress.paused = true;
  return Signal::kPause;
}

SwitchBuffers::Signal SwitchBuffers::Release(uint32_t port, uint32_t packet, uint32_t bytes) {
  if (shared_) {
    used_[switch_of_port_[port]] -= bytes;
    return Signal::kNone;
  }
  Ingress& ingress = ingress_[ingress_of_packet_[packet]];
  ingress.bytes -= bytes;
  if (!ingress.paused || ingress.bytes > ingress.xon) return Signal::kNone;
  ingress.paused = false;
  return Signal::kResume;
}

}  // namespace paceline::sim
