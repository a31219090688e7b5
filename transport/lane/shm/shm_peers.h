// The peers of a shm lane: the rings that it writes to, each with its connection; small numbers for addresses,
// reference counted. One that nobody refers to any more is kept for a while, as a handshake opens and closes its peer
// for every packet.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transport/lane/lane.h"
#include "transport/lane/shm/shm_memory.h"
#include "transport/lane/shm/shm_socket.h"

namespace paceline {

class ShmPeers {
 public:
  // The number of every address that this lane cannot reach: another kind's, not on this host, another user's.
  static constexpr uint32_t kNowhere = 0;

  struct Peer {
    Peer(const LaneAddress& to, FileDescriptor connection, ShmMemory ring)
        : address(to), socket(std::move(connection)), memory(std::move(ring)), writer(memory.ring()) {}

    LaneAddress address;
    FileDescriptor socket;
    ShmMemory memory;
    ShmRingWriter writer;
    uint32_t references = 0;
    bool full = false;  // somebody was told that there is no room
    bool gone = false;  // the other side has ended: what is sent is lost
  };

  // `own`: what peers are told. `epoll` (not owned) gets each connection, with `mark` + number as its data.
  ShmPeers(const LaneAddress& own, uint64_t ring_bytes, int epoll, uint64_t mark)
      : own_(own), ring_bytes_(ring_bytes), epoll_(epoll), mark_(mark), peers_(1) {}

  uint32_t Open(const LaneAddress& address);
  void Close(uint32_t number);
  // nullptr for kNowhere and for numbers that are not open.
  Peer* Find(uint32_t number) {
    Peer* peer = number < peers_.size() ? peers_[number].get() : nullptr;
    return peer != nullptr && peer->references > 0 ? peer : nullptr;
  }
  // Something came over the connection: rings, or its end.
  void OnSocket(uint32_t number);
  // For each that is full: asks to be woken, in a sleep, when there is room for `bytes`. False: somebody has.
  bool AskForRoom(uint64_t bytes);
  // Nobody sleeps any more.
  void AskNoMore();

 private:
  static constexpr size_t kMostIdle = 64;

  std::unique_ptr<Peer> Connect(const LaneAddress& address, uint32_t number);
  void Drop(uint32_t number);

  LaneAddress own_;
  uint64_t ring_bytes_;
  int epoll_;
  uint64_t mark_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by number
  std::vector<uint32_t> free_;
  std::deque<uint32_t> idle_;  // without references, the oldest first
};

}  // namespace paceline
