// The smallest whole program: one context listens, another connects to it and sends a message.
//
// Both live in this one process, each with a thread that moves its data; in real use they are two processes, and the
// 128 bytes of the handle travel by whatever the job has (MPI, a file, a socket). Build: link with paceline_api.
#include <paceline/context.h>

#include <chrono>
#include <cstdio>

using namespace paceline::api;
using namespace std::chrono_literals;

namespace {

int Fail(const char* what, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.message().c_str());
  return 1;
}

}  // namespace

int main() {
  ContextOptions options;
  options.progress = ProgressMode::kThread;
  Result<ContextOptions> resolved = ContextOptions::FromEnvironment(options);
  if (!resolved.ok()) return Fail("environment", resolved.status());

  Result<Context> receiver = Context::Create(*resolved);
  if (!receiver.ok()) return Fail("receiver", receiver.status());
  Result<Context> sender = Context::Create(*resolved);
  if (!sender.ok()) return Fail("sender", sender.status());

  Result<Listener> listener = receiver->Listen();
  if (!listener.ok()) return Fail("listen", listener.status());
  Result<Connection> outgoing = sender->Connect(listener->handle());
  if (!outgoing.ok()) return Fail("connect", outgoing.status());
  Result<Connection> incoming = listener->WaitAccept(5s);
  if (!incoming.ok()) return Fail("accept", incoming.status());
  if (Status status = outgoing->WaitEstablished(5s); !status.ok()) return Fail("connect", status);

  constexpr uint64_t kTag = 7;
  char text[64] = {};
  char message[] = "hello, fabric";
  if (incoming->Receive({text, sizeof(text)}, kTag, 0, 1) != PostResult::kOk) return 1;
  if (outgoing->Send({message, sizeof(message) - 1}, kTag, 2) != PostResult::kOk) return 1;

  Completion done;
  while (receiver->completions().Poll(&done, 1) == 0) receiver->Wait(1s);
  std::printf("received %llu bytes: %s\n", static_cast<unsigned long long>(done.bytes), text);

  while (sender->completions().Poll(&done, 1) == 0) sender->Wait(1s);
  std::printf("send: %s\n", OperationStatusName(done.status));
  return done.status == OperationStatus::kOk ? 0 : 1;
}
