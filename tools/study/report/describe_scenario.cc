// The words for a scenario's workload and fabric.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tools/study/report/describe.h"
#include "tools/study/report/format.h"
#include "tools/study/report/run_stats.h"

namespace paceline::tools {
namespace {

std::string KindOf(const nlohmann::json& scenario) { return TextAt(scenario, "workload.kind"); }

// A count from the scenario as text, or `otherwise`.
std::string CountAt(const nlohmann::json& scenario, std::string_view path, const std::string& otherwise) {
  const auto value = NumberAt(scenario, path);
  return value ? FormatCount(*value) : otherwise;
}

std::string BytesAt(const nlohmann::json& scenario, std::string_view path) {
  const auto value = NumberAt(scenario, path);
  return value ? FormatBytes(*value) : "some data";
}

std::string WithSpaces(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// "kind alltoall: bytes 65536, window 4": for workloads that have no sentence of their own.
std::string PlainWorkload(const nlohmann::json& scenario) {
  std::string text = "Workload " + WithSpaces(KindOf(scenario));
  std::string separator = ": ";
  const auto workload = scenario.find("workload");
  if (workload == scenario.end() || !workload->is_object()) return text + ".";
  for (const auto& [key, value] : workload->items()) {
    if (key == "kind" || value.is_structured() || value.is_null()) continue;
    if (value.is_string() && value.get<std::string>().empty()) continue;
    text += separator + WithSpaces(key) + " ";
    text += value.is_string() ? value.get<std::string>()
                              : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    separator = ", ";
  }
  return text + ".";
}

std::string Hosts(const nlohmann::json& scenario) {
  const auto hosts = NumberAt(scenario, "fabric.hosts");
  return hosts ? FormatPlural(*hosts, "host", "hosts") : "the hosts";
}

// "all 128 hosts", or "64 ranks spread evenly over 128 hosts".
std::string Participants(const nlohmann::json& scenario) {
  const auto ranks = NumberAt(scenario, "workload.ranks");
  const auto hosts = NumberAt(scenario, "fabric.hosts");
  if (!ranks || *ranks == 0 || (hosts && *ranks == *hosts)) return "all " + Hosts(scenario);
  return FormatPlural(*ranks, "rank", "ranks") + " spread evenly over " + Hosts(scenario);
}

// "ring", "tree", "two level" for the kinds of all-reduce, however they are named.
std::string AllReduceAlgorithm(const nlohmann::json& scenario) {
  const std::string prefix = "allreduce_", kind = KindOf(scenario);
  if (kind.starts_with(prefix)) return WithSpaces(kind.substr(prefix.size()));
  return WithSpaces(TextAt(scenario, "workload.algorithm"));
}

// Of workloads whose ranks wait for each other; empty for others.
std::string CollectiveSentence(const nlohmann::json& scenario) {
  const std::string kind = KindOf(scenario), bytes = BytesAt(scenario, "workload.bytes");
  const double per_host = NumberAt(scenario, "workload.ranks_per_host").value_or(1);
  std::string ranks = CountAt(scenario, "workload.ranks", "All") + " ranks";
  if (NumberAt(scenario, "workload.ranks").value_or(0) == 0) ranks = "All ranks of " + Hosts(scenario);
  if (per_host > 1) ranks += ", " + FormatCount(per_host) + " to a host,";
  if (TextAt(scenario, "workload.rails") == "pinned") ranks += " each bound to the NIC of its place,";
  if (kind.starts_with("allreduce")) {
    return ranks + " sum up a buffer of " + bytes + " (all-reduce, " + AllReduceAlgorithm(scenario) + ").";
  }
  if (kind == "reduce_scatter") return ranks + " sum up a buffer of " + bytes + " and keep a share each (ring).";
  if (kind == "allgather") return ranks + " gather a buffer of " + bytes + " of which each has a share (ring).";
  if (kind == "broadcast") {
    return "One rank sends " + bytes + " to all others (" + TextAt(scenario, "workload.algorithm") + "): " + ranks +
           ".";
  }
  if (kind == "moe") {
    return ranks + " send " + bytes + " per pair in the mean to experts, the more the hotter (skew " +
           FormatCount(NumberAt(scenario, "workload.skew").value_or(0)) + "), and get as much back.";
  }
  if (kind == "training_step") {
    std::string sizes;
    for (const char* dimension : {"tp", "pp", "dp"}) {
      sizes += (sizes.empty() ? "" : ", ") + std::string(dimension) + " " +
               CountAt(scenario, std::string("workload.") + dimension, "1");
    }
    return "A training step of " + CountAt(scenario, "workload.layers", "some") + " layers, hidden size " +
           CountAt(scenario, "workload.hidden", "unknown") + ", " + CountAt(scenario, "workload.batch", "some") +
           " sequences of " + CountAt(scenario, "workload.tokens", "some") + " tokens: " + sizes +
           (BoolAt(scenario, "workload.fsdp") ? ", fully sharded" : "") + ".";
  }
  return "";
}

std::string WorkloadSentence(const nlohmann::json& scenario) {
  const std::string kind = KindOf(scenario);
  const std::string bytes = BytesAt(scenario, "workload.bytes");
  if (kind == "incast") {
    return CountAt(scenario, "workload.fan_in", "Several") + " hosts out of " +
           CountAt(scenario, "fabric.hosts", "all") + " each send " + bytes + " to one and the same host.";
  }
  if (kind == "alltoall") return "Among " + Participants(scenario) + ", each sends " + bytes + " to every other.";
  if (kind == "permutation") {
    return "Among " + Participants(scenario) + ", each sends " + bytes +
           " to one other and receives as much from another.";
  }
  if (kind == "victim") {
    return CountAt(scenario, "workload.fan_in", "Several") + " hosts each send " + bytes +
           " to one host (the incast), while the hosts that take no part in it send each other " +
           BytesAt(scenario, "workload.victim_bytes") + " in pairs (the victims).";
  }
  if (kind == "connection_matrix") {
    const std::string file = TextAt(scenario, "workload.file");
    return "Flows between " + Hosts(scenario) + " as listed in " + (file.empty() ? "a connection matrix" : file) + ".";
  }
  if (std::string sentence = CollectiveSentence(scenario); !sentence.empty()) return sentence;
  return PlainWorkload(scenario);
}

bool StartsAtOnce(const std::string& kind) {
  return kind == "incast" || kind == "alltoall" || kind == "permutation" || kind == "victim";
}

std::string Microseconds(const nlohmann::json& scenario, std::string_view path) {
  return FormatMicros(NumberAt(scenario, path).value_or(0) / 1000);
}

std::string Tiers(const nlohmann::json& fabric) {
  const auto tiers = NumberAt(fabric, "tiers");
  if (!tiers) return "";
  if (*tiers == 2) return "two-tier ";
  return *tiers == 3 ? "three-tier " : FormatCount(*tiers) + "-tier ";
}

std::string Oversubscription(const nlohmann::json& fabric) {
  const auto found = fabric.find("oversubscription");
  if (found == fabric.end()) return "";
  if (found->is_number()) return ", " + FormatCount(found->get<double>()) + ":1 core";
  if (!found->is_array()) return "";
  std::string text;
  for (const auto& tier : *found) {
    if (tier.is_number()) text += (text.empty() ? ", " : " and ") + FormatCount(tier.get<double>()) + ":1";
  }
  return text;
}

std::string Topology(const nlohmann::json& fabric) {
  std::string text = TextAt(fabric, "topology");
  if (text.empty()) return "";
  const bool tree = text == "fat_tree" || text == "rail_optimized";
  text = (tree ? Tiers(fabric) : "") + WithSpaces(text);
  const auto radix = NumberAt(fabric, "tor_radix");
  const auto pod = NumberAt(fabric, "pod_size");
  if (radix && *radix > 0) text += ", " + FormatPlural(*radix, "host", "hosts") + " per ToR";
  if (tree && pod && *pod > 0) text += ", pods of " + FormatCount(*pod);
  if (const auto links = NumberAt(fabric, "global_links"); links && pod) {
    text += ", groups of " + FormatCount(*pod) + ", " + FormatPlural(*links, "global link", "global links") +
            " per router, routing " + TextAt(fabric, "routing");
  }
  return text + Oversubscription(fabric);
}

std::string HostsFact(const nlohmann::json& fabric) {
  const auto hosts = NumberAt(fabric, "hosts");
  if (!hosts) return "";
  std::string text = FormatCount(*hosts);
  const double nics = NumberAt(fabric, "nics_per_host").value_or(1);
  const double planes = NumberAt(fabric, "planes").value_or(1);
  if (nics > 1) text += " with " + FormatCount(nics) + " NICs each";
  if (planes > 1) text += ", " + FormatCount(planes) + " planes";
  return text;
}

std::string LinkFact(const nlohmann::json& fabric) {
  const auto rate = NumberAt(fabric, "link_gbps");
  if (!rate) return "";
  std::string text = FormatCount(*rate) + " Gb/s";
  if (NumberAt(fabric, "link_delay_ns")) text += ", " + Microseconds(fabric, "link_delay_ns");
  if (NumberAt(fabric, "switch_delay_ns").value_or(0) > 0) {
    text += "; switch " + Microseconds(fabric, "switch_delay_ns");
  }
  if (NumberAt(fabric, "nic_delay_ns").value_or(0) > 0) text += "; NIC " + Microseconds(fabric, "nic_delay_ns");
  return text;
}

std::string QueueFact(const nlohmann::json& scenario) {
  const auto shared = NumberAt(scenario, "fabric.shared_buffer_bytes");
  if (shared) return FormatBytes(*shared) + " per switch, shared by its ports";
  const auto queue = NumberAt(scenario, "fabric.queue_bytes");
  if (!queue) return "";
  if (!PortsHaveALimit(scenario)) return "no limit per port";
  return *queue > 0 ? FormatBytes(*queue) + " per port" : "unlimited";
}

std::string EcnFact(const nlohmann::json& fabric) {
  const auto low = NumberAt(fabric, "ecn_min_bytes");
  const auto high = NumberAt(fabric, "ecn_max_bytes");
  if (!low || !high) return "";
  if (*high <= 0) return "off";
  const double most = NumberAt(fabric, "ecn_max_probability").value_or(1);
  const std::string at_most = most < 1 ? ", with at most " + FormatShort(most * 100) + " % between" : "";
  return FormatBytes(*low) + " to " + FormatBytes(*high) + at_most;
}

std::string OverflowFact(const nlohmann::json& fabric) {
  if (BoolAt(fabric, "pfc")) return "PFC pauses the sender (lossless)";
  return BoolAt(fabric, "trimming") ? "payload trimmed, header goes on" : "packet dropped";
}

std::string PacketFact(const nlohmann::json& fabric) {
  const auto mtu = NumberAt(fabric, "mtu_bytes");
  if (!mtu) return "";
  std::string text = FormatCount(*mtu) + " B payload";
  const auto header = NumberAt(fabric, "header_bytes");
  if (header) text += " + " + FormatCount(*header) + " B headers";
  return text;
}

std::string PathsFact(const nlohmann::json& scenario) {
  const std::string policy = WithSpaces(TextAt(scenario, "paths.policy"));
  const auto entropies = NumberAt(scenario, "paths.entropies");
  if (policy.empty()) return "";
  std::string text = entropies ? policy + ", " + FormatPlural(*entropies, "entropy", "entropies") : policy;
  if (BoolAt(scenario, "fabric.adaptive_routing")) text += "; switches take their shortest queue upwards";
  return text;
}

std::string SeedsFact(const nlohmann::json& results) {
  std::vector<std::string> seeds;
  for (const auto& run : Runs(results)) {
    std::string seed = SeedOf(run);
    if (seed.empty() || std::find(seeds.begin(), seeds.end(), seed) != seeds.end()) continue;
    seeds.push_back(std::move(seed));
  }
  std::string text;
  for (const auto& seed : seeds) text += (text.empty() ? "" : ", ") + seed;
  return text;
}

std::string FaultsFact(const nlohmann::json& scenario) {
  const auto faults = scenario.find("fault");
  if (faults == scenario.end() || !faults->is_array() || faults->empty()) return "";
  std::string text;
  for (const auto& fault : *faults) {
    if (!text.empty()) text += "; ";
    text += WithSpaces(TextAt(fault, "kind"));
    const std::string target = TextAt(fault, "target");
    if (!target.empty()) text += " at " + target;
    text += " from " + FormatMicros(NumberAt(fault, "at_us").value_or(0));
    const auto until = NumberAt(fault, "until_us");
    if (until) text += " to " + FormatMicros(*until);
  }
  return text;
}

std::string IdealFact(const nlohmann::json& results) {
  for (const auto& run : Runs(results)) {
    const auto ideal = NumberAt(run, "ideal_us");
    if (ideal) return FormatMicros(*ideal);
  }
  return "";
}

}  // namespace

std::string DescribeTitle(const nlohmann::json& scenario) {
  const std::string kind = KindOf(scenario);
  const auto bytes = NumberAt(scenario, "workload.bytes");
  if (kind == "incast") {
    return "Incast " + CountAt(scenario, "workload.fan_in", "N") + " to 1" +
           (bytes ? ", " + FormatBytes(*bytes) + " each" : "");
  }
  std::string name = WithSpaces(kind);
  if (kind == "alltoall") name = "all-to-all";
  if (kind == "victim") name = "victims beside an incast";
  if (name.empty()) return "Congestion study";
  name[0] = static_cast<char>(name[0] >= 'a' && name[0] <= 'z' ? name[0] - 'a' + 'A' : name[0]);
  const auto ranks = NumberAt(scenario, "workload.ranks");
  const auto hosts = NumberAt(scenario, "fabric.hosts");
  if (ranks && *ranks > 0) {
    name += " of " + FormatPlural(*ranks, "rank", "ranks");
  } else if (hosts) {
    name += " of " + FormatPlural(*hosts, "host", "hosts");
  }
  return bytes ? name + ", " + FormatBytes(*bytes) + " each" : name;
}

std::string DescribeWorkload(const nlohmann::json& scenario) {
  if (KindOf(scenario).empty()) return "";
  std::string text = WorkloadSentence(scenario);
  const double window = NumberAt(scenario, "workload.window").value_or(0);
  if (window > 0) text += " Each source keeps " + FormatPlural(window, "message", "messages") + " outstanding.";
  const double jitter = NumberAt(scenario, "workload.start_jitter_us").value_or(0);
  if (jitter > 0) {
    text += " Flows start at random within " + FormatMicros(jitter) + ".";
  } else if (window == 0 && StartsAtOnce(KindOf(scenario))) {
    text += " All flows start at the same moment.";
  }
  if (NumberAt(scenario, "workload.posted_ahead")) {
    if (!BoolAt(scenario, "workload.posted_ahead")) {
      text += " Nothing is posted ahead: a receiver learns of a flow from its first packet.";
    } else if (CollectiveSentence(scenario).empty()) {
      text += " Receives are posted ahead: a receiver knows what will come one round trip before it starts.";
    } else {
      text += " Receives are posted ahead: those of steps that wait for others from the start of the run on.";
    }
  }
  return text;
}

std::vector<Fact> DescribeFabric(const nlohmann::json& results) {
  const nlohmann::json& scenario = Scenario(results);
  const auto found = scenario.find("fabric");
  const nlohmann::json fabric = found != scenario.end() && found->is_object() ? *found : nlohmann::json::object();
  std::vector<Fact> facts = {
      {"Fabric", Topology(fabric), "How the switches are wired; N:1 means that a tier has N times less capacity up."},
      {"Hosts", HostsFact(fabric), "End points of the fabric."},
      {"Links", LinkFact(fabric), "Rate of every link and the time a bit takes over it, in one direction."},
      {"Port queue", QueueFact(scenario), "Room for waiting data packets at each switch port."},
      {"ECN marking", EcnFact(fabric),
       "Packets are marked with rising probability between these two queue lengths, and always beyond."},
      {"When full", fabric.empty() ? "" : OverflowFact(fabric), "What a switch does when a port's queue has no room."},
      {"Packet", PacketFact(fabric), "Largest data packet; rates and queues count payload and headers."},
      {"Paths", PathsFact(scenario), "How packets of one flow are spread over the paths of the fabric."},
      {"Faults", FaultsFact(scenario), "What breaks during the run; shaded in the charts over time."},
      {"Ideal", IdealFact(results),
       "No run can end earlier: the time that the busiest links need, with the way there and behind them."},
      {"Seeds", SeedsFact(results), "Each algorithm ran once with each seed; a seed sets every random choice."},
  };
  std::erase_if(facts, [](const Fact& fact) { return fact.value.empty(); });
  return facts;
}

}  // namespace paceline::tools
