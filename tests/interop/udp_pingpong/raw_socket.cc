#include "tests/interop/udp_pingpong/raw_socket.h"

#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace paceline::interop {
namespace {

double SecondsOf(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int64_t NowNanos() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return SecondsOf(usage);
}

double Percentile(std::vector<double>& samples, double fraction) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1, static_cast<size_t>(fraction * static_cast<double>(samples.size())))];
}

void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

int OpenRawSocket(const std::string& address, int buffer_bytes, bool gro, SocketAddress& bound) {
  const auto parsed = ParseLaneAddress(address);
  if (!parsed.ok()) Fail(std::string(parsed.status().message()));
  ToSocketAddress(*parsed, bound);
  const int fd = socket(bound.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail(std::string("socket: ") + std::strerror(errno));
  for (const auto& [forced, plain] : {std::pair(SO_RCVBUFFORCE, SO_RCVBUF), std::pair(SO_SNDBUFFORCE, SO_SNDBUF)}) {
    if (setsockopt(fd, SOL_SOCKET, forced, &buffer_bytes, sizeof(buffer_bytes)) != 0) {
      setsockopt(fd, SOL_SOCKET, plain, &buffer_bytes, sizeof(buffer_bytes));
    }
  }
  const int on = 1;
  if (gro) setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
  if (bind(fd, &bound.generic, bound.size) != 0) Fail("cannot bind to " + address + ": " + std::strerror(errno));
  getsockname(fd, &bound.generic, &bound.size);
  return fd;
}

void PinTo(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) Fail("cannot run on CPU " + std::to_string(cpu));
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

double RunBoth(const std::function<void(const std::function<void(const std::string&)>& publish)>& server,
               const std::function<void(const std::string& address)>& client) {
  int fds[2];
  if (pipe(fds) != 0) Fail("pipe failed");
  const pid_t child = fork();
  if (child < 0) Fail("fork failed");
  if (child == 0) {
    close(fds[0]);
    server([&](const std::string& address) {
      if (write(fds[1], address.data(), address.size()) < 0) std::exit(1);
      close(fds[1]);
    });
    std::_Exit(0);
  }
  close(fds[1]);
  std::string text;
  std::array<char, 512> part;
  for (ssize_t bytes; (bytes = read(fds[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<size_t>(bytes));
  close(fds[0]);
  if (text.empty()) Fail("the server process ended before it was ready");
  client(text);
  kill(child, SIGTERM);
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  return SecondsOf(usage);
}

}  // namespace paceline::interop
