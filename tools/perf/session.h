// One rank of a measurement: its context, its connections to the other ranks and its memory, and the small waits that
// every test needs.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "paceline/context.h"
#include "tools/perf/rendezvous.h"
#include "transport/base/time.h"

namespace paceline::tools {

absl::Status FromApi(const api::Status& status);

// Page-aligned zeroed memory.
class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  uint8_t* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  size_t bytes_ = 0;
};

class Session {
 public:
  // Connects every pair of ranks. The rendezvous outlives the session; its waits make progress here from now on.
  // `opened` has been created with `options`; without it a context is.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const api::ContextOptions& options, Rendezvous* rendezvous,
                                                         std::optional<api::Context> opened = std::nullopt);
  ~Session();

  uint32_t rank() const { return rendezvous_->rank(); }
  uint32_t world() const { return rendezvous_->world(); }
  api::Context& context() { return context_; }
  api::Connection& connection(uint32_t rank) { return connections_[rank]; }
  // The rank at the other end of a completion's connection.
  uint32_t RankOf(uint32_t connection_id) const;
  // What to say of a completion that is not ok: which operation with which rank, and why the connection ended if it
  // did.
  absl::Status Failure(const api::Completion& done) const;
  Rendezvous& rendezvous() { return *rendezvous_; }

  // Completions into `out`, waiting at most `timeout` when there are none. An error: a peer is gone.
  absl::StatusOr<size_t> Take(api::Completion* out, size_t room, Duration timeout);
  absl::Status Barrier() { return rendezvous_->Barrier(); }

  // Exports `region` to all and returns everybody's, by rank.
  absl::StatusOr<std::vector<api::RemoteMemory>> ExchangeMemory(api::RegionId region);
  // A block that peers may read, write and work on with atomics.
  absl::StatusOr<api::RegionId> Register(const Block& block);

  // Counters of this rank's context by name.
  std::map<std::string, uint64_t> Counters() const;

 private:
  Session(api::Context context, Rendezvous* rendezvous);
  absl::Status Connect();

  api::Context context_;
  Rendezvous* rendezvous_;
  bool several_engines_ = false;
  std::vector<api::Connection> connections_;  // by rank; own: not valid
  std::map<uint32_t, uint32_t> rank_by_id_;
};

}  // namespace paceline::tools
