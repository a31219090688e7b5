// Two network namespaces of the test's own, joined by a virtual cable: interface v0 on either side, 198.51.100.1 and
// fd00::1 on side 0, .2 and ::2 on side 1. They have no names: when the process ends, they are gone.
//
// Thread rule: belongs to one thread, which is in one namespace at a time; what it opens there stays there.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "transport/lane/file_descriptor.h"

namespace paceline {

class CabledNamespaces {
 public:
  static constexpr const char* kDevice = "v0";
  static constexpr std::array<const char*, 2> kAddressV4 = {"198.51.100.1", "198.51.100.2"};
  static constexpr std::array<const char*, 2> kAddressV6 = {"fd00::1", "fd00::2"};

  // Of each interface. `transmit_queues` 0: as many as receive.
  explicit CabledNamespaces(int receive_queues = 1, int transmit_queues = 0) : home_(Own()) {
    for (FileDescriptor& side : sides_) {
      if (unshare(CLONE_NEWNET) != 0) {
        why_not_ = std::string("a network namespace is refused: ") + std::strerror(errno);
        return;
      }
      side = Own();
    }
    const std::string other = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(sides_[0].get());
    const std::string many = " numrxqueues " + std::to_string(receive_queues) + " numtxqueues " +
                             std::to_string(transmit_queues > 0 ? transmit_queues : receive_queues);
    if (std::system(
            ("ip link add v0" + many + " type veth peer name v0 netns " + other + many + " 2>/dev/null").c_str()) !=
        0) {
      why_not_ = "no veth interfaces here, or no ip command (package iproute2)";
    }
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (!why_not_.empty()) break;
      const std::string v4 = kAddressV4[side], v6 = kAddressV6[side];
      if (!Run(side,
               "ip addr add " + v4 + "/24 dev v0 && ip addr add " + v6 + "/64 dev v0 nodad && ip link set v0 up")) {
        why_not_ = "the interfaces take no addresses";
      }
    }
    // The kernel says that there is a carrier up to a second later.
    if (why_not_.empty() && !(AwaitUp(0, kDevice) && AwaitUp(1, kDevice))) why_not_ = "the interfaces do not come up";
    Leave();
  }
  ~CabledNamespaces() { Leave(); }
  CabledNamespaces(const CabledNamespaces&) = delete;
  CabledNamespaces& operator=(const CabledNamespaces&) = delete;

  // Empty: they are there.
  const std::string& why_not() const { return why_not_; }

  // Until Leave.
  void Enter(size_t side) { setns(sides_[side].get(), CLONE_NEWNET); }
  void Leave() { setns(home_.get(), CLONE_NEWNET); }

  // Whether a shell command succeeds there.
  bool Run(size_t side, const std::string& command) {
    Enter(side);
    const bool done = std::system(command.c_str()) == 0;
    Leave();
    return done;
  }

  // Nobody has to be looked for: the neighbour tables are filled in by hand.
  bool Introduce() {
    bool done = true;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::string own = Mac(side), peer = Mac(1 - side);
      done = done && Run(side, "ip link set v0 address " + own);
      for (const char* address : {kAddressV4[1 - side], kAddressV6[1 - side]}) {
        done =
            done && Run(side, std::string("ip neigh replace ") + address + " lladdr " + peer + " dev v0 nud permanent");
      }
    }
    return done;
  }

  // Waits until the interface takes packets, five seconds at most.
  bool AwaitUp(size_t side, const std::string& device) {
    for (int tries = 0; tries < 500; ++tries) {
      if (Run(side, "ip link show " + device + " 2>/dev/null | grep -q 'state UP'")) return true;
      usleep(10'000);
    }
    return false;
  }

 private:
  static std::string Mac(size_t side) { return "02:00:00:00:00:0" + std::to_string(side + 1); }
  static FileDescriptor Own() { return FileDescriptor(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)); }

  FileDescriptor home_;
  std::array<FileDescriptor, 2> sides_;
  std::string why_not_;
};

}  // namespace paceline
