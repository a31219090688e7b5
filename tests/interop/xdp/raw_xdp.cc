#include "tests/interop/xdp/raw_xdp.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tests/interop/udp_pingpong/raw_socket.h"

namespace paceline::interop {
namespace {

constexpr uint32_t kBatch = 64;

}  // namespace

RawXdp::RawXdp(const Options& options)
    : header_bytes_(FrameHeaderBytes(options.flow.version)),
      frame_bytes_(static_cast<uint32_t>(header_bytes_) + options.packet_bytes) {
  const auto library = LoadXdpLibrary();
  if (!library.ok()) Fail(std::string(library.status().message()));
  library_ = *library;

  XdpTarget target{};
  target.ip_version = 4;
  target.port = htons(options.flow.source_port);
  std::memcpy(target.address, options.flow.source.data(), 4);
  auto program =
      XdpProgram::Attach(*library_, options.interface, if_nametoindex(options.interface.c_str()), target, true);
  if (!program.ok()) Fail(std::string(program.status().message()));
  program_ = *std::move(program);

  constexpr size_t kBytes = size_t{kChunkBytes} * kChunks * 2;
  memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory_ == MAP_FAILED) Fail("no memory");
  xsk_umem_config memory_config{};
  memory_config.fill_size = memory_config.comp_size = kChunks;
  memory_config.frame_size = kChunkBytes;
  if (library_->xsk_umem_create(&umem_, memory_, kBytes, &fill_, &completion_, &memory_config) != 0) {
    Fail("the kernel does not take the memory");
  }
  xsk_socket_config config{};
  config.rx_size = config.tx_size = kChunks;
  config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP;
  if (library_->xsk_socket_create(&socket_, options.interface.c_str(), 0, umem_, &receive_, &transmit_, &config) != 0) {
    Fail("no AF_XDP socket on " + options.interface);
  }
  descriptor_ = library_->xsk_socket_fd(socket_);
  if (!program_->AddSocket(0, descriptor_).ok()) Fail("the program does not take the socket");

  uint32_t index = 0;
  xsk_ring_prod__reserve(&fill_, kChunks, &index);
  for (uint64_t i = 0; i < kChunks; ++i) *xsk_ring_prod__fill_addr(&fill_, index++) = i * kChunkBytes;
  xsk_ring_prod__submit(&fill_, kChunks);

  const std::vector<uint8_t> payload(options.packet_bytes, 2);
  const std::array<std::span<const uint8_t>, 1> pieces = {payload};
  for (uint64_t i = kChunks; i < 2 * kChunks; ++i) {
    uint8_t* frame = Frame(i * kChunkBytes);
    WriteFrameHeaders(options.flow, pieces, UdpChecksumMode::kWhereRequired, frame);
    std::memcpy(frame + header_bytes_, payload.data(), payload.size());
    free_.push_back(i * kChunkBytes);
  }
}

void RawXdp::Reap() {
  uint32_t index = 0;
  const uint32_t done = xsk_ring_cons__peek(&completion_, kChunks, &index);
  for (uint32_t i = 0; i < done; ++i) free_.push_back(*xsk_ring_cons__comp_addr(&completion_, index + i));
  if (done > 0) xsk_ring_cons__release(&completion_, done);
}

void RawXdp::Kick() {
  // The kernel takes some dozens a call, and says that there are more.
  while (sendto(descriptor_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 && (errno == EAGAIN || errno == EBUSY)) {
    if (xsk_prod_nb_free(&transmit_, kChunks) == kChunks) return;
  }
}

uint32_t RawXdp::Send(uint32_t count) {
  Reap();
  count = std::min(count, static_cast<uint32_t>(free_.size()));
  uint32_t index = 0;
  if (xsk_ring_prod__reserve(&transmit_, count, &index) != count) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    *xsk_ring_prod__tx_desc(&transmit_, index + i) = {free_.back(), frame_bytes_, 0};
    free_.pop_back();
  }
  xsk_ring_prod__submit(&transmit_, count);
  Kick();
  return count;
}

void RawXdp::SendValue(uint64_t value) {
  Reap();
  if (free_.empty()) return;
  std::memcpy(Frame(free_.back()) + header_bytes_, &value, sizeof(value));
  Send(1);
}

uint64_t RawXdp::Receive(uint64_t* value) {
  uint32_t index = 0;
  const uint32_t count = xsk_ring_cons__peek(&receive_, kBatch, &index);
  if (count == 0) return 0;
  uint32_t fill = 0;
  // The kernel shows what has arrived a moment before it shows the room that this has left.
  while (xsk_ring_prod__reserve(&fill_, count, &fill) != count) {
  }
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const xdp_desc* descriptor = xsk_ring_cons__rx_desc(&receive_, index + i);
    bytes += descriptor->len - header_bytes_;
    std::memcpy(value, Frame(descriptor->addr) + header_bytes_, sizeof(*value));
    *xsk_ring_prod__fill_addr(&fill_, fill + i) = descriptor->addr / kChunkBytes * kChunkBytes;
  }
  xsk_ring_cons__release(&receive_, count);
  xsk_ring_prod__submit(&fill_, count);
  return bytes;
}

}  // namespace paceline::interop
