// storage: a few hosts, spread evenly, hold the data of all others. Every other host writes a checkpoint, in equal
// parts to all of them at once, and beside that reads batches, each from the next of them as soon as the one before has
// come. The request for a batch is left out.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/study/workloads/kinds.h"
#include "tools/study/workloads/rank_graph.h"

namespace paceline::tools {
namespace {

class Storage : public Pattern {
 public:
  explicit Storage(PatternReader& reader)
      : storage_hosts_(reader.Count("storage_hosts", 4, 1, 65535)),
        bytes_(reader.Integer("bytes", 10'000'000, 0, uint64_t{1} << 40)),
        reads_(reader.Count("reads", 8, 0, 1'000'000)),
        read_bytes_(reader.Bytes("read_bytes", 1'000'000)) {
    if (bytes_ == 0 && reads_ == 0) reader.Fail("reads", "= 0 and workload.bytes = 0: nothing is left to do");
    if (bytes_ > 0 && bytes_ < storage_hosts_) {
      reader.Fail("bytes", absl::StrCat("= ", bytes_, " must be at least workload.storage_hosts = ", storage_hosts_));
    }
  }

  absl::Status Build(WorkloadBuilder& builder) const override {
    const uint32_t hosts = builder.hosts().count;
    if (storage_hosts_ >= hosts) return builder.TooMany("storage_hosts", storage_hosts_);
    std::vector<uint32_t> servers;
    for (uint64_t i = 0; i < storage_hosts_; ++i) servers.push_back(static_cast<uint32_t>(i * hosts / storage_hosts_));
    for (uint32_t host = 0; host < hosts; ++host) {
      if (!std::binary_search(servers.begin(), servers.end(), host)) AddClient(builder, host, servers);
    }
    return absl::OkStatus();
  }

  bool independent() const override { return false; }

 private:
  void AddClient(WorkloadBuilder& builder, uint32_t host, const std::vector<uint32_t>& servers) const {
    const size_t count = servers.size();
    for (size_t i = 0; bytes_ > 0 && i < count; ++i) {
      builder.AddFlow(host, servers[(host + i) % count], PartOf(bytes_, count, i));
    }
    for (uint32_t read = 0; read < reads_; ++read) {
      Flow& flow = builder.AddFlow(servers[(host + read) % count], host, read_bytes_);
      std::vector<Trigger>& triggers = builder.workload().triggers;
      if (read > 0) {
        flow.trigger = static_cast<uint32_t>(triggers.size() - 1);
        triggers.back().flows.push_back(static_cast<uint32_t>(builder.workload().flows.size() - 1));
      }
      if (read + 1 == reads_) continue;
      flow.fires_when_received = static_cast<uint32_t>(triggers.size());
      triggers.emplace_back();
    }
  }

  const uint32_t storage_hosts_;
  const uint64_t bytes_;  // of a checkpoint
  const uint32_t reads_;
  const uint64_t read_bytes_;
};

}  // namespace

LoadedPattern LoadStorage(PatternReader& reader) { return std::make_unique<Storage>(reader); }

}  // namespace paceline::tools
