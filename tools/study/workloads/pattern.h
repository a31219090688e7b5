// One kind of workload: reads its keys of the [workload] table, then builds the flows. A kind is a file of its own in
// this folder and one line of the registry.
//
// Thread rule: loading is the control path; a loaded pattern is constant and may be built from in any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/study/table_reader.h"
#include "tools/study/workloads/builder.h"

namespace paceline::tools {

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Refuses what does not fit the hosts, naming the key.
  virtual absl::Status Build(WorkloadBuilder& builder) const = 0;
  // Flows start by themselves, so that a window and jitter make sense.
  virtual bool independent() const { return true; }
  // Where the scenario says nothing of hosts.
  virtual absl::StatusOr<uint32_t> DefaultHosts() const { return 128; }
};

// Reads keys and notes each with its value, default filled in, in the resolved scenario.
class PatternReader {
 public:
  PatternReader(TableReader& table, nlohmann::json& resolved, const std::string& directory)
      : table_(table), resolved_(resolved), directory_(directory) {}

  uint64_t Integer(const std::string& key, uint64_t otherwise, uint64_t min, uint64_t max) {
    return Noted(key, table_.Integer(key, otherwise, min, max));
  }
  uint32_t Count(const std::string& key, uint32_t otherwise, uint32_t min, uint32_t max) {
    return static_cast<uint32_t>(Integer(key, otherwise, min, max));
  }
  uint64_t Bytes(const std::string& key, uint64_t otherwise) { return Integer(key, otherwise, 1, uint64_t{1} << 40); }
  double Number(const std::string& key, double otherwise, double min, double max) {
    return Noted(key, table_.Number(key, otherwise, min, max));
  }
  bool Bool(const std::string& key, bool otherwise) { return Noted(key, table_.Bool(key, otherwise)); }
  std::string Text(const std::string& key, const std::string& otherwise) {
    return Noted(key, table_.Text(key, otherwise));
  }
  std::string Choice(const std::string& key, const std::string& otherwise, const std::vector<std::string>& choices) {
    return Noted(key, table_.Choice(key, otherwise, choices));
  }
  void Fail(const std::string& key, const std::string& what) { table_.Fail(key, what); }
  // Where relative file names start from; may be empty.
  const std::string& directory() const { return directory_; }

 private:
  template <typename Value>
  Value Noted(const std::string& key, Value value) {
    resolved_[key] = value;
    return value;
  }

  TableReader& table_;
  nlohmann::json& resolved_;
  const std::string& directory_;
};

}  // namespace paceline::tools
