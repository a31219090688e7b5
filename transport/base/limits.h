// Every bound of the protocol core in one place. At a bound the caller gets "try again" and the peer gets
// back-pressure; nothing grows past it. Values that a user may set stand in EndpointOptions and start from here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::limits {

inline constexpr uint32_t kMaxPorts = 8;               // local HCAs of one endpoint, remote HCAs of one peer
inline constexpr uint32_t kMaxConnections = 1u << 20;  // per endpoint
inline constexpr uint32_t kMostIdPrefixBits = 4;       // EndpointOptions::id_prefix_bits
inline constexpr uint32_t kMaxEntropies = 256;         // routes asked for per pair of ports
inline constexpr uint32_t kMaxOperations = 1u << 16;   // posted and not completed, per connection and direction
inline constexpr uint32_t kMaxOpenMessages = 4096;     // messages of one direction between first packet and completion
inline constexpr uint32_t kMaxParkedMessages = 4096;   // of sends that wait for a receive, beside kMaxOpenMessages
inline constexpr uint32_t kMaxOutstandingPackets = 16384;  // psns of one connection sent and not resolved
inline constexpr uint32_t kMinSegmentBytes = 64;           // payload of a packet that is not a message's last
inline constexpr uint32_t kMaxSegmentsAhead = 32768;       // out-of-order span of one message, in segments
inline constexpr uint32_t kMaxFragmentedSegments = 4096;   // of which a part is here, per connection
inline constexpr uint64_t kMaxMessageBytes = 1ull << 40;   // 1 TiB
inline constexpr uint32_t kMaxAtomicBytes = 1024;          // of an atomic's target; each vector has as many
inline constexpr uint32_t kMaxDataHeaderBytes = 96;        // encoded header of a data packet
inline constexpr uint32_t kMaxControlBytes = 1024;         // one control packet
inline constexpr uint32_t kLeastPacketBytes = 512;         // no real network takes less
inline constexpr uint32_t kMaxTelemetryHops = 8;           // records of one packet's way, the first ones
inline constexpr uint32_t kSackWords = 8;                  // 64-bit words of one selective acknowledgement: 512 packets
inline constexpr uint32_t kFencedWords = 32;               // of one answer to a fence: 2048 packets

inline constexpr uint64_t kDefaultUnexpectedBytes = 64ull << 20;  // payload held for sends that have no receive yet
inline constexpr uint32_t kDefaultEagerBytes = 16384;             // sends up to this size need no matched receive
// Connection requests that wait for Accept, per endpoint. A further one is left unanswered; its client asks again.
inline constexpr uint32_t kMaxPendingAccepts = 1024;

static_assert((kMaxOpenMessages & (kMaxOpenMessages - 1)) == 0);
static_assert((kMaxOutstandingPackets & (kMaxOutstandingPackets - 1)) == 0);
static_assert(kMaxOutstandingPackets < 65536, "the floor distance on the wire has 16 bits");

}  // namespace paceline::limits
