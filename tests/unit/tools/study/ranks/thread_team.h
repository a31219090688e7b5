// Ranks that are threads of a test, each with a RunExchange like that of a process.
// Thread rule: Run from the test's thread; the team outlives its exchanges.
#pragma once

#include <barrier>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/study/ranks/run_exchange.h"

namespace paceline::tools {

class ThreadTeam {
 public:
  explicit ThreadTeam(uint32_t ranks) : given_(ranks), meet_(ranks) {}

  // Calls work(exchange) once for each rank, all at the same time.
  template <typename Work>
  void Run(const Work& work) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < given_.size(); ++rank) {
      threads.emplace_back([this, rank, &work] {
        Rank exchange(*this, rank);
        work(exchange);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  class Rank : public RunExchange {
   public:
    Rank(ThreadTeam& team, uint32_t rank) : team_(team), rank_(rank) {}
    uint32_t rank() const override { return rank_; }
    uint32_t size() const override { return static_cast<uint32_t>(team_.given_.size()); }

    std::vector<std::string> Gather(std::string bytes) override {
      const std::vector<std::string> all = Exchange(std::move(bytes));
      return rank_ == 0 ? all : std::vector<std::string>();
    }
    std::string Broadcast(std::string bytes) override { return Exchange(std::move(bytes))[0]; }

   private:
    std::vector<std::string> Exchange(std::string bytes) {
      team_.given_[rank_] = std::move(bytes);
      team_.meet_.arrive_and_wait();
      std::vector<std::string> all = team_.given_;
      team_.meet_.arrive_and_wait();
      return all;
    }

    ThreadTeam& team_;
    const uint32_t rank_;
  };

  std::vector<std::string> given_;  // by rank
  std::barrier<> meet_;
};

}  // namespace paceline::tools
