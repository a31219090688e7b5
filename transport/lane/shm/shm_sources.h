// Who sends to a shm lane: the rings that others have made and offered, read in turn. A ring whose writer has ended is
// read to its end first; one whose writer says what no writer of ours does is given up at once.
//
// Thread rule: the engine's thread. Nothing is allocated but when a peer connects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/lane/lane.h"
#include "transport/lane/shm/shm_memory.h"
#include "transport/lane/shm/shm_socket.h"

namespace paceline {

class ShmSources {
 public:
  static constexpr size_t kMostSources = 4096;
  static constexpr uint32_t kMaxHeaderBytes = 1024;  // of a packet; it is copied out of the ring, its payload is not

  // `epoll` (not owned) gets each connection, with `mark` + number as its data. The owner watches the listener, and is
  // told of each newcomer once (EPOLLET): what waits while no descriptor is left must not keep it awake.
  ShmSources(FileDescriptor listener, int epoll, uint64_t mark);

  // The listening socket, or a source's connection, has something. One call takes in kMostAccepts connections: anybody
  // on this host may connect, and faster than we accept.
  void OnListener();
  void OnSocket(uint32_t number);
  // OnListener has left some waiting that no event will tell of again: it is to be called once more at the next look.
  bool connections_wait() const { return more_wait_ || cannot_accept_; }

  // See Lane::Receive: first gives back what the last call handed out.
  size_t Receive(std::span<RxSegment> out, Time now, LaneCounters& counters);

  // Asks to be woken, in a sleep, when anything is sent. False: something is there or still held, or connections wait.
  bool AskForPackets();
  // Nobody sleeps any more.
  void AskNoMore();

 private:
  static constexpr size_t kBatch = 64;        // segments of one Receive
  static constexpr size_t kMostAccepts = 64;  // of one look

  struct Ring {
    explicit Ring(ShmMemory mapped) : memory(std::move(mapped)), reader(memory.ring(), kMaxHeaderBytes) {}
    ShmMemory memory;
    ShmRingReader reader;
  };
  struct Source {
    FileDescriptor socket;
    std::unique_ptr<Ring> ring;  // nullptr: nothing offered yet
    LaneAddress address;
    bool ended = false;
  };

  void Add(FileDescriptor socket);
  // False: it is to be dropped.
  bool TakeRing(Source& source);
  void Drop(uint32_t number);
  void Release();
  size_t ReadFrom(Source& source, std::span<RxSegment> out, size_t at, Time now, LaneCounters& counters);

  FileDescriptor listener_;
  int epoll_;
  uint64_t mark_;
  std::vector<std::unique_ptr<Source>> sources_;  // by number; nullptr: free
  size_t count_ = 0;
  bool more_wait_ = false;
  bool cannot_accept_ = false;  // no descriptor or no memory is left for those that wait
  size_t first_ = 0;            // whose turn it is
  std::vector<uint32_t> held_;  // sources of which something was handed out
  std::vector<uint8_t> headers_;
};

}  // namespace paceline
