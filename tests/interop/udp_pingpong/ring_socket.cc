#include "tests/interop/udp_pingpong/ring_socket.h"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/interop/udp_pingpong/raw_socket.h"

namespace paceline::interop {
namespace {

constexpr size_t kSlots = 8;  // receives that are armed
constexpr size_t kSlotBytes = 65536;
constexpr uint64_t kSent = kSlots;  // user data of sends

class UringSocket final : public RingSocket {
 public:
  explicit UringSocket(int fd) : fd_(fd), memory_(kSlots * kSlotBytes) {
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);  // or receives would end at once
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    const int error = io_uring_queue_init_params(2 * kSlots, &ring_, &params);
    if (error < 0) Fail(std::string("--io-uring: ") + std::strerror(-error));
    for (size_t i = 0; i < kSlots; ++i) {
      Slot& slot = slots_[i];
      slot.vector = {&memory_[i * kSlotBytes], kSlotBytes};
      slot.message.msg_name = &slot.from.generic;
      slot.message.msg_iov = &slot.vector;
      slot.message.msg_iovlen = 1;
      Arm(i);
    }
    io_uring_submit(&ring_);
  }
  ~UringSocket() override {
    io_uring_queue_exit(&ring_);
    close(fd_);
  }

  void Send(const uint8_t* data, size_t bytes, const SocketAddress* to) override {
    outgoing_vector_ = {const_cast<uint8_t*>(data), bytes};  // is only read
    outgoing_.msg_name = to == nullptr ? nullptr : const_cast<sockaddr*>(&to->generic);
    outgoing_.msg_namelen = to == nullptr ? 0 : to->size;
    outgoing_.msg_iov = &outgoing_vector_;
    outgoing_.msg_iovlen = 1;
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_sendmsg(entry, fd_, &outgoing_, MSG_DONTWAIT);
    io_uring_sqe_set_data64(entry, kSent);
    io_uring_submit(&ring_);
  }

  bool Receive(Arrived& arrived) override {
    if (shown_ < kSlots) Arm(std::exchange(shown_, kSlots));
    io_uring_cqe* entry = nullptr;
    if (io_uring_peek_cqe(&ring_, &entry) != 0) {
      io_uring_submit_and_get_events(&ring_);
      if (io_uring_peek_cqe(&ring_, &entry) != 0) return false;
    }
    const uint64_t which = io_uring_cqe_get_data64(entry);
    const int result = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    if (which == kSent) return false;
    if (result < 0) {
      Arm(which);
      return false;
    }
    shown_ = which;
    Slot& slot = slots_[which];
    slot.from.size = slot.message.msg_namelen;
    arrived = {&memory_[which * kSlotBytes], static_cast<size_t>(result), &slot.from};
    return true;
  }

 private:
  struct Slot {
    SocketAddress from;
    iovec vector{};
    msghdr message{};
  };

  void Arm(size_t slot) {
    slots_[slot].message.msg_namelen = sizeof(sockaddr_in6);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_recvmsg(entry, fd_, &slots_[slot].message, 0);
    io_uring_sqe_set_data64(entry, slot);
  }

  io_uring ring_{};
  int fd_;
  std::vector<uint8_t> memory_;
  std::array<Slot, kSlots> slots_;
  msghdr outgoing_{};
  iovec outgoing_vector_{};
  size_t shown_ = kSlots;  // the slot of what was handed out last; kSlots: none
};

}  // namespace

std::unique_ptr<RingSocket> OpenRingSocket(int fd) { return std::make_unique<UringSocket>(fd); }

}  // namespace paceline::interop
