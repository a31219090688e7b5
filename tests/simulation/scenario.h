// What one run of the swarm does: everything follows from the seed, and every choice may be overridden by name, so that
// a failure can be replayed, cut down and kept as one line of text ("seed=17 loss=0 ports=1").
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::simulation {

enum class Carrier : uint8_t { kPackets, kHca, kFabric };  // scripted packets, scripted placing card, simulated fabric
enum class Protection : uint8_t { kNone, kAuthenticated, kEncrypted };
// Closes: of one side of each connection when all is posted, of both at once, of some connection in the middle.
// Which packets do not wait in the queue of Scenario::queue_mbps: none, those without payload, or all short ones.
enum class Ahead : uint8_t { kNone, kControl, kShort };
enum class Ending : uint8_t { kQuiet, kClose, kAbort, kCrash, kPause, kRestart, kCloseBoth, kCloseEarly };

struct Scenario {
  uint64_t seed = 0;
  Carrier carrier = Carrier::kPackets;
  Ending ending = Ending::kQuiet;
  std::string controller;  // a registered algorithm, or "test_window", "test_credit"
  std::string path_policy;
  uint32_t hosts = 2;
  uint32_t ports = 1;  // per host
  uint32_t connections = 1;
  bool handshake = false;
  Protection protection = Protection::kNone;  // with a handshake only
  uint32_t operations = 50;                   // per connection and direction
  uint32_t max_bytes = 100'000;
  uint32_t eager_bytes = 16'384;
  uint32_t unexpected_bytes = 1 << 20;
  uint32_t entropies = 16;
  uint32_t lane_room = 64;  // segments that a lane takes at a time
  double cancel = 0;        // share of operations that are cancelled at some time
  double loss = 0, duplicate = 0, reorder = 0, corrupt = 0, trim = 0, mark = 0;
  uint32_t skew_us = 0;         // paths differ by up to this much
  uint32_t flaps = 0;           // links that go down for a while
  uint32_t black_paths = 0;     // entropies that swallow everything for a while
  uint32_t bursts = 0;          // times of up to 5 ms in which most is lost
  uint32_t partitions = 0;      // times in which nothing gets from one host to another, though the other way is open
  uint32_t rx_queue = 0;        // packets that wait at a lane before it drops what comes; 0: no bound
  uint32_t fault_ms = 40;       // after this time the network is well
  uint32_t stalls = 0;          // hosts that stand still for up to 3 s
  uint32_t leaps = 0;           // clocks that leap forward by up to 30 s; together with stalls peers may be lost
  uint32_t shortages = 0;       // times when a connection is full of receives that nobody will meet
  uint32_t revocations = 0;     // times when a side takes memory back that its peer may be using
  uint32_t burst_segments = 1;  // of a path that lanes want together; not of the fabric
  bool reads_later = false;     // lanes of packets read payloads of registered memory when they arrive
  bool as_plugins = false;      // prompt acknowledgements and ordered placement, and sends that are told to have met
  // Of scripted carriers, and beyond the fault time too: how the network delays what it does not lose.
  uint32_t queue_mbps = 0;     // of a link before each port, with a queue that loses nothing; 0: none. Packets only
  Ahead ahead = Ahead::kNone;  // packets that pass this queue by
  uint32_t far_port_us = 0;    // to and from the last port of each host takes so much longer; several ports only
  uint32_t path_bytes = 0;     // of the largest packets that pass, with a handshake over packets; 0: the ports' own
  uint32_t narrowings = 0;     // times in the fault time when the network comes to take other sizes; packets only
  // Receives that connections share; with a handshake only:
  uint32_t receive_queues = 0;  // per host; 0: each connection has receives of its own
  double late_names = 0;        // share of their connections that are named while in use
  double claims = 0;            // share of their receives before which what waits is looked at, and perhaps claimed
  double many = 0;              // share of their receives whose buffer takes one send after the other
  uint32_t held_receives = 0;   // per side: sends whose receives come after all else, unless receives are shared
  // Placing cards only:
  uint32_t parked = 0;         // times in which some paths hold writes back, for up to 2 s beyond the fault time
  bool placed_writes = false;  // all memory for peers is open to their cards, not only what is offered for a while
  uint32_t write_lag_us = 0;   // writes are so much slower than packets, which overtake them
  // Simulated fabric only:
  uint32_t topology = 0;  // 0 single switch, 1 dumbbell, 2 leaf-spine, 3 fat tree
  uint32_t queue_kb = 175;
};

// Seeds from here on have networks that delay (queue_mbps, ahead, far_port_us), most of which lose nothing. Those below
// keep the scenario that they have always had.
inline constexpr uint64_t kFirstSlowSeed = 100'000;
// From here on the sizes that pass change while connections stand (narrowings).
inline constexpr uint64_t kFirstNarrowingSeed = 200'000;

Scenario ScenarioOf(uint64_t seed);

// The network loses no packet, changes none and keeps the order of each path (but for Scenario::ahead), and no host
// stops for a while: every retransmission is unnecessary.
bool LosesNothing(const Scenario& scenario);

// "seed=17 loss=0.1 carrier=hca ...": the seed's scenario with what follows changed. An error names the key.
absl::StatusOr<Scenario> ParseScenario(const std::string& line);

// Every field by name, in one line that ParseScenario takes.
std::string Describe(const Scenario& scenario);

}  // namespace paceline::simulation
