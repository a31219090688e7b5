// Sends, grouped receives, and what they come to.
#include <algorithm>

#include "api/nccl/src/comm.h"
#include "api/nccl/src/log.h"
#include "api/nccl/src/profiler_event.h"

namespace paceline::nccl {
namespace {

using api::OperationStatus;
using api::PostResult;

bool Contains(const std::vector<uint64_t>& tags, uint64_t tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

}  // namespace

abi::Result Comm::Admit(const Slot& slot, Part* part) {
  *part = {.data = slot.data, .bytes = slot.bytes, .tag = static_cast<uint32_t>(slot.tag)};
  if (slot.bytes > kMostMessageBytes) {
    Warn("a message of " + std::to_string(slot.bytes) + " bytes; it may have up to " +
         std::to_string(kMostMessageBytes));
    return abi::Result::kInvalidArgument;
  }
  if (slot.bytes == 0 || slot.memory == nullptr) return abi::Result::kSuccess;
  if (!slot.memory->Holds(slot.data, slot.bytes)) {
    Warn("an operation on " + std::to_string(slot.bytes) + " bytes that its memory handle does not hold");
    return abi::Result::kInvalidArgument;
  }
  part->region = slot.memory->RegionFor(*device_);
  const auto copies = slot.memory->CopiesFor(*device_);
  if (!copies.ok()) {
    Warn("memory of a GPU: " + copies.status().message());
    return abi::Result::kCudaError;
  }
  if (*copies == nullptr) return abi::Result::kSuccess;
  part->staging = direction_ == Direction::kSend ? (*copies)->out.get() : (*copies)->in.get();
  if (!part->staging->Fits(slot.bytes)) {
    Warn("a message of " + std::to_string(slot.bytes) + " bytes in memory of a GPU; staging takes up to " +
         std::to_string(kStagingPoolBytes));
    return abi::Result::kInvalidArgument;
  }
  return abi::Result::kSuccess;
}

abi::Result Comm::Post(const Slot* slots, int count, Request** result) {
  *result = nullptr;
  std::array<Part, kMaxReceives> parts;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (const abi::Result answer = Admit(slots[i], &parts[i]); answer != abi::Result::kSuccess) return answer;
  }
  if (connection_.state() != api::ConnectionState::kEstablished) {
    Warn("the connection is lost: " + connection_.close_reason());
    return abi::Result::kRemoteError;
  }
  Request* request = NewRequest();
  if (request == nullptr) {
    device_->Progress();
    return abi::Result::kSuccess;
  }
  request->count = count;
  request->unfinished = count;
  request->parts = parts;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    request->parts[i].request = request;
    waiting_.push_back(&request->parts[i]);
  }
  if (Care()) device_->Attend(this);
  for (int i = 0; i < count; ++i) StartEvent(request->parts[static_cast<size_t>(i)], slots[i].parent);
  *result = request;
  return abi::Result::kSuccess;
}

bool Comm::Care() {
  PostWaiting();
  const bool copying = AwaitCopies();
  return copying || !waiting_.empty();
}

void Comm::PostWaiting() {
  held_tags_.clear();
  bool pool = true;  // who finds it empty is first when something comes back
  std::erase_if(waiting_, [this, &pool](Part* part) {
    const bool oldest = !Contains(held_tags_, part->tag);
    // Copies of later sends go on while an earlier one, or the network, is not ready.
    if (part->staging != nullptr && part->bounce == nullptr) pool &= TakeBounce(part, oldest, pool);
    if (!oldest) return false;
    if (PostPart(part)) return true;
    held_tags_.push_back(part->tag);
    return false;
  });
}

bool Comm::TakeBounce(Part* part, bool oldest, bool from_pool) {
  if (from_pool) part->bounce = part->staging->Take(part->bytes);
  const bool pool_had_one = part->bounce != nullptr;
  if (part->bounce == nullptr && oldest && !Contains(bounce_tags_, part->tag)) {
    part->bounce = part->staging->TakeBesidePool(part->bytes);
  }
  if (part->bounce == nullptr) return false;
  bounce_tags_.push_back(part->tag);
  if (direction_ == Direction::kSend) CopyOut(part);
  return pool_had_one;
}

void Comm::CopyOut(Part* part) {
  const auto copy =
      part->staging->CopyToHost(part->bounce, reinterpret_cast<gpudirect::DevicePointer>(part->data), part->bytes);
  if (copy.ok()) {
    part->copy = *copy;
  } else {
    part->request->failed = true;
    part->request->error = std::string(copy.status().message());
  }
}

bool Comm::PostPart(Part* part) {
  if (part->staging != nullptr) {
    if (part->bounce == nullptr) return false;
    if (part->copy != nullptr) {
      const auto state = part->staging->Poll(part->copy);
      if (state == gpudirect::Staging::State::kPending) return false;
      part->copy = nullptr;
      if (state == gpudirect::Staging::State::kFailed) {
        part->request->failed = true;
        part->request->error = "the copy from the GPU failed";
      }
    }
    if (part->request->failed && direction_ == Direction::kSend) {
      GiveBounce(part);
      Finish(part, false, 0, "");
      return true;
    }
  }
  const api::Buffer buffer = {
      .data = part->bounce == nullptr ? part->data : part->bounce, .bytes = part->bytes, .region = part->region};
  const auto user_data = reinterpret_cast<uint64_t>(part);
  const PostResult posted = direction_ == Direction::kSend ? connection_.Send(buffer, part->tag, user_data)
                                                           : connection_.Receive(buffer, part->tag, 0, user_data);
  if (posted == PostResult::kTryAgain) return false;
  if (posted == PostResult::kOk) {
    ++operations_;
  } else {
    GiveBounce(part);
    Finish(part, false, 0, std::string("it could not be posted: ") + api::PostResultName(posted));
  }
  return true;
}

void Comm::Hand(const api::Completion& completion) {
  auto* part = reinterpret_cast<Part*>(completion.user_data);
  if (part == nullptr) return;  // the plugin posts nothing without
  Comm* comm = part->request->comm;
  --comm->operations_;
  const bool ok = completion.status == OperationStatus::kOk;
  if (ok && part->bounce != nullptr && comm->direction_ == Direction::kReceive && completion.bytes > 0 &&
      !comm->retired_) {
    return comm->CopyIn(part, completion.bytes);
  }
  comm->GiveBounce(part);
  comm->Finish(part, ok, completion.bytes,
               completion.status == OperationStatus::kTruncated ? "the send was longer than its receive"
                                                                : api::OperationStatusName(completion.status));
}

void Comm::CopyIn(Part* part, size_t bytes) {
  const auto copy =
      part->staging->CopyToDevice(reinterpret_cast<gpudirect::DevicePointer>(part->data), part->bounce, bytes);
  if (!copy.ok()) {
    GiveBounce(part);
    return Finish(part, false, 0, std::string(copy.status().message()));
  }
  part->copy = *copy;
  part->bytes = bytes;
  copying_.push_back(part);
  device_->Attend(this);
}

bool Comm::AwaitCopies() {
  std::erase_if(copying_, [this](Part* part) {
    const auto state = part->staging->Poll(part->copy);
    if (state == gpudirect::Staging::State::kPending) return false;
    part->copy = nullptr;
    GiveBounce(part);
    Finish(part, state == gpudirect::Staging::State::kDone, part->bytes, "the copy to the GPU failed");
    return true;
  });
  return !copying_.empty();
}

void Comm::GiveBounce(Part* part) {
  if (part->bounce == nullptr) return;
  part->staging->Give(part->bounce);
  part->bounce = nullptr;
  const auto tag = std::find(bounce_tags_.begin(), bounce_tags_.end(), part->tag);
  *tag = bounce_tags_.back();
  bounce_tags_.pop_back();
}

void Comm::AbandonCopies() {
  const auto abandon = [this](Part* part) {
    if (part->copy != nullptr) part->staging->Abandon(part->copy);
    part->copy = nullptr;
    GiveBounce(part);
  };
  for (Part* part : waiting_) abandon(part);
  for (Part* part : copying_) abandon(part);
  waiting_.clear();
  copying_.clear();
}

void Comm::Finish(Part* part, bool ok, size_t bytes, const std::string& error) {
  Request* request = part->request;
  part->bytes = bytes;
  --request->unfinished;
  if (!ok && !request->failed) {
    request->failed = true;
    request->error = error;
  }
  if (request->told && request->unfinished == 0) Free(request);
}

abi::Result Comm::Test(Request* request, int* done, int* bytes) {
  *done = 0;
  if (request->unfinished > 0) device_->Progress();
  // One that has failed is told at once: the other slots of a group may never be filled.
  if (request->unfinished > 0 && !request->failed) return abi::Result::kSuccess;
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
  if (request->unfinished > 0) {
    request->told = true;
  } else {
    Free(request);
  }
  return result;
}

abi::Result Comm::Flush(void* const* memory, int count) {
  for (int i = 0; memory != nullptr && i < count; ++i) {
    if (memory[i] == nullptr) continue;
    if (const api::Status flushed = static_cast<const Memory*>(memory[i])->Flush(*device_); !flushed.ok()) {
      Warn("iflush: " + flushed.message());
      return abi::Result::kCudaError;
    }
  }
  return abi::Result::kSuccess;
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
