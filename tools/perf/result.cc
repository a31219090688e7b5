#include "tools/perf/result.h"

namespace paceline::tools {

nlohmann::json RankResult::ToJson() const {
  return {{"messages", messages},
          {"messages_not_started", messages_not_started},
          {"bytes", bytes},
          {"seconds", seconds},
          {"cpu_seconds", cpu_seconds},
          {"iterations", iterations},
          {"latency", latency.ToJson()},
          {"operation", operation.ToJson()},
          {"latency_kind", latency_kind},
          {"verified", verified},
          {"checked_bytes", checked_bytes},
          {"retransmits", retransmits},
          {"retransmitted_bytes", retransmitted_bytes},
          {"base_rtt_us", base_rtt_us},
          {"drops", drops},
          {"impaired_bytes", impaired_bytes},
          {"data_bytes", data_bytes},
          {"counters", counters}};
}

absl::StatusOr<RankResult> RankResult::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("latency") || !json.contains("operation")) {
    return absl::FailedPreconditionError("a rank's result is not readable");
  }
  RankResult result;
  try {
    result.messages = json.value("messages", result.messages);
    result.messages_not_started = json.value("messages_not_started", result.messages_not_started);
    result.bytes = json.value("bytes", result.bytes);
    result.seconds = json.value("seconds", result.seconds);
    result.cpu_seconds = json.value("cpu_seconds", result.cpu_seconds);
    result.iterations = json.value("iterations", result.iterations);
    result.latency = Histogram::FromJson(json["latency"]);
    result.operation = Histogram::FromJson(json["operation"]);
    result.latency_kind = json.value("latency_kind", result.latency_kind);
    result.verified = json.value("verified", false);
    result.checked_bytes = json.value("checked_bytes", result.checked_bytes);
    result.retransmits = json.value("retransmits", result.retransmits);
    result.retransmitted_bytes = json.value("retransmitted_bytes", result.retransmitted_bytes);
    result.base_rtt_us = json.value("base_rtt_us", result.base_rtt_us);
    result.drops = json.value("drops", result.drops);
    result.impaired_bytes = json.value("impaired_bytes", result.impaired_bytes);
    result.data_bytes = json.value("data_bytes", result.data_bytes);
    result.counters = json.value("counters", result.counters);
  } catch (const nlohmann::json::exception& error) {
    return absl::FailedPreconditionError(absl::StrCat("a rank's result is not readable: ", error.what()));
  }
  return result;
}

}  // namespace paceline::tools
