// Packets sent and not yet resolved, by packet sequence number. Numbers are never used twice: a segment that is sent
// again gets a new one, so an acknowledgement always says which copy arrived.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cc/congestion_control.h"
#include "transport/base/time.h"

namespace paceline {

struct TxMessage;

// What a network may tell apart, and send ahead of what it tells apart from it: packets of one class through one port
// keep pace with each other. `kShort` may overtake `kBulk`, never the other way round.
enum class TrafficClass : uint8_t { kBulk, kShort };
inline constexpr size_t kTrafficClasses = 2;

struct Outstanding {
  enum class State : uint8_t {
    kResolved,  // acknowledged, or no longer wanted
    kOutstanding,
    kQueued,      // found lost; in a list of packets to send again
    kQueuedDead,  // in such a list, but no longer wanted (its copy arrived after all, or the message ended)
    kGhost,       // sent again under another number; kept for a while to notice that the verdict was wrong
  };
  enum class Kind : uint8_t { kSegment, kAnnouncement, kProbe, kBundle };

  TxMessage* message = nullptr;  // null: probes, bundles, and once resolved
  Time sent_at;
  Time lost_at;                   // when the verdict fell: its late arrival is awaited for some time from then on
  uint64_t offset = 0;            // of the payload in its message; kBundle: number of its first message; kProbe: the
                                  // payload of the data packets that it is as large as
  uint64_t next = 0;              // in a PsnList; kGhost, but of a bundle: the packet that went instead
  uint64_t previous_on_path = 0;  // packet sent before on the same path; 0: none
  uint32_t bytes = 0;             // payload
  uint16_t entropy = 0;
  uint16_t parts = 0;  // kBundle: messages; kSegment, found lost: units of it (FragmentUnit) that went again
  uint8_t local_port = 0;
  uint8_t remote_port = 0;
  TrafficClass traffic_class = TrafficClass::kBulk;
  State state = State::kResolved;
  Kind kind = Kind::kSegment;
  bool counted = false;                   // in Sender::retransmit_bytes_
  bool written = false;                   // by remote placement: sent again only when its path has proven it lost
  LossCause cause = LossCause::kPathGap;  // of the verdict, once there is one
};

}  // namespace paceline
