#include "tools/study/execute.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "absl/strings/str_format.h"
#include "tools/study/outcome_codec.h"
#include "tools/study/ranks/agree.h"
#include "tools/study/results.h"
#include "tools/study/time_left.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

struct Task {
  size_t section = 0;
  const Scenario* scenario = nullptr;
  const AlgorithmChoice* algorithm = nullptr;
  uint64_t seed = 0;
  uint64_t effort = 0;
  std::optional<Time> running_since;
  std::optional<absl::StatusOr<RunOutcome>> outcome;
};

// One line that is written over again and again.
class ProgressLine {
 public:
  ProgressLine(bool shown, size_t runs, uint64_t effort) : shown_(shown), runs_(runs), effort_(effort) {}
  ~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  void Show(size_t runs_done, std::span<const SectionProgress> sections, uint32_t at_a_time) const {
    if (!shown_) return;
    uint64_t effort_done = 0;
    for (const SectionProgress& section : sections) effort_done += section.done;
    const std::optional<double> seconds = SecondsLeft(sections, at_a_time);
    const std::string left = seconds ? absl::StrFormat(", about %.0f s left", *seconds) : "";
    std::fprintf(stderr, "\r\033[K%zu of %zu runs, %.0f %% of the packets%s", runs_done, runs_,
                 100.0 * static_cast<double>(effort_done) / static_cast<double>(effort_), left.c_str());
    std::fflush(stderr);
  }

 private:
  const bool shown_;
  const size_t runs_;
  const uint64_t effort_;
};

absl::StatusOr<std::vector<Task>> TasksOf(const Study& study) {
  std::vector<Task> tasks;
  for (size_t section = 0; section < study.sections.size(); ++section) {
    const Scenario& scenario = study.sections[section].scenario;
    absl::StatusOr<Workload> workload = WorkloadOf(scenario, scenario.seeds[0]);
    if (!workload.ok()) return workload.status();
    for (const AlgorithmChoice& algorithm : scenario.algorithms) {
      for (uint64_t seed : scenario.seeds) {
        Task task;
        task.section = section;
        task.scenario = &scenario;
        task.algorithm = &algorithm;
        task.seed = seed;
        for (const Flow& flow : workload->flows) task.effort += EffortOf(flow, scenario.fabric.mtu_bytes);
        tasks.push_back(std::move(task));
      }
    }
  }
  return tasks;
}

// Ranks that read other files, or are another Paceline, would mix two studies into one.
absl::Status AgreeOnStudy(RunExchange* exchange, const Study& study) {
  const std::vector<std::vector<RunOutcome>> no_runs(study.sections.size());
  return AgreeOnSame(exchange, StudyToJson(study, no_runs).dump(),
                     "it has another scenario or another version of Paceline than rank 0");
}

void RunAll(const std::vector<Task*>& tasks, size_t sections, const ExecuteOptions& options) {
  uint64_t effort = 0;
  std::vector<SectionProgress> progress(sections);
  for (const Task* task : tasks) {
    effort += task->effort;
    progress[task->section].effort += task->effort;
  }
  std::vector<std::atomic<uint64_t>> effort_done(sections);
  std::atomic<size_t> next{0};
  std::mutex mutex;  // of all below
  std::condition_variable finished;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < tasks.size();) {
      Task& task = *tasks[i];
      {
        const std::lock_guard<std::mutex> lock(mutex);
        task.running_since = MonotonicNow();
      }
      task.outcome = ExecuteRun(*task.scenario, *task.algorithm, task.seed, &effort_done[task.section]);
      const std::lock_guard<std::mutex> lock(mutex);
      progress[task.section].seconds += (MonotonicNow() - *task.running_since).seconds();
      task.running_since.reset();
      ++done;
      finished.notify_one();
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min<size_t>(std::max(1u, options.jobs), tasks.size());
  try {
    for (size_t i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // There is no thread to be had: those that there are do it all.
  }
  if (threads.empty()) work();
  {
    const ProgressLine line(options.show_progress, tasks.size(), std::max<uint64_t>(1, effort));
    std::unique_lock<std::mutex> lock(mutex);
    while (done < tasks.size()) {
      std::vector<SectionProgress> now = progress;
      for (size_t section = 0; section < sections; ++section) now[section].done = effort_done[section];
      for (const Task* task : tasks) {
        if (task->running_since) now[task->section].seconds += (MonotonicNow() - *task->running_since).seconds();
      }
      line.Show(done, now, static_cast<uint32_t>(std::min(threads.size(), tasks.size() - done)));
      finished.wait_for(lock, std::chrono::milliseconds(500));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Brings all outcomes to rank 0, one from each rank at a time.
absl::Status Collect(RunExchange& exchange, std::vector<Task>& tasks) {
  absl::Status status;
  for (size_t first = 0; first < tasks.size(); first += exchange.size()) {
    std::string own;
    if (const size_t at = first + exchange.rank(); exchange.rank() != 0 && at < tasks.size()) {
      own = EncodeOutcome(**tasks[at].outcome);
      tasks[at].outcome.reset();
    }
    const std::vector<std::string> all = exchange.Gather(std::move(own));
    for (size_t rank = 1; rank < all.size() && first + rank < tasks.size(); ++rank) {
      Task& task = tasks[first + rank];
      task.outcome = DecodeOutcome(all[rank], *task.scenario, *task.algorithm, task.seed);
      status.Update(task.outcome->status());
    }
  }
  return Agree(&exchange, status);
}

}  // namespace

absl::StatusOr<std::vector<std::vector<RunOutcome>>> ExecuteStudy(const Study& study, const ExecuteOptions& options) {
  RunExchange* const exchange = options.exchange;
  absl::StatusOr<std::vector<Task>> tasks = TasksOf(study);
  if (absl::Status status = Agree(exchange, tasks.status()); !status.ok()) return status;
  if (absl::Status status = AgreeOnStudy(exchange, study); !status.ok()) return status;

  const size_t rank = exchange != nullptr ? exchange->rank() : 0, ranks = exchange != nullptr ? exchange->size() : 1;
  std::vector<Task*> own;
  for (size_t i = rank; i < tasks->size(); i += ranks) own.push_back(&(*tasks)[i]);
  RunAll(own, study.sections.size(), options);
  absl::Status status;
  for (const Task* task : own) status.Update(task->outcome->status());
  if (status = Agree(exchange, status); !status.ok()) return status;
  if (exchange != nullptr) {
    if (status = Collect(*exchange, *tasks); !status.ok()) return status;
  }

  std::vector<std::vector<RunOutcome>> outcomes(study.sections.size());
  if (rank != 0) return outcomes;
  for (Task& task : *tasks) outcomes[task.section].push_back(**std::move(task.outcome));
  return outcomes;
}

}  // namespace paceline::tools
