// PACELINE_HCA: which network interfaces, or ports of RDMA cards, the plugin uses, in the way of NCCL_IB_HCA. A list of
// beginnings of names, comma separated ("eth,ens"); a leading `=` takes the names as they are ("=eth1"; "=mlx5_0" takes
// all ports of that card, "=mlx5_0:1" one), a leading `^` takes all but the named ("^docker", "^=eth0").
//
// Thread rule: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "paceline/status.h"

namespace paceline::nccl {

class HcaList {
 public:
  // Fails, naming the text, where no name is in it.
  static api::Result<HcaList> Parse(std::string_view text);

  bool Takes(std::string_view name) const;

 private:
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<std::string> names_;
};

}  // namespace paceline::nccl
