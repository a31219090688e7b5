#include "cc/registry.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cc/algorithms/dcqcn.h"
#include "cc/algorithms/eqds.h"
#include "cc/algorithms/fixed_window.h"
#include "cc/algorithms/hpcc.h"
#include "cc/algorithms/ndp.h"
#include "cc/algorithms/none.h"
#include "cc/algorithms/nscc.h"
#include "cc/algorithms/nscc_rccc.h"
#include "cc/algorithms/rccc.h"
#include "cc/algorithms/swift.h"
#include "cc/algorithms/timely.h"
#include "cc/algorithms/tita.h"

namespace paceline {
namespace {

// In the order of their names.
const std::vector<AlgorithmInfo>& Algorithms() {
  static const std::vector<AlgorithmInfo> algorithms = [] {
    std::vector<AlgorithmInfo> list;
    list.push_back(DcqcnAlgorithm());
    list.push_back(EqdsAlgorithm());
    list.push_back(FixedWindowAlgorithm());
    list.push_back(HpccAlgorithm());
    list.push_back(NdpAlgorithm());
    list.push_back(NoneAlgorithm());
    list.push_back(NsccAlgorithm());
    list.push_back(NsccRcccAlgorithm());
    list.push_back(RcccAlgorithm());
    list.push_back(SwiftAlgorithm());
    list.push_back(TimelyAlgorithm());
    list.push_back(TitaAlgorithm());
    return list;
  }();
  return algorithms;
}

template <typename Range, typename NameOf>
std::string Joined(const Range& range, NameOf name_of) {
  std::string text;
  for (const auto& element : range) absl::StrAppend(&text, text.empty() ? "" : ", ", name_of(element));
  return text;
}

absl::Status Check(const AlgorithmInfo& algorithm, const ParameterSpec& spec, const ParameterValue& value) {
  const std::string what = absl::StrCat("parameter '", spec.name, "' of '", algorithm.name, "'");
  if (value.index() != spec.default_value.index()) {
    static constexpr const char* kKinds[] = {"a number", "true or false", "a string"};
    return absl::InvalidArgumentError(absl::StrCat(what, " must be ", kKinds[spec.default_value.index()]));
  }
  if (const double* number = std::get_if<double>(&value)) {
    if (!(*number >= spec.min && *number <= spec.max)) {  // written so that a NaN is refused
      return absl::OutOfRangeError(absl::StrCat(what, " is ", *number, "; it may be from ", spec.min, " to ", spec.max,
                                                spec.unit.empty() ? "" : " ", spec.unit));
    }
  }
  if (const std::string* text = std::get_if<std::string>(&value)) {
    if (std::find(spec.choices.begin(), spec.choices.end(), *text) == spec.choices.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " is '", *text, "'; it may be one of: ", Joined(spec.choices, [](const std::string& c) { return c; })));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const AlgorithmInfo> CongestionControlAlgorithms() { return Algorithms(); }

const AlgorithmInfo* FindCongestionControl(const std::string& name) {
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

absl::StatusOr<ParameterMap> ResolveParameters(const AlgorithmInfo& algorithm, const ParameterMap& given) {
  ParameterMap resolved;
  for (const ParameterSpec& spec : algorithm.parameters) resolved[spec.name] = spec.default_value;
  for (const auto& [name, value] : given) {
    const auto spec = std::find_if(algorithm.parameters.begin(), algorithm.parameters.end(),
                                   [&wanted = name](const ParameterSpec& s) { return s.name == wanted; });
    if (spec == algorithm.parameters.end()) {
      const std::string known = Joined(algorithm.parameters, [](const ParameterSpec& s) { return s.name; });
      return absl::InvalidArgumentError(absl::StrCat("'", algorithm.name, "' has no parameter '", name, "'; it has ",
                                                     known.empty() ? "none" : known));
    }
    if (absl::Status status = Check(algorithm, *spec, value); !status.ok()) return status;
    resolved[name] = value;
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<CongestionControl>> CreateCongestionControl(const std::string& name,
                                                                           const ParameterMap& given, uint64_t seed) {
  const AlgorithmInfo* algorithm = FindCongestionControl(name);
  if (algorithm == nullptr) {
    return absl::NotFoundError(absl::StrCat("no congestion control is called '", name, "'; there are: ",
                                            Joined(Algorithms(), [](const AlgorithmInfo& a) { return a.name; })));
  }
  absl::StatusOr<ParameterMap> parameters = ResolveParameters(*algorithm, given);
  if (!parameters.ok()) return parameters.status();
  return algorithm->create(*parameters, seed);
}

}  // namespace paceline
