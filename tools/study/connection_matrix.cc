#include "tools/study/connection_matrix.h"

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/study/read_file.h"

namespace paceline::tools {
namespace {

constexpr uint32_t kMaxNodes = 65536;
constexpr uint64_t kMaxLines = 50'000'000;

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  absl::StatusOr<ConnectionMatrix> Parse() {
    std::istringstream lines{std::string(text_)};
    std::string line;
    while (std::getline(lines, line)) {
      ++line_number_;
      tokens_ = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
      if (tokens_.empty() || tokens_[0][0] == '#') continue;
      if (absl::Status status = ParseLine(); !status.ok()) return status;
    }
    return Finish();
  }

 private:
  absl::Status Error(const std::string& what) const { return ErrorAt(line_number_, what); }
  absl::Status ErrorAt(uint64_t line, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", line, ": ", what));
  }

  // The number that follows token `i`.
  absl::Status Number(size_t i, uint64_t min, uint64_t max, uint64_t* value) const {
    if (i + 1 >= tokens_.size()) return Error(absl::StrCat("\"", tokens_[i], "\" needs a number"));
    if (!absl::SimpleAtoi(tokens_[i + 1], value) || *value < min || *value > max) {
      return Error(
          absl::StrCat("\"", tokens_[i], " ", tokens_[i + 1], "\": must be a whole number from ", min, " to ", max));
    }
    return absl::OkStatus();
  }

  absl::Status ParseLine() {
    const std::string& first = tokens_[0];
    if (first == "Nodes" || first == "Connections" || first == "Triggers") return ParseHeader();
    if (first == "Failures" || first == "failure") {
      return Error("link failures of connection matrices are not supported: use [[fault]] in a scenario");
    }
    if (first == "trigger") return ParseTrigger();
    if (first.find("->") != std::string::npos) return ParseFlow();
    return Error(
        absl::StrCat("\"", first, "\" is not known: expected Nodes, Connections, Triggers, SRC->DST or trigger"));
  }

  absl::Status ParseHeader() {
    uint64_t value = 0;
    const bool nodes = tokens_[0] == "Nodes";
    if (absl::Status status = Number(0, nodes ? 2 : 0, nodes ? kMaxNodes : kMaxLines, &value); !status.ok()) {
      return status;
    }
    if (tokens_.size() > 2) return Error(absl::StrCat("\"", tokens_[2], "\" after \"", tokens_[0], "\""));
    std::optional<uint64_t>& field = nodes ? nodes_ : tokens_[0] == "Connections" ? connections_ : triggers_expected_;
    if (field) return Error(absl::StrCat("a second \"", tokens_[0], "\""));
    field = value;
    return absl::OkStatus();
  }

  absl::Status ParseFlow() {
    if (!nodes_) return Error("\"Nodes\" must come before the first connection");
    Flow flow;
    const std::string& pair = tokens_[0];
    const size_t arrow = pair.find("->");
    const std::string ends[2] = {pair.substr(0, arrow), pair.substr(arrow + 2)};
    uint32_t* hosts[2] = {&flow.source, &flow.destination};
    for (int i = 0; i < 2; ++i) {
      if (!absl::SimpleAtoi(ends[i], hosts[i]) || *hosts[i] >= *nodes_) {
        return Error(absl::StrCat("\"", pair, "\": \"", ends[i], "\" is not a node from 0 to ", *nodes_ - 1));
      }
    }
    if (flow.source == flow.destination) return Error(absl::StrCat("\"", pair, "\": a flow to itself"));
    std::optional<uint64_t> start, trigger, size;
    for (size_t i = 1; i < tokens_.size(); i += 2) {
      const std::string& key = tokens_[i];
      for (size_t before = 1; before < i; before += 2) {
        if (tokens_[before] == key) return Error(absl::StrCat("a second \"", key, "\" of the flow"));
      }
      uint64_t value = 0;
      absl::Status status;
      if (key == "start") {
        // Some generators write picoseconds with a decimal point.
        double picos = 0;
        if (i + 1 >= tokens_.size() || !absl::SimpleAtod(tokens_[i + 1], &picos) || !(picos >= 0) || picos > 1e18) {
          return Error("\"start\" needs a number of picoseconds");
        }
        start = static_cast<uint64_t>(picos);
        if (uint64_t exact = 0; absl::SimpleAtoi(tokens_[i + 1], &exact)) start = exact;
      } else if (key == "size") {
        status = Number(i, 1, uint64_t{1} << 40, &value);
        size = value;
      } else if (key == "id") {
        status = Number(i, 1, UINT32_MAX, &value);
        if (status.ok() && !ids_.insert(value).second) return Error(absl::StrCat("a second flow with id ", value));
      } else if (key == "trigger" || key == "send_done_trigger" || key == "recv_done_trigger") {
        status = Number(i, 1, UINT32_MAX, &value);
        const uint32_t number = status.ok() ? TriggerFor(value) : 0;
        if (key == "trigger") trigger = number;
        if (key == "send_done_trigger") flow.fires_when_sent = number;
        if (key == "recv_done_trigger") flow.fires_when_received = number;
      } else if (key == "prio" || key == "msg") {
        status = Number(i, 0, UINT32_MAX, &value);
      } else {
        return Error(absl::StrCat("\"", key,
                                  "\" is not known: a flow has id, start, size, trigger, send_done_trigger, "
                                  "recv_done_trigger, prio, msg"));
      }
      if (!status.ok()) return status;
    }
    if (!size) return Error("the flow has no size");
    if (start && trigger) return Error("the flow has both a start and a trigger");
    if (!start && !trigger) return Error("the flow has neither a start nor a trigger");
    flow.bytes = *size;
    flow.start = static_cast<sim::Picos>(start.value_or(0));
    const auto index = static_cast<uint32_t>(matrix_.workload.flows.size());
    if (trigger) {
      flow.trigger = static_cast<uint32_t>(*trigger);
      matrix_.workload.triggers[flow.trigger].flows.push_back(index);
    }
    matrix_.workload.flows.push_back(flow);
    return absl::OkStatus();
  }

  absl::Status ParseTrigger() {
    std::optional<uint64_t> id, count;
    std::string type;
    for (size_t i = 1; i < tokens_.size(); ++i) {
      const std::string& key = tokens_[i];
      if (key == "oneshot" || key == "multishot" || key == "barrier") {
        if (!type.empty()) return Error("the trigger has two types");
        type = key;
        continue;
      }
      if (key != "id" && key != "count") {
        return Error(
            absl::StrCat("\"", key, "\" is not known: a trigger has id, count and oneshot, multishot or barrier"));
      }
      uint64_t value = 0;
      if (absl::Status status = Number(i, 1, UINT32_MAX, &value); !status.ok()) return status;
      (key == "id" ? id : count) = value;
      ++i;
    }
    if (!id) return Error("the trigger has no id");
    if (type.empty()) return Error("the trigger has no type: oneshot, multishot or barrier");
    if (type == "barrier" && !count) return Error("the barrier has no count");
    const uint32_t number = TriggerFor(*id);
    if (!defined_.insert(number).second) return Error(absl::StrCat("a second trigger with id ", *id));
    Trigger& trigger = matrix_.workload.triggers[number];
    trigger.one_at_a_time = type == "multishot";
    trigger.firings = type == "barrier" ? static_cast<uint32_t>(*count) : 1;
    return absl::OkStatus();
  }

  uint32_t TriggerFor(uint64_t id) {
    const auto [found, added] = trigger_numbers_.emplace(id, static_cast<uint32_t>(trigger_numbers_.size()));
    if (added) {
      matrix_.workload.triggers.emplace_back();
      first_named_.push_back(line_number_);
    }
    return found->second;
  }

  absl::StatusOr<ConnectionMatrix> Finish() {
    if (!nodes_) return Error("the file has no \"Nodes\"");
    if (!connections_) return Error("the file has no \"Connections\"");
    if (*connections_ != matrix_.workload.flows.size()) {
      return Error(absl::StrCat("the file ends with ", matrix_.workload.flows.size(), " connections, its head says ",
                                *connections_));
    }
    if (matrix_.workload.flows.empty()) return Error("the file has no connection");
    if (triggers_expected_ && *triggers_expected_ != defined_.size()) {
      return Error(
          absl::StrCat("the file ends with ", defined_.size(), " triggers, its head says ", *triggers_expected_));
    }
    for (const auto& [id, number] : trigger_numbers_) {
      if (defined_.count(number) == 0) {
        return ErrorAt(first_named_[number], absl::StrCat("trigger ", id, " is not defined in this file"));
      }
    }
    if (absl::Status status = CheckFirings(); !status.ok()) return status;
    if (absl::Status status = CheckStarts(); !status.ok()) return status;
    matrix_.nodes = static_cast<uint32_t>(*nodes_);
    return std::move(matrix_);
  }

  // Every trigger must be fired often enough to start all its flows.
  absl::Status CheckFirings() const {
    std::vector<uint64_t> fired(trigger_numbers_.size());
    for (const Flow& flow : matrix_.workload.flows) {
      if (flow.fires_when_sent != kNoTrigger) ++fired[flow.fires_when_sent];
      if (flow.fires_when_received != kNoTrigger) ++fired[flow.fires_when_received];
    }
    for (const auto& [id, number] : trigger_numbers_) {
      const Trigger& trigger = matrix_.workload.triggers[number];
      if (trigger.flows.empty()) continue;
      const uint64_t needed = trigger.one_at_a_time ? trigger.flows.size() : trigger.firings;
      if (fired[number] < needed) {
        return ErrorAt(first_named_[number], absl::StrCat("trigger ", id, " is fired by ", fired[number],
                                                          " flows, its own flows need ", needed));
      }
    }
    return absl::OkStatus();
  }

  // And not by flows that wait for each other in a circle, which would never start.
  absl::Status CheckStarts() const {
    const Workload& workload = matrix_.workload;
    std::vector<bool> starts(workload.flows.size());
    std::vector<uint32_t> started;  // in the order in which they are looked at
    const auto start = [&](uint32_t flow) {
      starts[flow] = true;
      started.push_back(flow);
    };
    for (uint32_t flow = 0; flow < workload.flows.size(); ++flow) {
      if (workload.flows[flow].trigger == kNoTrigger) start(flow);
    }
    std::vector<uint64_t> fired(workload.triggers.size());
    const auto fire = [&](uint32_t number) {
      if (number == kNoTrigger) return;
      const Trigger& trigger = workload.triggers[number];
      const uint64_t firings = ++fired[number];
      if (trigger.one_at_a_time && firings <= trigger.flows.size()) start(trigger.flows[firings - 1]);
      if (trigger.one_at_a_time || firings != trigger.firings) return;
      for (uint32_t flow : trigger.flows) start(flow);
    };
    for (size_t next = 0; next < started.size(); ++next) {
      const Flow& flow = workload.flows[started[next]];
      fire(flow.fires_when_sent);
      fire(flow.fires_when_received);
    }
    for (const auto& [id, number] : trigger_numbers_) {
      for (uint32_t flow : workload.triggers[number].flows) {
        if (starts[flow]) continue;
        return ErrorAt(first_named_[number],
                       absl::StrCat("trigger ", id, " never goes off: it waits for flows that wait for each other"));
      }
    }
    return absl::OkStatus();
  }

  const std::string_view text_;
  const std::string& name_;
  uint64_t line_number_ = 0;
  std::vector<std::string> tokens_;
  std::optional<uint64_t> nodes_, connections_, triggers_expected_;
  std::set<uint64_t> ids_;
  std::map<uint64_t, uint32_t> trigger_numbers_;
  std::vector<uint64_t> first_named_;  // line, by trigger
  std::set<uint32_t> defined_;
  ConnectionMatrix matrix_;
};

}  // namespace

absl::StatusOr<ConnectionMatrix> ParseConnectionMatrix(std::string_view text, const std::string& name) {
  return Parser(text, name).Parse();
}

absl::StatusOr<ConnectionMatrix> LoadConnectionMatrix(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return ParseConnectionMatrix(*text, path);
  return absl::NotFoundError(absl::StrCat("workload.file: cannot read \"", path, "\": ", text.status().message()));
}

}  // namespace paceline::tools
