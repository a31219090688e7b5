#include "api/nccl/src/comm.h"

#include <algorithm>
#include <utility>

namespace paceline::nccl {

Comm::Comm(std::shared_ptr<Device> device, api::Connection connection, Direction direction, abi::Profiler profiler)
    : device_(device.get()),
      keep_(std::move(device)),
      connection_(std::move(connection)),
      direction_(direction),
      profiler_(profiler) {}

Comm::~Comm() = default;

void Comm::Close(std::unique_ptr<Comm> comm) {
  const std::shared_ptr<Device> device = std::move(comm->keep_);  // ends after the lock, perhaps with the device
  const auto lock = device->Lock();
  comm->retired_ = true;
  const bool unfinished = comm->operations_ > 0 || !comm->waiting_.empty();
  comm->AbandonCopies();
  // Unfinished operations end at once and the peer is told. Without any it is told in order; but where complete sends
  // may still wait there for their receive, it has to close first.
  if (unfinished) {
    comm->connection_.Abort();
  } else if (comm->direction_ == Direction::kReceive || device->matched_sends()) {
    comm->connection_.Close();
  }
  Device& busy = *device;
  busy.Retire(std::move(comm));
  busy.Progress();
}

bool Comm::over() const { return retired_ && operations_ == 0 && connection_.state() == api::ConnectionState::kClosed; }

Request* Comm::NewRequest() {
  if (in_flight_ == kMaxInFlight) return nullptr;
  ++in_flight_;
  if (free_.empty()) {
    requests_.emplace_back();
    free_.push_back(&requests_.back());
  }
  Request* request = free_.back();
  free_.pop_back();
  request->comm = this;
  request->unfinished = 0;
  request->failed = false;
  request->told = false;
  request->error.clear();
  return request;
}

void Comm::Free(Request* request) {
  --in_flight_;
  free_.push_back(request);
}

Attempt::~Attempt() {
  if (device == nullptr) return;
  const auto lock = device->Lock();
  const api::Connection ends = std::move(connection);
}

// ---- listener

Listener::Listener(std::shared_ptr<Device> device, api::Listener listener, abi::Profiler profiler)
    : device_(std::move(device)), listener_(std::move(listener)), profiler_(profiler) {
  device_->Add(this);
}

Listener::~Listener() { device_->Remove(this); }

api::Result<std::unique_ptr<Listener>> Listener::Open(std::shared_ptr<Device> device, abi::Profiler profiler) {
  auto listener = device->context().Listen();
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<Listener>(new Listener(std::move(device), *std::move(listener), profiler));
}

bool Listener::TakeRequests() {
  bool any = false;
  while (auto connection = listener_.Accept()) {
    accepted_.push_back(*std::move(connection));
    any = true;
  }
  return any;
}

std::unique_ptr<Comm> Listener::Accept() {
  device_->Progress();
  // One that has ended again is handed over too: its operations say so, where NCCL would wait for another for ever.
  const auto ready = std::find_if(accepted_.begin(), accepted_.end(), [](const api::Connection& connection) {
    return connection.state() != api::ConnectionState::kConnecting;
  });
  if (ready == accepted_.end()) return nullptr;
  api::Connection connection = std::move(*ready);
  accepted_.erase(ready);
  return std::make_unique<Comm>(device_, std::move(connection), Comm::Direction::kReceive, profiler_);
}

void Listener::Close(std::unique_ptr<Listener> listener) {
  const std::shared_ptr<Device> device = listener->device_;  // ends after the lock
  const auto lock = device->Lock();
  listener.reset();
}

}  // namespace paceline::nccl
