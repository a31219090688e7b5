// The lane over net_af_xdp, on a virtual cable between two network namespaces. Skipped with the reason where that
// cannot be.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/cabled_namespaces.h"
#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"

// The driver of DPDK 22.11 never gives back the buffers' registration of a port with one queue (80 bytes): it counts
// one user too many. Nothing else is passed over.
extern "C" const char* __lsan_default_suppressions() { return "leak:xsk_umem__create\n"; }  // NOLINT: a fixed name

namespace paceline {
namespace {

class DpdkAfXdpTest : public DpdkTest {};

// More packets than there are buffers, so that each has been sent from and received into.
TEST_F(DpdkAfXdpTest, AllPacketsArrive) {
  CabledNamespaces cable;
  if (!cable.why_not().empty()) GTEST_SKIP() << cable.why_not();
  if (!FileDescriptor(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)).valid()) GTEST_SKIP() << "a kernel without AF_XDP";
  std::array<std::unique_ptr<Lane>, 2> lanes;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    DpdkLaneOptions options;
    options.devices = {absl::StrCat("net_af_xdp", side, ",iface=v0,address=192.0.2.", side + 1, "/24")};
    cable.Enter(side);
    auto made = OpenDpdkLanes(options);
    cable.Leave();
    if (absl::IsNotFound(made.status())) GTEST_SKIP() << made.status();  // DPDK without this driver
    ASSERT_TRUE(made.ok()) << made.status();
    lanes[side] = std::move(made->front());
  }
  const uint32_t peer = lanes[0]->OpenPeer(lanes[1]->address());
  std::array<RxSegment, 64> out;
  for (int i = 0; i < 5000 && lanes[0]->RoomTo(peer) == 0; ++i) {
    for (const auto& lane : lanes) lane->Receive(out, MonotonicNow());
    usleep(1000);
  }
  for (int round = 0; round < 400; ++round) {
    SegmentList list;
    for (const uint32_t bytes : {0u, 100u, 1000u, 1472u}) list.AddRun(8, peer, 0, bytes);
    ASSERT_EQ(lanes[0]->Send(list.all()), list.size());
    const auto got = ReceiveSome(*lanes[1], list.size());
    ASSERT_EQ(got.size(), list.size()) << round;
    for (size_t i = 0; i < list.size(); ++i) ASSERT_TRUE(got[i].bytes == list.contents(i)) << round << ' ' << i;
  }
}

}  // namespace
}  // namespace paceline
