#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cc/registry.h"
#include "transport/base/limits.h"
#include "transport/base/random.h"
#include "transport/core/path/path_policy.h"

namespace paceline::simulation {
namespace {

constexpr std::array<const char*, 3> kCarriers = {"packets", "hca", "fabric"};
constexpr std::array<const char*, 3> kProtections = {"none", "authenticated", "encrypted"};
constexpr std::array<const char*, 3> kAhead = {"none", "control", "short"};
constexpr std::array<const char*, 8> kEndings = {"quiet", "close",   "abort",      "crash",
                                                 "pause", "restart", "close_both", "close_early"};

template <typename Enum, size_t N>
bool ParseName(const std::array<const char*, N>& names, const std::string& text, Enum* value) {
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) {
      *value = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

bool Set(Scenario& s, const std::string& key, const std::string& text) {
  const auto number = [&](uint32_t* field) { return absl::SimpleAtoi(text, field); };
  const auto real = [&](double* field) { return absl::SimpleAtod(text, field); };
  if (key == "carrier") return ParseName(kCarriers, text, &s.carrier);
  if (key == "protection") return ParseName(kProtections, text, &s.protection);
  if (key == "ending") return ParseName(kEndings, text, &s.ending);
  if (key == "controller") return s.controller = text, !text.empty();
  if (key == "path_policy") return s.path_policy = text, !text.empty();
  if (key == "handshake") return s.handshake = text == "1", text == "0" || text == "1";
  if (key == "hosts") return number(&s.hosts);
  if (key == "ports") return number(&s.ports);
  if (key == "connections") return number(&s.connections);
  if (key == "operations") return number(&s.operations);
  if (key == "max_bytes") return number(&s.max_bytes);
  if (key == "eager_bytes") return number(&s.eager_bytes);
  if (key == "unexpected_bytes") return number(&s.unexpected_bytes);
  if (key == "entropies") return number(&s.entropies);
  if (key == "lane_room") return number(&s.lane_room);
  if (key == "cancel") return real(&s.cancel);
  if (key == "loss") return real(&s.loss);
  if (key == "duplicate") return real(&s.duplicate);
  if (key == "reorder") return real(&s.reorder);
  if (key == "corrupt") return real(&s.corrupt);
  if (key == "trim") return real(&s.trim);
  if (key == "mark") return real(&s.mark);
  if (key == "skew_us") return number(&s.skew_us);
  if (key == "flaps") return number(&s.flaps);
  if (key == "black_paths") return number(&s.black_paths);
  if (key == "bursts") return number(&s.bursts);
  if (key == "partitions") return number(&s.partitions);
  if (key == "rx_queue") return number(&s.rx_queue);
  if (key == "stalls") return number(&s.stalls);
  if (key == "leaps") return number(&s.leaps);
  if (key == "shortages") return number(&s.shortages);
  if (key == "revocations") return number(&s.revocations);
  if (key == "receive_queues") return number(&s.receive_queues);
  if (key == "late_names") return real(&s.late_names);
  if (key == "claims") return real(&s.claims);
  if (key == "many") return real(&s.many);
  if (key == "held_receives") return number(&s.held_receives);
  if (key == "parked") return number(&s.parked);
  if (key == "placed_writes") return s.placed_writes = text == "1", text == "0" || text == "1";
  if (key == "write_lag_us") return number(&s.write_lag_us);
  if (key == "burst_segments") return number(&s.burst_segments);
  if (key == "reads_later") return s.reads_later = text == "1", text == "0" || text == "1";
  if (key == "as_plugins") return s.as_plugins = text == "1", text == "0" || text == "1";
  if (key == "queue_mbps") return number(&s.queue_mbps);
  if (key == "ahead") return ParseName(kAhead, text, &s.ahead);
  if (key == "far_port_us") return number(&s.far_port_us);
  if (key == "path_bytes") return number(&s.path_bytes);
  if (key == "narrowings") return number(&s.narrowings);
  if (key == "fault_ms") return number(&s.fault_ms);
  if (key == "topology") return number(&s.topology);
  if (key == "queue_kb") return number(&s.queue_kb);
  return false;
}

void ForgetLosses(Scenario& s) {
  s.loss = s.duplicate = s.reorder = s.corrupt = s.trim = 0;
  s.flaps = s.black_paths = s.bursts = s.partitions = s.rx_queue = s.path_bytes = s.narrowings = s.stalls = s.leaps = 0;
  s.parked = s.write_lag_us = 0;
  if (s.ending == Ending::kAbort || s.ending == Ending::kCrash || s.ending == Ending::kRestart ||
      s.ending == Ending::kPause) {
    s.ending = Ending::kQuiet;
  }
}

void UsePackets(Scenario& s, uint32_t burst_segments) {
  s.carrier = Carrier::kPackets;
  s.parked = s.write_lag_us = 0;
  s.placed_writes = false;
  s.burst_segments = burst_segments;
}

// A network whose delays differ, or grow while there is much to carry; mostly one that loses nothing.
void DrawSlowNetwork(Scenario& s, Random& random) {
  const auto pick = [&random](auto... choices) {
    const std::array all = {choices...};
    return all[random.Below(all.size())];
  };
  if (random.Chance(0.8)) ForgetLosses(s);
  s.max_bytes = pick(5000u, 60'000u, 400'000u);
  s.operations = std::clamp(8'000'000u / (s.max_bytes * s.connections), 4u, 120u);
  const uint64_t kind = random.Below(5);  // two of five have far ports, four of five a queue
  if (kind <= 1) {
    s.ports = pick(2u, 2u, 3u);
    s.far_port_us = pick(50u, 100u, 300u, 1000u);  // an ordinary one: 1 to 10, drawn by the universe
  }
  if (kind == 0 && s.carrier == Carrier::kHca) return;
  if (s.carrier != Carrier::kPackets) UsePackets(s, pick(1u, 4u, 16u, 44u));
  if (kind == 0) return;
  s.queue_mbps = pick(2000u, 5000u, 20'000u);
  s.ahead = pick(Ahead::kNone, Ahead::kControl, Ahead::kShort, Ahead::kShort);
}

}  // namespace

bool LosesNothing(const Scenario& scenario) {
  Scenario calm = scenario;
  ForgetLosses(calm);
  return scenario.carrier != Carrier::kFabric && Describe(calm) == Describe(scenario);
}

Scenario ScenarioOf(uint64_t seed) {
  Random random(seed * 2 + 1);
  const auto pick = [&random](auto... choices) {
    const std::array all = {choices...};
    return all[random.Below(all.size())];
  };
  const auto sometimes = [&random](double chance, double most) {
    return random.Chance(chance) ? std::round(random.Unit() * most * 1000) / 1000 : 0.0;
  };
  Scenario s;
  s.seed = seed;
  s.carrier = pick(Carrier::kPackets, Carrier::kPackets, Carrier::kHca, Carrier::kFabric, Carrier::kFabric);
  s.ending = random.Chance(0.6) ? Ending::kQuiet : pick(Ending::kClose, Ending::kAbort, Ending::kCrash, Ending::kPause);
  std::vector<std::string> controllers = {"test_window", "test_credit", "tita", "tita"};
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) controllers.push_back(algorithm.name);
  s.controller = controllers[random.Below(controllers.size())];
  s.path_policy = PathPolicyNames()[random.Below(PathPolicyNames().size())];
  s.hosts = pick(2u, 2u, 3u, 4u, 6u);
  s.ports = pick(1u, 1u, 2u, 3u);
  s.connections = 1 + static_cast<uint32_t>(random.Below(s.hosts + 2));
  s.handshake = random.Chance(0.5);
  s.operations = pick(10u, 40u, 120u);
  s.max_bytes = pick(100u, 5000u, 60'000u, 400'000u);
  // A run stays within some megabytes.
  s.operations = std::clamp(8'000'000u / (s.max_bytes * s.connections), 4u, s.operations);
  s.eager_bytes = pick(0u, 4096u, 16'384u, 65'536u);
  s.unexpected_bytes = pick(32'768u, 1u << 20, 64u << 20);
  s.entropies = pick(1u, 4u, 16u, 64u);
  s.lane_room = pick(1u, 4u, 64u);
  s.cancel = sometimes(0.3, 0.3);
  s.loss = sometimes(0.5, 0.2);
  s.duplicate = sometimes(0.3, 0.1);
  s.reorder = sometimes(0.4, 0.2);
  s.corrupt = sometimes(0.3, 0.05);
  s.trim = sometimes(0.3, 0.2);
  s.mark = sometimes(0.4, 0.5);
  s.skew_us = random.Chance(0.4) ? static_cast<uint32_t>(random.Below(100)) : 0;
  s.flaps = random.Chance(0.3) ? 1 + static_cast<uint32_t>(random.Below(4)) : 0;
  s.black_paths = random.Chance(0.2) ? 1 + static_cast<uint32_t>(random.Below(3)) : 0;
  s.fault_ms = pick(1u, 10u, 60u);
  s.topology = static_cast<uint32_t>(random.Below(4));
  s.queue_kb = pick(20u, 60u, 175u);
  const bool can_protect = s.handshake && s.carrier != Carrier::kFabric;
  if (can_protect && random.Chance(0.6)) s.protection = pick(Protection::kAuthenticated, Protection::kEncrypted);
  // What was added later is drawn last: a seed keeps the rest of its scenario.
  const auto some = [&random](double chance) {
    return random.Chance(chance) ? 1 + static_cast<uint32_t>(random.Below(4)) : 0;
  };
  s.stalls = some(0.15);
  s.bursts = some(0.2);
  s.shortages = some(0.15);
  if (s.carrier != Carrier::kFabric) {
    // A peer that stands still while one's own clock leaps is lost as far as one can tell. So is one behind links that
    // are down for some milliseconds, if the clock leaps as often as it is asked for a sign of life.
    if (s.stalls == 0 && s.ending != Ending::kPause) s.leaps = std::min(some(0.2), 2u);
    s.partitions = some(0.2);
    s.rx_queue = pick(0u, 0u, 32u);
    if (s.ending == Ending::kCrash && random.Chance(0.6)) s.ending = Ending::kRestart;
    if (random.Chance(0.05)) s.fault_ms = 2000;
  } else if (s.handshake && random.Chance(0.6)) {
    s.protection = pick(Protection::kAuthenticated, Protection::kEncrypted);
  }
  s.revocations = some(0.25);
  if (s.carrier == Carrier::kFabric) s.ports = pick(1u, 1u, 2u, 3u);
  if (s.handshake && random.Chance(0.6)) {
    s.receive_queues = pick(1u, 1u, 2u);
    s.late_names = sometimes(0.5, 1);
    s.claims = sometimes(0.5, 0.5);
    s.many = sometimes(0.5, 0.5);
  }
  if (s.carrier == Carrier::kHca) {
    s.parked = some(0.5);
    s.placed_writes = random.Chance(0.7);
    s.write_lag_us = random.Chance(0.4) ? 1 + static_cast<uint32_t>(random.Below(300)) : 0;
  }
  if (s.carrier != Carrier::kFabric) s.burst_segments = pick(1u, 4u, 16u, 44u);
  if (s.carrier == Carrier::kPackets && s.handshake) s.path_bytes = pick(0u, 0u, 4224u, 4223u, 1472u, 700u);
  if (s.carrier == Carrier::kPackets) s.reads_later = random.Chance(0.3);
  if (s.ending == Ending::kClose) s.ending = pick(Ending::kClose, Ending::kCloseBoth, Ending::kCloseEarly);
  s.held_receives = some(0.15);
  // More messages than may be open; where cards place payload they would wait for what is held back.
  if (s.held_receives > 0 && s.carrier != Carrier::kHca && random.Chance(0.07)) {
    s.connections = 1;
    s.operations = 2 * limits::kMaxOpenMessages;
    s.max_bytes = 100;
    s.eager_bytes = pick(0u, 50u);
  }
  s.as_plugins = random.Chance(0.3);
  if (s.as_plugins && random.Chance(0.3)) s.unexpected_bytes = 0;
  if (seed >= kFirstNarrowingSeed) {
    if (s.carrier != Carrier::kPackets) UsePackets(s, pick(1u, 4u, 16u, 44u));
    s.operations = std::min(s.operations, 120u);
    s.narrowings = 1 + static_cast<uint32_t>(random.Below(8));
  } else if (seed >= kFirstSlowSeed) {
    DrawSlowNetwork(s, random);
  }
  return s;
}

absl::StatusOr<Scenario> ParseScenario(const std::string& line) {
  std::istringstream words(line);
  Scenario scenario;
  bool first = true;
  for (std::string word; words >> word; first = false) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (first) {
      uint64_t seed = 0;
      if (key != "seed" || !absl::SimpleAtoi(value, &seed)) {
        return absl::InvalidArgumentError(absl::StrCat("a scenario starts with seed=NUMBER, not '", word, "'"));
      }
      scenario = ScenarioOf(seed);
    } else if (!Set(scenario, key, value)) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is no setting of a scenario"));
    }
  }
  if (first) return absl::InvalidArgumentError("an empty scenario");
  if (scenario.protection != Protection::kNone && !scenario.handshake) {
    return absl::InvalidArgumentError("protection needs handshake=1");
  }
  if (scenario.receive_queues > 0 && !scenario.handshake) {
    return absl::InvalidArgumentError("receive_queues need handshake=1");
  }
  if (scenario.burst_segments < 1 || scenario.burst_segments > 64 ||
      (scenario.carrier == Carrier::kFabric && scenario.burst_segments != 1)) {
    return absl::InvalidArgumentError("burst_segments is 1 to 64, and 1 with carrier=fabric");
  }
  if (scenario.path_bytes > 0 &&
      (scenario.carrier != Carrier::kPackets || !scenario.handshake || scenario.path_bytes < 600)) {
    return absl::InvalidArgumentError("path_bytes needs carrier=packets and handshake=1, and is 600 at least");
  }
  if ((scenario.queue_mbps > 0 && scenario.carrier != Carrier::kPackets) ||
      (scenario.ahead != Ahead::kNone && scenario.queue_mbps == 0)) {
    return absl::InvalidArgumentError("queue_mbps needs carrier=packets, and ahead needs queue_mbps");
  }
  if (scenario.far_port_us > 0 && (scenario.carrier == Carrier::kFabric || scenario.ports < 2)) {
    return absl::InvalidArgumentError("far_port_us needs another carrier than the fabric, and two ports");
  }
  if (scenario.narrowings > 0 && scenario.carrier != Carrier::kPackets) {
    return absl::InvalidArgumentError("narrowings need carrier=packets");
  }
  if (scenario.reads_later && scenario.carrier != Carrier::kPackets) {
    return absl::InvalidArgumentError("reads_later needs carrier=packets");
  }
  if (scenario.carrier != Carrier::kHca && (scenario.parked + scenario.write_lag_us > 0 || scenario.placed_writes)) {
    return absl::InvalidArgumentError("parked, placed_writes and write_lag_us need carrier=hca");
  }
  const bool needs_scripted =
      scenario.leaps > 0 || scenario.partitions > 0 || scenario.rx_queue > 0 || scenario.ending == Ending::kRestart;
  if (scenario.carrier == Carrier::kFabric && needs_scripted) {
    return absl::InvalidArgumentError(
        "leaps, partitions, rx_queue and ending=restart need another carrier than the fabric");
  }
  if (scenario.hosts < 2 || scenario.ports < 1 || scenario.ports > 8 || scenario.lane_room < 1) {
    return absl::InvalidArgumentError("a scenario needs 2 hosts, 1 to 8 ports and room in its lanes");
  }
  return scenario;
}

std::string Describe(const Scenario& s) {
  return absl::StrCat(
      absl::StrCat("seed=", s.seed, " carrier=", kCarriers[static_cast<size_t>(s.carrier)],
                   " ending=", kEndings[static_cast<size_t>(s.ending)], " controller=", s.controller,
                   " path_policy=", s.path_policy, " hosts=", s.hosts, " ports=", s.ports),
      absl::StrCat(" connections=", s.connections, " handshake=", s.handshake ? 1 : 0,
                   " protection=", kProtections[static_cast<size_t>(s.protection)], " operations=", s.operations,
                   " max_bytes=", s.max_bytes, " eager_bytes=", s.eager_bytes, " unexpected_bytes=", s.unexpected_bytes,
                   " entropies=", s.entropies, " lane_room=", s.lane_room, " cancel=", s.cancel),
      absl::StrCat(" loss=", s.loss, " duplicate=", s.duplicate, " reorder=", s.reorder, " corrupt=", s.corrupt,
                   " trim=", s.trim, " mark=", s.mark, " skew_us=", s.skew_us, " flaps=", s.flaps, " black_paths=",
                   s.black_paths, " bursts=", s.bursts, " partitions=", s.partitions, " rx_queue=", s.rx_queue),
      absl::StrCat(
          " stalls=", s.stalls, " leaps=", s.leaps, " shortages=", s.shortages, " revocations=", s.revocations,
          " receive_queues=", s.receive_queues, " late_names=", s.late_names, " claims=", s.claims, " many=", s.many,
          " held_receives=", s.held_receives, " parked=", s.parked, " placed_writes=", s.placed_writes ? 1 : 0,
          " write_lag_us=", s.write_lag_us, " burst_segments=", s.burst_segments, " queue_mbps=", s.queue_mbps,
          " ahead=", kAhead[static_cast<size_t>(s.ahead)], " far_port_us=", s.far_port_us, " path_bytes=", s.path_bytes,
          " narrowings=", s.narrowings, " reads_later=", s.reads_later ? 1 : 0, " as_plugins=", s.as_plugins ? 1 : 0),
      absl::StrCat(" fault_ms=", s.fault_ms, " topology=", s.topology, " queue_kb=", s.queue_kb));
}

}  // namespace paceline::simulation
