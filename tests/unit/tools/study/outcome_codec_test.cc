#include "tools/study/outcome_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <sstream>

#include "tools/study/results.h"
#include "transport/wire/checksum.h"

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

Study Load(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  auto study =
      ParseStudy("[fabric]\ntopology = 'leaf_spine'\nhosts = 8\ntor_radix = 4\n" + rest, "test.toml", "", overrides);
  EXPECT_TRUE(study.ok()) << study.status();
  return *std::move(study);
}

RunOutcome RunOf(const Study& study, uint64_t seed = 1) {
  const Scenario& scenario = study.sections[0].scenario;
  auto outcome = ExecuteRun(scenario, scenario.algorithms[0], seed, nullptr);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return *std::move(outcome);
}

absl::StatusOr<RunOutcome> Decode(std::string_view bytes, const Study& study, uint64_t seed = 1) {
  const Scenario& scenario = study.sections[0].scenario;
  return DecodeOutcome(bytes, scenario, scenario.algorithms[0], seed);
}

std::string Csv(const Study& study, const RunOutcome& run) {
  std::ostringstream out;
  WriteFlowsCsv(study, {{run}}, out);
  return out.str();
}

constexpr char kIncast[] = "[workload]\nkind = 'incast'\nfan_in = 3\nbytes = 20000\n";

TEST(OutcomeCodecTest, ComesBackAsItWas) {
  const Study studies[] = {
      Load(kIncast),
      Load("[workload]\nkind = 'victim'\nfan_in = 3\nbytes = 50000\nvictim_bytes = 20000\n"),
      Load("[workload]\nkind = 'pipeline'\nranks = 4\nbytes = 10000\nmicro_batches = 2\n"),
      Load("[workload]\nkind = 'permutation'\nbytes = 300000\nbackground_load = 0.2\n", {"fabric.pfc=true"}),
      Load("[workload]\nkind = 'permutation'\nbytes = 2000000\n[[fault]]\nkind = 'link_slow'\nfraction = 0.5\n"
           "target = 'tor:0/up:0'\nat_us = 20\n[[fault]]\nkind = 'loss'\nprobability = 0.01\ntarget = 'all'\n"),
      Load(kIncast, {"run.deadline_us=1"}),  // nothing finishes
  };
  for (const Study& study : studies) {
    const RunOutcome before = RunOf(study);
    const std::string bytes = EncodeOutcome(before);
    const auto after = Decode(bytes, study);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(RunToJson(*after).dump(), RunToJson(before).dump());
    EXPECT_EQ(Csv(study, *after), Csv(study, before));
    EXPECT_EQ(EncodeOutcome(*after), bytes);
    EXPECT_EQ(after->busiest.name, before.busiest.name);
    EXPECT_EQ(after->busiest.queue_peak_bytes, before.busiest.queue_peak_bytes);
    EXPECT_EQ(after->last_hop.sent_bytes, before.last_hop.sent_bytes);
    EXPECT_EQ(after->delivered_bytes, before.delivered_bytes);
    EXPECT_EQ(after->recoveries.size(), before.recoveries.size());
    EXPECT_EQ(after->wall_s, before.wall_s);
  }
}

TEST(OutcomeCodecTest, ValuesAtTheEdge) {
  const Study study = Load(kIncast);
  RunOutcome before = RunOf(study);
  before.failed_operations = std::numeric_limits<uint64_t>::max();
  before.end_ns = std::numeric_limits<int64_t>::min();
  before.interval_ns = std::numeric_limits<int64_t>::max();
  before.ideal_us = std::numeric_limits<double>::infinity();
  before.compute_us = 0.1;
  before.ideal_end_us = std::numeric_limits<double>::denorm_min();
  before.recoveries = {{1.5, std::nullopt}, {2, 0.3}};
  before.busiest.sent_bytes = {0, std::numeric_limits<uint64_t>::max()};
  const auto after = Decode(EncodeOutcome(before), study);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->failed_operations, before.failed_operations);
  EXPECT_EQ(after->end_ns, before.end_ns);
  EXPECT_EQ(after->interval_ns, before.interval_ns);
  EXPECT_EQ(after->ideal_us, before.ideal_us);
  EXPECT_EQ(after->compute_us, before.compute_us);
  EXPECT_EQ(after->ideal_end_us, before.ideal_end_us);
  ASSERT_EQ(after->recoveries.size(), 2u);
  EXPECT_EQ(after->recoveries[0].recovery_us, std::nullopt);
  EXPECT_EQ(after->recoveries[1].recovery_us, 0.3);
  EXPECT_EQ(after->busiest.sent_bytes, before.busiest.sent_bytes);
}

TEST(OutcomeCodecTest, TruncatedIsRefused) {
  const Study study = Load(kIncast);
  const std::string bytes = EncodeOutcome(RunOf(study));
  ASSERT_TRUE(Decode(bytes, study).ok());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto outcome = Decode(bytes.substr(0, length), study);
    ASSERT_FALSE(outcome.ok()) << length;
    ASSERT_THAT(std::string(outcome.status().message()), HasSubstr("tita with seed 1 arrived damaged"));
  }
  EXPECT_FALSE(Decode(bytes + '\0', study).ok());
}

TEST(OutcomeCodecTest, DamagedIsRefused) {
  const Study study = Load(kIncast);
  std::string bytes = EncodeOutcome(RunOf(study));
  for (char& byte : bytes) {
    byte = static_cast<char>(byte ^ 0x10);
    ASSERT_FALSE(Decode(bytes, study).ok());
    byte = static_cast<char>(byte ^ 0x10);
  }
  EXPECT_TRUE(Decode(bytes, study).ok());
}

// As another Paceline would write it: the checksum is right.
std::string Sealed(const nlohmann::json& content) {
  std::string bytes;
  nlohmann::json::to_cbor(content, bytes);
  const uint32_t sum = wire::Crc32c(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(sum >> shift & 0xff);
  return bytes;
}

TEST(OutcomeCodecTest, OtherFieldsAreRefused) {
  const Study study = Load(kIncast);
  const std::string bytes = EncodeOutcome(RunOf(study));
  const nlohmann::json good = nlohmann::json::from_cbor(bytes.substr(0, bytes.size() - 4));
  ASSERT_TRUE(Decode(Sealed(good), study).ok());
  const auto refused = [&](const nlohmann::json& content) {
    const auto outcome = Decode(Sealed(content), study);
    return !outcome.ok() && outcome.status().message().find("fields") != absl::string_view::npos;
  };
  EXPECT_TRUE(refused(nullptr));
  EXPECT_TRUE(refused({1, 2, 3}));
  EXPECT_TRUE(refused(nlohmann::json::object()));
  nlohmann::json more = good;
  more["colour"] = "green";
  EXPECT_TRUE(refused(more));
  for (const auto& [name, value] : good.items()) {
    nlohmann::json other = good;
    other.erase(name);
    EXPECT_TRUE(refused(other)) << name;
    other[name] = nlohmann::json::object();
    EXPECT_TRUE(refused(other)) << name;
  }
  const std::pair<const char*, nlohmann::json> out_of_range[] = {
      {"packets", -1},
      {"end_ns", uint64_t{1} << 63},
      {"busiest.queue_peak_bytes", nlohmann::json::array({uint64_t{1} << 32})},
      {"flows", {0, 1, 2}},
      {"flows", {0, 1, 2, "slow"}},
      {"recoveries", {1.0, 2.0, 3.0}},
      {"seed", 1.0},
      {"delivered_bytes", {1, "two"}}};
  for (const auto& [name, value] : out_of_range) {
    nlohmann::json other = good;
    other[name] = value;
    EXPECT_TRUE(refused(other)) << name << " " << value;
  }
}

TEST(OutcomeCodecTest, AnotherRunIsRefused) {
  const Study study = Load(kIncast), larger = Load(kIncast, {"workload.fan_in=4"});
  const std::string bytes = EncodeOutcome(RunOf(study));
  EXPECT_THAT(std::string(Decode(bytes, study, 2).status().message()), HasSubstr("in place of"));
  EXPECT_THAT(std::string(Decode(bytes, larger).status().message()), HasSubstr("3 flows arrived"));
}

}  // namespace
}  // namespace paceline::tools
