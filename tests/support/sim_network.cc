#include "tests/support/sim_network.h"

#include <utility>

namespace paceline::support {

Time SimNetwork::Driver::Poll(Time now) {
  const Time next = host_->Poll(now);
  if (network_->done_ != nullptr && (*network_->done_)()) network_->fabric_->Stop();
  return next;
}

void SimNetwork::AttachHost(Polled* host) {
  drivers_.push_back(std::make_unique<Driver>(this, host));
  fabric_->SetDriver(static_cast<uint32_t>(drivers_.size() - 1), drivers_.back().get());
}

void SimNetwork::Touch(Polled* host) {
  for (uint32_t i = 0; i < drivers_.size(); ++i) {
    if (drivers_[i]->host() == host) fabric_->RequestPoll(i, fabric_->now());
  }
}

bool SimNetwork::Run(Time deadline, const std::function<bool()>& done) {
  if (done()) return true;
  for (uint32_t i = 0; i < drivers_.size(); ++i) fabric_->RequestPoll(i, fabric_->now());
  done_ = &done;
  // An earlier Run that stopped before its deadline left a stop behind: go on until ours.
  while (!done() && fabric_->now() < deadline) fabric_->Run(deadline);
  done_ = nullptr;
  return done();
}

}  // namespace paceline::support
