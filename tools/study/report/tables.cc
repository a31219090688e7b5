#include "tools/study/report/tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/study/report/columns.h"
#include "tools/study/report/describe.h"
#include "tools/study/report/format.h"
#include "tools/study/report/html.h"
#include "tools/study/report/run_stats.h"

namespace paceline::tools {
namespace {

std::string AlgorithmHead(const std::string& name, const StyleOf& styles) {
  const auto style = styles.find(name);
  const std::string colour = std::to_string(style == styles.end() ? 0 : style->second.colour);
  return "<i class=\"swatch\" style=\"--c:var(--series-" + colour + ")\"></i>" + EscapeHtml(name);
}

// A heading cell with the column's explanation as its tooltip.
std::string ColumnHead(const Column& column, bool starts_group) {
  std::string html = "<th scope=\"col\" class=\"number";
  if (starts_group) html += " starts";
  html += "\" title=\"" + EscapeHtml(column.help) + "\"><button type=\"button\" class=\"sort\">" +
          EscapeHtml(column.name) + "</button>";
  if (!column.unit.empty()) html += "<span class=\"unit\">" + EscapeHtml(column.unit) + "</span>";
  return html + "</th>";
}

bool StartsGroup(const std::vector<Column>& columns, size_t i) {
  return i == 0 || columns[i].group != columns[i - 1].group;
}

// The two heading rows: groups, then columns. `before` are the plain columns at the left.
std::string Head(const std::vector<Column>& columns, const std::vector<std::string>& before) {
  std::string groups;
  std::string names;
  for (const auto& name : before) {
    groups += "<td></td>";
    names += "<th scope=\"col\"><button type=\"button\" class=\"sort\">" + EscapeHtml(name) + "</button></th>";
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    names += ColumnHead(columns[i], StartsGroup(columns, i));
    if (!StartsGroup(columns, i)) continue;
    size_t end = i + 1;
    while (end < columns.size() && !StartsGroup(columns, end)) ++end;
    groups += "<th scope=\"colgroup\" class=\"starts\" colspan=\"" + std::to_string(end - i) + "\">" +
              EscapeHtml(columns[i].group) + "</th>";
  }
  return "<thead><tr class=\"groups\">" + groups + "</tr><tr>" + names + "</tr></thead>";
}

bool AllFinished(const nlohmann::json& results, const std::string& algorithm) {
  const auto& runs = Runs(results);
  return std::all_of(runs.begin(), runs.end(),
                     [&](const nlohmann::json& run) { return AlgorithmOf(run) != algorithm || Finished(run); });
}

std::string UnfinishedNote(const nlohmann::json& results, const std::string& algorithm) {
  double flows = 0;
  double finished = 0;
  for (const auto& run : Runs(results)) {
    if (AlgorithmOf(run) != algorithm) continue;
    flows += NumberAt(run, "flows").value_or(0);
    finished += NumberAt(run, "finished").value_or(0);
  }
  if (finished >= flows) return "<small class=\"bad\">computing unfinished</small>";
  return "<small class=\"bad\">" + FormatCount(flows - finished) + " of " + FormatPlural(flows, "flow", "flows") +
         " unfinished</small>";
}

// What the best algorithm shows in this column; empty when none is to be marked.
std::string BestText(const nlohmann::json& results, const Column& column, const std::vector<std::string>& algorithms) {
  if (column.better == Better::kNeither) return "";
  std::vector<double> means;
  std::set<std::string> texts;
  for (const auto& algorithm : algorithms) {
    const Figure figure = FigureOf(results, algorithm, column.path);
    if (figure.runs == 0) continue;
    texts.insert(column.format(figure.mean / column.divisor));
    if (AllFinished(results, algorithm)) means.push_back(figure.mean);
  }
  if (means.empty() || texts.size() < 2) return "";
  const double best = column.better == Better::kHigher ? *std::max_element(means.begin(), means.end())
                                                       : *std::min_element(means.begin(), means.end());
  return column.format(best / column.divisor);
}

std::string NumberCell(const std::string& text, double value, const std::string& classes, const std::string& below) {
  return "<td class=\"number" + classes + "\" data-value=\"" + nlohmann::json(value).dump() + "\">" + EscapeHtml(text) +
         below + "</td>";
}

const char kMissingCell[] = "<td class=\"number\">\u2013</td>";
const char kMissingCellStarts[] = "<td class=\"number starts\">\u2013</td>";

}  // namespace

StyleOf AssignStyles(const ReportPage& page) {
  constexpr int kOtherColours = 7;
  StyleOf styles;
  int others = 0;
  for (const auto& section : page.sections) {
    for (const auto& name : AlgorithmsOf(section.results)) {
      if (styles.contains(name)) continue;
      if (name == "tita") {
        styles[name] = {};
        continue;
      }
      styles[name] = {.colour = 1 + others % kOtherColours, .dash = others / kOtherColours};
      ++others;
    }
  }
  return styles;
}

std::string ComparisonTable(const nlohmann::json& results, const StyleOf& styles) {
  const std::vector<std::string> algorithms = AlgorithmsOf(results);
  if (algorithms.empty()) return "<p class=\"note\">This study has no runs.</p>";
  const std::vector<Column> columns = ColumnsFor(results);
  std::vector<std::string> best;
  best.reserve(columns.size());
  for (const auto& column : columns) best.push_back(BestText(results, column, algorithms));

  std::string html = "<table class=\"comparison sortable\">" + Head(columns, {"Algorithm"}) + "<tbody>";
  for (const auto& algorithm : algorithms) {
    const bool finished = AllFinished(results, algorithm);
    html += "<tr data-algorithm=\"" + EscapeHtml(algorithm) + "\"><th scope=\"row\">" +
            AlgorithmHead(algorithm, styles) + (finished ? "" : UnfinishedNote(results, algorithm)) + "</th>";
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      const Figure figure = FigureOf(results, algorithm, column.path);
      if (figure.runs == 0) {
        html += StartsGroup(columns, i) ? kMissingCellStarts : kMissingCell;
        continue;
      }
      const std::string text = column.format(figure.mean / column.divisor);
      std::string below;
      if (figure.runs > 1) {
        const double worst = column.better == Better::kHigher ? figure.min : figure.max;
        below = "<small>" + EscapeHtml(column.format(worst / column.divisor)) + "</small>";
      }
      std::string classes = StartsGroup(columns, i) ? " starts" : "";
      if (finished && !best[i].empty() && text == best[i]) classes += " best";
      html += NumberCell(text, figure.mean, classes, below);
    }
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

std::string RunTable(const nlohmann::json& results, const StyleOf& styles) {
  const std::vector<Column> columns = ColumnsFor(results);
  std::string html = "<table class=\"runs sortable\">" + Head(columns, {"Algorithm", "Seed", "Flows"}) + "<tbody>";
  for (const auto& run : Runs(results)) {
    const std::string algorithm = AlgorithmOf(run);
    html += "<tr data-algorithm=\"" + EscapeHtml(algorithm) + "\"><th scope=\"row\">" +
            AlgorithmHead(algorithm, styles) + "</th>";
    html += NumberCell(SeedOf(run), NumberAt(run, "seed").value_or(0), "", "");
    const double flows = NumberAt(run, "flows").value_or(0);
    const double finished = NumberAt(run, "finished").value_or(flows);
    const std::string done = Finished(run) ? FormatCount(flows) : FormatCount(finished) + " of " + FormatCount(flows);
    html += NumberCell(done, finished, Finished(run) ? "" : " bad", "");
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto value = NumberAt(run, columns[i].path);
      const bool starts = StartsGroup(columns, i);
      html += value ? NumberCell(columns[i].format(*value / columns[i].divisor), *value, starts ? " starts" : "", "")
                    : std::string(starts ? kMissingCellStarts : kMissingCell);
    }
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

std::string OverviewTable(const ReportPage& page, const StyleOf& styles) {
  std::vector<std::string> algorithms;
  for (const auto& section : page.sections) {
    for (const auto& name : AlgorithmsOf(section.results)) {
      if (std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end()) algorithms.push_back(name);
    }
  }
  std::string html = "<table class=\"overview\"><thead><tr><th scope=\"col\">Scenario</th>";
  for (const auto& algorithm : algorithms) {
    html += "<th scope=\"col\" class=\"number\" data-algorithm=\"" + EscapeHtml(algorithm) + "\">" +
            AlgorithmHead(algorithm, styles) + "</th>";
  }
  html += "</tr></thead><tbody>";
  for (size_t i = 0; i < page.sections.size(); ++i) {
    const ReportSection& section = page.sections[i];
    const nlohmann::json& results = section.results;
    const std::string title = section.title.empty() ? DescribeTitle(Scenario(results)) : section.title;
    html +=
        "<tr><th scope=\"row\"><a href=\"#section-" + std::to_string(i + 1) + "\">" + EscapeHtml(title) + "</a></th>";
    const std::vector<Column> columns = ColumnsFor(results);
    const auto ratio = std::find_if(columns.begin(), columns.end(), [](const Column& c) { return c.path == "ratio"; });
    const std::string best = ratio == columns.end() ? "" : BestText(results, *ratio, AlgorithmsOf(results));
    for (const auto& algorithm : algorithms) {
      const Figure figure = FigureOf(results, algorithm, "ratio");
      const bool finished = AllFinished(results, algorithm);
      if (figure.runs == 0) {
        html += kMissingCell;
        continue;
      }
      const double lost = FigureOf(results, algorithm, "drops").mean + FigureOf(results, algorithm, "trims").mean;
      const std::string text = finished ? FormatRatio(figure.mean) : "unfinished";
      const bool marked = finished && !best.empty() && text == best;
      html += NumberCell(text, figure.mean, marked ? " best" : (finished ? "" : " bad"),
                         "<small>" + (lost == 0 ? "no loss" : FormatCount(std::round(lost)) + " lost") + "</small>");
    }
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

std::string Glossary(const ReportPage& page) {
  std::set<std::string> seen;
  std::string html = "<dl class=\"glossary\">";
  for (const auto& section : page.sections) {
    for (const auto& column : ColumnsFor(section.results)) {
      if (!seen.insert(column.path).second) continue;
      const bool needs_group = column.group != "Time" && column.group != "Packets";
      const std::string name = needs_group ? column.group + ": " + column.name : column.name;
      html += "<div><dt>" + EscapeHtml(name) + "</dt><dd>" + EscapeHtml(column.help) + "</dd></div>";
    }
  }
  return html + "</dl>";
}

}  // namespace paceline::tools
