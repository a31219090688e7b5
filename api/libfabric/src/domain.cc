#include "api/libfabric/src/domain.h"

#include <poll.h>
#include <rdma/providers/fi_log.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "api/cpp/src/variables.h"
#include "api/libfabric/src/atomic.h"
#include "api/libfabric/src/av.h"
#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/cq.h"
#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/interfaces.h"
#include "api/libfabric/src/mr.h"
#include "api/libfabric/src/names.h"
#include "api/libfabric/src/parameters.h"
#include "api/libfabric/src/passive.h"
#include "api/libfabric/src/poll.h"
#include "api/libfabric/src/scalable.h"

namespace paceline::libfabric {
namespace {

// A program that reads its queue over and over lets others have the core, perhaps the peer that it waits for, after so
// many passes (some microseconds) that brought nothing; at once where there are more ranks than cores.
constexpr uint32_t kPatience = 32;
constexpr uint32_t kPassesBetweenCare = 64;   // of those that brought something: nobody need wait for a pause
constexpr int64_t kLongestSleepMillis = 100;  // another thread may have taken what this one waits for
constexpr int kStandInPasses = 100;           // at a time: the program may be back
// Longer than the core's own: where ranks share cores, to wait for a receive costs each of them a turn or two.
constexpr uint32_t kEagerBytes = 65536;

int Close(fid* object) {
  auto* domain = FromFid<Domain, fid_domain>(object);
  if (domain->references > 0) return -FI_EBUSY;
  domain->BindEq(nullptr);
  delete domain;
  return 0;
}

// With FI_REG_MR for events of memory registration alone, of which there are none: it is complete when the call
// returns.
int Bind(fid* object, fid* other, uint64_t flags) {
  if (other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if ((flags & FI_REG_MR) == 0) FromFid<Domain, fid_domain>(object)->BindEq(FromFid<Eq, fid_eq>(other));
  return 0;
}

int Control(fid* object, int command, void* argument) {
  auto* domain = FromFid<Domain, fid_domain>(object);
  const Domain::Guard guard(domain);
  switch (command) {
    case FI_QUEUE_WORK:
      return QueueWork(domain->deferred(), static_cast<fi_deferred_work*>(argument));
    case FI_CANCEL_WORK:
      return domain->deferred().Cancel(argument) ? 0 : -FI_ENOENT;
    case FI_FLUSH_WORK:
      domain->deferred().Clear();
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = Bind, .control = Control, .ops_open = NotSupported()};
fi_ops_domain calls = {.size = sizeof(fi_ops_domain),
                       .av_open = OpenAv,
                       .cq_open = OpenCq,
                       .endpoint = OpenEndpoint,
                       .scalable_ep = OpenScalable,
                       .cntr_open = OpenCounter,
                       .poll_open = OpenPoll,
                       .stx_ctx = OpenSharedTransmit,
                       .srx_ctx = OpenSharedReceive,
                       .query_atomic = QueryAtomic,
                       .query_collective = NotSupported(),
                       .endpoint2 = NotSupported()};

}  // namespace

Domain::Domain(fid_fabric* fabric, api::Context paceline, const fi_info& info)
    : fid_domain{},
      fabric_(fabric),
      paceline_(std::move(paceline)),
      mr_mode_(info.domain_attr->mr_mode),
      remote_events_((info.caps & FI_RMA_EVENT) != 0),
      deferred_(std::make_unique<DeferredQueue>()) {}

Domain::~Domain() = default;

bool Domain::TakeCompletions() {
  if (is_held_up() && waits_for_last_ == 0) {
    paceline_.Progress();
    return false;
  }
  std::array<api::Completion, 32> batch;
  const size_t count = paceline_.completions().Poll(batch.data(), batch.size());
  drained_ |= count < batch.size();
  if (count == 0) return false;
  for (size_t i = 0; i < count; ++i) Hand(batch[i]);
  deferred_->Run();
  paceline_.Transmit();  // a program that has what it waited for may not come back soon: what it owes leaves now
  return true;
}

void Domain::Progress() {
  present_ = true;
  armed_ = false;
  owes_ = false;
  if (TakeCompletions()) {
    idle_passes_ = 0;
    if (++busy_passes_ % kPassesBetweenCare != 0) return;
    paceline_.Progress();  // completions may be of the program's own doing: receives that it cancels
    CareForConnections();
    return;
  }
  CareForConnections();
  deferred_->Run();
  if (++idle_passes_ < kPatience && !paceline_.crowded()) return;
  sched_yield();
  if (TakeCompletions()) idle_passes_ = 0;  // the program may let others have the core as well before it comes back
}

void Domain::CareForConnections() {
  const bool drained = std::exchange(drained_, false);
  for (Endpoint* endpoint : endpoints_) endpoint->CareForLinks(drained);
  if (passive_ != nullptr) passive_->Care();
}

void Domain::BindEq(Eq* eq) {
  if (eq != nullptr) eq->Watch(this);
  Use<Eq> before = eq;
  {
    const Guard guard(this);
    std::swap(before, eq_);
  }
  if (before) before->Unwatch(this);
}

int Domain::StartStandIn() {
  try {
    stand_in_ = std::make_unique<StandIn>([this] { return StandInForProgram(); });
  } catch (const std::exception& error) {
    FI_WARN(Provider(), FI_LOG_DOMAIN, "no thread to stand in for a program that computes: %s\n", error.what());
    return FI_EAGAIN;
  }
  return 0;
}

bool Domain::StandInForProgram() {
  const Guard guard(this);
  if (std::exchange(present_, false)) return false;
  pollfd watched = {.fd = descriptor(), .events = POLLIN, .revents = 0};
  if (armed_ && poll(&watched, 1, 0) == 0) return false;  // nothing has come that would wake it
  bool busy = false;
  for (int pass = 0; pass < kStandInPasses; ++pass) {
    if (!TakeCompletions() && !paceline_.Progress()) break;
    busy = true;
  }
  CareForConnections();
  if (armed_) Interrupt();  // the descriptor was readable, and stays so for whoever waits for it
  return busy;
}

void Domain::Hand(const api::Completion& completion) {
  auto* operation = reinterpret_cast<Operation*>(completion.user_data);
  if (operation != nullptr) return operation->endpoint->Complete(operation, completion);
  HandRemoteAccess(completion);
}

void Domain::HandRemoteAccess(const api::Completion& completion) {
  const bool reads = completion.operation == api::Operation::kRead || completion.remote_fetch;
  const uint64_t kind = reads ? FI_REMOTE_READ : FI_REMOTE_WRITE;
  if (const auto found = region_counters_.find(completion.remote_region); found != region_counters_.end()) {
    for (const CounterBinding& binding : found->second) {
      if ((binding.kinds & kind) != 0) binding.counter->Count(true);
    }
  }
  for (Endpoint* endpoint : endpoints_) {
    if (endpoint->TakeRemoteAccess(completion, kind)) return;
  }
}

void Domain::SetCountersOf(api::RegionId region, const std::vector<CounterBinding>& counters) {
  region_counters_.erase(region);
  if (!counters.empty()) region_counters_[region] = counters;
}

int64_t Domain::NowMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Domain::Sleep(int64_t until) {
  pollfd waiting = {.fd = descriptor(), .events = POLLIN, .revents = 0};
  poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(until - NowMillis(), 0, kLongestSleepMillis)));
}

int NewDomain(fid_fabric* fabric, const fi_info& info, Places places, Domain** result) {
  const std::vector<Interface> interfaces = ListInterfaces();
  const auto interface = std::find_if(interfaces.begin(), interfaces.end(),
                                      [&](const Interface& one) { return one.name == info.domain_attr->name; });
  if (interface == interfaces.end()) return -FI_ENODEV;
  auto options = api::OptionsFromVariables({}, Setting);
  if (!options.ok()) {
    FI_WARN(Provider(), FI_LOG_DOMAIN, "%s\n", options.status().message().c_str());
    return -FI_EINVAL;
  }
  if (options->lane != "shm") options->bind = interface->bind;  // shared memory has no interfaces
  options->prompt_acks = true;                                  // see TakeCompletions
  if (options->eager_bytes == 0) options->eager_bytes = kEagerBytes;
  if (info.domain_attr->data_progress == FI_PROGRESS_AUTO) options->progress = api::ProgressMode::kThread;
  // A program that gave a port to listen on gets it where it is free; endpoints say where they are in any case.
  const std::vector<std::string> usual = options->bind;
  if (places != Places::kAny && options->lane != "shm" && info.src_addr != nullptr &&
      info.src_addrlen == Address::kBytes) {
    options->bind = BindTo(Address::From(info.src_addr), usual);
  }
  auto paceline = api::Context::Create(*options);
  if (!paceline.ok() && paceline.status().code() == api::StatusCode::kAlreadyExists && options->bind != usual &&
      places == Places::kPreferNamed) {
    options->bind = usual;
    paceline = api::Context::Create(*options);
  }
  if (!paceline.ok()) {
    FI_WARN(Provider(), FI_LOG_DOMAIN, "%s\n", paceline.status().message().c_str());
    return -ErrorOf(paceline.status());
  }
  auto* domain = new (std::nothrow) Domain(fabric, *std::move(paceline), info);
  if (domain == nullptr) return -FI_ENOMEM;
  domain->fid = {.fclass = FI_CLASS_DOMAIN, .context = nullptr, .ops = &object_calls};
  domain->ops = &calls;
  domain->mr = &memory_calls;
  // With a progress thread too it looks after connections, which nobody else takes while the program does not call.
  if (const int error = domain->StartStandIn(); error != 0) {
    delete domain;
    return -error;
  }
  *result = domain;
  return 0;
}

int OpenDomain(fid_fabric* fabric, fi_info* info, fid_domain** result, void* context) {
  // The port that an info of connected endpoints names is a passive endpoint's.
  Domain* domain = nullptr;
  if (const int error = NewDomain(fabric, *info, IsConnected(*info) ? Places::kAny : Places::kPreferNamed, &domain)) {
    return error;
  }
  domain->fid.context = context;
  *result = domain;
  return 0;
}

int ErrorOf(const api::Status& status) {
  switch (status.code()) {
    case api::StatusCode::kOk:
      return 0;
    case api::StatusCode::kInvalidArgument:
      return FI_EINVAL;
    case api::StatusCode::kNotFound:
      return FI_ENODEV;
    case api::StatusCode::kAlreadyExists:
      return FI_EADDRINUSE;
    case api::StatusCode::kPermissionDenied:
      return FI_EACCES;
    case api::StatusCode::kResourceExhausted:
      return FI_EAGAIN;
    case api::StatusCode::kUnavailable:
      return FI_ECONNREFUSED;
    case api::StatusCode::kTimedOut:
      return FI_ETIMEDOUT;
    case api::StatusCode::kUnimplemented:
      return FI_ENOSYS;
    case api::StatusCode::kInternal:
      return FI_EOTHER;
  }
  return FI_EOTHER;
}

ssize_t ResultOf(PostResult result) {
  switch (result) {
    case PostResult::kOk:
      return 0;
    case PostResult::kTryAgain:
      return -FI_EAGAIN;
    case PostResult::kNotConnected:
      return -FI_ENOTCONN;
    case PostResult::kInvalidMemory:
    case PostResult::kInvalidArgument:
      return -FI_EINVAL;
  }
  return -FI_EOTHER;
}

int ErrorOf(api::OperationStatus status) {
  switch (status) {
    case api::OperationStatus::kOk:
      return FI_SUCCESS;
    case api::OperationStatus::kCancelled:
      return FI_ECANCELED;
    case api::OperationStatus::kTruncated:
      return FI_ETRUNC;
    case api::OperationStatus::kRemoteAccess:
      return FI_EACCES;
    case api::OperationStatus::kConnectionClosed:
      return FI_ECONNABORTED;
    case api::OperationStatus::kPeerLost:
      return FI_EHOSTUNREACH;
    case api::OperationStatus::kRemoteError:
      return FI_EIO;
  }
  return FI_EOTHER;
}

int ErrorOf(api::CloseCode code) {
  switch (code) {
    case api::CloseCode::kRefusedNoListener:
    case api::CloseCode::kRefusedVersion:
    case api::CloseCode::kRefusedMismatch:
    case api::CloseCode::kRefusedFull:
    case api::CloseCode::kRefusedByApplication:
    case api::CloseCode::kRefusedKey:
    case api::CloseCode::kRefusedNoRoute:
    case api::CloseCode::kByPeer:  // taken in, and ended without an answer
    case api::CloseCode::kAborted:
      return FI_ECONNREFUSED;
    case api::CloseCode::kUnreachable:
      return FI_ETIMEDOUT;
    case api::CloseCode::kPeerLost:
    case api::CloseCode::kProtocolError:
      return FI_EHOSTUNREACH;
    case api::CloseCode::kNone:
    case api::CloseCode::kLocal:
      return FI_ECONNABORTED;
  }
  return FI_EOTHER;
}

}  // namespace paceline::libfabric
