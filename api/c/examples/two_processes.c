/* Two processes: the child owns a counter in its memory, the parent adds to it from afar and then sends a message.
 *
 * What a peer must know (128 bytes of handle, 88 bytes of remote memory) travels through pipes here; in real use by
 * whatever the job has. Build: link with -lpaceline. */
#include <paceline/paceline.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t kTimeout = 10LL * 1000 * 1000 * 1000;

static int check(paceline_result result, const char* what) {
  if (result == PACELINE_OK) return 1;
  fprintf(stderr, "%s: %s (%s)\n", what, paceline_result_name(result), paceline_last_error());
  return 0;
}

/* Waits for one completion. */
static int take(paceline_context* context, paceline_completion* done) {
  while (paceline_poll(context, done, 1) == 0) {
    if (!check(paceline_wait(context, kTimeout), "wait")) return 0;
  }
  return done->status == PACELINE_STATUS_OK;
}

static int serve(int to_parent) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.flags = PACELINE_USE_ENVIRONMENT;
  paceline_context* context = NULL;
  paceline_listener* listener = NULL;
  paceline_connection* connection = NULL;
  paceline_handle handle;
  paceline_remote_memory remote;
  uint32_t region = 0;
  uint64_t counter = 41;
  char text[32] = "";

  if (!check(paceline_context_create(&options, &context), "context")) return 1;
  if (!check(paceline_register_memory(context, &counter, sizeof(counter), PACELINE_REMOTE_ATOMIC, NULL, &region),
             "register")) {
    return 1;
  }
  if (!check(paceline_export_memory(context, region, &remote), "export")) return 1;
  if (!check(paceline_listen(context, &listener), "listen")) return 1;
  if (!check(paceline_listener_handle(listener, &handle), "handle")) return 1;
  if (write(to_parent, &handle, sizeof(handle)) != sizeof(handle)) return 1;
  if (write(to_parent, &remote, sizeof(remote)) != sizeof(remote)) return 1;

  paceline_result result;
  while ((result = paceline_accept(listener, &connection)) == PACELINE_TRY_AGAIN) {
    if (!check(paceline_wait(context, kTimeout), "wait for a connection")) return 1;
  }
  if (!check(result, "accept") || !check(paceline_connection_wait(connection, kTimeout), "establish")) return 1;

  paceline_completion done;
  paceline_buffer buffer = {text, sizeof(text) - 1, 0};
  if (!check(paceline_receive(connection, buffer, 1, 0, 0, NULL), "receive") || !take(context, &done)) return 1;
  printf("child: \"%s\" has come, the counter is now %llu\n", text, (unsigned long long)counter);
  fflush(stdout);

  paceline_connection_destroy(connection);
  paceline_listener_destroy(listener);
  paceline_context_destroy(context);
  return counter == 42 ? 0 : 1;
}

static int run(int from_child) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.flags = PACELINE_USE_ENVIRONMENT;
  paceline_context* context = NULL;
  paceline_connection* connection = NULL;
  paceline_handle handle;
  paceline_remote_memory remote;
  paceline_completion done;
  char text[] = "done";

  if (read(from_child, &handle, sizeof(handle)) != sizeof(handle)) return 1;
  if (read(from_child, &remote, sizeof(remote)) != sizeof(remote)) return 1;
  if (!check(paceline_context_create(&options, &context), "context")) return 1;
  if (!check(paceline_connect(context, &handle, &connection), "connect")) return 1;
  if (!check(paceline_connection_wait(connection, kTimeout), "establish")) return 1;

  if (!check(paceline_fetch_add(connection, &remote, 0, 1, 0, NULL), "fetch_add") || !take(context, &done)) return 1;
  printf("parent: the counter held %llu\n", (unsigned long long)done.result);
  fflush(stdout);
  paceline_buffer buffer = {text, strlen(text), 0};
  if (!check(paceline_send(connection, buffer, 1, 0, NULL), "send") || !take(context, &done)) return 1;

  paceline_connection_destroy(connection);
  paceline_context_destroy(context);
  return 0;
}

int main(void) {
  int pipes[2];
  if (pipe(pipes) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) return serve(pipes[1]);
  close(pipes[1]);
  const int own = run(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return own == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
