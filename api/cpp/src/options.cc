#include "paceline/options.h"

#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "api/cpp/src/variables.h"
#include "transport/lane/device_list.h"

namespace paceline::api {
namespace {

// Reads PACELINE_* variables one by one and remembers the first thing that is wrong.
class Reader {
 public:
  explicit Reader(const std::function<const char*(const char*)>& look_up) : look_up_(look_up) {}

  void Text(const char* name, std::string& out) {
    if (const char* text = look_up_(name)) out = text;
  }

  // Only a word ("none") says that a key is not wanted, which the program may have named: an empty text does not.
  void KeyFile(const char* name, std::string& out) {
    const char* text = look_up_(name);
    if (text != nullptr && *text != '\0') out = text;
  }

  void Devices(const char* name, std::vector<std::string>& out) {
    if (const char* text = look_up_(name)) out = SplitDevices(text);
  }

  void Pairs(const char* name, std::map<std::string, std::string>& out) {
    const char* text = look_up_(name);
    if (text == nullptr) return;
    if (!AddPairs(text, out)) Fail(name, text, "write key=value,key=value");
  }

  template <typename Integer>
  void Number(const char* name, Integer& out) {
    const char* text = look_up_(name);
    if (text == nullptr) return;
    uint64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value > std::numeric_limits<Integer>::max()) {
      return Fail(name, text, "write a whole number from 0 to " + std::to_string(std::numeric_limits<Integer>::max()));
    }
    out = static_cast<Integer>(value);
  }

  void Real(const char* name, double& out) {
    const char* text = look_up_(name);
    if (text == nullptr) return;
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= 1e6)) {
      return Fail(name, text, "write a number from 0 to 1000000");
    }
    out = value;
  }

  void Switch(const char* name, bool& out) {
    const char* text = look_up_(name);
    if (text == nullptr) return;
    if (!absl::SimpleAtob(text, &out)) Fail(name, text, "write 1 or 0");
  }

  void Progress(const char* name, ProgressMode& out) {
    const char* text = look_up_(name);
    if (text == nullptr) return;
    const std::string word = text;
    if (word != "manual" && word != "thread") return Fail(name, text, "write manual or thread");
    // Not the other way round: a program that asks for a thread relies on calls that any of its threads may make.
    if (word == "thread") out = ProgressMode::kThread;
  }

  const std::optional<Status>& error() const { return error_; }

 private:
  void Fail(const std::string& name, const std::string& value, const std::string& advice) {
    if (!error_) error_ = Status(StatusCode::kInvalidArgument, name + "=" + value + ": " + advice);
  }
  const std::function<const char*(const char*)>& look_up_;
  std::optional<Status> error_;
};

}  // namespace

bool AddPairs(const std::string& text, std::map<std::string, std::string>& pairs) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipWhitespace());
  for (const std::string& part : parts) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    pairs[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return true;
}

Result<ContextOptions> ContextOptions::FromEnvironment() { return FromEnvironment(ContextOptions()); }

Result<ContextOptions> ContextOptions::FromEnvironment(ContextOptions defaults) {
  return OptionsFromVariables(std::move(defaults), [](const char* name) { return std::getenv(name); });
}

Result<ContextOptions> OptionsFromVariables(ContextOptions defaults,
                                            const std::function<const char*(const char*)>& look_up) {
  ContextOptions options = std::move(defaults);
  Reader reader(look_up);
  reader.Text("PACELINE_LANE", options.lane);
  reader.Devices("PACELINE_BIND", options.bind);
  reader.Number("PACELINE_MTU", options.mtu);
  reader.Real("PACELINE_LINK_GBPS", options.link_gbps);
  reader.Real("PACELINE_BASE_RTT_US", options.base_rtt_us);
  reader.Number("PACELINE_TRAFFIC_CLASS", options.traffic_class);
  reader.Text("PACELINE_DPDK_EAL", options.dpdk_eal);
  reader.Switch("PACELINE_VERBS_RELIABLE", options.verbs_reliable);
  reader.Text("PACELINE_IMPAIR", options.impair);
  reader.KeyFile("PACELINE_KEY_FILE", options.key_file);
  reader.Switch("PACELINE_ENCRYPT", options.encrypt);
  reader.Text("PACELINE_CC", options.congestion_control);
  reader.Pairs("PACELINE_CC_PARAMETERS", options.congestion_control_parameters);
  reader.Number("PACELINE_FAN_IN", options.fan_in);
  reader.Text("PACELINE_PATH_POLICY", options.path_policy);
  reader.Number("PACELINE_ENTROPIES", options.entropies);
  reader.Progress("PACELINE_PROGRESS", options.progress);
  reader.Number("PACELINE_ENGINES", options.engines);
  reader.Number("PACELINE_SPIN_US", options.spin_us);
  reader.Number("PACELINE_LOCAL_RANKS", options.local_ranks);
  reader.Number("PACELINE_MAX_CONNECTIONS", options.max_connections);
  reader.Number("PACELINE_MAX_OPERATIONS", options.max_operations);
  reader.Number("PACELINE_MAX_COMPLETIONS", options.max_completions);
  reader.Number("PACELINE_UNEXPECTED_BYTES", options.unexpected_bytes);
  reader.Number("PACELINE_EAGER_BYTES", options.eager_bytes);
  reader.Switch("PACELINE_MATCHED_SENDS", options.matched_sends);
  reader.Switch("PACELINE_ORDERED_PLACEMENT", options.ordered_placement);
  reader.Number("PACELINE_CONNECT_TIMEOUT_MS", options.connect_timeout_ms);
  reader.Number("PACELINE_LINGER_MS", options.linger_ms);
  reader.Number("PACELINE_PEER_TIMEOUT_MS", options.peer_timeout_ms);
  reader.Number("PACELINE_ACK_DELAY_US", options.ack_delay_us);
  reader.Switch("PACELINE_PROMPT_ACKS", options.prompt_acks);
  reader.Switch("PACELINE_PAYLOAD_CHECKSUM", options.payload_checksum);
  reader.Switch("PACELINE_COUNTERS", options.shared_counters);
  reader.Number("PACELINE_SEED", options.seed);
  if (reader.error()) return *reader.error();
  return options;
}

}  // namespace paceline::api
