/* Paceline's C interface: the same contexts, connections, operations and completions as the C++ API, with opaque
 * handles and structs that carry their own size, so that programs built against an older header keep working.
 *
 * Conventions
 *   - Functions return PACELINE_OK or another paceline_result; paceline_last_error() says in words what the last failed
 *     call of this thread found wrong. Nothing throws, nothing aborts; a null pointer where none is allowed is
 *     PACELINE_INVALID_ARGUMENT.
 *   - Structs that callers fill begin with `struct_size`; the *_INIT macros set it. Fields that a caller's older struct
 *     does not have count as zero.
 *   - Nothing blocks but paceline_wait and functions with a time-out (nanoseconds; negative: without end).
 *   - Threads: with PACELINE_PROGRESS_MANUAL one thread at a time per context, all of its objects included; with
 *     PACELINE_PROGRESS_THREAD any thread. paceline_interrupt may always come from any thread.
 *   - Buffers stay the caller's. They must live until their operation's completion has been polled, or until the
 *     context is gone. Until then what a receive or a read has not filled yet may hold anything.
 */
#ifndef PACELINE_PACELINE_H_
#define PACELINE_PACELINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paceline_context paceline_context;
typedef struct paceline_listener paceline_listener;
typedef struct paceline_connection paceline_connection;

typedef enum paceline_result {
  PACELINE_OK = 0,
  PACELINE_INVALID_ARGUMENT = 1, /* a value that can never work */
  PACELINE_NOT_FOUND = 2,
  PACELINE_ALREADY_EXISTS = 3, /* a port in use */
  PACELINE_PERMISSION_DENIED = 4,
  PACELINE_RESOURCE_EXHAUSTED = 5, /* at a bound, or out of memory */
  PACELINE_UNAVAILABLE = 6,        /* the peer cannot be reached, refused, or is lost */
  PACELINE_TIMED_OUT = 7,
  PACELINE_UNIMPLEMENTED = 8,
  PACELINE_INTERNAL = 9,
  PACELINE_TRY_AGAIN = 20,             /* posts: at a bound: take completions, post again. accept: nothing there yet */
  PACELINE_NOT_CONNECTED = 21,         /* posts: not established, closed or lost */
  PACELINE_INVALID_MEMORY = 22,        /* posts: not registered, out of bounds, or without the permission */
  PACELINE_RESULT_LARGEST = 0x7fffffff /* no result: lets C++ hold values of later versions, too */
} paceline_result;

/* "0.1.0". */
const char* paceline_version(void);

/* Name of a result: "invalid argument". Never null. */
const char* paceline_result_name(paceline_result result);

/* What the last failed call of this thread found wrong, for people; never null, valid until the thread's next call. */
const char* paceline_last_error(void);

/* ---- context ---------------------------------------------------------------------------------------------------- */

enum { PACELINE_PROGRESS_MANUAL = 0, PACELINE_PROGRESS_THREAD = 1 };
enum { PACELINE_USE_ENVIRONMENT = 1 }; /* flag: PACELINE_* variables are put over the fields */

/* Zero or null means the default everywhere. docs/tuning.md explains each. */
typedef struct paceline_options {
  size_t struct_size;
  uint64_t flags;                            /* PACELINE_USE_ENVIRONMENT */
  const char* lane;                          /* "auto" */
  const char* bind;                          /* as PACELINE_BIND: ports, comma separated; null: 127.0.0.1 */
  const char* congestion_control;            /* "tita" */
  const char* congestion_control_parameters; /* "key=value,key=value" */
  uint32_t progress;                         /* PACELINE_PROGRESS_* */
  uint32_t local_ranks;                      /* processes of the job on this machine */
  uint32_t max_connections;
  uint32_t max_operations; /* per connection and direction */
  uint32_t connect_timeout_ms;
  uint32_t peer_timeout_ms;
  uint32_t linger_ms;   /* how long paceline_context_destroy waits for orderly closes */
  uint32_t encrypt;     /* with a key: 1 encrypts payloads too */
  const char* key_file; /* cluster key, 64 hexadecimal digits; "none": no key, and no warning */
  uint32_t engines;     /* over which connections are spread; more than one with PACELINE_PROGRESS_THREAD only */
  uint32_t reserved;    /* zero */
} paceline_options;
#define PACELINE_OPTIONS_INIT \
  { sizeof(paceline_options), 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0 }

/* Makes a context. `options` may be null: all defaults. */
paceline_result paceline_context_create(const paceline_options* options, paceline_context** context);

/* Ends a context; null is allowed. Connections and listeners of it must have been destroyed before. Blocks until their
 * orderly closes are done, for at most linger_ms; what is left then ends at once. */
void paceline_context_destroy(paceline_context* context);

/* Manual progress: one pass; 1 if it moved anything, else 0. */
int paceline_progress(paceline_context* context);

/* Makes progress until a completion or a connection event is there: PACELINE_OK, or PACELINE_TIMED_OUT (also after
 * paceline_interrupt). */
paceline_result paceline_wait(paceline_context* context, int64_t timeout_nanos);

/* Ends a paceline_wait that is going on or comes next. From any thread. */
void paceline_interrupt(paceline_context* context);

/* A descriptor for poll or epoll. After paceline_arm has returned 1 it becomes readable when there is something to do:
 * then paceline_poll until it returns 0. paceline_arm returns 0 when there is something already. */
int paceline_descriptor(paceline_context* context);
int paceline_arm(paceline_context* context);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

enum { PACELINE_REMOTE_READ = 1, PACELINE_REMOTE_WRITE = 2, PACELINE_REMOTE_ATOMIC = 4 };

/* What a peer needs to reach a region: plain bytes for the peer. */
typedef struct paceline_remote_memory {
  uint64_t key;
  uint64_t bytes;
  uint64_t lane_base;
  uint64_t lane_keys[8];
} paceline_remote_memory;

/* Registers [base, base + bytes) for the peer's `access` (PACELINE_REMOTE_* bits). `only` null: any peer that knows the
 * key; else that one alone. The region's number comes back, never 0. */
paceline_result paceline_register_memory(paceline_context* context, void* base, uint64_t bytes, uint32_t access,
                                         const paceline_connection* only, uint32_t* region);

/* At once: what arrives later for the region is refused. */
paceline_result paceline_deregister_memory(paceline_context* context, uint32_t region);

/* The bytes to give to any peer. With several engines what cards of peers need to write by themselves is left out:
 * their writes travel as packets. */
paceline_result paceline_export_memory(paceline_context* context, uint32_t region, paceline_remote_memory* remote);

/* The bytes to give to the peer of that connection and no other, with what its cards need, however many engines there
 * are. PACELINE_NOT_FOUND: no such region, or a connection of another context. */
paceline_result paceline_export_memory_for(paceline_context* context, const paceline_connection* connection,
                                           uint32_t region, paceline_remote_memory* remote);

/* ---- connections ------------------------------------------------------------------------------------------------ */

/* Where a listener can be reached: opaque bytes for the peer. */
typedef struct paceline_handle {
  uint8_t bytes[128];
} paceline_handle;

typedef enum paceline_connection_state {
  PACELINE_CONNECTING = 0,
  PACELINE_ESTABLISHED = 1,
  PACELINE_CLOSED = 2
} paceline_connection_state;

/* Why a connection is over. Later versions may add some. */
typedef enum paceline_close_code {
  PACELINE_CLOSE_NONE = 0, /* it is not */
  PACELINE_CLOSE_BY_PEER = 1,
  PACELINE_CLOSE_LOCAL = 2,               /* closed or aborted here */
  PACELINE_CLOSE_ABORTED = 3,             /* by the peer */
  PACELINE_CLOSE_PEER_LOST = 4,           /* no sign of life for the peer time-out */
  PACELINE_CLOSE_REFUSED_NO_LISTENER = 5, /* nobody listens there, or no longer */
  PACELINE_CLOSE_REFUSED_VERSION = 6,     /* the peer speaks another protocol version */
  PACELINE_CLOSE_REFUSED_MISMATCH = 7,    /* the peer runs another congestion-control algorithm */
  PACELINE_CLOSE_REFUSED_FULL = 8,        /* the peer is at its bound of connections */
  PACELINE_CLOSE_REFUSED_BY_APPLICATION = 9,
  PACELINE_CLOSE_UNREACHABLE = 10, /* never established: no answer, or not accepted, in time */
  PACELINE_CLOSE_PROTOCOL_ERROR = 11,
  PACELINE_CLOSE_REFUSED_KEY = 12,         /* another cluster key, or one of the two has none */
  PACELINE_CLOSE_REFUSED_NO_ROUTE = 13,    /* none of the peer's ports reaches one of ours */
  PACELINE_CLOSE_CODE_LARGEST = 0x7fffffff /* no code: lets C++ hold values of later versions, too */
} paceline_close_code;

/* Starts to listen. 1024 requests to connect wait for paceline_accept, over all listeners of an engine; clients beyond
 * that ask again until their connect_timeout_ms ends. */
paceline_result paceline_listen(paceline_context* context, paceline_listener** listener);

/* Writes the listener's handle. */
paceline_result paceline_listener_handle(const paceline_listener* listener, paceline_handle* handle);

/* Stops to listen; null is allowed. Connections made by it live on. */
void paceline_listener_destroy(paceline_listener* listener);

/* The next connection request, accepted, in state connecting at first; PACELINE_TRY_AGAIN when there is none yet. */
paceline_result paceline_accept(paceline_listener* listener, paceline_connection** connection);

/* Starts to connect. */
paceline_result paceline_connect(paceline_context* context, const paceline_handle* handle,
                                 paceline_connection** connection);

/* How far it is; PACELINE_CLOSED for null. */
paceline_connection_state paceline_connection_get_state(const paceline_connection* connection);

/* Once it is PACELINE_CLOSED: why; before, and for null, PACELINE_CLOSE_NONE. */
paceline_close_code paceline_connection_get_close_code(const paceline_connection* connection);

/* Makes progress until the connection is established: PACELINE_UNAVAILABLE with the reason, or PACELINE_TIMED_OUT. */
paceline_result paceline_connection_wait(paceline_connection* connection, int64_t timeout_nanos);

/* The number in paceline_completion::connection; 0 for null. */
uint32_t paceline_connection_id(const paceline_connection* connection);

/* Closes in order: what was posted before is carried out, receives end with PACELINE_STATUS_CONNECTION_CLOSED. */
void paceline_connection_close(paceline_connection* connection);

/* Ends it at once: every operation left ends with PACELINE_STATUS_CONNECTION_CLOSED. */
void paceline_connection_abort(paceline_connection* connection);

/* Closes in order if that was not done, and frees the object; null is allowed. */
void paceline_connection_destroy(paceline_connection* connection);

/* ---- operations --------------------------------------------------------------------------------------------------
 * Each post that returns PACELINE_OK gets exactly one completion. `id` may be null; it is for paceline_cancel. */

typedef struct paceline_buffer {
  void* data;
  uint64_t bytes;
  uint32_t region; /* 0: not registered */
} paceline_buffer;

/* Sends a message. Completed: the buffer may be reused, the peer's context holds every byte. */
paceline_result paceline_send(paceline_connection* connection, paceline_buffer buffer, uint64_t tag, uint64_t user_data,
                              uint64_t* id);

/* Receives the first message, in sending order, whose tag equals `tag` in all bits not set in `ignore`. Completed:
 * every byte is in place. */
paceline_result paceline_receive(paceline_connection* connection, paceline_buffer buffer, uint64_t tag, uint64_t ignore,
                                 uint64_t user_data, uint64_t* id);

/* Writes to the peer's memory. Completed: every byte is in place there. */
paceline_result paceline_write(paceline_connection* connection, paceline_buffer buffer,
                               const paceline_remote_memory* remote, uint64_t remote_offset, uint64_t user_data,
                               uint64_t* id);

/* The same, and the peer gets a completion with the immediate when every byte is in place. */
paceline_result paceline_write_immediate(paceline_connection* connection, paceline_buffer buffer,
                                         const paceline_remote_memory* remote, uint64_t remote_offset,
                                         uint64_t immediate, uint64_t user_data, uint64_t* id);

/* Reads from the peer's memory. Completed: the bytes are here. */
paceline_result paceline_read(paceline_connection* connection, paceline_buffer buffer,
                              const paceline_remote_memory* remote, uint64_t remote_offset, uint64_t user_data,
                              uint64_t* id);

/* Adds to 8 aligned bytes of the peer's; the value before comes back in paceline_completion::result. */
paceline_result paceline_fetch_add(paceline_connection* connection, const paceline_remote_memory* remote,
                                   uint64_t remote_offset, uint64_t add, uint64_t user_data, uint64_t* id);

/* Puts `swap` into 8 aligned bytes of the peer's if they hold `compare`; the value before comes back. */
paceline_result paceline_compare_swap(paceline_connection* connection, const paceline_remote_memory* remote,
                                      uint64_t remote_offset, uint64_t compare, uint64_t swap, uint64_t user_data,
                                      uint64_t* id);

/* Completes when everything posted before on this connection is complete. */
paceline_result paceline_flush(paceline_connection* connection, uint64_t user_data, uint64_t* id);

/* PACELINE_OK: the operation will complete with PACELINE_STATUS_CANCELLED. PACELINE_NOT_FOUND: too late, or unknown. */
paceline_result paceline_cancel(paceline_connection* connection, uint64_t id);

/* ---- completions ------------------------------------------------------------------------------------------------ */

typedef enum paceline_operation {
  PACELINE_SEND = 0,
  PACELINE_RECEIVE = 1,
  PACELINE_WRITE = 2,
  PACELINE_WRITE_IMMEDIATE = 3, /* also at the target of one */
  PACELINE_READ = 4,
  PACELINE_FETCH_ADD = 5,
  PACELINE_COMPARE_SWAP = 6,
  PACELINE_FLUSH = 7
} paceline_operation;

typedef enum paceline_operation_status {
  PACELINE_STATUS_OK = 0,
  PACELINE_STATUS_CANCELLED = 1,
  PACELINE_STATUS_TRUNCATED = 2,     /* receive: longer than the buffer, which holds its first bytes */
  PACELINE_STATUS_REMOTE_ACCESS = 3, /* the peer refused: key, bounds or permission */
  PACELINE_STATUS_CONNECTION_CLOSED = 4,
  PACELINE_STATUS_PEER_LOST = 5, /* it may or may not have been carried out */
  PACELINE_STATUS_REMOTE_ERROR = 6
} paceline_operation_status;

typedef struct paceline_completion {
  uint32_t operation;  /* paceline_operation */
  uint32_t status;     /* paceline_operation_status */
  uint32_t connection; /* paceline_connection_id */
  uint32_t has_immediate;
  uint64_t user_data;
  uint64_t bytes; /* transferred; receives: length of the message as sent */
  uint64_t tag;
  uint64_t immediate;
  uint64_t result; /* atomics: the value before */
} paceline_completion;

/* Takes up to `room` completions into `out`; returns how many. `completion_size` is sizeof(paceline_completion). With
 * manual progress a call that finds none makes progress: once, and a few times more while data move. */
size_t paceline_poll_sized(paceline_context* context, paceline_completion* out, size_t completion_size, size_t room);
#define paceline_poll(context, out, room) paceline_poll_sized((context), (out), sizeof(paceline_completion), (room))

/* ---- counters --------------------------------------------------------------------------------------------------- */

typedef struct paceline_counter {
  char name[64];
  char unit[16];
  uint64_t value;
} paceline_counter;

/* Writes up to `room` counters; returns how many there are. `counter_size` is sizeof(paceline_counter). */
size_t paceline_counters_sized(paceline_context* context, paceline_counter* out, size_t counter_size, size_t room);
#define paceline_counters(context, out, room) \
  paceline_counters_sized((context), (out), sizeof(paceline_counter), (room))

#ifdef __cplusplus
}
#endif

#endif /* PACELINE_PACELINE_H_ */
