// pair_check server|client NODE PORT CHECK: one of the two processes of a check.
#include <cstdio>
#include <cstring>

#include "tests/interop/libfabric/pair_checks.h"

int main(int argc, char** argv) {
  using namespace paceline::fabric_pair;
  const struct {
    const char* name;
    void (*with_peer)(Peer&);
    void (*alone)(const char* node, const char* port, bool is_server);  // where with_peer is nullptr
  } checks[] = {{"vectors", Vectors, nullptr},
                {"atomics", Atomics, nullptr},
                {"events", Events, nullptr},
                {"triggered", Triggered, nullptr},
                {"killed", Killed, nullptr},
                {"asleep", Asleep, nullptr},
                {"unexpected", Unexpected, nullptr},
                {"windows", Windows, nullptr},
                {"reinserted", Reinserted, nullptr},
                {"clients", nullptr, Clients},
                {"scalable", nullptr, Scalable},
                {"shared", nullptr, Shared},
                {"connecting", nullptr, Connecting},
                {"connected_killed", nullptr, ConnectedKilled},
                {"unanswered_killed", nullptr, UnansweredKilled}};
  for (const auto& check : checks) {
    if (argc != 5 || std::strcmp(argv[4], check.name) != 0) continue;
    const bool is_server = std::strcmp(argv[1], "server") == 0;
    if (check.with_peer != nullptr) {
      Peer peer(argv[2], argv[3], is_server);
      check.with_peer(peer);
    } else {
      check.alone(argv[2], argv[3], is_server);
    }
    std::printf("%s: passed\n", check.name);
    return 0;
  }
  std::fprintf(stderr, "usage: pair_check server|client NODE PORT CHECK, where CHECK is one of");
  for (const auto& check : checks) std::fprintf(stderr, " %s", check.name);
  std::fprintf(stderr, "\n");
  return 2;
}
