/* A message from one context to another through the installed C interface. */
#include <paceline/paceline.h>
#include <stdio.h>
#include <string.h>

static const int64_t kTenSeconds = 10000000000;

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, paceline_last_error());
  return 1;
}

int main(void) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.progress = PACELINE_PROGRESS_THREAD;
  paceline_context* receiver = NULL;
  paceline_context* sender = NULL;
  if (paceline_context_create(&options, &receiver) != PACELINE_OK) return fail("context");
  if (paceline_context_create(&options, &sender) != PACELINE_OK) return fail("context");

  paceline_listener* listener = NULL;
  paceline_handle handle;
  paceline_connection* outgoing = NULL;
  paceline_connection* incoming = NULL;
  if (paceline_listen(receiver, &listener) != PACELINE_OK) return fail("listen");
  if (paceline_listener_handle(listener, &handle) != PACELINE_OK) return fail("handle");
  if (paceline_connect(sender, &handle, &outgoing) != PACELINE_OK) return fail("connect");
  while (paceline_accept(listener, &incoming) == PACELINE_TRY_AGAIN) {
    if (paceline_wait(receiver, kTenSeconds) != PACELINE_OK) return fail("accept");
  }
  if (paceline_connection_wait(incoming, kTenSeconds) != PACELINE_OK) return fail("connection");
  if (paceline_connection_wait(outgoing, kTenSeconds) != PACELINE_OK) return fail("connection");

  char text[] = "plugged in";
  char got[sizeof(text)] = {0};
  const paceline_buffer from = {text, sizeof(text), 0};
  const paceline_buffer to = {got, sizeof(got), 0};
  if (paceline_receive(incoming, to, 7, 0, 1, NULL) != PACELINE_OK) return fail("receive");
  if (paceline_send(outgoing, from, 7, 2, NULL) != PACELINE_OK) return fail("send");
  paceline_completion done;
  while (paceline_poll(receiver, &done, 1) == 0) {
    if (paceline_wait(receiver, kTenSeconds) != PACELINE_OK) return fail("completion");
  }
  if (strcmp(text, got) != 0) return fail("wrong bytes");
  printf("Paceline %s: %s\n", paceline_version(), got);

  paceline_connection_destroy(incoming);
  paceline_connection_destroy(outgoing);
  paceline_listener_destroy(listener);
  paceline_context_destroy(sender);
  paceline_context_destroy(receiver);
  return 0;
}
