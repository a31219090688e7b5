// How the ranks of one measurement agree on things outside Paceline: a star of stream sockets with rank 0 in the
// middle. Rank r has one socket to rank 0; rank 0 has one to each. Everything is built on AllGather, which is also the
// barrier.
//
// A wait here must not stop a rank's Paceline traffic (its peers may still need its acknowledgements), so each wait
// calls `idle` over and over.
//
// Thread rule: one thread. Ownership: owns the sockets. When a rank goes away, all others get an error within a moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::tools {

class Rendezvous {
 public:
  // `sockets`: on rank 0 one per rank, [0] unused (-1); on others one, to rank 0.
  Rendezvous(uint32_t rank, uint32_t world, std::vector<int> sockets);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t world() const { return world_; }

  // Called while waiting; should take a moment (make progress, sleep a little).
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }

  // Every rank gives its text and gets everybody's, by rank.
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& own);
  absl::Status Barrier();

 private:
  absl::Status SendFrame(int socket, uint32_t peer, const std::string& text);
  absl::StatusOr<std::string> ReceiveFrame(int socket, uint32_t peer);
  absl::Status ReceiveBytes(int socket, uint32_t peer, char* data, size_t bytes);

  uint32_t rank_;
  uint32_t world_;
  std::vector<int> sockets_;
  std::function<void()> idle_;
};

}  // namespace paceline::tools
