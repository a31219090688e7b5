#include "api/cpp/src/engine_options.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/cpp/src/cluster_key.h"
#include "api/cpp/src/convert.h"
#include "transport/core/path/path_policy.h"
#include "transport/engine/progress.h"

namespace paceline::api {
namespace {

// Where senders ask for the acknowledgements that they wait for, the others may wait for an answer to ride on.
constexpr Duration kUnawaitedAckDelay = Duration::Micros(200);
constexpr Duration kUnawaitedAckDelayWhereCrowded = Duration::Micros(600);  // the answer needs a turn of its process

Status CheckRange(const char* name, uint64_t value, uint64_t max) {
  if (value <= max) return Status();
  return Status(StatusCode::kInvalidArgument, std::string(name) + " is " + std::to_string(value) + "; at most " +
                                                  std::to_string(max) + " is possible");
}

constexpr std::string_view kNoKey = "none";  // as a key file: no key is wanted

bool FillRandom(void* bytes, size_t size) { return getrandom(bytes, size, 0) == static_cast<ssize_t>(size); }

Status SetKeys(const ContextOptions& options, EndpointOptions& endpoint) {
  if (options.key_file.empty() || options.key_file == kNoKey) {
    if (!options.encrypt) return Status();
    return Status(StatusCode::kInvalidArgument,
                  "encryption (PACELINE_ENCRYPT) needs a cluster key (PACELINE_KEY_FILE)");
  }
  const Result<crypto::Secret> key = ReadClusterKey(options.key_file);
  if (!key.ok()) return key.status();
  endpoint.cluster_key = *key;
  endpoint.encrypt = options.encrypt;
  return Status();
}

template <typename Field, typename Value>
void SetIfGiven(Field& field, Value value) {
  if (value != 0) field = static_cast<Field>(value);
}

// A receiver's queue holds what all its senders send before they have credit: each may send its share of a BDP.
void HeedFanIn(const ContextOptions& options, ParameterMap& parameters) {
  constexpr char kName[] = "unscheduled";
  constexpr double kMost = 1.0 / 8;   // of a BDP, also for fewer than 8: other jobs send too
  constexpr uint32_t kSmallJob = 32;  // of larger ones hardly all send to one rank at a time
  const uint32_t others = JobRanksFromEnvironment() - 1;
  const uint32_t fan_in = options.fan_in != 0 ? options.fan_in : others < kSmallJob ? others : 0;
  const AlgorithmInfo* algorithm = FindCongestionControl(options.congestion_control);
  if (fan_in == 0 || algorithm == nullptr || parameters.contains(kName)) return;
  for (const ParameterSpec& spec : algorithm->parameters) {
    if (spec.name == kName && spec.unit == "BDP") parameters[kName] = std::min(kMost, 1.0 / fan_in);
  }
}

}  // namespace

Status CheckEngines(const ContextOptions& options) {
  if (options.engines <= 1) return Status();
  const std::string said = "engines is " + std::to_string(options.engines) + "; ";
  if (options.engines > kMostEngines) {
    return Status(StatusCode::kInvalidArgument, said + "at most " + std::to_string(kMostEngines) + " are possible");
  }
  if (options.progress != ProgressMode::kThread) {
    return Status(StatusCode::kInvalidArgument,
                  said + "more than 1 need a thread each: progress (PACELINE_PROGRESS) must be \"thread\"");
  }
  if (!LanesMayShareDevices(options.lane)) {
    return Status(StatusCode::kInvalidArgument,
                  said + "ports of lane \"" + options.lane + "\" belong to one engine: there it may be 1");
  }
  return Status();
}

Result<EngineOptions> ToEngineOptions(const ContextOptions& options, size_t engine) {
  for (const Status& status : {CheckRange("entropies", options.entropies, limits::kMaxEntropies),
                               CheckRange("max_connections", options.max_connections, limits::kMaxConnections),
                               CheckRange("max_operations", options.max_operations, limits::kMaxOperations)}) {
    if (!status.ok()) return status;
  }
  EngineOptions result;
  result.replies_first = true;
  EndpointOptions& endpoint = result.endpoint;
  endpoint.seed = options.seed;
  if ((options.seed == 0 && !FillRandom(&endpoint.seed, sizeof(endpoint.seed))) ||
      !FillRandom(endpoint.cookie_secret.data(), endpoint.cookie_secret.size()) ||
      !FillRandom(endpoint.key_seed.data(), endpoint.key_seed.size())) {
    return Status(StatusCode::kInternal, "getrandom gave no random bytes");
  }
  if (Status status = SetKeys(options, endpoint); !status.ok()) return status;
  endpoint.congestion_control = options.congestion_control;
  if (!options.path_policy.empty()) {
    const auto names = PathPolicyNames();
    if (std::find(names.begin(), names.end(), options.path_policy) == names.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "path policy \"" + options.path_policy + "\" is unknown; it may be " + absl::StrJoin(names, ", "));
    }
    endpoint.path_policy = options.path_policy;
  }
  SetIfGiven(endpoint.entropies, options.entropies);
  SetIfGiven(endpoint.eager_bytes, options.eager_bytes);
  SetIfGiven(endpoint.unexpected_bytes, options.unexpected_bytes);
  // Where nothing is stored, what meets no receive is put off until it does, and so not acknowledged.
  if (options.matched_sends) endpoint.unexpected_bytes = 0;
  endpoint.ordered_placement = options.ordered_placement;
  SetIfGiven(endpoint.max_connections, options.max_connections);
  endpoint.id_prefix_bits = static_cast<uint32_t>(std::bit_width(std::max<uint32_t>(options.engines, 1) - 1));
  endpoint.id_prefix = static_cast<uint32_t>(engine);
  SetIfGiven(endpoint.max_operations, options.max_operations);
  SetIfGiven(endpoint.max_completions, options.max_completions);
  endpoint.payload_checksum = options.payload_checksum;
  if (options.ack_delay_us != 0) endpoint.max_ack_delay = Duration::Micros(options.ack_delay_us);
  endpoint.last_ack_delay = endpoint.max_ack_delay / 4;
  if (options.prompt_acks) {
    endpoint.prompt_acks = true;
    endpoint.last_ack_delay = ToWaitOptions(options).crowded() ? kUnawaitedAckDelayWhereCrowded : kUnawaitedAckDelay;
  }
  if (options.base_rtt_us != 0 && !(options.base_rtt_us >= 1 && options.base_rtt_us <= 1e6)) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat("base_rtt_us is ", options.base_rtt_us,
                                                             "; it may be 1 to 1000000, or 0 to have it measured"));
  }
  endpoint.base_rtt = Duration::Nanos(static_cast<int64_t>(options.base_rtt_us * 1000));
  if (options.connect_timeout_ms != 0) endpoint.connect_timeout = Duration::Millis(options.connect_timeout_ms);
  if (options.peer_timeout_ms != 0) {
    endpoint.peer_timeout = Duration::Millis(options.peer_timeout_ms);
    endpoint.keepalive = std::min(endpoint.keepalive, endpoint.peer_timeout / 5);
  }
  Result<ParameterMap> parameters = ToParameters(options.congestion_control, options.congestion_control_parameters);
  if (!parameters.ok()) return parameters.status();
  result.congestion_control_parameters = *std::move(parameters);
  HeedFanIn(options, result.congestion_control_parameters);
  return result;
}

Result<LaneFactoryOptions> ToLaneOptions(const ContextOptions& options, size_t engine) {
  LaneFactoryOptions result;
  result.kind = options.lane;
  result.devices = options.bind;
  result.any_udp_port = engine > 0;  // those that are named are the first engine's
  result.mtu = options.mtu;
  result.entropies = options.entropies;
  result.dpdk_eal = options.dpdk_eal;
  result.verbs_reliable = options.verbs_reliable;
  result.traffic_class = options.traffic_class;
  // Outside of these what is reckoned with the rate (the time of a packet, the bytes in a time) leaves 64 bits.
  if (options.link_gbps != 0 && !(options.link_gbps >= 0.001 && options.link_gbps <= 1e6)) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat("link_gbps is ", options.link_gbps,
                                                             "; it may be 0.001 to 1000000, or 0 for the driver's"));
  }
  result.link_rate = Rate::Gbps(options.link_gbps);
  auto impairment = ParseImpairment(options.impair);
  if (!impairment.ok())
    return Status(StatusCode::kInvalidArgument, "impair: " + FromAbsl(impairment.status()).message());
  result.impairment = *impairment;
  return result;
}

WaitPolicyOptions ToWaitOptions(const ContextOptions& options) {
  WaitPolicyOptions result;
  result.local_ranks = options.local_ranks != 0 ? options.local_ranks : LocalRanksFromEnvironment();
  // The caller's thread wants a core too.
  if (options.progress == ProgressMode::kThread) result.local_ranks *= 1 + std::max<uint32_t>(options.engines, 1);
  result.allowed_cores = AllowedCores();
  result.spin = Duration::Micros(options.spin_us);
  return result;
}

}  // namespace paceline::api
