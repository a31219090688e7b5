// What somebody makes of the packets that he sees on their way to his victim.
//
//   replay    packets that passed, once more, soon and late
//   modify    packets that passed, with some bits changed and the checksum made right
//   truncate  packets that passed, cut off somewhere
//   inject    packets that nobody sent, for connections that passed: writes to guessed memory keys, sends, credit,
//             acknowledgements, closes and aborts, questions for a connection and answers that it is gone; half of
//             them with a counter and a made-up tag, as protected packets have
//   flood     requests to connect, each in another stranger's name, most with a made-up cookie
//
// Thread rule: one thread. Same seed and same packets seen: same packets made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/interop/attacker/datagram.h"
#include "transport/base/random.h"
#include "transport/wire/packet.h"

namespace paceline::interop {

class Attacker {
 public:
  explicit Attacker(uint64_t seed) : random_(seed) {}

  // Something towards the target has passed. The last 4096 are kept.
  void See(Datagram datagram);
  uint64_t seen() const { return seen_; }

  // The next packet of each kind; only when one was seen.
  Datagram Replay() { return Any(); }
  Datagram Modify();
  Datagram Truncate();
  Datagram Inject();
  Datagram Flood();

 private:
  const Datagram& Any() { return kept_[random_.Below(kept_.size())]; }
  void Protect(std::vector<uint8_t>& bytes);
  size_t Data(uint32_t connection, wire::MessageKind kind, std::vector<uint8_t>& bytes);
  size_t Control(uint32_t connection, std::vector<uint8_t>& bytes);
  size_t Presence(uint32_t connection, std::vector<uint8_t>& bytes);

  Random random_;
  std::deque<Datagram> kept_;
  uint64_t seen_ = 0;
};

using Attack = Datagram (Attacker::*)();
// By name.
const std::map<std::string, Attack>& Attacks();

}  // namespace paceline::interop
