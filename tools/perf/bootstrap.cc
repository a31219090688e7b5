#include "tools/perf/bootstrap.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

absl::Status Errno(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

absl::Status Resolve(const std::string& host, uint16_t port, bool passive, AddressList& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &out.first);
  if (error == 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("host \"", host, "\": ", gai_strerror(error)));
}

// Negative: errno says why. At IPv6's unspecified address it listens at all of IPv4 too.
int ListenAt(const addrinfo& at) {
  const int socket_fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return -1;
  const int one = 1, zero = 0;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (at.ai_family == AF_INET6) setsockopt(socket_fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
  if (bind(socket_fd, at.ai_addr, at.ai_addrlen) == 0 && listen(socket_fd, 128) == 0) return socket_fd;
  const int error = errno;
  close(socket_fd);
  errno = error;
  return -1;
}

// Empty: every address.
absl::StatusOr<int> ListenTcp(const std::string& address, uint16_t port) {
  AddressList list;
  if (absl::Status status = Resolve(address.empty() ? "::" : address, port, true, list); !status.ok()) return status;
  int socket_fd = ListenAt(*list.first);
  if (socket_fd < 0 && address.empty() && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {  // no IPv6 here
    AddressList older;
    if (absl::Status status = Resolve("0.0.0.0", port, true, older); !status.ok()) return status;
    socket_fd = ListenAt(*older.first);
  }
  if (socket_fd >= 0) return socket_fd;
  return Errno(
      absl::StrCat("port ", port, address.empty() ? "" : absl::StrCat(" of ", address), " for the rendezvous"));
}

// Small frames go at once, and a host that falls silent is given up after about 20 s.
void TuneTcp(int socket_fd) {
  const auto set = [socket_fd](int level, int name, int value) {
    setsockopt(socket_fd, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

// A host that does not answer at all would otherwise hold connect() for minutes. False: errno says why.
bool ConnectBefore(int socket_fd, const addrinfo& to, Time deadline) {
  fcntl(socket_fd, F_SETFL, O_NONBLOCK);
  if (connect(socket_fd, to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return false;
    const int64_t left = std::max<int64_t>((deadline - MonotonicNow()).nanos() / 1'000'000, 0);
    pollfd waiting = {.fd = socket_fd, .events = POLLOUT, .revents = 0};
    int error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (poll(&waiting, 1, static_cast<int>(left)) > 0) getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return false;
  }
  fcntl(socket_fd, F_SETFL, 0);
  return true;
}

absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port, double seconds) {
  AddressList list;
  if (absl::Status status = Resolve(host, port, false, list); !status.ok()) return status;
  const Time deadline = MonotonicNow() + Duration::Seconds(1).Scaled(seconds);
  while (true) {
    for (const addrinfo* at = list.first; at != nullptr; at = at->ai_next) {
      const int socket_fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket_fd < 0) continue;
      if (ConnectBefore(socket_fd, *at, deadline)) {
        TuneTcp(socket_fd);
        return socket_fd;
      }
      const int error = errno;
      close(socket_fd);
      errno = error;
    }
    if (MonotonicNow() >= deadline) return Errno(absl::StrCat("no paceline perf server at ", host, ", port ", port));
    usleep(100'000);
  }
}

// The socket's address in the abstract namespace: gone with its last user.
socklen_t LocalAddress(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

absl::StatusOr<int> ListenLocal(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = LocalAddress(name, address);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return Errno("socket");
  if (bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_fd, 4096) != 0) {
    const absl::Status status = Errno("local socket for the rendezvous");
    close(socket_fd);
    return status;
  }
  return socket_fd;
}

absl::StatusOr<int> ConnectLocal(const std::string& name, double seconds) {
  sockaddr_un address;
  const socklen_t size = LocalAddress(name, address);
  for (double left = seconds;; left -= 0.05) {
    const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) return Errno("socket");
    if (connect(socket_fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return socket_fd;
    close(socket_fd);
    if (left <= 0) return absl::UnavailableError("rank 0 of this job has not appeared");
    usleep(50'000);
  }
}

// Rank 0: takes world - 1 connections, each of which begins with its rank.
absl::StatusOr<std::vector<int>> TakeRanks(int listener, uint32_t world) {
  std::vector<int> sockets(world, -1);
  for (uint32_t missing = world - 1; missing > 0;) {
    const int socket_fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket_fd < 0) {
      if (errno == EINTR) continue;
      return Errno("accept");
    }
    TuneTcp(socket_fd);
    const timeval limit = {.tv_sec = 5, .tv_usec = 0};
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    uint32_t rank = 0;
    if (recv(socket_fd, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank) || rank == 0 || rank >= world ||
        sockets[rank] >= 0) {
      close(socket_fd);  // a stranger, or a rank that is there already
      continue;
    }
    sockets[rank] = socket_fd;
    --missing;
  }
  return sockets;
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Hub(absl::StatusOr<int> listener, uint32_t world) {
  if (!listener.ok()) return listener.status();
  auto sockets = TakeRanks(*listener, world);
  close(*listener);
  if (!sockets.ok()) return sockets.status();
  return std::make_unique<Rendezvous>(0, world, *std::move(sockets));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Spoke(absl::StatusOr<int> socket_fd, uint32_t rank, uint32_t world) {
  if (!socket_fd.ok()) return socket_fd.status();
  if (send(*socket_fd, &rank, sizeof(rank), MSG_NOSIGNAL) != sizeof(rank)) return Errno("rendezvous");
  return std::make_unique<Rendezvous>(rank, world, std::vector<int>{*socket_fd});
}

// A name that all ranks of one job on this machine share and no other job has.
std::string JobName() {
  std::string name = absl::StrCat("paceline-perf-", getuid());
  for (const char* variable :
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    if (const char* text = std::getenv(variable)) absl::StrAppend(&name, "-", text);
  }
  return name;
}

}  // namespace

Children::~Children() {
  for (const pid_t pid : pids_) {
    if (pid > 0) kill(pid, SIGKILL);
  }
  for (const pid_t pid : pids_) {
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
}

absl::Status Children::Join() {
  absl::Status result;
  for (size_t i = 0; i < pids_.size(); ++i) {
    int status = 0;
    while (waitpid(pids_[i], &status, 0) < 0 && errno == EINTR) {
    }
    pids_[i] = -1;
    if (status == 0 || !result.ok()) continue;
    result = WIFSIGNALED(status)
                 ? absl::InternalError(absl::StrCat("rank ", i + 1, " was ended by signal ", WTERMSIG(status)))
                 : absl::InternalError(absl::StrCat("rank ", i + 1, " ended with status ", WEXITSTATUS(status)));
  }
  return result;
}

absl::StatusOr<Team> ForkTeam(uint32_t world) {
  std::vector<int> sockets(world, -1);
  std::vector<pid_t> pids;
  for (uint32_t rank = 1; rank < world; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return Errno("socketpair");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return Errno("fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (const int socket_fd : sockets) {
        if (socket_fd >= 0) close(socket_fd);
      }
      close(pair[0]);
      Team team;
      team.rendezvous = std::make_unique<Rendezvous>(rank, world, std::vector<int>{pair[1]});
      team.local_ranks = world;
      return team;
    }
    close(pair[1]);
    sockets[rank] = pair[0];
    pids.push_back(pid);
  }
  Team team{nullptr, Children(std::move(pids)), world};
  team.rendezvous = std::make_unique<Rendezvous>(0, world, std::move(sockets));
  return team;
}

absl::StatusOr<Team> ServeTeam(const std::string& address, uint16_t port) {
  auto rendezvous = Hub(ListenTcp(address, port), 2);
  if (!rendezvous.ok()) return rendezvous.status();
  Team team;
  team.rendezvous = *std::move(rendezvous);
  return team;
}

absl::StatusOr<Team> JoinTeam(const std::string& host, uint16_t port, double seconds) {
  auto rendezvous = Spoke(ConnectTcp(host, port, seconds), 1, 2);
  if (!rendezvous.ok()) return rendezvous.status();
  Team team;
  team.rendezvous = *std::move(rendezvous);
  return team;
}

absl::StatusOr<Team> LauncherTeam(const LauncherRank& launched) {
  constexpr double kPatience = 60;
  absl::StatusOr<std::unique_ptr<Rendezvous>> rendezvous = nullptr;
  const char* host = std::getenv("MASTER_ADDR");
  const auto port = EnvironmentNumber("MASTER_PORT");
  if (host != nullptr && *host != '\0' && port && *port > 0 && *port < 65535) {
    // torchrun keeps a store of its own on MASTER_PORT; the next port is ours.
    const auto own_port = static_cast<uint16_t>(*port + (launched.launcher == "torchrun" ? 1 : 0));
    rendezvous = launched.rank == 0 ? Hub(ListenTcp("", own_port), launched.world)
                                    : Spoke(ConnectTcp(host, own_port, kPatience), launched.rank, launched.world);
  } else if (launched.local_ranks == launched.world) {
    rendezvous = launched.rank == 0 ? Hub(ListenLocal(JobName()), launched.world)
                                    : Spoke(ConnectLocal(JobName(), kPatience), launched.rank, launched.world);
  } else {
    return absl::InvalidArgumentError(
        "the ranks are on several machines and cannot find each other: set MASTER_ADDR to the address of rank 0's "
        "machine "
        "and MASTER_PORT to a free port there");
  }
  if (!rendezvous.ok()) return rendezvous.status();
  Team team;
  team.rendezvous = *std::move(rendezvous);
  team.local_ranks = launched.local_ranks;
  return team;
}

}  // namespace paceline::tools
