#include "tests/simulation/universe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/registry.h"
#include "tests/support/fake_hca_lane.h"
#include "tests/support/sim_network.h"
#include "tests/support/test_congestion_control.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::simulation {

using support::Fate;
using support::NetworkPacket;

namespace {

constexpr uint32_t kShortBytes = 300;  // as routers take an acknowledgement for one by its length
// Four times the largest payload of a run: only repeated retransmission makes a queue longer.
constexpr int64_t kMostQueuedBytes = 32'000'000;

Overtaking OvertakingOf(Ahead ahead) {
  switch (ahead) {
    case Ahead::kNone:
      return Overtaking::kNone;
    case Ahead::kControl:
      return Overtaking::kControl;
    case Ahead::kShort:
      return Overtaking::kShort;
  }
  return Overtaking::kNone;
}

// What the network does to packets at any time: a link before each port that is slower than those of the ports, with a
// queue that loses nothing, and a port of each host that is far away.
class SlowNetwork {
 public:
  explicit SlowNetwork(const Scenario& scenario) : scenario_(scenario), link_free_at_(PortsOf(scenario)) {}

  // False: there is no room for the packet, as there is far too much in the network.
  bool Delay(const NetworkPacket& packet, Time now, Fate& fate) {
    if (IsFar(packet.from) || IsFar(packet.to)) fate.extra_delay += Duration::Micros(scenario_.far_port_us);
    if (scenario_.queue_mbps == 0 || packet.to >= link_free_at_.size()) return true;
    const uint32_t bytes = packet.header_bytes + packet.payload_bytes;
    const bool ahead =
        scenario_.ahead == Ahead::kShort ? bytes <= kShortBytes : scenario_.ahead == Ahead::kControl && packet.control;
    if (ahead) {
      fate.overtake = true;  // of its class none is delayed by more than another
      return true;
    }
    const Rate rate = Rate::BitsPerSecond(scenario_.queue_mbps * 1e6);
    Time& free_at = link_free_at_[packet.to];
    if (free_at - now > rate.TimeFor(kMostQueuedBytes)) return false;
    free_at = std::max(free_at, now) + rate.TimeFor(bytes);
    fate.extra_delay += free_at - now;
    return true;
  }

 private:
  static size_t PortsOf(const Scenario& scenario) { return size_t{scenario.hosts} * scenario.ports; }
  bool IsFar(uint32_t port) const { return scenario_.far_port_us > 0 && port % scenario_.ports == scenario_.ports - 1; }

  const Scenario scenario_;
  std::vector<Time> link_free_at_;  // by the port that it leads to
};

}  // namespace

absl::StatusOr<std::unique_ptr<Universe>> Universe::Create(const Scenario& scenario, Random* random) {
  std::unique_ptr<Universe> universe(new Universe());
  universe->scenario_ = scenario;
  universe->ports_ = scenario.ports;
  if (scenario.carrier == Carrier::kFabric) {
    if (const absl::Status status = universe->BuildFabric(scenario, random); !status.ok()) return status;
  } else {
    universe->BuildScripted(scenario, random);
  }
  for (size_t host = 0; host < scenario.hosts; ++host) {
    const auto first = universe->lanes_.begin() + static_cast<std::ptrdiff_t>(host * scenario.ports);
    const absl::Status status = universe->AddHost({first, first + static_cast<std::ptrdiff_t>(scenario.ports)});
    if (!status.ok()) return status;
  }
  return universe;
}

void Universe::BuildScripted(const Scenario& scenario, Random* random) {
  support::ScriptedNetwork::Options options;
  options.path_skew = Duration::Micros(scenario.skew_us);
  options.latency = Duration::Micros(1 + static_cast<int64_t>(random->Below(10)));
  options.poll_interval = Duration::Nanos(static_cast<int64_t>(random->Below(2000)));
  auto network = std::make_unique<support::ScriptedNetwork>(options);
  scripted_ = network.get();
  network_ = std::move(network);
  const bool hca = scenario.carrier == Carrier::kHca;
  for (uint32_t i = 0; i < scenario.hosts * scenario.ports; ++i) {
    LaneCapabilities capabilities = hca ? support::HcaLaneCapabilities() : support::PacketLaneCapabilities();
    capabilities.entropies = scenario.entropies;
    if (!hca && scenario.burst_segments > 1) capabilities.least_guessed_bytes = 1;
    capabilities.burst_segments = scenario.burst_segments;
    capabilities.reads_later = scenario.reads_later;
    if (scenario.queue_mbps > 0) capabilities.base_rtt = Duration();  // as real lanes: it is measured
    capabilities.path_may_be_narrower = scenario.path_bytes + scenario.narrowings > 0;
    // (A lane whose path may become narrower has to ask by packets of the size that it asks about.)
    capabilities.overtaking = scenario.narrowings > 0 ? Overtaking::kShort : OvertakingOf(scenario.ahead);
    capabilities.keeps_path_order = hca || scenario.reorder == 0;
    if (hca) {
      scripted_lanes_.push_back(std::make_unique<support::FakeHcaLane>(scripted_, capabilities));
    } else {
      scripted_lanes_.push_back(std::make_unique<support::ScriptedLane>(scripted_, capabilities));
    }
    scripted_lanes_.back()->set_room(scenario.lane_room);
    scripted_lanes_.back()->set_rx_queue(scenario.rx_queue);
    lanes_.push_back(scripted_lanes_.back().get());
  }
  const Time well = Time() + Duration::Millis(scenario.fault_ms);
  for (uint32_t i = 0; i < scenario.flaps; ++i) {
    const Time down = Time() + Duration::Micros(static_cast<int64_t>(random->Below(scenario.fault_ms * 1000)));
    const Time up = std::min(well, down + Duration::Micros(static_cast<int64_t>(random->Below(5000))));
    flaps_.push_back({static_cast<uint32_t>(random->Below(lanes_.size())), down, up});
  }
  // Times in which some direction is silent, or everything nearly.
  struct Silence {
    Time from, until;
    uint32_t source = 0, target = 0;  // hosts
  };
  const auto time_in_faults = [&](int64_t most_micros) {
    const Time from = Time() + Duration::Micros(static_cast<int64_t>(random->Below(scenario.fault_ms * 1000)));
    const Time until = from + Duration::Micros(static_cast<int64_t>(random->Below(static_cast<uint64_t>(most_micros))));
    return Silence{.from = from, .until = until};
  };
  std::vector<Silence> bursts, partitions;
  for (uint32_t i = 0; i < scenario.bursts; ++i) bursts.push_back(time_in_faults(5000));
  for (uint32_t i = 0; i < scenario.partitions; ++i) {
    partitions.push_back(time_in_faults(scenario.fault_ms * 1000));
    partitions.back().source = static_cast<uint32_t>(random->Below(scenario.hosts));
    partitions.back().target = static_cast<uint32_t>(random->Below(scenario.hosts));
  }
  const auto is_lost = [scenario, bursts, partitions](const NetworkPacket& packet, Time now, Random& dice) {
    const auto at = [now](const Silence& silence) { return silence.from <= now && now < silence.until; };
    const auto between = [&packet, &scenario](const Silence& silence) {
      return packet.from / scenario.ports == silence.source && packet.to / scenario.ports == silence.target;
    };
    return packet.entropy < scenario.black_paths ||
           std::any_of(partitions.begin(), partitions.end(), [&](const Silence& s) { return at(s) && between(s); }) ||
           (std::any_of(bursts.begin(), bursts.end(), at) && dice.Chance(0.8));
  };
  // Paths of a host whose writes stand in a queue somewhere until all of them go on, in their order.
  struct Park {
    Silence time;
    uint32_t paths = 0;  // those whose number leaves this when divided by four
  };
  std::vector<Park> parks;
  for (uint32_t i = 0; i < scenario.parked; ++i) {
    Silence time = time_in_faults(2'000'000);
    time.source = static_cast<uint32_t>(random->Below(scenario.hosts));
    parks.push_back({time, static_cast<uint32_t>(random->Below(std::min(4u, scenario.entropies)))});
  }
  const auto hold_back = [scenario, parks](const NetworkPacket& packet, Time now, Fate& fate) {
    fate.overtake = scenario.write_lag_us > 0 && packet.kind == SegmentKind::kPacket;
    if (packet.kind == SegmentKind::kPacket) return;
    fate.extra_delay = Duration::Micros(scenario.write_lag_us);
    for (const Park& park : parks) {
      const bool in_it = packet.from / scenario.ports == park.time.source && packet.entropy % 4 == park.paths;
      // A path that was reset has found another way.
      if (in_it && packet.way == 0 && park.time.from <= now && now < park.time.until) {
        fate.extra_delay = std::max(fate.extra_delay, park.time.until - now);
      }
    }
  };
  // How large packets are that pass, from when on; the last for ever.
  constexpr uint64_t kLeastThatPasses = 600;
  std::vector<std::pair<Time, uint64_t>> passes;
  for (uint32_t i = 0; i < scenario.narrowings; ++i) {
    const Time from = time_in_faults(1).from;
    passes.emplace_back(from, kLeastThatPasses + random->Below(2 * lanes_[0]->capabilities().max_packet_bytes));
  }
  std::sort(passes.begin(), passes.end());
  const auto is_too_large = [scenario, passes](const NetworkPacket& packet, Time now) {
    uint64_t limit = scenario.path_bytes > 0 ? scenario.path_bytes : packet.size();
    for (const auto& [from, bytes] : passes) {
      if (from <= now) limit = bytes;
    }
    return packet.size() > limit;
  };
  auto harm = [scenario, hca, well, is_lost, hold_back, is_too_large, dice = Random(random->Next())](
                  NetworkPacket& packet, Time now, Fate& fate) mutable {
    if (is_too_large(packet, now)) {
      fate.drop = true;
      return;
    }
    if (now >= well) return;
    if (dice.Chance(scenario.loss) || is_lost(packet, now, dice)) fate.drop = true;
    if (packet.ecn_capable && dice.Chance(scenario.mark)) packet.congestion_experienced = true;
    if (hca) return hold_back(packet, now, fate);  // the rest no card lets through, or shows it as a loss
    if (dice.Chance(scenario.duplicate)) {
      fate.copies = 2;
      fate.copy_spacing = Duration::Micros(static_cast<int64_t>(dice.Below(3000)));
    }
    if (dice.Chance(scenario.reorder)) {
      fate.overtake = true;
      fate.extra_delay = Duration::Micros(static_cast<int64_t>(dice.Below(200)));
    }
    if (!packet.control && packet.payload_bytes > 0 && dice.Chance(scenario.trim)) packet.Trim();
    if (dice.Chance(scenario.corrupt) && !packet.bytes.empty()) {
      packet.bytes[dice.Below(packet.bytes.size())] ^= static_cast<uint8_t>(1u << dice.Below(8));
    }
  };
  scripted_->SetHook([harm, slow = SlowNetwork(scenario), network = scripted_, overfull = false](NetworkPacket& packet,
                                                                                                 Fate& fate) mutable {
    harm(packet, network->now(), fate);
    if (fate.drop || slow.Delay(packet, network->now(), fate)) return;
    fate.drop = true;
    if (std::exchange(overfull, true)) return;
    network->NoteViolation("more than four times all payload of the run waits in a queue of the network");
  });
}

absl::Status Universe::BuildFabric(const Scenario& scenario, Random* random) {
  sim::FabricConfig config;
  config.seed = random->Next();
  config.topology.hosts = scenario.hosts;
  config.topology.nics_per_host = scenario.ports;
  switch (scenario.topology) {
    case 1:
      config.topology.kind = sim::TopologyKind::kDumbbell;
      config.topology.hosts += config.topology.hosts % 2;
      break;
    case 2:
      config.topology.kind = sim::TopologyKind::kLeafSpine;
      config.topology.hosts = 8;
      config.topology.tor_radix = 2;
      break;
    case 3:
      config.topology.kind = sim::TopologyKind::kFatTree;
      config.topology.hosts = 16;
      config.topology.pod_size = 4;
      config.topology.tor_radix = 2;
      break;
    default:
      break;
  }
  config.queue_bytes = scenario.queue_kb * 1024;
  config.ecn_min_bytes = scenario.mark > 0 ? config.queue_bytes / 5 : 0;
  config.ecn_max_bytes = scenario.mark > 0 ? config.queue_bytes * 4 / 5 : 0;
  config.trimming = scenario.trim > 0;
  config.entropies = scenario.entropies;
  config.deliver_corrupted = true;
  const sim::Picos until = sim::ToPicos(Time() + Duration::Millis(scenario.fault_ms));
  const auto fault = [&](sim::FaultKind kind, double probability) {
    if (probability == 0) return;
    sim::Fault one;
    one.kind = kind;
    one.until = until;
    one.probability = probability;
    one.delay = sim::ToPicos(Time() + Duration::Micros(50));
    one.target = "hosts";
    config.faults.push_back(one);
  };
  fault(sim::FaultKind::kLoss, scenario.loss / 2);  // two links of hosts on each path
  fault(sim::FaultKind::kDuplicate, scenario.duplicate / 2);
  fault(sim::FaultKind::kReorder, scenario.reorder / 2);
  fault(sim::FaultKind::kCorrupt, scenario.corrupt / 2);
  for (uint32_t i = 0; i < scenario.bursts; ++i) {
    fault(sim::FaultKind::kLoss, 0.8);
    sim::Fault& burst = config.faults.back();
    burst.at = static_cast<sim::Picos>(random->Below(static_cast<uint64_t>(until)));
    burst.until = std::min(until, burst.at + sim::ToPicos(Time() + Duration::Millis(5)));
    if (burst.until <= burst.at) config.faults.pop_back();
  }
  for (uint32_t i = 0; i < scenario.flaps; ++i) {
    sim::Fault one;
    one.kind = random->Chance(0.5) ? sim::FaultKind::kNicDown : sim::FaultKind::kLinkSlow;
    one.fraction = 0.1;
    one.at = static_cast<sim::Picos>(random->Below(static_cast<uint64_t>(until)));
    one.until = std::min(until, one.at + sim::ToPicos(Time() + Duration::Millis(5)));
    one.target = absl::StrCat("host:", random->Below(scenario.hosts), "/nic:", random->Below(scenario.ports));
    if (one.until > one.at) config.faults.push_back(one);
  }
  auto fabric = sim::Fabric::Create(config);
  if (!fabric.ok()) return fabric.status();
  auto network = std::make_unique<support::SimNetwork>(*std::move(fabric));
  for (uint32_t host = 0; host < scenario.hosts; ++host) {
    for (uint32_t port = 0; port < scenario.ports; ++port) lanes_.push_back(&network->fabric().lane(host, port));
  }
  network_ = std::move(network);
  return absl::OkStatus();
}

absl::Status Universe::AddHost(std::vector<Lane*> lanes) {
  const size_t number = hosts_.size();
  EndpointOptions options;
  options.seed = scenario_.seed * 100 + number;
  options.cookie_secret.fill(static_cast<uint8_t>(number + 1));
  if (scenario_.protection != Protection::kNone) {
    options.cluster_key.emplace().fill(9);
    options.encrypt = scenario_.protection == Protection::kEncrypted;
    options.packets_per_key = 5000;
  }
  options.key_seed.fill(static_cast<uint8_t>(scenario_.seed + number));
  options.congestion_control = scenario_.controller;
  options.path_policy = scenario_.path_policy;
  options.entropies = scenario_.entropies;
  options.eager_bytes = scenario_.eager_bytes;
  options.unexpected_bytes = scenario_.unexpected_bytes;
  options.max_operations = 64;
  if (scenario_.as_plugins) {
    options.prompt_acks = options.ordered_placement = true;
    options.last_ack_delay = Duration::Micros(200);
  }
  std::unique_ptr<CongestionControl> control;
  if (scenario_.controller == "test_window") {
    control = support::NewTestCongestionControl(support::TestControl::kWindow, 128 * 1024);
  } else if (scenario_.controller == "test_credit") {
    control = support::NewTestCongestionControl(support::TestControl::kCredit, 128 * 1024);
  } else {
    auto created = CreateCongestionControl(scenario_.controller, {}, options.seed);
    if (!created.ok()) return created.status();
    control = *std::move(created);
  }
  hosts_.push_back(std::make_unique<support::TestHost>(options, std::move(control), std::move(lanes), network_.get()));
  return absl::OkStatus();
}

size_t Universe::Restart(size_t host) {
  hosts_[host]->Freeze();
  const std::vector<Lane*> lanes(lanes_.begin() + static_cast<std::ptrdiff_t>(host * ports_),
                                 lanes_.begin() + static_cast<std::ptrdiff_t>((host + 1) * ports_));
  lanes_.insert(lanes_.end(), lanes.begin(), lanes.end());
  (void)AddHost(lanes);  // as the first time, when it went well
  return hosts_.size() - 1;
}

void Universe::ApplyFaults() {
  if (scripted_ == nullptr) return;
  for (uint32_t port = 0; port < scripted_lanes_.size(); ++port) {
    const bool down = std::any_of(flaps_.begin(), flaps_.end(), [&](const Flap& flap) {
      return flap.port == port && flap.down <= now() && now() < flap.up;
    });
    scripted_->SetPortUp(port, !down);
  }
}

uint64_t Universe::late_packets() const {
  uint64_t packets = 0;
  for (const auto& lane : scripted_lanes_) packets += lane->late_packets();
  return packets;
}

std::vector<std::string> Universe::Violations() const {
  std::vector<std::string> all;
  if (scripted_ != nullptr) all = scripted_->violations();
  for (size_t i = 0; i < hosts_.size(); ++i) {
    for (const std::string& what : hosts_[i]->Violations()) all.push_back("host " + std::to_string(i) + ": " + what);
  }
  return all;
}

}  // namespace paceline::simulation
