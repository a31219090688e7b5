#include "tools/perf/session.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

constexpr auto kConnectPatience = std::chrono::seconds(15);

}  // namespace

absl::Status FromApi(const api::Status& status) {
  if (status.ok()) return absl::OkStatus();
  switch (status.code()) {
    case api::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(status.message());
    case api::StatusCode::kNotFound:
      return absl::NotFoundError(status.message());
    case api::StatusCode::kUnimplemented:
      return absl::UnimplementedError(status.message());
    default:
      return absl::UnavailableError(status.message());
  }
}

Block::Block(size_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
  data_.reset(static_cast<uint8_t*>(std::aligned_alloc(4096, bytes_)));
  if (data_ == nullptr) {
    bytes_ = 0;
    return;
  }
  if (bytes_ >= (4u << 20)) madvise(data_.get(), bytes_, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, bytes_);
}

Session::Session(api::Context context, Rendezvous* rendezvous)
    : context_(std::move(context)), rendezvous_(rendezvous), connections_(rendezvous->world()) {
  rendezvous_->set_idle([this] {
    context_.Progress();
    context_.Wait(std::chrono::microseconds(200));
  });
}

Session::~Session() {
  rendezvous_->set_idle([] {});
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const api::ContextOptions& options, Rendezvous* rendezvous,
                                                         std::optional<api::Context> opened) {
  api::Result<api::Context> context = opened ? *std::move(opened) : api::Context::Create(options);
  // A rank that cannot start says so to the others, who would wait for it otherwise.
  const auto states = rendezvous->AllGather(context.ok() ? "" : context.status().message());
  if (!context.ok()) return FromApi(context.status());
  if (!states.ok()) return states.status();
  for (uint32_t rank = 0; rank < states->size(); ++rank) {
    if (!(*states)[rank].empty()) return absl::UnavailableError(absl::StrCat("rank ", rank, ": ", (*states)[rank]));
  }
  std::unique_ptr<Session> session(new Session(*std::move(context), rendezvous));
  session->several_engines_ = options.engines > 1;
  if (absl::Status status = session->Connect(); !status.ok()) return status;
  return session;
}

absl::Status Session::Connect() {
  // A listener per peer of higher rank, so that whoever comes is known by where it came.
  std::map<uint32_t, api::Listener> listeners;
  std::string own(world() * api::Handle::kBytes, '\0');
  for (uint32_t peer = rank() + 1; peer < world(); ++peer) {
    api::Result<api::Listener> listener = context_.Listen();
    if (!listener.ok()) return FromApi(listener.status());
    const api::Handle handle = listener->handle();
    std::memcpy(own.data() + peer * api::Handle::kBytes, handle.bytes.data(), api::Handle::kBytes);
    listeners[peer] = *std::move(listener);
  }
  const auto handles = rendezvous_->AllGather(own);
  if (!handles.ok()) return handles.status();
  for (uint32_t peer = 0; peer < rank(); ++peer) {
    if ((*handles)[peer].size() != own.size())
      return absl::FailedPreconditionError("ranks do not agree on their number");
    api::Handle handle;
    std::memcpy(handle.bytes.data(), (*handles)[peer].data() + rank() * api::Handle::kBytes, api::Handle::kBytes);
    api::Result<api::Connection> connection = context_.Connect(handle);
    if (!connection.ok()) return FromApi(connection.status());
    connections_[peer] = *std::move(connection);
  }
  for (auto& [peer, listener] : listeners) {
    api::Result<api::Connection> connection = listener.WaitAccept(kConnectPatience);
    if (!connection.ok()) {
      return absl::UnavailableError(absl::StrCat("connection from rank ", peer, ": ", connection.status().message()));
    }
    connections_[peer] = *std::move(connection);
  }
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank()) continue;
    if (api::Status status = connections_[peer].WaitEstablished(kConnectPatience); !status.ok()) {
      return absl::UnavailableError(absl::StrCat("connection to rank ", peer, ": ", status.message()));
    }
    rank_by_id_[connections_[peer].id()] = peer;
  }
  return Barrier();
}

uint32_t Session::RankOf(uint32_t connection_id) const {
  const auto found = rank_by_id_.find(connection_id);
  return found == rank_by_id_.end() ? rank() : found->second;
}

absl::Status Session::Failure(const api::Completion& done) const {
  const uint32_t peer = RankOf(done.connection);
  std::string what =
      absl::StrCat(OperationName(done.operation), " with rank ", peer, ": ", OperationStatusName(done.status));
  if (const std::string reason = connections_[peer].close_reason(); !reason.empty())
    absl::StrAppend(&what, " (connection closed, ", reason, ")");
  return absl::UnavailableError(what);
}

absl::StatusOr<size_t> Session::Take(api::Completion* out, size_t room, Duration timeout) {
  if (const size_t count = context_.completions().Poll(out, room)) return count;
  context_.Wait(std::chrono::nanoseconds(timeout.nanos()));
  if (const size_t count = context_.completions().Poll(out, room)) return count;
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer != rank() && connections_[peer].state() == api::ConnectionState::kClosed) {
      return absl::UnavailableError(absl::StrCat("lost rank ", peer, ": ", connections_[peer].close_reason()));
    }
  }
  return size_t{0};
}

absl::StatusOr<std::vector<api::RemoteMemory>> Session::ExchangeMemory(api::RegionId region) {
  // What is for each rank; where that is the same, once for all.
  std::vector<api::RemoteMemory> own(world(), context_.ExportMemory(region));
  for (uint32_t peer = 0; peer < world() && several_engines_; ++peer) {
    if (peer != rank()) own[peer] = context_.ExportMemoryFor(connections_[peer], region);
  }
  if (!several_engines_) own.resize(1);
  const auto all = rendezvous_->AllGather(
      std::string(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(api::RemoteMemory)));
  if (!all.ok()) return all.status();
  std::vector<api::RemoteMemory> result(world());
  for (uint32_t peer = 0; peer < world(); ++peer) {
    const std::string& theirs = (*all)[peer];
    const bool for_all = theirs.size() == sizeof(api::RemoteMemory);
    if (!for_all && theirs.size() != world() * sizeof(api::RemoteMemory)) {
      return absl::FailedPreconditionError("ranks run different versions");
    }
    const size_t at = for_all ? 0 : rank() * sizeof(api::RemoteMemory);
    std::memcpy(static_cast<void*>(&result[peer]), theirs.data() + at, sizeof(api::RemoteMemory));
  }
  return result;
}

absl::StatusOr<api::RegionId> Session::Register(const Block& block) {
  if (block.data() == nullptr) return absl::ResourceExhaustedError("not enough memory for the buffers");
  const auto region =
      context_.RegisterMemory(block.data(), block.bytes(), api::kRemoteRead | api::kRemoteWrite | api::kRemoteAtomic);
  if (!region.ok()) return FromApi(region.status());
  return *region;
}

std::map<std::string, uint64_t> Session::Counters() const {
  std::map<std::string, uint64_t> result;
  for (const api::Counter& counter : context_.counters()) result[counter.name] = counter.value;
  return result;
}

}  // namespace paceline::tools
