// Reading a complete parameter map (the registry has checked names, types and ranges before an algorithm sees it), and
// short ways to write a parameter's specification.
//
// Thread rule: pure functions, callable anywhere.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cc/registry.h"

namespace paceline {

inline double NumberOf(const ParameterMap& parameters, const std::string& name) {
  return std::get<double>(parameters.at(name));
}

inline bool FlagOf(const ParameterMap& parameters, const std::string& name) {
  return std::get<bool>(parameters.at(name));
}

inline const std::string& ChoiceOf(const ParameterMap& parameters, const std::string& name) {
  return std::get<std::string>(parameters.at(name));
}

inline ParameterSpec NumberSpec(std::string name, double value, double min, double max, std::string unit,
                                std::string meaning) {
  return {std::move(name), value, min, max, {}, std::move(unit), std::move(meaning)};
}

inline ParameterSpec FlagSpec(std::string name, bool value, std::string meaning) {
  return {std::move(name), value, 0, 0, {}, "", std::move(meaning)};
}

inline ParameterSpec ChoiceSpec(std::string name, std::string value, std::vector<std::string> choices,
                                std::string meaning) {
  return {std::move(name), std::move(value), 0, 0, std::move(choices), "", std::move(meaning)};
}

}  // namespace paceline
