// How the processes of a measurement come to be and find each other: forked here, joined by TCP (server and client), or
// started by mpirun, srun or torchrun.
//
// Thread rule: one thread, and Fork before any other thread is started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/launcher/launcher_rank.h"
#include "tools/perf/rendezvous.h"

namespace paceline::tools {

inline constexpr uint16_t kDefaultPort = 18515;

// The processes that Fork made; ended with the object if they have not ended by themselves.
class Children {
 public:
  Children() = default;
  explicit Children(std::vector<pid_t> pids) : pids_(std::move(pids)) {}
  Children(Children&& other) noexcept : pids_(std::move(other.pids_)) { other.pids_.clear(); }
  Children& operator=(Children&&) = delete;
  ~Children();

  // Waits for all; an error names the rank that failed.
  absl::Status Join();

 private:
  std::vector<pid_t> pids_;  // rank 1 first
};

struct Team {
  std::unique_ptr<Rendezvous> rendezvous;
  Children children;  // rank 0 of a forked team
  uint32_t local_ranks = 1;
};

// Makes world - 1 more processes; returns in each, the caller being rank 0.
absl::StatusOr<Team> ForkTeam(uint32_t world);

// Rank 0 of two: waits for the other at this address (empty: every address) and port.
absl::StatusOr<Team> ServeTeam(const std::string& address, uint16_t port);

// Rank 1 of two: joins a server, trying again for `seconds`.
absl::StatusOr<Team> JoinTeam(const std::string& host, uint16_t port, double seconds);

// Meets the other ranks: at MASTER_ADDR and MASTER_PORT where they are set, else, when all ranks are on this machine,
// by a local socket named after the job.
absl::StatusOr<Team> LauncherTeam(const LauncherRank& launched);

}  // namespace paceline::tools
