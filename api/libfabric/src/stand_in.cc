#include "api/libfabric/src/stand_in.h"

#include <sys/prctl.h>

#include <chrono>
#include <utility>

#include "transport/engine/signals_kept_out.h"

namespace paceline::libfabric {
namespace {

using namespace std::chrono_literals;

// A program has been away for as long as twice that before somebody looks after its peers: less than the least time
// after which they send again what nobody has acknowledged (20 ms). Rare enough to cost next to nothing.
constexpr auto kBetweenLooks = 8ms;
constexpr auto kWhileBusy = 1ms;

}  // namespace

StandIn::StandIn(std::function<bool()> tick) : tick_(std::move(tick)) {
  const SignalsKeptOut here;
  thread_ = std::thread([this] { Run(); });
}

StandIn::~StandIn() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StandIn::Run() {
  prctl(PR_SET_NAME, "paceline-standin");
  auto pause = kBetweenLooks;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [this] { return stop_; })) {
    lock.unlock();
    pause = tick_() ? kWhileBusy : kBetweenLooks;
    lock.lock();
  }
}

}  // namespace paceline::libfabric
