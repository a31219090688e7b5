// Waiting for an engine on a real machine: the descriptors of its lanes, its next timer and a wake-up from other
// threads joined in one epoll descriptor, and the adaptive wait (engine/wait_policy.h) on top.
//
// Two ways to use it:
//   - A loop of our own (progress thread, a blocking call): Poll(), and when it moved nothing, Idle().
//   - A loop of the caller's: Poll() until nothing moves, Arm(), then wait for descriptor() to become readable together
//     with the caller's own descriptors.
//
// Thread rule: the engine's thread, but for Wake(), which any thread may call.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/base/time.h"
#include "transport/engine/engine.h"
#include "transport/engine/wait_policy.h"

namespace paceline {

class Progress {
 public:
  // `engine` outlives this object.
  static absl::StatusOr<std::unique_ptr<Progress>> Create(Engine* engine, const WaitPolicyOptions& options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One pass of the engine at the current time. True if it moved anything.
  bool Poll();
  // The same without a look at what arrives (Engine::Transmit).
  void Transmit();
  // The time of the last Poll or Transmit: recent enough for decisions of the same pass.
  Time now() const { return now_; }
  // When the engine wants the next pass at the latest.
  Time next() const { return next_; }
  // The caller posted something: the engine wants a pass at once, whatever its timer said.
  void Kick() { next_ = now_; }

  // After a Poll that moved nothing: spins, yields or sleeps, as the policy says, until `deadline` at most. A sleep
  // ends when something arrives, when the engine's timer is due, or by Wake(). True if it slept.
  bool Idle(Time deadline) { return CarryOut(PlanIdle(deadline)); }
  // The same in two halves, for a progress thread: the first while others are kept out of the engine, as it prepares
  // the lanes for a sleep; the second need not be.
  WaitStep PlanIdle(Time deadline);
  bool CarryOut(WaitStep step);
  // The last of these slept until the deadline that it was given and nothing came, and there was no Poll since: one
  // would have found nothing then.
  bool slept_in_vain() const { return slept_in_vain_; }
  // Slept in vain, and nothing was posted and no timer became due since: Idle may follow without a Poll, as whatever
  // came in between ends its sleep at once.
  bool MayGoOnSleeping();

  // Prepares descriptor() for the caller's own wait: it becomes readable when Poll has something to do.
  // False: poll again first, there is something to do at once.
  bool Arm();
  int descriptor() const { return epoll_; }

  // Ends a sleep, or the next one before it begins; makes descriptor() readable until the next Poll.
  void Wake();

  bool crowded() const { return policy_.crowded(); }

 private:
  Progress(Engine* engine, const WaitPolicyOptions& options);
  absl::Status Open();
  bool After(Time next);  // a pass of the engine, which wants the next one then; true if it moved anything
  bool PrepareLanes();
  void WatchWritable(bool on);
  void SetTimer(Time at);
  void DrainWake();

  Engine* engine_;
  WaitPolicy policy_;
  int epoll_ = -1;
  int event_ = -1;  // eventfd: Wake
  int timer_ = -1;  // timerfd: the engine's next timer, for callers that wait by themselves
  bool watching_writable_ = false;
  bool every_lane_can_wake_ = true;  // false: a lane has no descriptor, so sleeps stay short
  bool timer_set_ = false;
  std::atomic<bool> woken_{false};
  Time now_;
  Time next_;
  Duration sleep_;               // as planned
  bool until_deadline_ = false;  // it ends there, and whatever comes before ends it
  bool slept_in_vain_ = false;
};

// Cores that this process may run on (sched_getaffinity), at least 1.
unsigned AllowedCores();

// Processes of this job on this machine, from PACELINE_LOCAL_RANKS or what mpirun, srun and torchrun put into the
// environment (OMPI_COMM_WORLD_LOCAL_SIZE, MPI_LOCALNRANKS, SLURM_TASKS_PER_NODE, LOCAL_WORLD_SIZE); 1 when nothing
// says. A hint only.
unsigned LocalRanksFromEnvironment();

// Processes of this job on all machines, from the same launchers (OMPI_COMM_WORLD_SIZE, PMI_SIZE, WORLD_SIZE,
// SLURM_STEP_NUM_TASKS); 1 when nothing says. A hint only.
unsigned JobRanksFromEnvironment();

}  // namespace paceline
