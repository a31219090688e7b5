// How many bytes an epoch of training moves in one dimension of its parallelism (`paceline study --traffic`): what the
// collectives' own algorithms move, beside published totals that count every pair of GPUs (a naive full mesh).
//
//   L layers, H hidden size, P parameters, b bytes a parameter or activation, N mini-batches an epoch, T tokens an
//   epoch, G GPUs in the dimension. All values are the sum over these G GPUs, sent bytes, for the epoch.
//
//                                  own algorithm             published
//   data parallel                  2 b N P (G - 1)           b N P G (G - 1)
//   fully sharded, forward         b N P (G - 1)             b N P (G - 1)
//   fully sharded, backward        2 b N P (G - 1)           b N P (G - 1)
//   tensor parallel, forward       4 b L T H (G - 1)         2 b L T H G (G - 1)
//   tensor parallel, backward      4 b L T H (G - 1)         2 b N P L (G - 1)
//   pipeline, each way             b T H (G - 1)             b T H (G - 1)
//
// Own algorithms: a ring all-reduce of the gradients (2 (G - 1) / G of them per GPU) in each mini-batch; a ring
// all-gather of the parameters forward, the same and a ring reduce-scatter of the gradients backward; two ring
// all-reduces of the activations per layer each way; activations or their gradients over each of G - 1 boundaries of
// stages. The published factors 2 and 4 stand for b = 2 and for two all-reduces of b = 2.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::tools {

struct TrafficModel {
  std::string name;
  double layers = 0;
  double hidden = 0;
  double parameters = 0;
  double bytes_per_value = 2;
  double mini_batches = 0;
  double tokens = 0;
  double gpus = 8;  // in the dimension
};

struct TrafficRow {
  std::string what;
  double own_bytes = 0;
  double published_bytes = 0;
};

// "llama3-70b", or a TOML file with [model]: layers, hidden, parameters, bytes_per_value, mini_batches, tokens, gpus.
absl::StatusOr<TrafficModel> LoadTrafficModel(const std::string& name);
absl::StatusOr<TrafficModel> ParseTrafficModel(std::string_view toml, const std::string& name);

std::vector<TrafficRow> TrafficOf(const TrafficModel& model);

std::string TrafficTable(const TrafficModel& model);
nlohmann::json TrafficJson(const TrafficModel& model);

}  // namespace paceline::tools
