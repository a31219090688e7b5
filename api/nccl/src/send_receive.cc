// Sends, grouped receives, and what they come to.
#include <algorithm>

#include "api/nccl/src/comm.h"
#include "api/nccl/src/log.h"
#include "api/nccl/src/profiler_event.h"

namespace paceline::nccl {
namespace {

using api::OperationStatus;
using api::PostResult;

}  // namespace

abi::Result Comm::Post(const Slot* slots, int count, Request** result) {
  *result = nullptr;
  for (int i = 0; i < count; ++i) {
    const Slot& slot = slots[i];
    if (slot.bytes > kMostMessageBytes) {
      Warn("a message of " + std::to_string(slot.bytes) + " bytes; it may have up to " +
           std::to_string(kMostMessageBytes));
      return abi::Result::kInvalidArgument;
    }
    if (slot.bytes > 0 && slot.memory != nullptr && !slot.memory->Holds(slot.data, slot.bytes)) {
      Warn("an operation on " + std::to_string(slot.bytes) + " bytes that its memory handle does not hold");
      return abi::Result::kInvalidArgument;
    }
  }
  if (connection_.state() != api::ConnectionState::kEstablished) {
    Warn("the connection is lost: " + connection_.close_reason());
    return abi::Result::kRemoteError;
  }
  Care();
  Request* request = waiting_.empty() ? NewRequest() : nullptr;
  if (request == nullptr) {
    device_->Progress();
    return abi::Result::kSuccess;
  }
  request->count = count;
  request->unfinished = count;
  for (int i = 0; i < count; ++i) {
    request->parts[static_cast<size_t>(i)] = {.request = request,
                                              .data = slots[i].data,
                                              .bytes = slots[i].bytes,
                                              .tag = static_cast<uint32_t>(slots[i].tag),
                                              .memory = slots[i].memory};
  }
  for (int i = 0; i < count; ++i) waiting_.push_back(&request->parts[static_cast<size_t>(i)]);
  if (Care() && waiting_.size() == static_cast<size_t>(count)) {  // not one of them found room
    waiting_.clear();
    Free(request);
    device_->Progress();
    return abi::Result::kSuccess;
  }
  if (!waiting_.empty()) device_->Attend(this);
  for (int i = 0; i < count; ++i) StartEvent(request->parts[static_cast<size_t>(i)], slots[i].parent);
  *result = request;
  return abi::Result::kSuccess;
}

bool Comm::Care() {
  while (!waiting_.empty()) {
    if (!PostPart(waiting_.front())) return true;
    waiting_.pop_front();
  }
  return false;
}

bool Comm::PostPart(Part* part) {
  const api::Buffer buffer = {.data = part->data,
                              .bytes = part->bytes,
                              .region = part->memory == nullptr ? 0 : part->memory->RegionFor(*device_)};
  const auto user_data = reinterpret_cast<uint64_t>(part);
  const PostResult posted = direction_ == Direction::kSend ? connection_.Send(buffer, part->tag, user_data)
                                                           : connection_.Receive(buffer, part->tag, 0, user_data);
  if (posted == PostResult::kTryAgain) return false;
  if (posted == PostResult::kOk) {
    ++operations_;
  } else {
    Finish(part, false, 0, std::string("it could not be posted: ") + api::PostResultName(posted));
  }
  return true;
}

void Comm::Hand(const api::Completion& completion) {
  auto* part = reinterpret_cast<Part*>(completion.user_data);
  if (part == nullptr) return;  // the plugin posts nothing without
  Comm* comm = part->request->comm;
  --comm->operations_;
  comm->Finish(part, completion.status == OperationStatus::kOk, completion.bytes,
               completion.status == OperationStatus::kTruncated ? "the send was longer than its receive"
                                                                : api::OperationStatusName(completion.status));
}

void Comm::Finish(Part* part, bool ok, size_t bytes, const std::string& error) {
  Request* request = part->request;
  part->bytes = bytes;
  --request->unfinished;
  if (ok || request->failed) return;
  request->failed = true;
  request->error = error;
}

abi::Result Comm::Test(Request* request, int* done, int* bytes) {
  *done = 0;
  if (request->unfinished > 0) device_->Progress();
  if (request->unfinished > 0) return abi::Result::kSuccess;
  *done = 1;
  StopEvents(request);
  for (int i = 0; bytes != nullptr && i < request->count; ++i) {
    bytes[i] = static_cast<int>(request->parts[static_cast<size_t>(i)].bytes);
  }
  abi::Result result = abi::Result::kSuccess;
  if (request->failed) {
    const std::string reason = connection_.close_reason();
    Warn(std::string(direction_ == Direction::kSend ? "a send" : "a receive") + " failed: " + request->error +
         (reason.empty() ? "" : " (connection " + reason + ")"));
    result = abi::Result::kRemoteError;
  }
  Free(request);
  return result;
}

void Comm::StartEvent(Part& part, void* parent) {
  if (profiler_ == nullptr || parent == nullptr) return;
  ProfilerData data = {.kind = direction_ == Direction::kSend ? ProfilerData::kSend : ProfilerData::kReceive,
                       .device = static_cast<uint32_t>(device_->number()),
                       .connection = connection_.id(),
                       .tag = static_cast<uint32_t>(part.tag),
                       .bytes = part.bytes};
  profiler_(&part.event, abi::ProfilerEvent::kStart, parent, kProfilerPlugin, &data);
}

void Comm::StopEvents(Request* request) {
  for (int i = 0; i < request->count; ++i) {
    Part& part = request->parts[static_cast<size_t>(i)];
    if (part.event != nullptr) profiler_(&part.event, abi::ProfilerEvent::kStop, nullptr, kProfilerPlugin, nullptr);
    part.event = nullptr;
  }
}

}  // namespace paceline::nccl
