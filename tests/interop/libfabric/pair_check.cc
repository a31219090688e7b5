// pair_check server|client NODE PORT CHECK: one of the two processes of a check.
#include <cstdio>
#include <cstring>

#include "tests/interop/libfabric/pair_checks.h"

int main(int argc, char** argv) {
  using namespace paceline::fabric_pair;
  const struct {
    const char* name;
    void (*run)(Peer&);  // nullptr: the one that is no Peer's
  } checks[] = {{"vectors", Vectors},       {"atomics", Atomics}, {"events", Events},         {"triggered", Triggered},
                {"killed", Killed},         {"asleep", Asleep},   {"unexpected", Unexpected}, {"windows", Windows},
                {"reinserted", Reinserted}, {"scalable", nullptr}};
  for (const auto& check : checks) {
    if (argc != 5 || std::strcmp(argv[4], check.name) != 0) continue;
    const bool is_server = std::strcmp(argv[1], "server") == 0;
    if (check.run == nullptr) {
      Scalable(argv[2], argv[3], is_server);
    } else {
      Peer peer(argv[2], argv[3], is_server);
      check.run(peer);
    }
    std::printf("%s: passed\n", check.name);
    return 0;
  }
  std::fprintf(stderr, "usage: pair_check server|client NODE PORT CHECK, where CHECK is one of");
  for (const auto& check : checks) std::fprintf(stderr, " %s", check.name);
  std::fprintf(stderr, "\n");
  return 2;
}
