// Counters of an endpoint. Each grows only (but for levels, which say so), is written by the thread that polls the
// endpoint and may be read by any other process through shared memory (api: counters page). Names, units and meanings:
// docs/counters.md, made from this list.
#pragma once

#include <cstdint>

namespace paceline {

// X(name, unit, meaning)
#define PACELINE_ENDPOINT_COUNTERS(X)                                                                                 \
  X(tx_packets, "packets", "packets handed to lanes, of any kind")                                                    \
  X(tx_data_packets, "packets", "packets or writes with payload handed to lanes, retransmissions included")           \
  X(tx_data_bytes, "bytes", "payload bytes handed to lanes, retransmissions included")                                \
  X(rx_packets, "packets", "packets and placed writes received, of any kind")                                         \
  X(rx_data_packets, "packets", "packets or writes with payload received, duplicates included")                       \
  X(rx_data_bytes, "bytes", "payload bytes placed, each once")                                                        \
  X(rx_in_place, "packets", "data packets whose payload the lane put where it belongs, before they were looked at")   \
  X(rx_set_aside, "packets", "packets that the lane put where others belong, which were copied aside")                \
  X(rx_malformed, "packets", "packets dropped: too short, unknown kind, impossible field")                            \
  X(rx_bad_checksum, "packets", "packets dropped: header or payload checksum wrong")                                  \
  X(rx_forged, "packets", "packets dropped: not authenticated by the peer, of any kind")                              \
  X(rx_replayed, "packets", "packets dropped: authentic, but taken before or too old to tell")                        \
  X(rx_unknown_connection, "packets", "packets dropped: no such connection here")                                     \
  X(rx_duplicates, "packets", "data packets that had arrived before and were not placed again")                       \
  X(rx_trimmed, "packets", "headers whose payload was cut by a switch")                                               \
  X(rx_marked, "packets", "data packets that arrived with an ECN mark")                                               \
  X(rx_out_of_window, "packets", "data packets dropped: beyond a bound of messages or segments")                      \
  X(rx_no_memory, "packets", "data packets dropped: the store of unexpected messages is full")                        \
  X(rx_writes, "operations", "writes of peers completed in memory of ours")                                           \
  X(rx_reads, "operations", "reads of peers answered")                                                                \
  X(rx_atomics, "operations", "atomics of peers carried out")                                                         \
  X(rx_refused, "packets", "one-sided packets refused: unknown key, out of bounds, no permission")                    \
  X(retransmits, "packets", "data packets sent again")                                                                \
  X(retransmitted_bytes, "bytes", "payload bytes sent again")                                                         \
  X(spurious_retransmits, "packets", "data packets found lost whose first copy arrived after all")                    \
  X(lost_path_gap, "packets", "loss verdicts: something later on the same path arrived")                              \
  X(lost_reorder, "packets", "loss verdicts: something sent a reordering window later arrived")                       \
  X(lost_trimmed, "packets", "loss verdicts: the receiver got the header without the payload")                        \
  X(lost_timeout, "packets", "loss verdicts: retransmission time-out")                                                \
  X(lost_fenced, "packets", "loss verdicts: the peer refuses what else was written on the path")                      \
  X(timeouts, "times", "retransmission time-outs")                                                                    \
  X(tail_probes, "packets", "tail probes sent")                                                                       \
  X(path_resets, "times", "silent paths of remote placement for which the lane was asked to find another way")        \
  X(fences_asked, "times", "ports of peers that were asked to refuse what was written there and may be on its way")   \
  X(fences_held, "times", "the same, of ours, for peers")                                                             \
  X(fences_refused, "times", "the same, asked of ours, that name a port or a packet that cannot be")                  \
  X(acks_sent, "packets", "control packets with an acknowledgement")                                                  \
  X(grants_sent, "packets", "control packets with a grant")                                                           \
  X(not_ready_sent, "times", "messages put off because nothing could hold them")                                      \
  X(unexpected_messages, "messages", "sends that arrived before their receive was posted")                            \
  X(device_copies, "packets", "payloads copied from or to memory of a GPU, because they travelled in packets")        \
  X(device_copied_bytes, "bytes", "their bytes")                                                                      \
  X(device_copies_failed, "packets", "the same where the copy failed, which ends the connection")                     \
  X(operations_posted, "operations", "operations posted")                                                             \
  X(operations_completed, "operations", "completions with status ok")                                                 \
  X(operations_failed, "operations", "completions with any other status")                                             \
  X(connections_opened, "connections", "connections that became established")                                         \
  X(connections_closed, "connections", "established connections that ended in order")                                 \
  X(connections_lost, "connections", "established connections given up: peer lost or protocol error")                 \
  X(connections_gone, "connections", "connections given up because the peer says that it does not have them")         \
  X(asks_sent, "packets", "questions to peers whether they have a connection")                                        \
  X(gones_sent, "packets", "answers that there is no such connection here")                                           \
  X(handshakes_refused, "times", "connection requests refused, by us or by the peer")                                 \
  X(listen_overflows, "packets",                                                                                      \
    "connection requests left unanswered: as many as allowed wait to be accepted; the client asks again")             \
  X(paths_narrower, "connections", "connections that we set up over a path that takes smaller packets than our port") \
  X(payload_limits_lowered, "times",                                                                                  \
    "a path came to take only smaller packets, and segments go in fragments; larger ones are tried again")            \
  X(base_rtt_nanos, "ns", "least round trip measured last, of whichever connection (a level, not a count)")           \
  X(port_changes, "times", "ports that went down or came back")

struct EndpointCounters {
#define PACELINE_FIELD(name, unit, meaning) uint64_t name = 0;
  PACELINE_ENDPOINT_COUNTERS(PACELINE_FIELD)
#undef PACELINE_FIELD
};

}  // namespace paceline
