// What a context is made with. Every option can also be set from the environment, as docs/tuning.md lists.
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "paceline/status.h"

namespace paceline::api {

enum class ProgressMode {
  kManual,  // the caller's thread moves data, inside CompletionQueue::Poll, Context::Progress and Context::Wait
  kThread,  // a thread of the context moves data; all calls may then come from any thread
};

struct ContextOptions {
  // -- network
  // PACELINE_LANE: how the ports are driven; `paceline info` lists the kinds. "auto": kernel UDP sockets, and shared
  // memory with processes of this host and user.
  std::string lane = "auto";
  // PACELINE_BIND, comma separated: interfaces ("eth0") or addresses ("192.0.2.1", "[fd00::2]:4791"), a port (lane)
  // each; with lane "dpdk" ports and their settings ("net_memif0,role=server,address=192.0.2.1"). Empty: 127.0.0.1,
  // which only processes of this machine reach.
  std::vector<std::string> bind;
  uint32_t mtu = 0;      // PACELINE_MTU, bytes of the largest IP packet; 0: the interface's
  double link_gbps = 0;  // PACELINE_LINK_GBPS: of each port; 0: as the driver states it
  // PACELINE_BASE_RTT_US: round trip to the farthest peer without queues, at most 1,000,000; 0: measured per
  // connection.
  double base_rtt_us = 0;
  // PACELINE_TRAFFIC_CLASS, 0 to 255: the byte of that name in the IP header, by which switches choose a queue (DSCP
  // times four). Its two lowest bits are ECN's: they are the transport's and not taken from here. Lanes without IP
  // ignore it.
  uint8_t traffic_class = 0;
  // PACELINE_DPDK_EAL: arguments with which DPDK starts, beside those that Paceline chooses or in their place
  // (docs/lanes/dpdk.md); only in the process's first context with lane "dpdk", and not where the application runs
  // DPDK.
  std::string dpdk_eal;
  // PACELINE_VERBS_RELIABLE: 1 or 0; with lane "verbs": writes travel on reliable connections (RC), where the card
  // sends again what is lost, instead of unreliable ones (UC); of the writing side, peers go along.
  bool verbs_reliable = false;
  std::string impair;  // PACELINE_IMPAIR: a bad network on purpose, "loss=1%,dup=1%": see docs/tuning.md

  // -- security (docs/security.md)
  // PACELINE_KEY_FILE: the cluster key, which peers must have too; packets are then authenticated. The file holds 64
  // hexadecimal digits and nobody but its owner may touch it. "none": no key, and no warning. Empty: no key, and a
  // warning on standard error when other machines can connect.
  std::string key_file;
  bool encrypt = false;  // PACELINE_ENCRYPT: 1 or 0; with a key: payloads are encrypted too, if either side wants it

  // -- congestion control
  std::string congestion_control = "tita";                           // PACELINE_CC; both ends must run the same
  std::map<std::string, std::string> congestion_control_parameters;  // PACELINE_CC_PARAMETERS: "key=value,..."
  // PACELINE_FAN_IN: how many peers send to one receiver at a time, where the application knows it; 0: all others
  // of a job of at most 32 ranks, where a launcher (mpirun, srun, torchrun) says how many it has, else not known.
  // Algorithms that let short sends go without credit reckon with it (tita: `unscheduled`), unless told otherwise by a
  // parameter.
  uint32_t fan_in = 0;
  std::string path_policy;  // PACELINE_PATH_POLICY; empty: the default
  uint32_t entropies = 0;   // PACELINE_ENTROPIES: routes per pair of ports; 0: the default

  // -- progress and waiting
  ProgressMode progress = ProgressMode::kManual;  // PACELINE_PROGRESS: manual or thread
  // PACELINE_ENGINES, 1 to 16: engines over which the context spreads its connections, each with ports and a thread of
  // its own, for whom one core does not suffice; 0: 1. More than one only with kThread, and lanes "auto", "udp", "shm"
  // and "verbs".
  uint32_t engines = 0;
  uint32_t spin_us = 20;     // PACELINE_SPIN_US: idle time before sleeping, where cores suffice
  uint32_t local_ranks = 0;  // PACELINE_LOCAL_RANKS: processes of the job on this machine; 0: from the launcher, else 1

  // -- bounds (0: the default), of several engines each; at a bound a post answers kTryAgain
  uint32_t max_connections = 0;   // PACELINE_MAX_CONNECTIONS
  uint32_t max_operations = 0;    // PACELINE_MAX_OPERATIONS: per connection and direction
  uint32_t max_completions = 0;   // PACELINE_MAX_COMPLETIONS: not yet polled
  uint64_t unexpected_bytes = 0;  // PACELINE_UNEXPECTED_BYTES: sends held that have no receive yet
  uint32_t eager_bytes = 0;       // PACELINE_EAGER_BYTES: sends up to this size do not wait for a receive

  // PACELINE_MATCHED_SENDS: 1 or 0; a send completes when its receive has it, as nothing is stored for receives to
  // come, as if unexpected_bytes were nothing: its process may then close the connection and end
  bool matched_sends = false;

  // PACELINE_ORDERED_PLACEMENT: 1 or 0; for receive buffers that are watched while data arrive (a GPU that polls flags
  // in them): eight aligned bytes change at once, and the last eight of each aligned 128 come last. Both sides alike
  bool ordered_placement = false;

  // -- time-outs in milliseconds (0: the default)
  uint32_t connect_timeout_ms = 0;  // PACELINE_CONNECT_TIMEOUT_MS
  uint32_t peer_timeout_ms = 0;     // PACELINE_PEER_TIMEOUT_MS: silence after which a peer is given up
  uint32_t linger_ms = 0;           // PACELINE_LINGER_MS: how long a context that ends waits for its orderly closes

  uint32_t ack_delay_us = 0;  // PACELINE_ACK_DELAY_US: how long an acknowledgement may wait for company; 0: the default
  // PACELINE_PROMPT_ACKS: 1 or 0; senders ask for their acknowledgements, which come as soon as a message is complete,
  // also a short one, for a packet more each: for programs that stop moving data without notice while their peers wait
  // for completions. Sends for which nobody waits (Connection::SendCopied) do not ask.
  bool prompt_acks = false;

  bool payload_checksum = true;  // PACELINE_PAYLOAD_CHECKSUM: 1 or 0
  bool shared_counters = true;   // PACELINE_COUNTERS: 1 or 0; counters in shared memory, see paceline/counters.h
  uint64_t seed = 0;  // PACELINE_SEED: of what need not be secret (routes, order); 0: from the operating system

  // `defaults` with what PACELINE_* says put over it. An error names the variable and its value. Context::Create does
  // not look at the environment by itself: programs that want it call this.
  static Result<ContextOptions> FromEnvironment(ContextOptions defaults);
  static Result<ContextOptions> FromEnvironment();
};

}  // namespace paceline::api
