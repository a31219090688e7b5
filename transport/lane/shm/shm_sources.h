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

  // `epoll` (not owned) gets each connection, with `mark` + number as its data.
  ShmSources(FileDescriptor listener, int epoll, uint64_t mark);

  const FileDescriptor& listener() const { return listener_; }
  // The listening socket, or a source's connection, has something.
  void OnListener();
  void OnSocket(uint32_t number);

  // See Lane::Receive: first gives back what the last call handed out.
  size_t Receive(std::span<RxSegment> out, Time now, LaneCounters& counters);

  // Asks to be woken, in a sleep, when anything is sent. False: something is there, or is still held.
  bool AskForPackets();
  // Nobody sleeps any more.
  void AskNoMore();

  size_t count() const { return count_; }

 private:
  static constexpr size_t kBatch = 64;  // segments of one Receive

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
  size_t first_ = 0;            // whose turn it is
  std::vector<uint32_t> held_;  // sources of which something was handed out
  std::vector<uint8_t> headers_;
};

}  // namespace paceline
