// AF_XDP in copy mode by hand, as little as can be: frames that are built once and sent again and again, arrivals that
// are counted and given back. What a lane is compared with.
//
// Thread rule: single-threaded programs.
#pragma once

#include <xdp/xsk.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/lane/ethernet/frame.h"
#include "transport/lane/xdp/xdp_program.h"

namespace paceline::interop {

class RawXdp {
 public:
  struct Options {
    std::string interface;
    FrameFlow flow;             // of every frame that is sent; its source is where frames are received
    uint32_t packet_bytes = 0;  // UDP payload of the frames
  };

  // Ends the program with a message where that fails.
  explicit RawXdp(const Options& options);

  // Sends up to `count` frames; returns how many.
  uint32_t Send(uint32_t count);
  // Sends one frame whose payload begins with `value`.
  void SendValue(uint64_t value);
  // Payload bytes of what has arrived; `value`: what the last payload began with.
  uint64_t Receive(uint64_t* value);

 private:
  static constexpr uint32_t kChunkBytes = 4096, kChunks = 2048;  // and as many to send from

  uint8_t* Frame(uint64_t address) { return static_cast<uint8_t*>(memory_) + address; }
  void Reap();
  void Kick();

  const XdpLibrary* library_;
  size_t header_bytes_;
  uint32_t frame_bytes_;
  void* memory_ = nullptr;
  xsk_umem* umem_ = nullptr;
  xsk_socket* socket_ = nullptr;
  int descriptor_ = -1;
  xsk_ring_prod fill_{}, transmit_{};
  xsk_ring_cons completion_{}, receive_{};
  std::vector<uint64_t> free_;
  std::unique_ptr<XdpProgram> program_;
};

}  // namespace paceline::interop
