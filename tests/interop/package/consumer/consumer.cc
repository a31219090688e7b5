// A message from one context to another through the installed C++ API: enough to need every part of the library.
#include <paceline/context.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

using namespace std::chrono_literals;
using paceline::api::Completion;
using paceline::api::Context;
using paceline::api::ContextOptions;
using paceline::api::PostResult;

namespace {

int Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

}  // namespace

int main() {
  ContextOptions options;
  options.progress = paceline::api::ProgressMode::kThread;
  auto receiver = Context::Create(options);
  if (!receiver.ok()) return Fail(receiver.status().message());
  auto sender = Context::Create(options);
  if (!sender.ok()) return Fail(sender.status().message());

  auto listener = receiver->Listen();
  if (!listener.ok()) return Fail(listener.status().message());
  auto outgoing = sender->Connect(listener->handle());
  if (!outgoing.ok()) return Fail(outgoing.status().message());
  auto incoming = listener->WaitAccept(10s);
  if (!incoming.ok()) return Fail(incoming.status().message());
  if (const auto up = outgoing->WaitEstablished(10s); !up.ok()) return Fail(up.message());

  char text[] = "plugged in";
  char got[sizeof(text)] = {};
  if (incoming->Receive({got, sizeof(got)}, 7, 0, 1) != PostResult::kOk) return Fail("receive was not taken");
  if (outgoing->Send({text, sizeof(text)}, 7, 2) != PostResult::kOk) return Fail("send was not taken");
  // Both: until its completion was polled, an operation may still read or write its buffer.
  for (Context* context : {&*receiver, &*sender}) {
    Completion done;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (context->completions().Poll(&done, 1) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return Fail("no completion");
      context->Wait(100ms);
    }
  }
  if (std::strcmp(text, got) != 0) return Fail("wrong bytes");
  std::printf("Paceline %s: %s\n", paceline::api::Version(), got);
  return 0;
}
