// The processes that mpirun or srun started for one study, and how bytes get from one to another. Each executes its
// share of the runs; rank 0 gets all outcomes, and it alone speaks and writes.
//
// Both calls are collective: every rank makes the same ones in the same order, and returns when all have. When a
// process dies, or the network between them, the launcher ends all: nobody waits for ever.
//
// It is made by a module that is loaded only in such a process (open_exchange.h), so that the command itself needs no
// MPI.
//
// Thread rule: main thread, while no other thread of the process uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::tools {

class RunExchange {
 public:
  virtual ~RunExchange() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // At rank 0 what each rank gave, by rank; elsewhere nothing.
  virtual std::vector<std::string> Gather(std::string bytes) = 0;
  // What rank 0 gave; nobody looks at what others give.
  virtual std::string Broadcast(std::string bytes) = 0;
};

// The one function of the module, under this name. The caller owns what it returns; once in the life of a process.
using MakeRunExchange = RunExchange*();
inline constexpr char kMakeRunExchange[] = "PacelineMakeRunExchange";

}  // namespace paceline::tools
