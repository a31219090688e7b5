#include "transport/lane/xdp/xdp_queue.h"

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

// The kernel takes a closed socket off its queue by a worker thread, which waits for whoever else changes interfaces:
// for seconds, where many network namespaces end. Five seconds in all.
constexpr int kBindTries = 250;
constexpr useconds_t kBindRetryMicros = 20'000;

// Of Linux 6.6; the headers may be older.
constexpr int kUseSg = 1 << 4;           // XDP_USE_SG
constexpr uint32_t kContinued = 1 << 0;  // XDP_PKT_CONTD

absl::Status BindError(int error, const XdpQueue::Options& options, size_t memory_bytes) {
  const std::string where = absl::StrCat("receive queue ", options.queue, " of interface ", options.interface);
  if (error == EBUSY) return absl::AlreadyExistsError(absl::StrCat(where, " has an AF_XDP socket of another program"));
  if (error == EPERM) {
    return absl::PermissionDeniedError("AF_XDP sockets need CAP_NET_RAW; run as root");
  }
  if (error == ENOBUFS) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the kernel pins no ", memory_bytes, " bytes for this process: raise its limit of locked memory (ulimit -l)"));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("cannot bind an AF_XDP socket to ", where));
}

// xdp_statistics of Linux 5.9; before, the kernel fills in the first three.
uint64_t CountDrops(int socket) {
  struct {
    uint64_t rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, rx_fill_ring_empty_descs;
  } statistics{};
  socklen_t size = sizeof(statistics);
  if (getsockopt(socket, SOL_XDP, XDP_STATISTICS, &statistics, &size) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;
}

}  // namespace

absl::StatusOr<std::unique_ptr<XdpQueue>> XdpQueue::Create(const XdpLibrary& library, const Options& options) {
  std::unique_ptr<XdpQueue> queue(new XdpQueue(library, options));
  if (absl::Status status = queue->Open(); !status.ok()) return status;
  return queue;
}

XdpQueue::XdpQueue(const XdpLibrary& library, const Options& options)
    : library_(library),
      options_(options),
      frame_bytes_(options.frame_bytes),
      chunk_bytes_(options.frame_bytes + kKernelHeadroom <= kSmallChunk ? kSmallChunk : kLargeChunk),
      memory_bytes_(size_t{chunk_bytes_} * (options.receive_chunks + options.transmit_chunks)) {}

XdpQueue::~XdpQueue() {
  if (socket_ != nullptr) library_.xsk_socket_delete(socket_);
  if (umem_ != nullptr) library_.xsk_umem_delete(umem_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

int XdpQueue::Bind(int mode) {
  // A bind that failed leaves its rings behind in the memory's registration, so each has one of its own.
  xsk_umem_config memory{};
  memory.fill_size = options_.receive_chunks;
  memory.comp_size = options_.transmit_chunks;
  memory.frame_size = chunk_bytes_;
  int error = -library_.xsk_umem_create(&umem_, memory_, memory_bytes_, &fill_, &completion_, &memory);
  if (error != 0) return error;
  xsk_socket_config socket{};
  socket.rx_size = options_.receive_chunks;
  socket.tx_size = options_.transmit_chunks;
  socket.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  socket.bind_flags = static_cast<__u16>(XDP_USE_NEED_WAKEUP | mode);
  error = -library_.xsk_socket_create(&socket_, options_.interface.c_str(), options_.queue, umem_, &receive_,
                                      &transmit_, &socket);
  if (error == 0) return 0;
  socket_ = nullptr;
  library_.xsk_umem_delete(umem_);
  umem_ = nullptr;
  return error;
}

int XdpQueue::BindWhenFree(int mode) {
  int error = Bind(mode);
  for (int tries = 0; error == EBUSY && tries < kBindTries; ++tries) {
    usleep(kBindRetryMicros);
    error = Bind(mode);
  }
  return error;
}

int XdpQueue::BindForFrames(int mode, bool wait) {
  const auto bind = [this, wait](int how) { return wait ? BindWhenFree(how) : Bind(how); };
  frame_bytes_ = options_.frame_bytes;
  if (frame_bytes_ <= kMaxSingleBytes) return bind(mode);
  const int error = bind(mode | kUseSg);
  if (error == 0 || error == EBUSY) return error;
  frame_bytes_ = kMaxSingleBytes;
  return bind(mode);
}

absl::Status XdpQueue::Open() {
  const XdpLibraryIsSilent silent(library_);
  void* memory =
      mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "no memory for the frames of an AF_XDP socket");
  memory_ = static_cast<uint8_t*>(memory);

  int error = 0;
  if (options_.zero_copy) {
    error = BindForFrames(XDP_ZEROCOPY, true);
    zero_copy_ = error == 0;
    why_copy_ = zero_copy_ ? "" : std::strerror(error);
  } else {
    why_copy_ = "not in generic code";
  }
  if (!zero_copy_) error = BindForFrames(XDP_COPY, error != EBUSY);
  if (error != 0) return BindError(error, options_, memory_bytes_);
  descriptor_ = library_.xsk_socket_fd(socket_);

  held_.reserve(options_.receive_chunks);
  for (uint32_t i = 0; i < options_.receive_chunks; ++i) held_.push_back(uint64_t{i} * chunk_bytes_);
  Recycle();
  const uint32_t chunks = ChunksOf(frame_bytes_);
  free_.reserve(options_.transmit_chunks / chunks);
  for (uint32_t i = 0; i + chunks <= options_.transmit_chunks; i += chunks) {
    free_.push_back(uint64_t{options_.receive_chunks + i} * chunk_bytes_);
  }
  if (frame_bytes_ > kMaxSingleBytes) {
    under_way_.resize(free_.size());
    joined_ = std::make_unique_for_overwrite<uint8_t[]>(size_t{options_.receive_chunks} / 2 * frame_bytes_);
  }
  return absl::OkStatus();
}

std::span<uint8_t> XdpQueue::Next(size_t& most) {
  for (uint32_t index = 0; most > 0 && xsk_ring_cons__peek(&receive_, 1, &index) != 0;) {
    const xdp_desc descriptor = *xsk_ring_cons__rx_desc(&receive_, index);
    xsk_ring_cons__release(&receive_, 1);
    held_.push_back(descriptor.addr / chunk_bytes_ * chunk_bytes_);
    const std::span<uint8_t> chunk(memory_ + descriptor.addr, descriptor.len);
    const bool last = (descriptor.options & kContinued) == 0;
    if (last) --most;
    if (last && joining_bytes_ == 0) return chunk;
    if (const std::span<uint8_t> frame = Join(chunk, last); !frame.empty()) return frame;
  }
  return {};
}

std::span<uint8_t> XdpQueue::Join(std::span<const uint8_t> chunk, bool last) {
  uint8_t* const frame = joined_.get() + joined_count_ * frame_bytes_;
  const bool room = joined_count_ < options_.receive_chunks / 2;
  if (room && chunk.size() <= frame_bytes_ - std::min(joining_bytes_, frame_bytes_)) {
    std::memcpy(frame + joining_bytes_, chunk.data(), chunk.size());
    joining_bytes_ += static_cast<uint32_t>(chunk.size());
  } else {
    joining_bytes_ = frame_bytes_ + 1;
  }
  if (!last) return {};
  const uint32_t bytes = std::exchange(joining_bytes_, 0);
  if (bytes > frame_bytes_) {
    ++too_long_;
    return {};
  }
  ++joined_count_;
  return {frame, bytes};
}

void XdpQueue::Recycle() {
  if (joining_bytes_ == 0) joined_count_ = 0;
  const auto count = static_cast<uint32_t>(held_.size());
  if (count > 0) {
    uint32_t index = 0;
    // All receive chunks fit into the ring, so there is room always.
    if (xsk_ring_prod__reserve(&fill_, count, &index) != count) return;
    for (const uint64_t chunk : held_) *xsk_ring_prod__fill_addr(&fill_, index++) = chunk;
    xsk_ring_prod__submit(&fill_, count);
    held_.clear();
  }
  // A driver that ran out of chunks sleeps until it is told that there are some.
  if (xsk_ring_prod__needs_wakeup(&fill_) != 0) recvfrom(descriptor_, nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

uint32_t XdpQueue::FreeFrames() {
  uint32_t index = 0;
  const uint32_t done = xsk_ring_cons__peek(&completion_, options_.transmit_chunks, &index);
  for (uint32_t i = 0; i < done; ++i) {
    uint64_t chunk = *xsk_ring_cons__comp_addr(&completion_, index + i);
    if (!under_way_.empty()) {
      const uint64_t first = uint64_t{options_.receive_chunks} * chunk_bytes_;
      const uint64_t room = uint64_t{ChunksOf(frame_bytes_)} * chunk_bytes_, frame = (chunk - first) / room;
      if (--under_way_[frame] > 0) continue;
      chunk = first + frame * room;
    }
    free_.push_back(chunk);
  }
  if (done > 0) xsk_ring_cons__release(&completion_, done);
  return static_cast<uint32_t>(free_.size());
}

void XdpQueue::Commit(uint32_t bytes) {
  const uint32_t chunks = ChunksOf(bytes);
  uint32_t index = 0;
  // As many places in the ring as chunks: there is one for each.
  if (xsk_ring_prod__reserve(&transmit_, chunks, &index) != chunks) return;
  uint64_t at = free_.back();
  free_.pop_back();
  if (!under_way_.empty()) {
    const uint64_t frame = (at / chunk_bytes_ - options_.receive_chunks) / ChunksOf(frame_bytes_);
    under_way_[frame] = static_cast<uint8_t>(chunks);
  }
  for (uint32_t left = bytes; left > 0; at += chunk_bytes_) {
    const uint32_t here = std::min(left, chunk_bytes_);
    left -= here;
    *xsk_ring_prod__tx_desc(&transmit_, index++) = {at, here, left > 0 ? kContinued : 0};
  }
  xsk_ring_prod__submit(&transmit_, chunks);
}

uint32_t XdpQueue::Waiting() const {
  return transmit_.cached_prod - __atomic_load_n(transmit_.consumer, __ATOMIC_ACQUIRE);
}

uint32_t XdpQueue::Kick() {
  uint32_t calls = 0;
  uint32_t waiting = Waiting();
  // A zero-copy driver that is awake needs no call. When copying, the kernel takes some dozens a call.
  while (waiting > 0 && xsk_ring_prod__needs_wakeup(&transmit_) != 0) {
    ++calls;
    const bool done = sendto(descriptor_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0;
    const uint32_t left = Waiting();
    if (done || left == waiting) break;  // all taken or told, or no room now: the next Kick goes on
    waiting = left;
  }
  return calls;
}

uint64_t XdpQueue::TakeDrops() {
  const uint64_t now = CountDrops(descriptor_);
  const uint64_t fresh = now > drops_ ? now - drops_ : 0;
  drops_ = std::max(now, drops_);
  return fresh + std::exchange(too_long_, 0);
}

}  // namespace paceline
