// The words for a study's outcome.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tools/study/report/describe.h"
#include "tools/study/report/format.h"
#include "tools/study/report/run_stats.h"

namespace paceline::tools {
namespace {

struct Standing {
  std::string name;
  double completion_us = 0;     // mean over seeds
  std::optional<double> ratio;  // mean over seeds
  double dropped = 0;           // packets, mean over seeds
  double trimmed = 0;           // packets, mean over seeds
  double packets = 0;           // data packets needed, mean over seeds
  bool finished = true;         // everything of every seed
  bool timed = false;           // has a completion time
};

double Lost(const Standing& standing) { return standing.dropped + standing.trimmed; }

Standing StandingOf(const nlohmann::json& results, const std::string& name) {
  Standing standing;
  standing.name = name;
  const Figure completion = FigureOf(results, name, "completion_us");
  standing.timed = completion.runs > 0;
  standing.completion_us = completion.mean;
  const Figure ratio = FigureOf(results, name, "ratio");
  if (ratio.runs > 0) standing.ratio = ratio.mean;
  for (const auto& run : Runs(results)) {
    if (AlgorithmOf(run) != name) continue;
    standing.finished = standing.finished && Finished(run);
  }
  standing.dropped = FigureOf(results, name, "drops").mean;
  standing.trimmed = FigureOf(results, name, "trims").mean;
  standing.packets = FigureOf(results, name, "packets").mean;
  return standing;
}

// What the reader sees of a completion; two algorithms with the same words are level.
std::string Words(const Standing& standing) {
  if (standing.ratio) return FormatRatio(*standing.ratio) + " times the ideal";
  return FormatMicros(standing.completion_us);
}

std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

// `to`: what packets are lost to, where that is not everything that took any.
std::string LossWords(const Standing& standing, const std::string& to) {
  const double lost = Lost(standing);
  if (lost == 0) return "without losing a packet" + to;
  std::string text = "with " + FormatPlural(lost, "packet", "packets");
  if (standing.trimmed == 0) {
    text += " dropped";
  } else {
    text += standing.dropped == 0 ? " trimmed" : " dropped or trimmed";
  }
  if (standing.packets > 0) text += " (" + FormatShort(100 * lost / standing.packets) + " % of those needed)";
  return text;
}

}  // namespace

std::string DescribeOutcome(const nlohmann::json& results) {
  std::vector<Standing> order;
  std::vector<std::string> unfinished;
  for (const auto& name : AlgorithmsOf(results)) {
    Standing standing = StandingOf(results, name);
    if (!standing.finished) {
      unfinished.push_back(name);
    } else if (standing.timed) {
      order.push_back(std::move(standing));
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const Standing& a, const Standing& b) {
    return a.ratio && b.ratio ? *a.ratio < *b.ratio : a.completion_us < b.completion_us;
  });

  const auto& runs = Runs(results);
  const bool faults = std::any_of(runs.begin(), runs.end(),
                                  [](const auto& run) { return NumberAt(run, "fault_losses").value_or(0) > 0; });
  const std::string to = faults ? " to full queues" : "";
  std::string text;
  if (order.size() == 1) {
    text = order[0].name + " finished after " + FormatMicros(order[0].completion_us);
    if (order[0].ratio) text += ", " + Words(order[0]);
    text += ", " + LossWords(order[0], to) + ".";
  } else if (order.size() > 1) {
    std::vector<std::string> first;
    for (const auto& standing : order) {
      if (Words(standing) == Words(order[0])) first.push_back(standing.name);
    }
    if (first.size() == 1) {
      text = first[0] + " finished first, at " + Words(order[0]) + " and " + LossWords(order[0], to) + ".";
    } else {
      text = List(first) + " finished first together, at " + Words(order[0]) + ".";
    }
    if (first.size() < order.size()) {
      text += " " + order.back().name + " came last, at " + Words(order.back()) + " and " +
              LossWords(order.back(), to) + ".";
    }
    std::vector<std::string> clean;
    for (const auto& standing : order) {
      if (Lost(standing) == 0) clean.push_back(standing.name);
    }
    const bool said = first.size() == 1 && clean.size() == 1 && clean[0] == first[0];
    if (clean.size() == order.size()) {
      text += " No algorithm lost a packet" + to + ".";
    } else if (clean.empty()) {
      text += " Every algorithm lost packets" + to + ".";
    } else if (said) {
      text += " All others lost packets" + to + ".";
    } else {
      text += " Only " + List(clean) + " lost none" + to + ".";
    }
  }
  if (!unfinished.empty()) {
    if (!text.empty()) text += " ";
    text += List(unfinished) + " did not finish before the deadline.";
  }
  return text;
}

}  // namespace paceline::tools
