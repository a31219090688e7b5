#include "transport/core/types.h"

namespace paceline {

std::string_view OperationName(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
    case Operation::kWrite:
      return "write";
    case Operation::kWriteImmediate:
      return "write with immediate";
    case Operation::kRead:
      return "read";
    case Operation::kFetchAdd:
      return "fetch-add";
    case Operation::kCompareSwap:
      return "compare-swap";
    case Operation::kAtomic:
      return "atomic";
    case Operation::kFlush:
      return "flush";
  }
  return "?";
}

std::string_view PostResultName(PostResult result) {
  switch (result) {
    case PostResult::kOk:
      return "ok";
    case PostResult::kTryAgain:
      return "try again";
    case PostResult::kUnknownConnection:
      return "no such connection";
    case PostResult::kInvalidMemory:
      return "memory not registered, out of bounds, or without the permission";
    case PostResult::kInvalidArgument:
      return "invalid argument";
  }
  return "?";
}

std::string_view OperationStatusName(OperationStatus status) {
  switch (status) {
    case OperationStatus::kOk:
      return "ok";
    case OperationStatus::kCancelled:
      return "cancelled";
    case OperationStatus::kTruncated:
      return "message longer than the receive buffer";
    case OperationStatus::kRemoteAccess:
      return "remote access refused";
    case OperationStatus::kConnectionClosed:
      return "connection closed";
    case OperationStatus::kPeerLost:
      return "peer lost";
    case OperationStatus::kRemoteError:
      return "given up by the peer";
  }
  return "?";
}

std::string_view CloseReasonName(CloseReason reason) {
  switch (reason) {
    case CloseReason::kNone:
      return "none";
    case CloseReason::kByPeer:
      return "closed by the peer";
    case CloseReason::kLocal:
      return "closed here";
    case CloseReason::kAborted:
      return "aborted by the peer";
    case CloseReason::kPeerLost:
      return "peer lost";
    case CloseReason::kRefusedNoListener:
      return "refused: nobody listens there";
    case CloseReason::kRefusedVersion:
      return "refused: other protocol version";
    case CloseReason::kRefusedMismatch:
      return "refused: other congestion control";
    case CloseReason::kRefusedFull:
      return "refused: the peer has no room for another connection";
    case CloseReason::kRefusedByApplication:
      return "refused by the application";
    case CloseReason::kUnreachable:
      return "peer unreachable";
    case CloseReason::kRefusedKey:
      return "refused: other cluster key";
    case CloseReason::kRefusedNoRoute:
      return "refused: the peer has no way to our addresses";
    case CloseReason::kProtocolError:
      return "protocol error";
  }
  return "?";
}

}  // namespace paceline
