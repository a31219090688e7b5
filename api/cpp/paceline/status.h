// How control calls of the API answer: a Status, or a Result<T> that holds a value or a Status. Nothing throws.
//
// Thread rule: values.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace paceline::api {

enum class StatusCode : int {
  kOk = 0,
  kInvalidArgument = 1,    // a value that can never work: the message names it and what it may be
  kNotFound = 2,           // no such device, address, connection, ...
  kAlreadyExists = 3,      // a port in use
  kPermissionDenied = 4,   // the operating system refused
  kResourceExhausted = 5,  // at a bound: try again later
  kUnavailable = 6,        // the peer cannot be reached, refused, or is lost
  kTimedOut = 7,           // the time given has passed
  kUnimplemented = 8,      // not in this build
  kInternal = 9,           // a system call failed that should not have
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // For people; names the thing at fault. Empty when ok.
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : content_(std::move(status)) {}  // NOLINT: implicit on purpose; `status` is not ok

  bool ok() const { return std::holds_alternative<T>(content_); }
  Status status() const { return ok() ? Status() : std::get<Status>(content_); }

  // Only when ok().
  T& operator*() & { return std::get<T>(content_); }
  const T& operator*() const& { return std::get<T>(content_); }
  T&& operator*() && { return std::get<T>(std::move(content_)); }
  T* operator->() { return &std::get<T>(content_); }
  const T* operator->() const { return &std::get<T>(content_); }

 private:
  std::variant<T, Status> content_;
};

}  // namespace paceline::api
