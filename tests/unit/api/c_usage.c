#include "tests/unit/api/c_usage.h"

#include <stdio.h>
#include <string.h>

#include "paceline/paceline.h"

static char message[256];

#define CHECK(condition)                                                                                   \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      snprintf(message, sizeof(message), "line %d: %s (%s)", __LINE__, #condition, paceline_last_error()); \
      return message;                                                                                      \
    }                                                                                                      \
  } while (0)

static paceline_context* contexts[2];

/* Moves both contexts until one completion of contexts[side] is there. */
static int take(int side, paceline_completion* done) {
  for (int i = 0; i < 2000000; ++i) {
    if (paceline_poll(contexts[side], done, 1) == 1) {
      /* Takes the other side's lock: the thread sanitizer does not see the order that packets make. */
      paceline_counters(contexts[1 - side], NULL, 0);
      return 1;
    }
    paceline_progress(contexts[1 - side]);
  }
  return 0;
}

const char* paceline_test_use_everything(unsigned progress, unsigned engines) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.progress = progress;
  options.engines = engines;
#ifdef __SANITIZE_THREAD__
  options.lane = "udp"; /* it does not see that two mappings of shared memory are one */
#endif
  CHECK(paceline_context_create(&options, &contexts[0]) == PACELINE_OK);
  CHECK(paceline_context_create(&options, &contexts[1]) == PACELINE_OK);

  paceline_listener* listener = NULL;
  paceline_handle handle;
  paceline_connection *in = NULL, *out = NULL;
  CHECK(paceline_listen(contexts[0], &listener) == PACELINE_OK);
  CHECK(paceline_listener_handle(listener, &handle) == PACELINE_OK);
  CHECK(paceline_accept(listener, &in) == PACELINE_TRY_AGAIN);
  CHECK(paceline_connect(contexts[1], &handle, &out) == PACELINE_OK);
  for (int i = 0; i < 2000000; ++i) {
    paceline_progress(contexts[0]);
    paceline_progress(contexts[1]);
    if (in == NULL) paceline_accept(listener, &in);
    if (paceline_connection_get_state(in) == PACELINE_ESTABLISHED &&
        paceline_connection_get_state(out) == PACELINE_ESTABLISHED) {
      break;
    }
  }
  CHECK(paceline_connection_get_state(in) == PACELINE_ESTABLISHED);
  CHECK(paceline_connection_wait(out, 0) == PACELINE_OK);

  char text[32] = "", hello[] = "hello";
  paceline_completion done;
  paceline_buffer to = {text, sizeof(text), 0}, from = {hello, sizeof(hello), 0};
  CHECK(paceline_receive(in, to, 7, 0, 1, NULL) == PACELINE_OK);
  CHECK(paceline_send(out, from, 7, 2, NULL) == PACELINE_OK);
  CHECK(take(0, &done));
  CHECK(done.operation == PACELINE_RECEIVE && done.status == PACELINE_STATUS_OK && done.user_data == 1);
  CHECK(done.connection == paceline_connection_id(in) && done.bytes == sizeof(hello) && done.tag == 7);
  CHECK(strcmp(text, "hello") == 0);
  CHECK(take(1, &done) && done.operation == PACELINE_SEND && done.user_data == 2);

  uint64_t word[16] = {41};
  uint32_t region = 0;
  paceline_remote_memory remote;
  CHECK(paceline_register_memory(contexts[0], word, sizeof(word),
                                 PACELINE_REMOTE_READ | PACELINE_REMOTE_WRITE | PACELINE_REMOTE_ATOMIC, in,
                                 &region) == PACELINE_OK);
  CHECK(paceline_export_memory(contexts[0], region, &remote) == PACELINE_OK && remote.bytes == sizeof(word));
  paceline_remote_memory for_peer;
  CHECK(paceline_export_memory_for(contexts[0], in, region, &for_peer) == PACELINE_OK);
  CHECK(for_peer.key == remote.key && for_peer.bytes == remote.bytes);
  CHECK(paceline_export_memory_for(contexts[0], out, region, &for_peer) == PACELINE_NOT_FOUND);
  CHECK(paceline_export_memory_for(contexts[0], in, region + 1, &for_peer) == PACELINE_NOT_FOUND);
  CHECK(paceline_export_memory_for(contexts[0], NULL, region, &for_peer) == PACELINE_INVALID_ARGUMENT);
  CHECK(paceline_fetch_add(out, &remote, 0, 1, 3, NULL) == PACELINE_OK);
  CHECK(take(1, &done) && done.status == PACELINE_STATUS_OK && done.result == 41 && word[0] == 42);
  CHECK(paceline_compare_swap(out, &remote, 0, 42, 5, 3, NULL) == PACELINE_OK);
  CHECK(take(1, &done) && done.result == 42 && word[0] == 5);
  CHECK(paceline_write(out, from, &remote, 64, 4, NULL) == PACELINE_OK);
  CHECK(take(1, &done) && done.status == PACELINE_STATUS_OK && memcmp(&word[8], "hello", 6) == 0);
  CHECK(paceline_write_immediate(out, from, &remote, 0, 99, 4, NULL) == PACELINE_OK);
  CHECK(take(0, &done) && done.operation == PACELINE_WRITE_IMMEDIATE && done.has_immediate && done.immediate == 99);
  CHECK(take(1, &done));
  memset(text, 0, sizeof(text));
  paceline_buffer back = {text, 6, 0};
  CHECK(paceline_read(out, back, &for_peer, 64, 5, NULL) == PACELINE_OK);
  CHECK(take(1, &done) && done.status == PACELINE_STATUS_OK && strcmp(text, "hello") == 0);
  CHECK(paceline_flush(out, 6, NULL) == PACELINE_OK);
  CHECK(take(1, &done) && done.operation == PACELINE_FLUSH && done.user_data == 6);

  uint64_t id = 0;
  CHECK(paceline_receive(in, to, 8, 0, 9, &id) == PACELINE_OK && id != 0);
  CHECK(paceline_cancel(in, id) == PACELINE_OK);
  CHECK(take(0, &done) && done.status == PACELINE_STATUS_CANCELLED && done.user_data == 9);
  CHECK(paceline_cancel(in, id) == PACELINE_NOT_FOUND);

  CHECK(paceline_deregister_memory(contexts[0], region) == PACELINE_OK);
  CHECK(paceline_export_memory(contexts[0], region, &remote) == PACELINE_NOT_FOUND);

  static paceline_counter counters[512];
  const size_t count = paceline_counters(contexts[1], counters, 512);
  CHECK(count > 20 && count <= 512 && counters[0].name[0] != '\0' && counters[0].unit[0] != '\0');
  CHECK(paceline_counters(contexts[1], NULL, 0) == count);

  CHECK(paceline_descriptor(contexts[0]) >= 0);
  paceline_interrupt(contexts[0]);

  CHECK(paceline_connection_get_close_code(in) == PACELINE_CLOSE_NONE);
  paceline_connection_close(out);
  for (int i = 0; i < 2000000 && paceline_connection_get_state(in) != PACELINE_CLOSED; ++i) {
    paceline_progress(contexts[0]);
    paceline_progress(contexts[1]);
  }
  CHECK(paceline_connection_get_close_code(in) == PACELINE_CLOSE_BY_PEER);
  paceline_connection_abort(in);
  paceline_connection_destroy(out);
  paceline_connection_destroy(in);
  paceline_listener_destroy(listener);
  paceline_context_destroy(contexts[0]);
  paceline_context_destroy(contexts[1]);
  return NULL;
}
