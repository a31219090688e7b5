#include "tools/perf/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace paceline::tools {
namespace {

// A TCP port that nobody uses.
uint16_t FreePort() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(socket_fd);
  return ntohs(address.sin_port);
}

bool HasIpv6() {
  const int socket_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool usable = socket_fd >= 0 && bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  if (socket_fd >= 0) close(socket_fd);
  return usable;
}

// Whether one who comes to `host` meets a server that waits at `address`.
void ExpectMeeting(const std::string& address, const std::string& host) {
  const uint16_t port = FreePort();
  std::thread server([&] {
    const auto team = ServeTeam(address, port);
    ASSERT_TRUE(team.ok()) << team.status();
    EXPECT_TRUE(team->rendezvous->Barrier().ok());
  });
  const auto team = JoinTeam(host, port, 2);
  EXPECT_TRUE(team.ok()) << "at " << host << ": " << team.status();
  if (team.ok()) {
    EXPECT_TRUE(team->rendezvous->Barrier().ok());
  } else {
    EXPECT_TRUE(JoinTeam("127.0.0.1", port, 2).ok());  // the server waits until somebody comes
  }
  server.join();
}

TEST(Bootstrap, EveryAddressIsOfBothFamilies) {
  ExpectMeeting("", "127.0.0.1");
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6 here";
  ExpectMeeting("", "::1");
}

TEST(Bootstrap, OneAddressIsThatAlone) {
  ExpectMeeting("127.0.0.1", "127.0.0.1");
  if (HasIpv6()) ExpectMeeting("::1", "::1");
}

}  // namespace
}  // namespace paceline::tools
