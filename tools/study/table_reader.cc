#include "tools/study/table_reader.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace paceline::tools {
namespace {

std::optional<double> AsNumber(const toml::node& node) {
  if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
  if (const auto* real = node.as_floating_point()) return real->get();
  return std::nullopt;
}

// Numbers in messages as a person writes them.
std::string Shown(double value) {
  if (value == static_cast<double>(static_cast<int64_t>(value)) && value < 1e15 && value > -1e15) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrCat(value);
}

}  // namespace

std::string JoinNames(const std::vector<std::string>& names) { return absl::StrJoin(names, ", "); }

const toml::node* TableReader::Find(const std::string& key) {
  Know(key);
  return table_ == nullptr ? nullptr : table_->get(key);
}

void TableReader::Know(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

void TableReader::AlsoKnown(const TableReader& other) {
  for (const std::string& key : other.known_) Know(key);
}

void TableReader::Fail(const std::string& key, const std::string& what) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(FullKey(key), " ", what));
}

void TableReader::FailType(const std::string& key, const std::string& wanted) {
  Fail(key, absl::StrCat("must be ", wanted));
}

double TableReader::Number(const std::string& key, double otherwise, double min, double max) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  const std::optional<double> value = AsNumber(*node);
  if (!value || !(*value >= min && *value <= max)) {
    FailType(key, absl::StrCat("a number from ", Shown(min), " to ", Shown(max),
                               value ? absl::StrCat(", not ", Shown(*value)) : ""));
    return otherwise;
  }
  return *value;
}

uint64_t TableReader::Integer(const std::string& key, uint64_t otherwise, uint64_t min, uint64_t max) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  const std::optional<double> value = AsNumber(*node);
  const bool whole =
      value && *value >= 0 && *value < 9e18 && *value == static_cast<double>(static_cast<int64_t>(*value));
  const uint64_t integer = node->is_integer() && node->as_integer()->get() >= 0
                               ? static_cast<uint64_t>(node->as_integer()->get())
                           : whole ? static_cast<uint64_t>(*value)
                                   : 0;
  if (!whole || integer < min || integer > max) {
    FailType(key, absl::StrCat("a whole number from ", min, " to ", max,
                               value ? absl::StrCat(", not ", Shown(*value)) : ""));
    return otherwise;
  }
  return integer;
}

bool TableReader::Bool(const std::string& key, bool otherwise) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  if (!node->is_boolean()) {
    FailType(key, "true or false");
    return otherwise;
  }
  return node->as_boolean()->get();
}

std::string TableReader::Text(const std::string& key, const std::string& otherwise) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  if (!node->is_string()) {
    FailType(key, "a text in quotes");
    return otherwise;
  }
  return node->as_string()->get();
}

std::string TableReader::Choice(const std::string& key, const std::string& otherwise,
                                const std::vector<std::string>& choices) {
  const std::string value = Text(key, otherwise);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  Fail(key, absl::StrCat("= \"", value, "\" is not known; it may be ", JoinNames(choices)));
  return otherwise;
}

std::vector<double> TableReader::Numbers(const std::string& key, const std::vector<double>& otherwise, double min,
                                         double max) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  const std::string wanted =
      absl::StrCat("a number from ", Shown(min), " to ", Shown(max), ", or a list of such numbers");
  std::vector<double> values;
  const auto take = [&](const toml::node& element) {
    const std::optional<double> value = AsNumber(element);
    if (!value || !(*value >= min && *value <= max)) {
      FailType(key, wanted);
    } else {
      values.push_back(*value);
    }
  };
  if (const toml::array* list = node->as_array()) {
    if (list->empty()) FailType(key, wanted);
    for (const toml::node& element : *list) take(element);
  } else {
    take(*node);
  }
  return values;
}

std::vector<std::string> TableReader::Texts(const std::string& key, const std::vector<std::string>& otherwise) {
  const toml::node* node = Find(key);
  if (node == nullptr) return otherwise;
  std::vector<std::string> values;
  if (const auto* text = node->as_string()) {
    values = absl::StrSplit(text->get(), absl::ByAnyChar(", "), absl::SkipEmpty());
  }
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& element : *list) {
      if (const auto* text = element.as_string()) {
        values.push_back(text->get());
      } else {
        FailType(key, "a list of names in quotes");
      }
    }
  }
  if (values.empty()) FailType(key, "a list of names in quotes, at least one");
  return values;
}

const toml::table* TableReader::Table(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) FailType(key, "a table");
  return node->as_table();
}

absl::Status TableReader::Finish() const {
  if (!status_.ok() || table_ == nullptr) return status_;
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(FullKey(name), " is not known; ",
                                                     name_.empty() ? "there are" : absl::StrCat("[", name_, "] has"),
                                                     ": ", JoinNames(known_)));
    }
  }
  return absl::OkStatus();
}

}  // namespace paceline::tools
