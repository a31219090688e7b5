// Reads one TOML table key by key with its type, default and range, and refuses what it does not know: the first
// mistake is kept and told with the key and what it may be.
//
// Who calls it: the scenario loader. Any thread; borrows the table, which must outlive it.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace paceline::tools {

class TableReader {
 public:
  // `name`: of the table as its user knows it ("fabric"). `table` may be nullptr: every key has its default.
  TableReader(std::string name, const toml::table* table) : name_(std::move(name)), table_(table) {}

  double Number(const std::string& key, double otherwise, double min, double max);
  uint64_t Integer(const std::string& key, uint64_t otherwise, uint64_t min, uint64_t max);
  bool Bool(const std::string& key, bool otherwise);
  std::string Text(const std::string& key, const std::string& otherwise);
  // One of `choices`.
  std::string Choice(const std::string& key, const std::string& otherwise, const std::vector<std::string>& choices);
  // A number, or a list of numbers.
  std::vector<double> Numbers(const std::string& key, const std::vector<double>& otherwise, double min, double max);
  // A list of texts, or one text with commas between.
  std::vector<std::string> Texts(const std::string& key, const std::vector<std::string>& otherwise);
  // A table or a list of tables below this one; nullptr when it is not there.
  const toml::table* Table(const std::string& key);

  bool Has(const std::string& key) const { return table_ != nullptr && table_->contains(key); }
  // The node itself, which counts as known; nullptr when it is not there.
  const toml::node* Find(const std::string& key);
  void Fail(const std::string& key, const std::string& what);
  // Keys that `other` was asked for are not refused here.
  void AlsoKnown(const TableReader& other);
  // The first mistake; else the first key that was never asked for; else ok.
  absl::Status Finish() const;

 private:
  void Know(const std::string& key);
  std::string FullKey(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }
  void FailType(const std::string& key, const std::string& wanted);

  const std::string name_;
  const toml::table* table_;
  std::vector<std::string> known_;
  absl::Status status_;
};

// A list as "a, b, c".
std::string JoinNames(const std::vector<std::string>& names);

}  // namespace paceline::tools
