#include "tools/study/report/scenario_toml.h"

#include <toml++/toml.h>

#include <cstdint>
#include <sstream>
#include <utility>

namespace paceline::tools {
namespace {

toml::table ToTable(const nlohmann::json& object);
toml::array ToArray(const nlohmann::json& list);

// Calls `put` with the TOML value of a JSON value; not at all for null.
template <typename Put>
void Convert(const nlohmann::json& value, Put put) {
  switch (value.type()) {
    case nlohmann::json::value_t::object:
      put(ToTable(value));
      break;
    case nlohmann::json::value_t::array:
      put(ToArray(value));
      break;
    case nlohmann::json::value_t::string:
      put(value.get<std::string>());
      break;
    case nlohmann::json::value_t::boolean:
      put(value.get<bool>());
      break;
    case nlohmann::json::value_t::number_integer:
    case nlohmann::json::value_t::number_unsigned:
      put(value.get<int64_t>());
      break;
    case nlohmann::json::value_t::number_float:
      put(value.get<double>());
      break;
    default:
      break;
  }
}

toml::table ToTable(const nlohmann::json& object) {
  toml::table table;
  for (const auto& [key, value] : object.items()) {
    Convert(value, [&table, &name = key](auto&& converted) {
      table.insert(name, std::forward<decltype(converted)>(converted));
    });
  }
  return table;
}

toml::array ToArray(const nlohmann::json& list) {
  toml::array array;
  for (const auto& value : list) {
    Convert(value, [&array](auto&& converted) { array.push_back(std::forward<decltype(converted)>(converted)); });
  }
  return array;
}

}  // namespace

std::string ScenarioToml(const nlohmann::json& scenario) {
  if (!scenario.is_object()) return "";
  std::ostringstream out;
  out << toml::toml_formatter{ToTable(scenario)};
  std::string text = std::move(out).str();
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

}  // namespace paceline::tools
