#include "tools/study/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tools/study/study_file.h"
#include "transport/core/path/path_policy.h"

namespace paceline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Study Load(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  auto study = ParseStudy(toml, "test.toml", "", overrides);
  EXPECT_TRUE(study.ok()) << study.status();
  return *std::move(study);
}

std::string ErrorOf(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  const auto study = ParseStudy(toml, "test.toml", "", overrides);
  return study.ok() ? "accepted" : std::string(study.status().message());
}

TEST(ScenarioTest, DefaultsAreTheFabricOfTheFacts) {
  const Study study = Load("");
  ASSERT_EQ(study.sections.size(), 1u);
  const Scenario& scenario = study.sections[0].scenario;
  EXPECT_EQ(scenario.fabric.topology.hosts, 128u);
  EXPECT_EQ(scenario.fabric.topology.kind, sim::TopologyKind::kFatTree);
  EXPECT_EQ(scenario.fabric.queue_bytes, 178'880u);
  EXPECT_EQ(scenario.fabric.ecn_min_bytes, 37'440u);
  EXPECT_EQ(scenario.fabric.ecn_max_bytes, 145'600u);
  EXPECT_FALSE(scenario.workload.posted_ahead);
  EXPECT_THAT(scenario.seeds, ElementsAre(1));
  ASSERT_EQ(scenario.algorithms.size(), 1u);
  EXPECT_EQ(scenario.algorithms[0].name, "tita");
}

TEST(ScenarioTest, ResolvedScenarioLoadsAgainAsItself) {
  const Study study = Load(R"(
    [fabric]
    topology = "leaf_spine"
    hosts = 32
    tor_radix = 8
    oversubscription = 2
    [workload]
    kind = "alltoall"
    ranks = 16
    window = 2
    [cc]
    algorithms = ["tita", "dcqcn"]
    [cc.dcqcn]
    ecn_min_bytes = 1000
    ecn_max_bytes = 2000
    ecn_max_probability = 0.25
    [[fault]]
    kind = "link_slow"
    fraction = 0.25
    target = "random:2:leaf-spine"
    [run]
    seeds = [7, 8]
  )");
  const nlohmann::json& resolved = study.sections[0].scenario.resolved;
  EXPECT_EQ(resolved["fabric"]["tor_radix"], 8);
  EXPECT_EQ(resolved["cc"]["dcqcn"]["ecn_min_bytes"], 1000);
  EXPECT_EQ(resolved["cc"]["dcqcn"]["ecn_max_probability"], 0.25);
  EXPECT_EQ(resolved["fabric"]["ecn_max_probability"], 1);
  EXPECT_EQ(resolved["fault"][0]["fraction"], 0.25);
  EXPECT_EQ(resolved["run"]["seeds"], nlohmann::json({7, 8}));
  EXPECT_EQ(study.sections[0].scenario.algorithms[0].ecn_max_probability, 1);
  EXPECT_EQ(study.sections[0].scenario.algorithms[1].ecn_max_bytes, 2000u);
  EXPECT_EQ(study.sections[0].scenario.algorithms[1].ecn_max_probability, 0.25);
  std::string again;
  for (const auto& [table, keys] : resolved.items()) {
    for (const auto& [key, value] : keys.items()) {
      if (table == "fault") continue;
      if (!value.is_object()) {
        again += table + "." + key + " = " + value.dump() + "\n";
        continue;
      }
      for (const auto& [inner, inner_value] : value.items()) {
        again += table + "." + key + "." + inner + " = " + inner_value.dump() + "\n";
      }
    }
  }
  again += "[[fault]]\nkind = \"link_slow\"\nat_us = 0.0\nfraction = 0.25\ntarget = \"random:2:leaf-spine\"\n";
  EXPECT_EQ(Load(again).sections[0].scenario.resolved, resolved);
}

TEST(ScenarioTest, OverridesGoBeforeTheFile) {
  const Study study = Load("[fabric]\nhosts = 128\n[[fault]]\nkind='loss'\nprobability=0.5\ntarget='all'\n",
                           {"fabric.hosts=64", "workload.kind=alltoall", "cc.algorithms=tita,swift", "run.seeds=3",
                            "fault.0.probability=0.25"});
  const Scenario& scenario = study.sections[0].scenario;
  EXPECT_EQ(scenario.fabric.topology.hosts, 64u);
  EXPECT_EQ(scenario.workload.kind, "alltoall");
  EXPECT_EQ(scenario.algorithms.size(), 2u);
  EXPECT_THAT(scenario.seeds, ElementsAre(1, 2, 3));
  EXPECT_EQ(scenario.fabric.faults[0].probability, 0.25);
  EXPECT_THAT(ErrorOf("", {"hosts=64"}), HasSubstr("table.key=value"));
  EXPECT_THAT(ErrorOf("", {"fabric.hosts"}), HasSubstr("table.key=value"));
  EXPECT_THAT(ErrorOf("", {"fabric.hosts.x=1"}), HasSubstr("fabric.hosts must be"));
  EXPECT_THAT(ErrorOf("[fabric]\nhosts=64\n", {"fabric.hosts.x=1"}), HasSubstr("\"hosts\" is no table"));
}

TEST(ScenarioTest, AdaptiveRoutingIsOffUnlessAskedFor) {
  EXPECT_FALSE(Load("").sections[0].scenario.fabric.adaptive_routing);
  const Study study = Load("[fabric]\nadaptive_routing = true\n");
  EXPECT_TRUE(study.sections[0].scenario.fabric.adaptive_routing);
  EXPECT_EQ(study.sections[0].scenario.resolved["fabric"]["adaptive_routing"], true);
}

TEST(ScenarioTest, ReroutingIsInTheResultsWhereItMatters) {
  const std::string down = "[[fault]]\nkind='link_down'\ntarget='tor:0/up:0'\n";
  const Scenario usual = Load(down).sections[0].scenario;
  EXPECT_EQ(usual.fabric.reroute_delay, sim::Picos{1'000'000'000});
  EXPECT_EQ(usual.resolved["fabric"]["reroute_us"], 1000);
  const Scenario never = Load(down, {"fabric.reroute_us=0"}).sections[0].scenario;
  EXPECT_EQ(never.fabric.reroute_delay, 0);
  EXPECT_EQ(never.resolved["fabric"]["reroute_us"], 0);
  EXPECT_EQ(Load("", {"fabric.reroute_us=2.5"}).sections[0].scenario.resolved["fabric"]["reroute_us"], 2.5);
  EXPECT_FALSE(Load("").sections[0].scenario.resolved["fabric"].contains("reroute_us"));
  const std::string slow = "[[fault]]\nkind='link_slow'\nfraction=0.5\ntarget='tor:0/up:0'\n";
  EXPECT_FALSE(Load(slow).sections[0].scenario.resolved["fabric"].contains("reroute_us"));
  EXPECT_THAT(ErrorOf("[fabric]\nreroute_us = -1\n"),
              HasSubstr("fabric.reroute_us must be a number from 0 to 1000000000, not -1"));
  EXPECT_THAT(ErrorOf("[fabric]\nreroute_us = \"soon\"\n"),
              HasSubstr("fabric.reroute_us must be a number from 0 to 1000000000"));
}

TEST(ScenarioTest, TakesEveryPathPolicy) {
  for (const std::string& name : PathPolicyNames()) {
    EXPECT_EQ(Load("[paths]\npolicy = \"" + name + "\"\n").sections[0].scenario.path_policy, name);
  }
}

TEST(ScenarioTest, SectionsShareWhatStandsOutside) {
  const Study study = Load(R"(
    title = "Page"
    [fabric]
    hosts = 64
    [[section]]
    title = "One"
    workload = { kind = "incast", fan_in = 4 }
    [[section]]
    title = "Two"
    fabric = { link_gbps = 400 }
    workload = { kind = "permutation" }
  )");
  ASSERT_EQ(study.sections.size(), 2u);
  EXPECT_TRUE(study.has_sections);
  EXPECT_EQ(study.title, "Page");
  EXPECT_EQ(study.sections[0].scenario.fabric.topology.hosts, 64u);
  EXPECT_EQ(study.sections[0].scenario.resolved["workload"]["fan_in"], 4);
  EXPECT_EQ(study.sections[1].scenario.fabric.topology.hosts, 64u);
  EXPECT_EQ(study.sections[1].scenario.fabric.topology.link_gbps, 400);
}

TEST(ScenarioTest, IncludesOtherStudies) {
  const Study study = Load(R"(
    title = "All"
    include = ["incast", "oversubscribed"]
    [fabric]
    hosts = 64
    [[section]]
    title = "Mine"
    workload = { kind = "permutation" }
  )",
                           {"run.seeds=2"});
  ASSERT_EQ(study.sections.size(), 4u);
  EXPECT_EQ(study.title, "All");
  EXPECT_EQ(study.sections[0].title, "Incast: 32 hosts to one");
  EXPECT_EQ(study.sections[0].scenario.resolved["workload"]["fan_in"], 32);
  EXPECT_EQ(study.sections[1].title, "Oversubscribed 4:1: the core is the bottleneck: Permutation of 2 MB");
  EXPECT_EQ(study.sections[3].title, "Mine");
  EXPECT_EQ(study.sections[3].scenario.algorithms.size(), 1u);
  for (const StudySection& section : study.sections) {
    EXPECT_EQ(section.scenario.fabric.topology.hosts, 64u) << section.title;
    EXPECT_THAT(section.scenario.seeds, ElementsAre(1, 2)) << section.title;
  }
}

TEST(ScenarioTest, IncludesFilesFromWhereTheFileIs) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/inner.toml") << "[workload]\nkind = \"permutation\"\n";
  std::ofstream(folder + "/outer.toml") << "include = [\"inner.toml\"]\n";
  const auto study = LoadStudy(folder + "/outer.toml", {});
  ASSERT_TRUE(study.ok()) << study.status();
  ASSERT_EQ(study->sections.size(), 1u);
  EXPECT_EQ(study->sections[0].scenario.resolved["workload"]["kind"], "permutation");
  std::ofstream(folder + "/inner.toml") << "include = [\"outer.toml\"]\n";
  EXPECT_THAT(std::string(LoadStudy(folder + "/outer.toml", {}).status().message()), HasSubstr("deep"));
}

TEST(ScenarioTest, RefusesWhatCannotBeIncluded) {
  EXPECT_THAT(ErrorOf("include = \"incast\"\n"), HasSubstr("must be a list"));
  EXPECT_THAT(ErrorOf("include = [3]\n"), HasSubstr("must be a list"));
  EXPECT_THAT(ErrorOf("include = [\"nothing\"]\n"), HasSubstr("no built-in study \"nothing\""));
  EXPECT_THAT(ErrorOf("include = [\"nothing.toml\"]\n"),
              HasSubstr("cannot read \"nothing.toml\": No such file or directory"));
}

TEST(ScenarioTest, AFolderIsNoFile) {
  const std::string folder = testing::TempDir();
  const auto study = LoadStudy(folder, {});
  EXPECT_THAT(std::string(study.status().message()), HasSubstr("cannot read \"" + folder + "\": Is a directory"));
  EXPECT_THAT(ErrorOf("", {"workload.kind=connection_matrix", "workload.file=" + folder}),
              HasSubstr("cannot read \"" + folder + "\": Is a directory"));
  EXPECT_THAT(ErrorOf("", {"fabric.topology=file", "fabric.topology_file=" + folder}),
              HasSubstr("cannot be read: Is a directory"));
  EXPECT_THAT(ErrorOf("", {"workload.kind=poisson", "workload.sizes=" + folder}), HasSubstr("Is a directory"));
}

TEST(ScenarioTest, RefusesUnknownKeysNamingThoseThatThereAre) {
  EXPECT_THAT(ErrorOf("[fabric]\nhost = 3\n"), HasSubstr("fabric.host is not known"));
  EXPECT_THAT(ErrorOf("[fabric]\nhost = 3\n"), HasSubstr("hosts"));
  EXPECT_THAT(ErrorOf("[fabrik]\n"), HasSubstr("fabrik is not known"));
  EXPECT_THAT(ErrorOf("[workload]\nkind = \"incast\"\nfanin = 3\n"), HasSubstr("workload.fanin"));
  EXPECT_THAT(ErrorOf("[cc.tita]\nspeed = 3\n"), HasSubstr("cc.tita.speed"));
  EXPECT_THAT(ErrorOf("[cc.bbr]\n"), HasSubstr("cc.bbr"));
  EXPECT_THAT(ErrorOf("[[fault]]\nkind='loss'\nprobability=0.1\ntarget='all'\nwhen=3\n"), HasSubstr("fault.when"));
}

TEST(ScenarioTest, RefusesWrongTypesAndRanges) {
  EXPECT_THAT(ErrorOf("[fabric]\nhosts = \"many\"\n"), HasSubstr("fabric.hosts must be a whole number"));
  EXPECT_THAT(ErrorOf("[fabric]\nhosts = 2.5\n"), HasSubstr("fabric.hosts must be a whole number"));
  EXPECT_THAT(ErrorOf("[fabric]\nhosts = -4\n"), HasSubstr("fabric.hosts"));
  EXPECT_THAT(ErrorOf("[fabric]\ntrimming = 1\n"), HasSubstr("fabric.trimming must be true or false"));
  EXPECT_THAT(ErrorOf("[fabric]\ntopology = 1\n"), HasSubstr("fabric.topology must be a text"));
  EXPECT_THAT(ErrorOf("fabric = 1\n"), HasSubstr("fabric must be a table"));
  EXPECT_THAT(ErrorOf("[run]\nseeds = [1.5]\n"), HasSubstr("run.seeds"));
  EXPECT_THAT(ErrorOf("[run]\nseeds = [4, 9, 4]\n"), HasSubstr("run.seeds has 4 twice"));
  EXPECT_THAT(ErrorOf("[paths]\nentropies = 1000\n"), HasSubstr("paths.entropies"));
  EXPECT_THAT(ErrorOf("[paths]\npolicy = \"warp\"\n"), HasSubstr("paths.policy"));
  EXPECT_THAT(ErrorOf("[fabric\nhosts=3\n"), HasSubstr("test.toml:1"));
}

TEST(ScenarioTest, RefusesImpossibleScenarios) {
  EXPECT_THAT(ErrorOf("[fabric]\nhosts = 100\n"), HasSubstr("fabric.pod_size"));
  EXPECT_THAT(ErrorOf("[fabric]\noversubscription = 3\n"), HasSubstr("fabric.oversubscription"));
  EXPECT_THAT(ErrorOf("[fabric]\nqueue_bytes = 10\n"), HasSubstr("fabric.queue_bytes"));
  EXPECT_THAT(ErrorOf("[fabric]\necn_max_bytes = 10\n"), HasSubstr("ecn_max_bytes"));
  EXPECT_THAT(ErrorOf("[fabric]\necn_max_probability = 0\n"),
              HasSubstr("fabric.ecn_max_probability must be above 0 and at most 1, not 0"));
  EXPECT_THAT(ErrorOf("[cc.dcqcn]\necn_max_probability = 1.5\n"),
              HasSubstr("cc.dcqcn.ecn_max_probability must be a number from 0 to 1, not 1.5"));
  EXPECT_THAT(ErrorOf("[workload]\nfan_in = 128\n"), HasSubstr("workload.fan_in"));
  EXPECT_THAT(ErrorOf("[[fault]]\nkind='loss'\nprobability=0.1\ntarget='tor:99/up:0'\n"), HasSubstr("no such switch"));
  EXPECT_THAT(ErrorOf("[[fault]]\nkind='loss'\ntarget='all'\n"), HasSubstr("fault.probability"));
  EXPECT_THAT(ErrorOf("[[fault]]\nkind='link_slow'\nfraction=0\ntarget='all'\n"), HasSubstr("fault.fraction"));
  EXPECT_THAT(ErrorOf("[[fault]]\nkind='loss'\nprobability=0.1\nat_us=5\nuntil_us=4\ntarget='all'\n"),
              HasSubstr("fault.until_us"));
  EXPECT_THAT(ErrorOf("[cc]\nalgorithms = [\"magic\"]\n"), HasSubstr("\"magic\", which is not known; there are"));
  EXPECT_THAT(ErrorOf("[cc]\nalgorithms = []\n"), HasSubstr("cc.algorithms"));
  EXPECT_THAT(ErrorOf("[workload]\nkind = \"connection_matrix\"\nfile = \"none.cm\"\n"), HasSubstr("none.cm"));
  EXPECT_THAT(ErrorOf("[workload]\nkind = \"connection_matrix\"\n"), HasSubstr("workload.file"));
}

TEST(ScenarioTest, SeveralNicsAndPlanes) {
  const Study study = Load("[fabric]\ntopology = \"rail_optimized\"\nhosts = 16\nnics_per_host = 8\nplanes = 2\n");
  const Scenario& scenario = study.sections[0].scenario;
  EXPECT_EQ(scenario.fabric.topology.kind, sim::TopologyKind::kRailOptimized);
  EXPECT_EQ(scenario.fabric.topology.tiers, 2u);
  EXPECT_EQ(scenario.fabric.topology.planes, 2u);
  EXPECT_EQ(scenario.resolved["fabric"]["nics_per_host"], 8);
  EXPECT_EQ(scenario.resolved["fabric"]["planes"], 2);
  EXPECT_THAT(ErrorOf("[fabric]\nnics_per_host = 9\n"), HasSubstr("fabric.nics_per_host"));
  EXPECT_THAT(ErrorOf("[fabric]\nnics_per_host = 4\nplanes = 3\n"),
              HasSubstr("fabric.planes = 3 must divide fabric.nics_per_host = 4"));
  EXPECT_THAT(ErrorOf("[fabric]\nplanes = 2\n"), HasSubstr("fabric.planes"));
}

TEST(ScenarioTest, BuffersAndLosslessMode) {
  const Study study = Load("[fabric]\nbuffer = \"shared\"\nshared_buffer_bytes = 4000000\nalpha = 0.5\n");
  EXPECT_TRUE(study.sections[0].scenario.fabric.buffers.shared);
  EXPECT_EQ(study.sections[0].scenario.resolved["fabric"]["alpha"], 0.5);
  EXPECT_TRUE(Load("[fabric]\npfc = true\n").sections[0].scenario.fabric.buffers.lossless);
  EXPECT_THAT(ErrorOf("[fabric]\nbuffer = \"shared\"\n"), HasSubstr("fabric.shared_buffer_bytes is missing"));
  EXPECT_THAT(ErrorOf("[fabric]\nalpha = 2\n"), HasSubstr("fabric.alpha goes with"));
  const std::string shared = "[fabric]\npfc = true\nbuffer = \"shared\"\nshared_buffer_bytes = ";
  EXPECT_TRUE(Load(shared + "4000000\n").sections[0].scenario.fabric.buffers.lossless);
  EXPECT_THAT(ErrorOf(shared + "300000\n"), HasSubstr("fabric.shared_buffer_bytes = 300000 must hold two packets"));
  EXPECT_THAT(ErrorOf(shared + "4000000\npfc_xoff_bytes = 20000\n"), HasSubstr("fabric.pfc_xoff_bytes"));
  EXPECT_THAT(ErrorOf("[fabric]\npfc = true\npfc_xoff_bytes = 20000\npfc_xon_bytes = 30000\n"),
              HasSubstr("fabric.pfc_xon_bytes"));
  EXPECT_THAT(ErrorOf("[fabric]\npfc = true\nqueue_bytes = 20000\necn_max_bytes = 0\n"),
              HasSubstr("fabric.pfc_xoff_bytes"));
}

TEST(ScenarioTest, FaultsOfSwitchesAndHosts) {
  const std::string small = "[fabric]\nhosts = 128\n[[fault]]\n";
  EXPECT_EQ(ErrorOf(small + "kind='switch_reboot'\ntarget='switch:core:1'\nat_us=5\nuntil_us=9\n"), "accepted");
  EXPECT_EQ(ErrorOf(small + "kind='host_slow'\ntarget='host:3'\n"), "accepted");
  EXPECT_THAT(ErrorOf(small + "kind='switch_reboot'\ntarget='switch:core:1'\n"),
              HasSubstr("fault.until_us is missing"));
  EXPECT_THAT(ErrorOf(small + "kind='switch_reboot'\ntarget='tor:2/up:1'\nuntil_us=9\n"), HasSubstr("switch:TIER:N"));
  EXPECT_THAT(ErrorOf(small + "kind='host_slow'\ntarget='all'\n"), HasSubstr("a host_slow takes host:N"));
  EXPECT_THAT(ErrorOf(small + "kind='host_slow'\ndelay_us=0\ntarget='hosts'\n"), HasSubstr("fault.delay_us"));
}

TEST(ScenarioTest, TopologyFromAFile) {
  const std::string path = testing::TempDir() + "/paceline_topology";
  const auto write = [](const std::string& name, const std::string& text) { std::ofstream(name) << text; };
  write(path + ".toml",
        "hosts = 2\nswitches = [\"x\"]\n[[link]]\nbetween = [\"h0\", \"x\"]\ncount = 2\n"
        "[[link]]\nbetween = [\"x\", \"h1\"]\ngbps = 400\ncount = 2\n");
  write(path + ".json", R"({"hosts": ["a", "b"], "switches": 1,
                            "link": [{"between": ["a", "s0"]}, {"between": ["b", "s0"], "delay_ns": 5}]})");
  const auto fabric = [&](const std::string& suffix) {
    return "[fabric]\ntopology = \"file\"\ntopology_file = \"" + path + suffix + "\"\n[workload]\nfan_in = 1\n";
  };
  const Study study = Load(fabric(".toml"));
  const sim::TopologyConfig& t = study.sections[0].scenario.fabric.topology;
  EXPECT_EQ(t.hosts, 2u);
  EXPECT_EQ(t.nics_per_host, 2u);
  ASSERT_EQ(t.graph->links.size(), 4u);
  EXPECT_EQ(t.graph->links[3].gbps, 400);
  EXPECT_EQ(t.graph->links[0].delay_ns, 1000);
  EXPECT_EQ(Load(fabric(".json")).sections[0].scenario.fabric.topology.graph->links[1].delay_ns, 5);
  EXPECT_THAT(ErrorOf(fabric(".none")), HasSubstr("cannot be read"));
  EXPECT_THAT(ErrorOf("[fabric]\ntopology = \"file\"\n"), HasSubstr("fabric.topology_file"));
  EXPECT_THAT(ErrorOf("[fabric]\ntopology_file = \"x\"\n"), HasSubstr("fabric.topology_file"));
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"hosts = 2\n", "switches is missing"},
           {"hosts = 2\nswitches = 1\nlinks = 3\n", "links is not known"},
           {"hosts = [\"a\", \"a\"]\nswitches = 1\n", "two \"a\""},
           {"hosts = 2\nswitches = 1\n[[link]]\nbetween = [\"h0\", \"s9\"]\n", "no host or switch \"s9\""},
           {"hosts = 2\nswitches = 1\n[[link]]\ngbps = 1\n", "between is missing"},
           {"hosts = 2\nswitches = 1\n[[link]]\nspeed = 1\n", "link 1: speed is not known"},
           {"hosts = \n", "_bad.toml:1"}}) {
    write(path + "_bad.toml", text);
    EXPECT_THAT(ErrorOf(fabric("_bad.toml")), HasSubstr(says)) << text;
  }
}

TEST(ScenarioTest, Dragonfly) {
  const std::string fabric = "[fabric]\ntopology = \"dragonfly\"\nhosts = 72\npod_size = 8\ntor_radix = 2\n";
  const Study study = Load(fabric + "routing = \"both\"\n");
  const nlohmann::json& resolved = study.sections[0].scenario.resolved["fabric"];
  EXPECT_EQ(resolved["global_links"], 2);  // what one link between any two groups takes
  EXPECT_EQ(resolved["routing"], "both");
  EXPECT_EQ(resolved["pod_size"], 8);
  EXPECT_FALSE(resolved.contains("oversubscription"));
  EXPECT_THAT(ErrorOf(fabric + "routing = \"short\"\n"), HasSubstr("minimal, valiant, both"));
  EXPECT_THAT(ErrorOf(fabric + "global_links = 3\n"), HasSubstr("fabric.global_links = 3"));
  EXPECT_THAT(ErrorOf(fabric + "adaptive_routing = true\n"), HasSubstr("fabric.adaptive_routing"));
  EXPECT_THAT(ErrorOf("[fabric]\nglobal_links = 2\n"), HasSubstr("goes with topology = \"dragonfly\" only"));
}

}  // namespace
}  // namespace paceline::tools
