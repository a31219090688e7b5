// What carries segments in a test, with a clock that moves only while Run runs: the scripted in-memory network and the
// simulated fabric both stand behind it. Hosts are polled as the engine is on real machines.
//
// Thread rule: one thread.
#pragma once

#include <functional>

#include "transport/base/time.h"

namespace paceline::support {

// Something that moves segments when it is polled.
class Polled {
 public:
  virtual ~Polled() = default;
  // Returns when it wants to be polled again at the latest, provided that nothing arrives or is posted before.
  virtual Time Poll(Time now) = 0;
};

class VirtualNetwork {
 public:
  virtual ~VirtualNetwork() = default;
  virtual Time now() const = 0;
  // `host` is borrowed. Numbered from 0 in the order of the calls.
  virtual void AttachHost(Polled* host) = 0;
  // Something was posted on this host: poll it at once when running (again).
  virtual void Touch(Polled* host) = 0;
  // Lets time pass until `done` says true (asked after each step), but not beyond `deadline`; returns done(). When
  // nothing is left to happen the clock jumps to the deadline.
  virtual bool Run(Time deadline, const std::function<bool()>& done) = 0;
};

}  // namespace paceline::support
