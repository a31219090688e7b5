// Moves a domain's data while its program does not. With manual progress a program that computes for long calls nobody,
// and would look dead to its peers after their time-out, though it only has other things to do; who sends to it would
// wait for as long, and send again what has not been acknowledged. With a progress thread nobody takes connections
// meanwhile. So a thread looks from time to time whether the program has been here, and moves data if not.
//
// Thread rule: made and destroyed by the domain's owner; `tick` is called from the thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace paceline::libfabric {

class StandIn {
 public:
  // Calls `tick` every now and then until the end: soon again after it has answered true, that there was something to
  // do. Throws std::system_error where no thread can be had.
  explicit StandIn(std::function<bool()> tick);
  // Waits for a tick that is going on.
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  void Run();

  const std::function<bool()> tick_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline::libfabric
