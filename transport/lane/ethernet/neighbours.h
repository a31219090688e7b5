// Which Ethernet address an IP address of this link has: ARP for IPv4, neighbour discovery for IPv6. For lanes whose
// port has no kernel behind it.
//
// No I/O and no clock: frames come in by HandleFrame, frames to send go out by PollTransmit, the time is an argument.
// Only addresses that somebody opened are asked for and remembered, so what strangers say cannot fill the table; what
// they ask for is answered. An address that was closed is remembered until its place is needed: a first packet, and the
// answer to a stranger, are sent by those who close at once.
//
// An address that is opened is asked for at once, again after 100 ms and then after twice the time, at most 1 s, six
// times in all (RFC 4861 has three times a second apart; a short first interval is for ports that come up together).
// Without an answer it has failed, and is asked for once a second while it is used. An answer is good for 30 s; then,
// if it is still used, the neighbour is asked directly, and everybody after three times without an answer; meanwhile
// the old answer serves.
//
// Left out: router discovery (a gateway is a setting), detection of duplicate addresses (a frame of somebody else under
// our address is counted), proxies, announcements of our own.
//
// Sources: RFC 826, RFC 1122 section 2.3.2 (ARP), RFC 4861 sections 4.3, 4.4, 7.1, 7.2 (neighbour discovery).
//
// Thread rule: one thread at a time. Open allocates only when there are more open entries than ever before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/base/time.h"
#include "transport/lane/ethernet/frame.h"

namespace paceline {

// A frame that says or asks for an address.
struct NeighbourFrame {
  static constexpr size_t kMaxBytes = 86;  // Ethernet, IPv6, a solicitation and its option
  std::array<uint8_t, kMaxBytes> bytes{};
  size_t size = 0;
  std::span<const uint8_t> view() const { return {bytes.data(), size}; }
};

class Neighbours {
 public:
  struct Options {
    MacAddress mac;
    IpVersion version = IpVersion::kV4;
    IpAddress address{};
    uint8_t prefix_bits = 0;           // addresses that share so many bits with ours are on this link; 0: all are
    std::optional<IpAddress> gateway;  // takes what is for others; without one they are not reached
  };

  static constexpr uint32_t kNowhere = 0;
  static constexpr size_t kMostEntries = 4096;
  static constexpr size_t kMostAnswers = 64;  // that wait to be sent; whoever is not answered asks again

  enum class State : uint8_t {
    kAsking,  // not known yet; what is for it may wait a moment
    kKnown,
    kFailed,  // nobody answers
  };

  explicit Neighbours(const Options& options);

  // A number for the next hop towards `destination`, the same for the same hop while it is open: Close as often as
  // Open and Keep. kNowhere: neither on this link nor is there a gateway, or too many are open.
  uint32_t Open(const IpAddress& destination);
  void Keep(uint32_t neighbour) { ++entries_[neighbour].references; }  // an open one
  void Close(uint32_t neighbour);

  // What is known of an open one. A lookup is a use: it keeps the entry fresh.
  State state(uint32_t neighbour) const { return entries_[neighbour].state; }
  // Where to send; nullptr unless it is known.
  const MacAddress* Find(uint32_t neighbour) {
    Entry& entry = entries_[neighbour];
    entry.used = true;
    return entry.state == State::kKnown ? &entry.mac : nullptr;
  }

  // True when the frame is one of ARP or neighbour discovery, whatever it holds: nothing else wants it.
  bool HandleFrame(std::span<const uint8_t> frame, Time now);

  // The next frame to send, if any: answers and questions of our own in turn.
  std::optional<NeighbourFrame> PollTransmit(Time now);
  // When PollTransmit may have something; HandleFrame and Open may make it earlier.
  Time next_due() const { return answers_.empty() ? next_due_ : Time(); }

  // Grows whenever an entry becomes known or fails, or its Ethernet address changes: time to look at what waits.
  uint32_t change_count() const { return change_count_; }
  uint64_t conflicts() const { return conflicts_; }                   // frames of somebody else under our address
  const MacAddress& last_conflict() const { return last_conflict_; }  // who sent the last of them

 private:
  struct Entry {
    IpAddress hop{};
    MacAddress mac;
    State state = State::kFailed;
    bool used = false;
    bool probing = false;    // known, but to be confirmed
    uint8_t asked = 0;       // times, since it was last known
    bool in_closed = false;  // stands in closed_
    uint32_t references = 0;
    Time due;
  };
  // To whom we say our address, and how.
  struct Answer {
    MacAddress to_mac;
    IpAddress to{};
    bool solicited = false;  // IPv6: to who asked, rather than to all
  };

  uint32_t TakePlace();
  bool OnLink(const IpAddress& address) const;
  bool HandleArp(std::span<const uint8_t> frame, Time now);
  bool HandleDiscovery(std::span<const uint8_t> frame, Time now);
  void HandleSolicitation(std::span<const uint8_t> ip, std::span<const uint8_t> frame, Time now);
  void HandleAdvertisement(std::span<const uint8_t> ip, std::span<const uint8_t> frame, Time now);
  void Confirm(const IpAddress& address, Time now);
  void Conflict(const MacAddress& with);
  void Learn(const IpAddress& address, const MacAddress& mac, bool may_replace, Time now);
  void AddAnswer(const Answer& answer);
  void WakeAt(Time due);
  // What falls due for this entry: returns true when it is to be asked for now.
  bool Advance(Entry& entry, Time now);
  std::optional<NeighbourFrame> PollAnswer();
  std::optional<NeighbourFrame> PollQuestion(Time now);
  NeighbourFrame MakeRequest(const Entry& entry) const;
  NeighbourFrame MakeAnswer(const Answer& answer) const;
  NeighbourFrame MakeArp(uint16_t operation, const MacAddress& to_mac, const MacAddress& target_mac,
                         const IpAddress& target) const;
  NeighbourFrame MakeDiscovery(uint8_t type, uint32_t flags, const MacAddress& to_mac, const IpAddress& to,
                               const IpAddress& target) const;

  Options options_;
  std::vector<Entry> entries_;   // the first is kNowhere
  std::deque<uint32_t> closed_;  // the longest closed first; some may have been opened again
  absl::flat_hash_map<IpAddress, uint32_t> numbers_;
  std::vector<Answer> answers_;
  size_t cursor_ = 1;  // entries before it have had their turn in this sweep
  Time next_due_ = Time::Never();
  Time sweep_due_ = Time::Never();  // the earliest of what this sweep has seen
  uint32_t change_count_ = 0;
  bool question_is_next_ = false;  // the last frame was an answer
  uint64_t conflicts_ = 0;
  MacAddress last_conflict_;
};

}  // namespace paceline
