// One AF_XDP socket: a receive and a transmit queue of an interface, and the memory (UMEM) whose chunks its frames lie
// in.
//
// Chunks belong to the fill ring (the kernel puts arrivals there), to the caller (arrivals until Recycle, frames being
// built), to the transmit ring, or are free. What was sent comes back by the completion ring, and the chunk that came
// back last is used first: it is still in the cache.
//
// A frame that is longer than a chunk takes several, where the kernel and the driver know such frames (XDP_USE_SG,
// Linux 6.6). It is built in chunks that follow one another. One that arrives lies in any chunks, and is put together.
//
// Source: Linux Documentation/networking/af_xdp.rst, "Multi-Buffer Support".
//
// Thread rule: the engine's thread. Nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/xdp/xdp_library.h"

namespace paceline {

class XdpQueue {
 public:
  // Room that the kernel keeps in front of each frame that it receives (XDP_PACKET_HEADROOM).
  static constexpr uint32_t kKernelHeadroom = 256;
  static constexpr uint32_t kSmallChunk = 2048, kLargeChunk = 4096;           // the kernel has no others
  static constexpr uint32_t kMaxSingleBytes = kLargeChunk - kKernelHeadroom;  // of a frame in one chunk

  struct Options {
    std::string interface;
    uint32_t queue = 0;
    uint32_t frame_bytes = 0;      // wanted, of the largest frame; it may become kMaxSingleBytes
    uint32_t receive_chunks = 0;   // a power of two; so many may hold frames that wait, or are in the caller's hands
    uint32_t transmit_chunks = 0;  // a power of two
    bool zero_copy = true;         // false: not asked for; the kernel's generic code has none
  };

  // Binds by zero copy where the driver has it, else by copying; and rather for smaller frames than were wanted than by
  // copying. Waits for a socket that was closed just now to leave the queue, five seconds at most: one that is still
  // there says nothing of what the driver can.
  static absl::StatusOr<std::unique_ptr<XdpQueue>> Create(const XdpLibrary& library, const Options& options);
  ~XdpQueue();
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;

  // Frames that have arrived, at most `most`, one by one until there are none: they stay where they are until Recycle.
  // Each that is taken counts, also one that is dropped as too long: `most` is then one less.
  std::span<uint8_t> Next(size_t& most);
  // All frames that Next took go back to the kernel, which without them receives nothing: also before a sleep.
  void Recycle();

  // How many frames may be built now.
  uint32_t FreeFrames();
  // Where the next frame is built: frame_bytes() of room. Only while FreeFrames() > 0.
  uint8_t* Frame() { return memory_ + free_.back(); }
  // The frame at Frame() is complete and leaves with the next Kick.
  void Commit(uint32_t bytes);
  // Has the kernel take what was committed, as far as it has room. Returns how many system calls that took.
  uint32_t Kick();
  // Committed chunks that the kernel has not taken.
  uint32_t Waiting() const;

  // Frames for this queue that the kernel had to drop since the last call, or that were longer than frame_bytes().
  uint64_t TakeDrops();

  // The largest frames that are sent and received.
  uint32_t frame_bytes() const { return frame_bytes_; }
  int descriptor() const { return descriptor_; }
  bool zero_copy() const { return zero_copy_; }
  const std::string& why_copy() const { return why_copy_; }  // empty with zero copy

 private:
  XdpQueue(const XdpLibrary& library, const Options& options);

  absl::Status Open();
  // Registers the memory and binds a socket with it; gives an errno, or 0.
  int Bind(int mode);
  int BindWhenFree(int mode);
  // The same for frames as wanted, else for smaller ones.
  int BindForFrames(int mode, bool wait);
  uint32_t ChunksOf(uint32_t bytes) const { return (bytes + chunk_bytes_ - 1) / chunk_bytes_; }
  // A frame's next chunk that has arrived; empty: the frame is not complete.
  std::span<uint8_t> Join(std::span<const uint8_t> chunk, bool last);

  const XdpLibrary& library_;
  Options options_;
  uint32_t frame_bytes_;
  uint32_t chunk_bytes_;
  size_t memory_bytes_;
  uint8_t* memory_ = nullptr;
  xsk_umem* umem_ = nullptr;
  xsk_socket* socket_ = nullptr;
  int descriptor_ = -1;
  xsk_ring_prod fill_{}, transmit_{};
  xsk_ring_cons completion_{}, receive_{};
  std::vector<uint64_t> held_;      // chunks of arrivals in the caller's hands
  std::vector<uint64_t> free_;      // where frames are built: the first chunk of each
  std::vector<uint8_t> under_way_;  // chunks with the kernel, of each frame in turn; with several chunks a frame only
  // Frames that came in several chunks: those in the caller's hands, and behind them the one that is not complete.
  std::unique_ptr<uint8_t[]> joined_;
  size_t joined_count_ = 0;
  uint32_t joining_bytes_ = 0;  // may be more than there is room for: then it is dropped
  uint64_t too_long_ = 0;       // frames that were, since the last TakeDrops
  uint64_t drops_ = 0;          // as the kernel last told
  bool zero_copy_ = false;
  std::string why_copy_;
};

}  // namespace paceline
