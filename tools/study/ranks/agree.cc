#include "tools/study/ranks/agree.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace paceline::tools {
namespace {

// As "3 no such file": the code, then the message; "0 " when all is well.
std::string ToText(const absl::Status& status) {
  return absl::StrCat(status.raw_code(), " ", std::string(status.message()));
}

absl::Status FromText(const std::string& text) {
  return absl::Status(static_cast<absl::StatusCode>(std::atoi(text.c_str())), text.substr(text.find(' ') + 1));
}

std::string Machine() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

absl::Status WithRank(const RunExchange& exchange, const absl::Status& status) {
  if (status.ok() || exchange.rank() == 0) return status;
  return absl::Status(status.code(),
                      absl::StrCat("rank ", exchange.rank(), " on ", Machine(), ": ", std::string(status.message())));
}

}  // namespace

absl::Status Agree(RunExchange* exchange, const absl::Status& own) {
  if (exchange == nullptr) return own;
  std::string verdict = ToText(absl::OkStatus());
  for (std::string& text : exchange->Gather(ToText(WithRank(*exchange, own)))) {
    if (FromText(text).ok()) continue;
    verdict = std::move(text);
    break;
  }
  return FromText(exchange->Broadcast(std::move(verdict)));
}

absl::Status AgreeOnSame(RunExchange* exchange, const std::string& text, const std::string& what) {
  if (exchange == nullptr) return absl::OkStatus();
  const bool same = exchange->Broadcast(text) == text;
  return Agree(exchange, same ? absl::OkStatus() : absl::FailedPreconditionError(what));
}

int AgreeOnExit(RunExchange* exchange, int own) {
  return exchange == nullptr ? own : std::atoi(exchange->Broadcast(std::to_string(own)).c_str());
}

}  // namespace paceline::tools
