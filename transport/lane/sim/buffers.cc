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

uint64_t HeadroomOf(const BufferConfig& config, const Topology& topology, uint32_t link, uint32_t full_wire_bytes) {
  if (config.headroom_bytes != 0) return config.headroom_bytes;
  const LinkInfo& info = topology.links()[link];
  return HeadroomFor(info, topology.links()[info.reverse], full_wire_bytes);
}

struct Thresholds {
  uint64_t xoff = 0, xon = 0, headroom = 0;
};

Thresholds ThresholdsFor(const BufferConfig& config, const Topology& topology, uint32_t link, uint32_t queue_bytes,
                         uint32_t full_wire_bytes) {
  Thresholds result;
  result.headroom = HeadroomOf(config, topology, link, full_wire_bytes);
  result.xoff = config.xoff_bytes;
  if (result.xoff == 0) result.xoff = queue_bytes > result.headroom ? queue_bytes - result.headroom : 0;
  result.xon = config.xon_bytes;
  const uint64_t below = 2 * uint64_t{full_wire_bytes};
  if (result.xon == 0) result.xon = result.xoff > below ? result.xoff - below : 0;
  return result;
}

// By switch, of all links into it.
std::vector<uint64_t> HeadroomOfSwitches(const BufferConfig& config, const Topology& topology,
                                         uint32_t full_wire_bytes) {
  std::vector<uint64_t> sums(topology.switches().size());
  for (uint32_t link = 0; link < topology.links().size(); ++link) {
    const uint32_t to = topology.links()[link].to;
    if (to >= topology.nics()) sums[to - topology.nics()] += HeadroomOf(config, topology, link, full_wire_bytes);
  }
  return sums;
}

absl::Status CheckSharedLossless(const BufferConfig& config, const Topology& topology, uint32_t full_wire_bytes) {
  if (config.xoff_bytes != 0 || config.xon_bytes != 0) {
    return absl::InvalidArgumentError(
        "fabric.pfc_xoff_bytes and pfc_xon_bytes go with fabric.buffer = \"ports\": of shared memory fabric.alpha says "
        "what a link may have");
  }
  const std::vector<uint64_t> headroom = HeadroomOfSwitches(config, topology, full_wire_bytes);
  for (size_t i = 0; i < headroom.size(); ++i) {
    const uint64_t least = headroom[i] + 2 * uint64_t{full_wire_bytes};
    if (config.shared_bytes >= least) continue;
    const SwitchInfo& s = topology.switches()[i];
    return absl::InvalidArgumentError(absl::StrCat("fabric.shared_buffer_bytes = ", config.shared_bytes,
                                                   " must hold two packets beside the headroom of all links into a "
                                                   "switch: for ",
                                                   std::string(TierName(s.tier)), ":", s.index, " at least ", least));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SwitchBuffers::Check(const BufferConfig& config, const Topology& topology, uint32_t queue_bytes,
                                  uint32_t full_wire_bytes) {
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
  if (config.shared) return CheckSharedLossless(config, topology, full_wire_bytes);
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
      alpha_(config.alpha),
      full_wire_bytes_(full_wire_bytes),
      longest_queue_bytes_(queue_bytes) {
  if (!managed()) return;
  const auto ports = static_cast<uint32_t>(topology.links().size());
  const std::vector<uint64_t> headroom = HeadroomOfSwitches(config, topology, full_wire_bytes);
  if (lossless_) {
    ingress_.resize(ports);
    for (uint32_t link = 0; link < ports; ++link) {
      ingress_[link].headroom = static_cast<uint32_t>(HeadroomOf(config, topology, link, full_wire_bytes));
    }
  }
  if (shared_) {
    longest_queue_bytes_ = config.shared_bytes + full_wire_bytes;
    for (uint64_t reserved : headroom) {
      pool_.push_back(config.shared_bytes - (lossless_ ? static_cast<uint32_t>(reserved) : 0));
    }
    used_.resize(pool_.size());
    switch_of_port_.resize(ports);
    for (uint32_t port = topology.nics(); port < ports; ++port) {
      switch_of_port_[port] = topology.links()[port].from - topology.nics();
    }
    return;
  }
  std::vector<uint64_t> of_switch = headroom;
  for (uint32_t link = 0; link < ports; ++link) {
    const Thresholds t = ThresholdsFor(config, topology, link, queue_bytes, full_wire_bytes);
    ingress_[link].xoff = static_cast<uint32_t>(t.xoff);
    ingress_[link].xon = static_cast<uint32_t>(t.xon);
    const uint32_t to = topology.links()[link].to;
    if (to >= topology.nics()) of_switch[to - topology.nics()] += t.xoff;
  }
  // Everything that came in may wait at one port.
  const uint64_t longest = *std::max_element(of_switch.begin(), of_switch.end()) + full_wire_bytes;
  longest_queue_bytes_ = static_cast<uint32_t>(std::min<uint64_t>(longest, 1u << 31));
}

uint32_t SwitchBuffers::FreeOf(uint32_t port) const {
  const uint32_t owner = switch_of_port_[port];
  return pool_[owner] - used_[owner];
}

bool SwitchBuffers::HasRoom(uint32_t port, uint32_t packet, uint32_t waiting, uint32_t bytes) const {
  if (!lossless_) return bytes <= FreeOf(port) && waiting < alpha_ * FreeOf(port);
  const Ingress& ingress = ingress_[ingress_of_packet_[packet]];
  if (!shared_) return ingress.bytes + bytes <= ingress.xoff + ingress.headroom;
  return FitsShare(port, ingress, bytes) || ingress.in_headroom + bytes <= ingress.headroom;
}

SwitchBuffers::Signal SwitchBuffers::Take(uint32_t port, uint32_t packet, uint32_t bytes) {
  if (!lossless_) {
    used_[switch_of_port_[port]] += bytes;
    return Signal::kNone;
  }
  Ingress& ingress = ingress_[ingress_of_packet_[packet]];
  if (shared_) return TakeOfShare(port, ingress, bytes);
  ingress.bytes += bytes;
  if (ingress.paused || ingress.bytes <= ingress.xoff) return Signal::kNone;
  ingress.paused = true;
  return Signal::kPause;
}

SwitchBuffers::Signal SwitchBuffers::Release(uint32_t port, uint32_t packet, uint32_t bytes) {
  if (!lossless_) {
    used_[switch_of_port_[port]] -= bytes;
    return Signal::kNone;
  }
  Ingress& ingress = ingress_[ingress_of_packet_[packet]];
  if (shared_) return ReleaseOfShare(port, ingress, bytes);
  ingress.bytes -= bytes;
  if (!ingress.paused || ingress.bytes > ingress.xon) return Signal::kNone;
  ingress.paused = false;
  return Signal::kResume;
}

bool SwitchBuffers::FitsShare(uint32_t port, const Ingress& ingress, uint32_t bytes) const {
  return bytes <= FreeOf(port) && ingress.bytes < alpha_ * FreeOf(port);
}

SwitchBuffers::Signal SwitchBuffers::TakeOfShare(uint32_t port, Ingress& ingress, uint32_t bytes) {
  if (FitsShare(port, ingress, bytes)) {
    ingress.bytes += bytes;
    used_[switch_of_port_[port]] += bytes;
    return Signal::kNone;
  }
  ingress.in_headroom += bytes;
  if (ingress.paused) return Signal::kNone;
  ingress.paused = true;
  return Signal::kPause;
}

// The headroom is given back first. A link with nothing left goes on in any case: no packet of its own would come to
// tell it that the others have made room.
SwitchBuffers::Signal SwitchBuffers::ReleaseOfShare(uint32_t port, Ingress& ingress, uint32_t bytes) {
  const uint32_t reserved = std::min(bytes, ingress.in_headroom);
  ingress.in_headroom -= reserved;
  ingress.bytes -= bytes - reserved;
  used_[switch_of_port_[port]] -= bytes - reserved;
  if (!ingress.paused || ingress.in_headroom > 0) return Signal::kNone;
  if (ingress.bytes > 0 && ingress.bytes + 2 * full_wire_bytes_ > alpha_ * FreeOf(port)) return Signal::kNone;
  ingress.paused = false;
  return Signal::kResume;
}

}  // namespace paceline::sim
