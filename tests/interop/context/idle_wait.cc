// What waiting costs that finds nothing: a context with a connection waits again and again while nobody sends, as one
// of
// `--ranks` processes of a job on this machine.
//
//   idle_wait [--lane NAME] [--ranks N] [--waits N] [--milliseconds N]
//
// Prints JSON: cpu_us {context, epoll, more}, processor time of this thread in one wait: medians of the context's, of
// as long a wait for a descriptor that nothing comes to, and what the first is above the second.
#include <sys/epoll.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "paceline/context.h"
#include "tests/interop/udp_pingpong/raw_socket.h"
#include "transport/lane/file_descriptor.h"

namespace paceline::interop {
namespace {

using std::chrono_literals::operator""s;

struct Settings {
  std::string lane = "udp";
  uint32_t ranks = 8;
  int waits = 20;
  int milliseconds = 20;
};

template <typename T>
T OrFail(api::Result<T> result) {
  if (!result.ok()) Fail(result.status().message());
  return *std::move(result);
}

double ThreadCpuMicros() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Processor time of waits that find nothing");
  app.add_option("--lane", settings.lane, "udp, shm, ...");
  app.add_option("--ranks", settings.ranks, "processes of the job on this machine")->check(CLI::Range(1, 4096));
  app.add_option("--waits", settings.waits, "how many")->check(CLI::Range(1, 100'000));
  app.add_option("--milliseconds", settings.milliseconds, "of a wait")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  api::ContextOptions options = OrFail(api::ContextOptions::FromEnvironment());
  options.lane = settings.lane;
  options.local_ranks = settings.ranks;
  api::Context waiting = OrFail(api::Context::Create(options));
  options.progress = api::ProgressMode::kThread;
  api::Context peer = OrFail(api::Context::Create(options));
  api::Listener listener = OrFail(waiting.Listen());
  const api::Connection outgoing = OrFail(peer.Connect(listener.handle()));
  const api::Connection incoming = OrFail(listener.WaitAccept(5s));

  const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  const auto cost = [](const std::function<void()>& wait) {
    const double before = ThreadCpuMicros();
    wait();
    return ThreadCpuMicros() - before;
  };
  std::vector<double> by_context, by_epoll;
  for (int i = -1; i < settings.waits; ++i) {  // the first sees what is left of the connection's making
    const double context = cost([&] { waiting.Wait(std::chrono::milliseconds(settings.milliseconds)); });
    epoll_event event;
    const double plain = cost([&] { epoll_wait(epoll.get(), &event, 1, settings.milliseconds); });
    if (i < 0) continue;
    by_context.push_back(context);
    by_epoll.push_back(plain);
  }
  const double context = Percentile(by_context, 0.5), plain = Percentile(by_epoll, 0.5);
  const nlohmann::ordered_json cpu{{"context", context}, {"epoll", plain}, {"more", context - plain}};
  std::cout << nlohmann::ordered_json{{"lane", settings.lane}, {"ranks", settings.ranks}, {"cpu_us", cpu}}.dump()
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
