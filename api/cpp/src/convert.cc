#include "api/cpp/src/convert.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace paceline::api {
namespace {

StatusCode CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return StatusCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return StatusCode::kInvalidArgument;
    case absl::StatusCode::kNotFound:
      return StatusCode::kNotFound;
    case absl::StatusCode::kAlreadyExists:
      return StatusCode::kAlreadyExists;
    case absl::StatusCode::kPermissionDenied:
      return StatusCode::kPermissionDenied;
    case absl::StatusCode::kResourceExhausted:
      return StatusCode::kResourceExhausted;
    case absl::StatusCode::kUnavailable:
      return StatusCode::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return StatusCode::kTimedOut;
    case absl::StatusCode::kUnimplemented:
      return StatusCode::kUnimplemented;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
    case Operation::kWrite:
      return "write";
    case Operation::kWriteImmediate:
      return "write_imm";
    case Operation::kRead:
      return "read";
    case Operation::kFetchAdd:
      return "fetch_add";
    case Operation::kCompareSwap:
      return "compare_swap";
    case Operation::kAtomic:
      return "atomic";
    case Operation::kFlush:
      return "flush";
  }
  return "unknown";
}

static_assert(static_cast<int>(AtomicOp::kMaskedSwap) == kLastAtomicOp &&
              static_cast<int>(AtomicOp::kSwapIfEqual) == static_cast<int>(paceline::AtomicOp::kSwapIfEqual) &&
              static_cast<int>(AtomicType::kLongDoubleComplex) == kLastAtomicType &&
              static_cast<int>(AtomicType::kFloat) == static_cast<int>(paceline::AtomicType::kFloat) &&
              kMaxAtomicBytes == limits::kMaxAtomicBytes);

size_t AtomicElementBytes(AtomicType type) { return SizeOf(static_cast<paceline::AtomicType>(type)); }

bool IsAtomicValid(AtomicOp op, AtomicType type) {
  return paceline::IsAtomicValid(static_cast<paceline::AtomicOp>(op), static_cast<paceline::AtomicType>(type));
}

const char* PostResultName(PostResult result) {
  switch (result) {
    case PostResult::kOk:
      return "ok";
    case PostResult::kTryAgain:
      return "try again";
    case PostResult::kNotConnected:
      return "not connected";
    case PostResult::kInvalidMemory:
      return "invalid memory";
    case PostResult::kInvalidArgument:
      return "invalid argument";
  }
  return "unknown";
}

const char* OperationStatusName(OperationStatus status) {
  switch (status) {
    case OperationStatus::kOk:
      return "ok";
    case OperationStatus::kCancelled:
      return "cancelled";
    case OperationStatus::kTruncated:
      return "truncated";
    case OperationStatus::kRemoteAccess:
      return "refused by the peer: memory";
    case OperationStatus::kConnectionClosed:
      return "connection closed";
    case OperationStatus::kPeerLost:
      return "peer lost";
    case OperationStatus::kRemoteError:
      return "given up by the peer";
  }
  return "unknown";
}

const char* CloseCodeName(CloseCode code) {
  return CloseReasonName(static_cast<CloseReason>(code)).data();  // a literal
}

Status FromAbsl(const absl::Status& status) {
  if (status.ok()) return Status();
  return Status(CodeOf(status.code()), std::string(status.message()));
}

paceline::LocalBuffer ToCore(const Buffer& buffer) {
  return {.data = buffer.data, .bytes = buffer.bytes, .region = buffer.region};
}

paceline::RemoteMemory ToCore(const RemoteMemory& remote) {
  paceline::RemoteMemory core;
  static_assert(sizeof(core.lane_keys) == sizeof(remote.lane_keys));
  core.key = remote.key;
  core.bytes = remote.bytes;
  core.lane_base = remote.lane_base;
  std::copy(remote.lane_keys.begin(), remote.lane_keys.end(), core.lane_keys.begin());
  return core;
}

RemoteMemory FromCore(const paceline::RemoteMemory& remote) {
  RemoteMemory result;
  result.key = remote.key;
  result.bytes = remote.bytes;
  result.lane_base = remote.lane_base;
  std::copy(remote.lane_keys.begin(), remote.lane_keys.end(), result.lane_keys.begin());
  return result;
}

Completion FromCore(const paceline::Completion& completion) {
  static_assert(static_cast<int>(Operation::kAtomic) == static_cast<int>(paceline::Operation::kAtomic));
  static_assert(static_cast<int>(OperationStatus::kRemoteError) ==
                static_cast<int>(paceline::OperationStatus::kRemoteError));
  return {
      .operation = static_cast<Operation>(completion.operation),
      .status = static_cast<OperationStatus>(completion.status),
      .has_immediate = completion.has_immediate,
      .released = completion.released,
      .connection = completion.connection,
      .user_data = completion.user_data,
      .offset = completion.offset,
      .bytes = completion.bytes,
      .tag = completion.tag,
      .immediate = completion.immediate,
      .result = completion.result,
      .remote_region = completion.region,
      .remote_fetch = completion.fetched,
  };
}

PostResult FromCore(paceline::PostResult result) {
  static_assert(static_cast<int>(PostResult::kInvalidArgument) ==
                static_cast<int>(paceline::PostResult::kInvalidArgument));
  return static_cast<PostResult>(result);
}

CloseCode FromCore(CloseReason reason) {
  static_assert(static_cast<int>(CloseCode::kByPeer) == static_cast<int>(CloseReason::kByPeer) &&
                static_cast<int>(CloseCode::kRefusedNoRoute) == static_cast<int>(CloseReason::kRefusedNoRoute));
  // The peer's refusal brings the number, which may be this one; the connection is over nevertheless.
  return reason == CloseReason::kNone ? CloseCode::kRefusedByApplication : static_cast<CloseCode>(reason);
}

Result<ParameterMap> ToParameters(const std::string& algorithm, const std::map<std::string, std::string>& texts) {
  ParameterMap parameters;
  const AlgorithmInfo* info = FindCongestionControl(algorithm);
  if (info == nullptr) return parameters;  // refused with the list of names where the algorithm is made
  for (const auto& [name, text] : texts) {
    const auto spec = std::find_if(info->parameters.begin(), info->parameters.end(),
                                   [&name = name](const ParameterSpec& candidate) { return candidate.name == name; });
    double number = 0;
    bool flag = false;
    if (spec == info->parameters.end() || std::holds_alternative<std::string>(spec->default_value)) {
      parameters[name] = text;  // unknown names are refused with the list of parameters where the algorithm is made
    } else if (std::holds_alternative<bool>(spec->default_value)) {
      if (!absl::SimpleAtob(text, &flag)) {
        return Status(StatusCode::kInvalidArgument,
                      "parameter " + name + " of " + algorithm + ": \"" + text + "\" is not true or false");
      }
      parameters[name] = flag;
    } else {
      if (!absl::SimpleAtod(text, &number)) {
        return Status(StatusCode::kInvalidArgument,
                      "parameter " + name + " of " + algorithm + ": \"" + text + "\" is not a number");
      }
      parameters[name] = number;
    }
  }
  return parameters;
}

}  // namespace paceline::api
