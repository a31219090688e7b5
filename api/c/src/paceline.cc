#include "api/c/paceline/paceline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "api/cpp/src/variables.h"
#include "paceline/context.h"
#include "transport/lane/device_list.h"

namespace api = paceline::api;

struct paceline_context {
  api::Context context;
};
struct paceline_listener {
  api::Listener listener;
};
struct paceline_connection {
  api::Connection connection;
};

namespace {

thread_local std::string last_error;

paceline_result Fail(paceline_result result, const char* text) {
  last_error = text;
  return result;
}

paceline_result Fail(const api::Status& status) {
  last_error = status.message();
  return static_cast<paceline_result>(status.code());
}

// No exception leaves the C interface: the only ones that can arise below are of a lack of memory.
template <typename Function>
paceline_result Guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    return Fail(PACELINE_RESOURCE_EXHAUSTED, "out of memory");  // short enough for a string to hold it by itself
  }
}

paceline_result NullPointer() {
  return Guarded([] { return Fail(PACELINE_INVALID_ARGUMENT, "a pointer is null that must not be"); });
}

template <typename Value, typename Function>
Value GuardedValue(Value otherwise, Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    return otherwise;
  }
}

std::chrono::nanoseconds Timeout(int64_t nanos) {
  constexpr int64_t kYear = int64_t{365} * 86400 * 1'000'000'000;
  return std::chrono::nanoseconds(nanos < 0 ? kYear : std::min(nanos, kYear));
}

paceline_result FromPost(api::PostResult result) {
  switch (result) {
    case api::PostResult::kOk:
      return PACELINE_OK;
    case api::PostResult::kTryAgain:
      return Fail(PACELINE_TRY_AGAIN, "at a bound: take completions, then post again");
    case api::PostResult::kNotConnected:
      return Fail(PACELINE_NOT_CONNECTED, "the connection is not established");
    case api::PostResult::kInvalidMemory:
      return Fail(PACELINE_INVALID_MEMORY, "memory is not registered, out of its bounds, or without the permission");
    case api::PostResult::kInvalidArgument:
      break;
  }
  return Fail(PACELINE_INVALID_ARGUMENT, "the operation is too long, misaligned, or has no buffer");
}

api::Buffer ToCpp(const paceline_buffer& buffer) { return {buffer.data, buffer.bytes, buffer.region}; }

api::RemoteMemory ToCpp(const paceline_remote_memory& remote) {
  api::RemoteMemory result;
  static_assert(sizeof(result) == sizeof(remote));
  std::memcpy(static_cast<void*>(&result), &remote, sizeof(result));
  return result;
}

paceline_result FromExport(const api::RemoteMemory& exported, const char* missing, paceline_remote_memory* remote) {
  if (exported.key == 0) return Fail(PACELINE_NOT_FOUND, missing);
  std::memcpy(remote, &exported, sizeof(*remote));
  return PACELINE_OK;
}

api::Result<api::ContextOptions> ToOptions(const paceline_options* given) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  if (given != nullptr) {
    if (given->struct_size < sizeof(size_t) + sizeof(uint64_t)) {
      return api::Status(api::StatusCode::kInvalidArgument, "paceline_options::struct_size is not set");
    }
    std::memcpy(&options, given, std::min(given->struct_size, sizeof(options)));
  }
  api::ContextOptions result;
  if (options.lane != nullptr) result.lane = options.lane;
  if (options.congestion_control != nullptr) result.congestion_control = options.congestion_control;
  if (options.bind != nullptr) result.bind = paceline::SplitDevices(options.bind);
  if (const char* pairs = options.congestion_control_parameters;
      pairs != nullptr && !api::AddPairs(pairs, result.congestion_control_parameters)) {
    return api::Status(api::StatusCode::kInvalidArgument,
                       std::string("congestion_control_parameters: \"") + pairs + "\": write key=value,key=value");
  }
  if (options.progress > PACELINE_PROGRESS_THREAD) {
    return api::Status(api::StatusCode::kInvalidArgument, "paceline_options::progress is neither manual nor thread");
  }
  result.progress =
      options.progress == PACELINE_PROGRESS_THREAD ? api::ProgressMode::kThread : api::ProgressMode::kManual;
  result.engines = options.engines;
  result.local_ranks = options.local_ranks;
  result.max_connections = options.max_connections;
  result.max_operations = options.max_operations;
  result.connect_timeout_ms = options.connect_timeout_ms;
  result.peer_timeout_ms = options.peer_timeout_ms;
  result.linger_ms = options.linger_ms;
  result.encrypt = options.encrypt != 0;
  if (options.key_file != nullptr) result.key_file = options.key_file;
  if ((options.flags & PACELINE_USE_ENVIRONMENT) != 0) return api::ContextOptions::FromEnvironment(std::move(result));
  return result;
}

template <typename Function>
paceline_result Post(paceline_connection* connection, Function&& function) {
  return Guarded([&] { return connection == nullptr ? NullPointer() : FromPost(function(connection->connection)); });
}

}  // namespace

extern "C" {

const char* paceline_version(void) { return api::Version(); }

const char* paceline_result_name(paceline_result result) {
  switch (result) {
    case PACELINE_OK:
      return "ok";
    case PACELINE_INVALID_ARGUMENT:
      return "invalid argument";
    case PACELINE_NOT_FOUND:
      return "not found";
    case PACELINE_ALREADY_EXISTS:
      return "already exists";
    case PACELINE_PERMISSION_DENIED:
      return "permission denied";
    case PACELINE_RESOURCE_EXHAUSTED:
      return "resource exhausted";
    case PACELINE_UNAVAILABLE:
      return "unavailable";
    case PACELINE_TIMED_OUT:
      return "timed out";
    case PACELINE_UNIMPLEMENTED:
      return "unimplemented";
    case PACELINE_INTERNAL:
      return "internal";
    case PACELINE_TRY_AGAIN:
      return "try again";
    case PACELINE_NOT_CONNECTED:
      return "not connected";
    case PACELINE_INVALID_MEMORY:
      return "invalid memory";
    case PACELINE_RESULT_LARGEST:
      break;
  }
  return "unknown";
}

const char* paceline_last_error(void) { return last_error.c_str(); }

paceline_result paceline_context_create(const paceline_options* options, paceline_context** context) {
  if (context == nullptr) return NullPointer();
  *context = nullptr;
  return Guarded([&] {
    api::Result<api::ContextOptions> resolved = ToOptions(options);
    if (!resolved.ok()) return Fail(resolved.status());
    api::Result<api::Context> created = api::Context::Create(*resolved);
    if (!created.ok()) return Fail(created.status());
    *context = new paceline_context{*std::move(created)};
    return PACELINE_OK;
  });
}

void paceline_context_destroy(paceline_context* context) { delete context; }

int paceline_progress(paceline_context* context) {
  return GuardedValue(0, [&] { return context != nullptr && context->context.Progress() ? 1 : 0; });
}

paceline_result paceline_wait(paceline_context* context, int64_t timeout_nanos) {
  if (context == nullptr) return NullPointer();
  return Guarded([&] {
    if (context->context.Wait(Timeout(timeout_nanos))) return PACELINE_OK;
    return Fail(PACELINE_TIMED_OUT, "nothing came in time");
  });
}

void paceline_interrupt(paceline_context* context) {
  if (context != nullptr) context->context.Interrupt();
}

int paceline_descriptor(paceline_context* context) {
  return context == nullptr ? -1 : context->context.completions().descriptor();
}

int paceline_arm(paceline_context* context) {
  return GuardedValue(0, [&] { return context != nullptr && context->context.completions().Arm() ? 1 : 0; });
}

paceline_result paceline_register_memory(paceline_context* context, void* base, uint64_t bytes, uint32_t access,
                                         const paceline_connection* only, uint32_t* region) {
  if (context == nullptr || region == nullptr) return NullPointer();
  return Guarded([&] {
    constexpr uint32_t kAll = PACELINE_REMOTE_READ | PACELINE_REMOTE_WRITE | PACELINE_REMOTE_ATOMIC;
    if ((access & ~kAll) != 0) return Fail(PACELINE_INVALID_ARGUMENT, "access has bits that mean nothing");
    const auto bits = static_cast<uint8_t>(access);
    const auto result = only != nullptr ? context->context.RegisterMemoryFor(only->connection, base, bytes, bits)
                                        : context->context.RegisterMemory(base, bytes, bits);
    if (!result.ok()) return Fail(result.status());
    *region = *result;
    return PACELINE_OK;
  });
}

paceline_result paceline_deregister_memory(paceline_context* context, uint32_t region) {
  if (context == nullptr) return NullPointer();
  return Guarded([&] {
    context->context.DeregisterMemory(region);
    return PACELINE_OK;
  });
}

paceline_result paceline_export_memory(paceline_context* context, uint32_t region, paceline_remote_memory* remote) {
  if (context == nullptr || remote == nullptr) return NullPointer();
  return Guarded([&] { return FromExport(context->context.ExportMemory(region), "no such region", remote); });
}

paceline_result paceline_export_memory_for(paceline_context* context, const paceline_connection* connection,
                                           uint32_t region, paceline_remote_memory* remote) {
  if (context == nullptr || connection == nullptr || remote == nullptr) return NullPointer();
  return Guarded([&] {
    const api::RemoteMemory exported = context->context.ExportMemoryFor(connection->connection, region);
    return FromExport(exported, "no such region, or the connection is another context's", remote);
  });
}

paceline_result paceline_listen(paceline_context* context, paceline_listener** listener) {
  if (context == nullptr || listener == nullptr) return NullPointer();
  return Guarded([&] {
    api::Result<api::Listener> result = context->context.Listen();
    if (!result.ok()) return Fail(result.status());
    *listener = new paceline_listener{*std::move(result)};
    return PACELINE_OK;
  });
}

paceline_result paceline_listener_handle(const paceline_listener* listener, paceline_handle* handle) {
  if (listener == nullptr || handle == nullptr) return NullPointer();
  return Guarded([&] {
    const api::Handle result = listener->listener.handle();
    static_assert(sizeof(handle->bytes) == api::Handle::kBytes);
    std::memcpy(handle->bytes, result.bytes.data(), sizeof(handle->bytes));
    return PACELINE_OK;
  });
}

void paceline_listener_destroy(paceline_listener* listener) { delete listener; }

paceline_result paceline_accept(paceline_listener* listener, paceline_connection** connection) {
  if (listener == nullptr || connection == nullptr) return NullPointer();
  return Guarded([&] {
    auto accepted = listener->listener.Accept();
    if (!accepted) return Fail(PACELINE_TRY_AGAIN, "no connection has come");
    *connection = new paceline_connection{*std::move(accepted)};
    return PACELINE_OK;
  });
}

paceline_result paceline_connect(paceline_context* context, const paceline_handle* handle,
                                 paceline_connection** connection) {
  if (context == nullptr || handle == nullptr || connection == nullptr) return NullPointer();
  return Guarded([&] {
    api::Handle address;
    std::memcpy(address.bytes.data(), handle->bytes, sizeof(handle->bytes));
    api::Result<api::Connection> result = context->context.Connect(address);
    if (!result.ok()) return Fail(result.status());
    *connection = new paceline_connection{*std::move(result)};
    return PACELINE_OK;
  });
}

paceline_connection_state paceline_connection_get_state(const paceline_connection* connection) {
  if (connection == nullptr) return PACELINE_CLOSED;
  return GuardedValue(PACELINE_CLOSED,
                      [&] { return static_cast<paceline_connection_state>(connection->connection.state()); });
}

paceline_close_code paceline_connection_get_close_code(const paceline_connection* connection) {
  static_assert(static_cast<int>(api::CloseCode::kRefusedNoRoute) == PACELINE_CLOSE_REFUSED_NO_ROUTE);
  if (connection == nullptr) return PACELINE_CLOSE_NONE;
  return GuardedValue(PACELINE_CLOSE_NONE,
                      [&] { return static_cast<paceline_close_code>(connection->connection.close_code()); });
}

paceline_result paceline_connection_wait(paceline_connection* connection, int64_t timeout_nanos) {
  if (connection == nullptr) return NullPointer();
  return Guarded([&] {
    const api::Status status = connection->connection.WaitEstablished(Timeout(timeout_nanos));
    return status.ok() ? PACELINE_OK : Fail(status);
  });
}

uint32_t paceline_connection_id(const paceline_connection* connection) {
  return connection == nullptr ? 0 : connection->connection.id();
}

void paceline_connection_close(paceline_connection* connection) {
  GuardedValue(0, [&] {
    if (connection != nullptr) connection->connection.Close();
    return 0;
  });
}

void paceline_connection_abort(paceline_connection* connection) {
  GuardedValue(0, [&] {
    if (connection != nullptr) connection->connection.Abort();
    return 0;
  });
}

void paceline_connection_destroy(paceline_connection* connection) { delete connection; }

paceline_result paceline_send(paceline_connection* connection, paceline_buffer buffer, uint64_t tag, uint64_t user_data,
                              uint64_t* id) {
  return Post(connection, [&](api::Connection& to) { return to.Send(ToCpp(buffer), tag, user_data, id); });
}

paceline_result paceline_receive(paceline_connection* connection, paceline_buffer buffer, uint64_t tag, uint64_t ignore,
                                 uint64_t user_data, uint64_t* id) {
  return Post(connection, [&](api::Connection& to) { return to.Receive(ToCpp(buffer), tag, ignore, user_data, id); });
}

paceline_result paceline_write(paceline_connection* connection, paceline_buffer buffer,
                               const paceline_remote_memory* remote, uint64_t remote_offset, uint64_t user_data,
                               uint64_t* id) {
  if (remote == nullptr) return NullPointer();
  return Post(connection, [&](api::Connection& to) {
    return to.Write(ToCpp(buffer), ToCpp(*remote), remote_offset, user_data, id);
  });
}

paceline_result paceline_write_immediate(paceline_connection* connection, paceline_buffer buffer,
                                         const paceline_remote_memory* remote, uint64_t remote_offset,
                                         uint64_t immediate, uint64_t user_data, uint64_t* id) {
  if (remote == nullptr) return NullPointer();
  return Post(connection, [&](api::Connection& to) {
    return to.WriteImmediate(ToCpp(buffer), ToCpp(*remote), remote_offset, immediate, user_data, id);
  });
}

paceline_result paceline_read(paceline_connection* connection, paceline_buffer buffer,
                              const paceline_remote_memory* remote, uint64_t remote_offset, uint64_t user_data,
                              uint64_t* id) {
  if (remote == nullptr) return NullPointer();
  return Post(connection, [&](api::Connection& to) {
    return to.Read(ToCpp(buffer), ToCpp(*remote), remote_offset, user_data, id);
  });
}

paceline_result paceline_fetch_add(paceline_connection* connection, const paceline_remote_memory* remote,
                                   uint64_t remote_offset, uint64_t add, uint64_t user_data, uint64_t* id) {
  if (remote == nullptr) return NullPointer();
  return Post(connection,
              [&](api::Connection& to) { return to.FetchAdd(ToCpp(*remote), remote_offset, add, user_data, id); });
}

paceline_result paceline_compare_swap(paceline_connection* connection, const paceline_remote_memory* remote,
                                      uint64_t remote_offset, uint64_t compare, uint64_t swap, uint64_t user_data,
                                      uint64_t* id) {
  if (remote == nullptr) return NullPointer();
  return Post(connection, [&](api::Connection& to) {
    return to.CompareSwap(ToCpp(*remote), remote_offset, compare, swap, user_data, id);
  });
}

paceline_result paceline_flush(paceline_connection* connection, uint64_t user_data, uint64_t* id) {
  return Post(connection, [&](api::Connection& to) { return to.Flush(user_data, id); });
}

paceline_result paceline_cancel(paceline_connection* connection, uint64_t id) {
  if (connection == nullptr) return NullPointer();
  return Guarded([&] {
    return connection->connection.Cancel(id) ? PACELINE_OK : Fail(PACELINE_NOT_FOUND, "too late to cancel, or unknown");
  });
}

size_t paceline_poll_sized(paceline_context* context, paceline_completion* out, size_t completion_size, size_t room) {
  if (context == nullptr || out == nullptr) return 0;
  return GuardedValue(size_t{0}, [&] {
    api::Completion batch[32];
    const size_t count = context->context.completions().Poll(batch, std::min(room, std::size(batch)));
    for (size_t i = 0; i < count; ++i) {
      const api::Completion& from = batch[i];
      const paceline_completion to = {
          .operation = static_cast<uint32_t>(from.operation),
          .status = static_cast<uint32_t>(from.status),
          .connection = from.connection,
          .has_immediate = from.has_immediate ? 1u : 0u,
          .user_data = from.user_data,
          .bytes = from.bytes,
          .tag = from.tag,
          .immediate = from.immediate,
          .result = from.result,
      };
      std::memcpy(reinterpret_cast<char*>(out) + i * completion_size, &to, std::min(completion_size, sizeof(to)));
    }
    return count;
  });
}

size_t paceline_counters_sized(paceline_context* context, paceline_counter* out, size_t counter_size, size_t room) {
  if (context == nullptr) return 0;
  return GuardedValue(size_t{0}, [&] {
    const auto counters = context->context.counters();
    for (size_t i = 0; out != nullptr && i < std::min(room, counters.size()); ++i) {
      paceline_counter to = {};
      std::memcpy(to.name, counters[i].name.data(), std::min(counters[i].name.size(), sizeof(to.name) - 1));
      std::memcpy(to.unit, counters[i].unit.data(), std::min(counters[i].unit.size(), sizeof(to.unit) - 1));
      to.value = counters[i].value;
      std::memcpy(reinterpret_cast<char*>(out) + i * counter_size, &to, std::min(counter_size, sizeof(to)));
    }
    return counters.size();
  });
}

}  // extern "C"
