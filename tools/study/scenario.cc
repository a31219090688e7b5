#include "tools/study/scenario.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/study/load_workload.h"
#include "tools/study/micros.h"
#include "tools/study/table_reader.h"
#include "tools/study/topology_file.h"
#include "tools/study/workloads/pattern.h"
#include "transport/base/limits.h"
#include "transport/core/path/path_policy.h"

namespace paceline::tools {
namespace {

using nlohmann::json;

const std::vector<std::pair<std::string, sim::TopologyKind>>& Topologies() {
  static const std::vector<std::pair<std::string, sim::TopologyKind>> list = {
      {"single_switch", sim::TopologyKind::kSingleSwitch},
      {"leaf_spine", sim::TopologyKind::kLeafSpine},
      {"fat_tree", sim::TopologyKind::kFatTree},
      {"rail_optimized", sim::TopologyKind::kRailOptimized},
      {"dumbbell", sim::TopologyKind::kDumbbell},
      {"dragonfly", sim::TopologyKind::kDragonfly},
      {"file", sim::TopologyKind::kGraph}};
  return list;
}

struct FaultName {
  std::string name;
  sim::FaultKind kind;
};

const std::vector<FaultName>& FaultNames() {
  static const std::vector<FaultName> list = {
      {"loss", sim::FaultKind::kLoss},          {"duplicate", sim::FaultKind::kDuplicate},
      {"reorder", sim::FaultKind::kReorder},    {"corrupt", sim::FaultKind::kCorrupt},
      {"link_down", sim::FaultKind::kLinkDown}, {"link_slow", sim::FaultKind::kLinkSlow},
      {"nic_down", sim::FaultKind::kNicDown},   {"switch_reboot", sim::FaultKind::kSwitchReboot},
      {"host_slow", sim::FaultKind::kHostSlow}};
  return list;
}

// TOML as JSON: for what is passed on as it stands.
json ToJson(const ParameterValue& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

class Loader {
 public:
  Loader(const toml::table& table, std::string directory) : table_(table), directory_(std::move(directory)) {}

  absl::StatusOr<Scenario> Load() {
    TableReader top("", &table_);
    for (auto step : {&Loader::LoadWorkloadTable, &Loader::LoadFabric, &Loader::LoadPaths, &Loader::LoadAlgorithms,
                      &Loader::LoadFaults, &Loader::LoadRun}) {
      if (absl::Status status = (this->*step)(top); !status.ok()) return status;
    }
    if (absl::Status status = top.Finish(); !status.ok()) return status;
    if (absl::Status status = TryOut(); !status.ok()) return status;
    return std::move(scenario_);
  }

 private:
  absl::Status LoadWorkloadTable(TableReader& top) {
    absl::StatusOr<WorkloadConfig> workload =
        LoadWorkload(top.Table("workload"), directory_, scenario_.resolved["workload"]);
    if (!workload.ok()) return workload.status();
    scenario_.workload = *std::move(workload);
    return absl::OkStatus();
  }

  absl::Status LoadFabric(TableReader& top) {
    TableReader reader("fabric", top.Table("fabric"));
    const absl::StatusOr<uint32_t> default_hosts = scenario_.workload.pattern->DefaultHosts();
    if (!default_hosts.ok()) return default_hosts.status();
    sim::FabricConfig& f = scenario_.fabric;
    sim::TopologyConfig& t = f.topology;
    std::vector<std::string> names;
    for (const auto& [name, kind] : Topologies()) names.push_back(name);
    const bool default_tree = *default_hosts % 16 == 0 && *default_hosts >= 32;
    const std::string topology = reader.Choice("topology", default_tree ? "fat_tree" : "single_switch", names);
    for (const auto& [name, kind] : Topologies()) {
      if (name == topology) t.kind = kind;
    }
    t.hosts = static_cast<uint32_t>(reader.Integer("hosts", *default_hosts, 2, 65536));
    const bool rails = t.kind == sim::TopologyKind::kRailOptimized;
    t.tiers = static_cast<uint32_t>(reader.Integer("tiers", rails ? 2 : 3, 2, 3));
    t.pod_size = static_cast<uint32_t>(reader.Integer("pod_size", 16, 1, 65536));
    t.tor_radix = static_cast<uint32_t>(reader.Integer("tor_radix", 4, 1, 65536));
    t.oversubscription = reader.Numbers("oversubscription", {}, 0.001, 65536);
    t.nics_per_host = static_cast<uint32_t>(reader.Integer("nics_per_host", 1, 1, 8));
    t.planes = static_cast<uint32_t>(reader.Integer("planes", 1, 1, 8));
    t.link_gbps = reader.Number("link_gbps", 100, 0.001, 10000);
    t.link_delay_ns = static_cast<int64_t>(reader.Integer("link_delay_ns", 1000, 0, 1'000'000'000));
    t.switch_delay_ns = static_cast<int64_t>(reader.Integer("switch_delay_ns", 0, 0, 1'000'000'000));
    t.nic_delay_ns = static_cast<int64_t>(reader.Integer("nic_delay_ns", 0, 0, 1'000'000'000));
    t.global_links = static_cast<uint32_t>(reader.Integer("global_links", 0, 1, 1024));
    const std::string routing = reader.Choice("routing", "minimal", {"minimal", "valiant", "both"});
    t.routing = routing == "valiant" ? sim::DragonflyRouting::kValiant
                : routing == "both"  ? sim::DragonflyRouting::kBoth
                                     : sim::DragonflyRouting::kMinimal;
    for (const char* key : {"global_links", "routing"}) {
      if (t.kind != sim::TopologyKind::kDragonfly && reader.Has(key)) {
        reader.Fail(key, "goes with topology = \"dragonfly\" only");
      }
    }
    const std::string topology_file = reader.Text("topology_file", "");
    if (t.kind == sim::TopologyKind::kGraph) {
      if (topology_file.empty()) {
        reader.Fail("topology_file", "must name a file of nodes and links");
        return reader.Finish();
      }
      absl::Status status = LoadGraph(topology_file, reader.Has("hosts"), reader.Has("nics_per_host"));
      if (!status.ok()) return status;
    } else if (!topology_file.empty()) {
      reader.Fail("topology_file", "goes with topology = \"file\" only");
    }
    f.queue_bytes = Bytes(reader, "queue_bytes", f.queue_bytes);
    f.ecn_min_bytes = Bytes(reader, "ecn_min_bytes", f.ecn_min_bytes);
    f.ecn_max_bytes = Bytes(reader, "ecn_max_bytes", f.ecn_max_bytes);
    f.ecn_max_probability = Probability(reader, "ecn_max_probability", f.ecn_max_probability);
    f.trimming = reader.Bool("trimming", false);
    f.adaptive_routing = reader.Bool("adaptive_routing", false);
    f.reroute_delay = MicrosToPicos(reader.Number("reroute_us", sim::PicosToMicros(f.reroute_delay), 0, kMaxMicros));
    sim::BufferConfig& b = f.buffers;
    b.shared = reader.Choice("buffer", "ports", {"ports", "shared"}) == "shared";
    b.shared_bytes = Bytes(reader, "shared_buffer_bytes", 0);
    b.alpha = reader.Number("alpha", b.alpha, 0.0001, 1024);
    if (b.shared && !reader.Has("shared_buffer_bytes")) {
      reader.Fail("shared_buffer_bytes", "is missing: bytes of a switch's memory for data packets");
    }
    for (const char* key : {"shared_buffer_bytes", "alpha"}) {
      if (!b.shared && reader.Has(key)) reader.Fail(key, "goes with buffer = \"shared\" only");
    }
    b.lossless = reader.Bool("pfc", false);
    b.xoff_bytes = Bytes(reader, "pfc_xoff_bytes", 0);
    b.xon_bytes = Bytes(reader, "pfc_xon_bytes", 0);
    b.headroom_bytes = Bytes(reader, "pfc_headroom_bytes", 0);
    f.mtu_bytes = static_cast<uint32_t>(reader.Integer("mtu_bytes", f.mtu_bytes, 256, 65536));
    f.header_bytes = static_cast<uint32_t>(reader.Integer("header_bytes", f.header_bytes, 1, 4096));
    f.max_header_bytes = limits::kMaxDataHeaderBytes;
    if (absl::Status status = reader.Finish(); !status.ok()) return status;
    absl::StatusOr<sim::Topology> built = sim::Topology::Create(t);
    if (!built.ok()) return built.status();

    json& out = scenario_.resolved["fabric"];
    out = {{"topology", topology},
           {"hosts", t.hosts},
           {"nics_per_host", t.nics_per_host},
           {"planes", t.planes},
           {"link_gbps", t.link_gbps},
           {"link_delay_ns", t.link_delay_ns},
           {"switch_delay_ns", t.switch_delay_ns},
           {"nic_delay_ns", t.nic_delay_ns},
           {"queue_bytes", f.queue_bytes},
           {"ecn_min_bytes", f.ecn_min_bytes},
           {"ecn_max_bytes", f.ecn_max_bytes},
           {"ecn_max_probability", f.ecn_max_probability},
           {"trimming", f.trimming},
           {"pfc", b.lossless},
           {"mtu_bytes", f.mtu_bytes},
           {"header_bytes", f.header_bytes}};
    if (f.adaptive_routing) out["adaptive_routing"] = true;
    if (reader.Has("reroute_us")) out["reroute_us"] = sim::PicosToMicros(f.reroute_delay);
    const bool tree = t.kind == sim::TopologyKind::kFatTree || rails;
    if (!topology_file.empty()) out["topology_file"] = topology_file;
    if (b.shared) {
      out["buffer"] = "shared";
      out["shared_buffer_bytes"] = b.shared_bytes;
      out["alpha"] = b.alpha;
    }
    if (b.xoff_bytes != 0) out["pfc_xoff_bytes"] = b.xoff_bytes;
    if (b.xon_bytes != 0) out["pfc_xon_bytes"] = b.xon_bytes;
    if (b.headroom_bytes != 0) out["pfc_headroom_bytes"] = b.headroom_bytes;
    const bool dragonfly = t.kind == sim::TopologyKind::kDragonfly;
    if (tree) out["tiers"] = t.tiers;
    if ((tree && t.tiers == 3) || dragonfly) out["pod_size"] = t.pod_size;
    if (tree || dragonfly || t.kind == sim::TopologyKind::kLeafSpine) out["tor_radix"] = t.tor_radix;
    if (dragonfly) out["global_links"] = built->global_links();
    if (dragonfly) out["routing"] = routing;
    if (t.oversubscription.size() == 1) out["oversubscription"] = t.oversubscription[0];
    if (t.oversubscription.size() > 1) out["oversubscription"] = t.oversubscription;
    if (t.oversubscription.empty() && t.kind != sim::TopologyKind::kSingleSwitch &&
        t.kind != sim::TopologyKind::kDumbbell && t.kind != sim::TopologyKind::kGraph && !dragonfly) {
      out["oversubscription"] = 1;
    }
    return absl::OkStatus();
  }

  absl::Status LoadGraph(const std::string& file, bool hosts_given, bool nics_given) {
    sim::TopologyConfig& t = scenario_.fabric.topology;
    absl::StatusOr<sim::Graph> graph = LoadTopologyFile(PathOf(file), t.link_gbps, t.link_delay_ns);
    if (!graph.ok()) return graph.status();
    const auto hosts = static_cast<uint32_t>(graph->hosts.size());
    const uint32_t nics = sim::Topology::NicsPerHost(*graph);
    if ((hosts_given && t.hosts != hosts) || (nics_given && t.nics_per_host != nics)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fabric.hosts and fabric.nics_per_host are those of "
                       "fabric.topology_file: ",
                       hosts, " and ", nics));
    }
    t.hosts = hosts;
    t.nics_per_host = nics;
    t.graph = std::make_shared<const sim::Graph>(*std::move(graph));
    return absl::OkStatus();
  }

  // Relative to the scenario.
  std::string PathOf(const std::string& file) const {
    if (std::filesystem::path(file).is_absolute() || directory_.empty()) return file;
    return (std::filesystem::path(directory_) / file).string();
  }

  static uint32_t Bytes(TableReader& reader, const std::string& key, uint32_t otherwise) {
    return static_cast<uint32_t>(reader.Integer(key, otherwise, 0, 1u << 30));
  }

  // Above 0 and at most 1.
  static double Probability(TableReader& reader, const std::string& key, double otherwise) {
    const double given = reader.Number(key, otherwise, 0, 1);
    if (given == 0) reader.Fail(key, "must be above 0 and at most 1, not 0");
    return given;
  }

  absl::Status LoadPaths(TableReader& top) {
    TableReader reader("paths", top.Table("paths"));
    const auto policies = PathPolicyNames();
    scenario_.path_policy = reader.Choice("policy", "reps", std::vector<std::string>(policies.begin(), policies.end()));
    scenario_.fabric.entropies = static_cast<uint32_t>(reader.Integer("entropies", 256, 1, limits::kMaxEntropies));
    scenario_.resolved["paths"] = {{"policy", scenario_.path_policy}, {"entropies", scenario_.fabric.entropies}};
    return reader.Finish();
  }

  absl::Status LoadAlgorithms(TableReader& top) {
    TableReader reader("cc", top.Table("cc"));
    const std::vector<std::string> chosen = reader.Texts("algorithms", {"tita"});
    scenario_.hints = reader.Bool("hints", false);
    json& out = scenario_.resolved["cc"];
    out = {{"algorithms", chosen}, {"hints", scenario_.hints}};
    std::vector<std::string> names;
    for (const AlgorithmInfo& info : CongestionControlAlgorithms()) names.push_back(info.name);
    for (const std::string& name : chosen) {
      const AlgorithmInfo* info = FindCongestionControl(name);
      if (info == nullptr) {
        reader.Fail("algorithms", absl::StrCat("has \"", name, "\", which is not known; there are ", JoinNames(names)));
        continue;
      }
      for (const AlgorithmChoice& other : scenario_.algorithms) {
        if (other.name == name) reader.Fail("algorithms", absl::StrCat("has \"", name, "\" twice"));
      }
      absl::StatusOr<AlgorithmChoice> choice = LoadAlgorithm(*info, reader.Table(name));
      if (!choice.ok()) return choice.status();
      for (const auto& [key, value] : choice->parameters) out[name][key] = ToJson(value);
      if (choice->ecn_min_bytes != scenario_.fabric.ecn_min_bytes ||
          choice->ecn_max_bytes != scenario_.fabric.ecn_max_bytes ||
          choice->ecn_max_probability != scenario_.fabric.ecn_max_probability) {
        out[name]["ecn_min_bytes"] = choice->ecn_min_bytes;
        out[name]["ecn_max_bytes"] = choice->ecn_max_bytes;
        out[name]["ecn_max_probability"] = choice->ecn_max_probability;
      }
      scenario_.algorithms.push_back(*std::move(choice));
    }
    // Tables of algorithms that this run leaves out are allowed, and checked all the same.
    for (const AlgorithmInfo& info : CongestionControlAlgorithms()) {
      const absl::Status status = LoadAlgorithm(info, reader.Table(info.name)).status();
      if (!status.ok()) return status;
    }
    return reader.Finish();
  }

  absl::StatusOr<AlgorithmChoice> LoadAlgorithm(const AlgorithmInfo& info, const toml::table* table) {
    const std::string where = absl::StrCat("cc.", info.name);
    TableReader reader(where, table);
    AlgorithmChoice choice;
    choice.name = info.name;
    ParameterMap given;
    for (const ParameterSpec& spec : info.parameters) {
      const toml::node* node = reader.Find(spec.name);
      if (node == nullptr) continue;
      if (const auto* integer = node->as_integer()) {
        given[spec.name] = static_cast<double>(integer->get());
      } else if (const auto* real = node->as_floating_point()) {
        given[spec.name] = real->get();
      } else if (const auto* boolean = node->as_boolean()) {
        given[spec.name] = boolean->get();
      } else if (const auto* text = node->as_string()) {
        given[spec.name] = text->get();
      } else {
        reader.Fail(spec.name, "must be a number, true or false, or a text in quotes");
      }
    }
    choice.ecn_min_bytes = Bytes(reader, "ecn_min_bytes", scenario_.fabric.ecn_min_bytes);
    choice.ecn_max_bytes = Bytes(reader, "ecn_max_bytes", scenario_.fabric.ecn_max_bytes);
    choice.ecn_max_probability = Probability(reader, "ecn_max_probability", scenario_.fabric.ecn_max_probability);
    if (choice.ecn_max_bytes != 0 && choice.ecn_max_bytes < choice.ecn_min_bytes) {
      reader.Fail("ecn_max_bytes", absl::StrCat("= ", choice.ecn_max_bytes, " must be at least ecn_min_bytes = ",
                                                choice.ecn_min_bytes, " (or 0: no marking)"));
    }
    if (absl::Status status = reader.Finish(); !status.ok()) return status;
    absl::StatusOr<ParameterMap> complete = ResolveParameters(info, given);
    if (!complete.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", std::string(complete.status().message())));
    }
    choice.parameters = *std::move(complete);
    return choice;
  }

  absl::Status LoadFaults(TableReader& top) {
    const toml::node* node = top.Find("fault");
    if (node == nullptr) return absl::OkStatus();
    const toml::array* list = node->as_array();
    if (list == nullptr) return absl::InvalidArgumentError("fault must be a list of tables: [[fault]]");
    for (const toml::node& element : *list) {
      if (!element.is_table()) return absl::InvalidArgumentError("fault must be a list of tables: [[fault]]");
      if (absl::Status status = LoadFault(*element.as_table()); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status LoadFault(const toml::table& table) {
    TableReader reader("fault", &table);
    sim::Fault fault;
    std::vector<std::string> names;
    for (const FaultName& name : FaultNames()) names.push_back(name.name);
    if (!reader.Has("kind")) reader.Fail("kind", absl::StrCat("is missing; it may be ", JoinNames(names)));
    const std::string kind = reader.Choice("kind", "loss", names);
    for (const FaultName& name : FaultNames()) {
      if (name.name == kind) fault.kind = name.kind;
    }
    const double at = reader.Number("at_us", 0, 0, kMaxMicros);
    const double until = reader.Number("until_us", -1, 0, kMaxMicros);
    fault.at = MicrosToPicos(at);
    if (until >= 0) fault.until = MicrosToPicos(until);
    if (until >= 0 && until <= at) reader.Fail("until_us", "must be later than at_us");
    json out = {{"kind", kind}, {"at_us", at}};
    if (until >= 0) out["until_us"] = until;
    const bool random = kind == "loss" || kind == "duplicate" || kind == "reorder" || kind == "corrupt";
    if (random && !reader.Has("probability")) reader.Fail("probability", "is missing: from 0 to 1");
    if (kind == "link_slow" && !reader.Has("fraction")) reader.Fail("fraction", "is missing: above 0, at most 1");
    fault.probability = reader.Number("probability", 0, 0, 1);
    fault.fraction = reader.Number("fraction", 1, 0.0001, 1);
    const double delay = reader.Number("delay_us", 10, 0, kMaxMicros);
    fault.delay = MicrosToPicos(delay);
    if (random) out["probability"] = fault.probability;
    if (kind == "link_slow") out["fraction"] = fault.fraction;
    if (kind == "reorder" || kind == "host_slow") out["delay_us"] = delay;
    if (kind == "switch_reboot" && until < 0) reader.Fail("until_us", "is missing: when the switch is back");
    if (!reader.Has("target"))
      reader.Fail("target", "is missing, for example \"all\", \"host:3/nic:0\", \"tor:2/up:1\"");
    fault.target = reader.Text("target", "all");
    out["target"] = fault.target;
    scenario_.resolved["fault"].push_back(out);
    if (kind == "link_down" || kind == "nic_down" || kind == "switch_reboot") {
      scenario_.resolved["fabric"]["reroute_us"] = sim::PicosToMicros(scenario_.fabric.reroute_delay);
    }
    scenario_.fabric.faults.push_back(fault);
    return reader.Finish();
  }

  absl::Status LoadRun(TableReader& top) {
    TableReader reader("run", top.Table("run"));
    const bool count = reader.Has("seeds") && reader.Find("seeds")->is_integer();
    if (count) {
      const uint64_t seeds = reader.Integer("seeds", 1, 1, 10000);
      for (uint64_t seed = 1; seed <= seeds; ++seed) scenario_.seeds.push_back(seed);
    } else {
      for (double seed : reader.Numbers("seeds", {1}, 0, 9007199254740992.0)) {
        if (seed != std::floor(seed)) reader.Fail("seeds", "must be whole numbers, or how many seeds to run");
        const auto whole = static_cast<uint64_t>(seed);
        const bool again = std::find(scenario_.seeds.begin(), scenario_.seeds.end(), whole) != scenario_.seeds.end();
        if (again) reader.Fail("seeds", absl::StrCat("has ", whole, " twice"));
        scenario_.seeds.push_back(whole);
      }
    }
    scenario_.deadline_us = reader.Number("deadline_us", 0, 0, kMaxMicros);
    scenario_.resolved["run"] = {{"seeds", scenario_.seeds}, {"deadline_us", scenario_.deadline_us}};
    return reader.Finish();
  }

  // What only building shows: queue sizes, fault targets, workloads that do not fit.
  absl::Status TryOut() const {
    for (uint64_t seed : scenario_.seeds) {
      sim::FabricConfig config = scenario_.fabric;
      config.seed = seed;
      if (absl::Status status = sim::Fabric::Check(config); !status.ok()) return status;
      if (absl::Status status = WorkloadOf(scenario_, seed).status(); !status.ok()) return status;
      if (scenario_.workload.kind == "connection_matrix") break;  // the same for every seed
    }
    return absl::OkStatus();
  }

  const toml::table& table_;
  const std::string directory_;
  Scenario scenario_;
};

}  // namespace

absl::StatusOr<Scenario> LoadScenario(const toml::table& table, const std::string& directory) {
  return Loader(table, directory).Load();
}

absl::StatusOr<Workload> WorkloadOf(const Scenario& scenario, uint64_t seed) {
  const sim::TopologyConfig& topology = scenario.fabric.topology;
  WorkloadHosts hosts = {
      .count = topology.hosts, .nics = topology.nics_per_host, .gbps = topology.link_gbps * topology.nics_per_host};
  if (topology.graph != nullptr) {
    // In the mean: the hosts are the first nodes.
    double sum = 0;
    for (const sim::GraphLink& link : topology.graph->links) {
      sum += link.gbps * ((link.a < topology.hosts ? 1 : 0) + (link.b < topology.hosts ? 1 : 0));
    }
    hosts.gbps = sum / topology.hosts;
  }
  return BuildWorkload(scenario.workload, hosts, seed);
}

}  // namespace paceline::tools
