#include "tools/study/outcome_codec.h"

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/wire/checksum.h"

namespace paceline::tools {
namespace {

using nlohmann::json;

constexpr size_t kChecksumBytes = 4;

// Calls field(name, member) for all that travels. Every member is named, so that one more in a structure does not
// compile until it is here.
template <typename Outcome, typename Field>
void EachField(Outcome& outcome, const Field& field) {
  auto& [algorithm, seed, workload, flows, failed_operations, ideal_us, ideal_window_us, end_ns, ideal_end_us,
         compute_us, damaged, ideal_damaged_us, victim_alone_fct_us, fabric, endpoints, pfc_paused_us, packets,
         queue_max_bytes, queue_last_hop_max_bytes, queue_p99_bytes, nic_sent_bytes, interval_ns, first_interval_ns,
         delivered_bytes, recoveries, busiest, last_hop, wall_s] = outcome;
  field("algorithm", algorithm);
  field("seed", seed);
  field("flows", flows);
  field("failed_operations", failed_operations);
  field("ideal_us", ideal_us);
  field("ideal_window_us", ideal_window_us);
  field("end_ns", end_ns);
  field("ideal_end_us", ideal_end_us);
  field("compute_us", compute_us);
  field("damaged", damaged);
  field("ideal_damaged_us", ideal_damaged_us);
  field("victim_alone_fct_us", victim_alone_fct_us);
  field("pfc_paused_us", pfc_paused_us);
  field("packets", packets);
  field("queue_max_bytes", queue_max_bytes);
  field("queue_last_hop_max_bytes", queue_last_hop_max_bytes);
  field("queue_p99_bytes", queue_p99_bytes);
  field("nic_sent_bytes", nic_sent_bytes);
  field("interval_ns", interval_ns);
  field("first_interval_ns", first_interval_ns);
  field("delivered_bytes", delivered_bytes);
  field("recoveries", recoveries);
  field("wall_s", wall_s);
  {
    auto& [events, packet_hops, drops, trims, ecn_marks, control_drops, pfc_pauses, fault_losses, fault_duplicates,
           fault_reorders, fault_corruptions, delivered_packets, delivered_payload_bytes, host_polls] = fabric;
    field("fabric.events", events);
    field("fabric.packet_hops", packet_hops);
    field("fabric.drops", drops);
    field("fabric.trims", trims);
    field("fabric.ecn_marks", ecn_marks);
    field("fabric.control_drops", control_drops);
    field("fabric.pfc_pauses", pfc_pauses);
    field("fabric.fault_losses", fault_losses);
    field("fabric.fault_duplicates", fault_duplicates);
    field("fabric.fault_reorders", fault_reorders);
    field("fabric.fault_corruptions", fault_corruptions);
    field("fabric.delivered_packets", delivered_packets);
    field("fabric.delivered_payload_bytes", delivered_payload_bytes);
    field("fabric.host_polls", host_polls);
  }
  const auto port_fields = [&](const std::string& prefix, auto& port) {
    auto& [name, queue_peak_bytes, sent_bytes] = port;
    field(prefix + ".name", name);
    field(prefix + ".queue_peak_bytes", queue_peak_bytes);
    field(prefix + ".sent_bytes", sent_bytes);
  };
  port_fields("busiest", busiest);
  port_fields("last_hop", last_hop);
#define PACELINE_FIELD(name, unit, meaning) field("endpoints." #name, endpoints.name);
  PACELINE_ENDPOINT_COUNTERS(PACELINE_FIELD)
#undef PACELINE_FIELD
}

template <typename Value>
json Pack(const Value& value) {
  return value;
}

json Pack(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

// One after the other: an array for each would take several times the memory.
json Pack(const std::vector<FlowOutcome>& flows) {
  json out = json::array();
  for (const auto& [start_ns, finish_ns, received_ns, slowdown] : flows) {
    out.push_back(start_ns);
    out.push_back(finish_ns);
    out.push_back(received_ns);
    out.push_back(slowdown);
  }
  return out;
}

json Pack(const std::vector<Recovery>& recoveries) {
  json out = json::array();
  for (const auto& [at_us, recovery_us] : recoveries) {
    out.push_back(at_us);
    out.push_back(Pack(recovery_us));
  }
  return out;
}

// Each says whether the value is one of its type.
bool Unpack(const json& in, std::string& out) {
  if (in.is_string()) out = in.get<std::string>();
  return in.is_string();
}

bool Unpack(const json& in, bool& out) {
  if (in.is_boolean()) out = in.get<bool>();
  return in.is_boolean();
}

bool Unpack(const json& in, double& out) {
  if (in.is_number_float()) out = in.get<double>();
  return in.is_number_float();
}

template <std::unsigned_integral Number>
bool Unpack(const json& in, Number& out) {
  if (!in.is_number_unsigned() || in.get<uint64_t>() > std::numeric_limits<Number>::max()) return false;
  out = in.get<Number>();
  return true;
}

bool Unpack(const json& in, int64_t& out) {
  if (!in.is_number_integer()) return false;
  if (in.is_number_unsigned() && in.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) return false;
  out = in.get<int64_t>();
  return true;
}

bool Unpack(const json& in, std::optional<double>& out) {
  if (in.is_null()) out.reset();
  return in.is_null() || Unpack(in, out.emplace());
}

template <typename Number>
bool Unpack(const json& in, std::vector<Number>& out) {
  if (!in.is_array()) return false;
  out.resize(in.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!Unpack(in[i], out[i])) return false;
  }
  return true;
}

bool Unpack(const json& in, std::vector<FlowOutcome>& out) {
  if (!in.is_array() || in.size() % 4 != 0) return false;
  out.resize(in.size() / 4);
  for (size_t i = 0; i < out.size(); ++i) {
    auto& [start_ns, finish_ns, received_ns, slowdown] = out[i];
    if (!Unpack(in[4 * i], start_ns) || !Unpack(in[4 * i + 1], finish_ns) || !Unpack(in[4 * i + 2], received_ns) ||
        !Unpack(in[4 * i + 3], slowdown)) {
      return false;
    }
  }
  return true;
}

bool Unpack(const json& in, std::vector<Recovery>& out) {
  if (!in.is_array() || in.size() % 2 != 0) return false;
  out.resize(in.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    if (!Unpack(in[2 * i], out[i].at_us) || !Unpack(in[2 * i + 1], out[i].recovery_us)) return false;
  }
  return true;
}

uint32_t ChecksumOf(std::string_view bytes) {
  return wire::Crc32c(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::string ChecksumBytes(std::string_view bytes) {
  std::string out;
  for (uint32_t i = 0, sum = ChecksumOf(bytes); i < kChecksumBytes; ++i, sum >>= 8)
    out += static_cast<char>(sum & 0xff);
  return out;
}

}  // namespace

std::string EncodeOutcome(const RunOutcome& outcome) {
  json fields;
  EachField(outcome, [&](const std::string& name, const auto& value) { fields[name] = Pack(value); });
  std::string bytes;
  json::to_cbor(fields, bytes);
  return bytes + ChecksumBytes(bytes);
}

absl::StatusOr<RunOutcome> DecodeOutcome(std::string_view bytes, const Scenario& scenario,
                                         const AlgorithmChoice& algorithm, uint64_t seed) {
  const std::string run = absl::StrCat("the outcome of ", algorithm.name, " with seed ", seed);
  const size_t length = bytes.size() < kChecksumBytes ? 0 : bytes.size() - kChecksumBytes;
  if (bytes.substr(length) != ChecksumBytes(bytes.substr(0, length))) {
    return absl::DataLossError(absl::StrCat(run, " arrived damaged"));
  }
  const json fields = json::from_cbor(bytes.substr(0, length), true, false);
  RunOutcome outcome;
  size_t known = 0;
  bool good = fields.is_object();
  EachField(outcome, [&](const std::string& name, auto& value) {
    const auto found = good ? fields.find(name) : fields.end();
    good = good && found != fields.end() && Unpack(*found, value);
    ++known;
  });
  if (!good || fields.size() != known) {
    return absl::DataLossError(absl::StrCat(run, " has not the fields that it should: is that rank another Paceline?"));
  }
  absl::StatusOr<Workload> workload = WorkloadOf(scenario, seed);
  if (!workload.ok()) return workload.status();
  if (outcome.algorithm != algorithm.name || outcome.seed != seed || outcome.flows.size() != workload->flows.size()) {
    return absl::DataLossError(absl::StrCat("in place of ", run, " that of ", outcome.algorithm, " with seed ",
                                            outcome.seed, " and ", outcome.flows.size(), " flows arrived"));
  }
  outcome.workload = *std::move(workload);
  return outcome;
}

}  // namespace paceline::tools
