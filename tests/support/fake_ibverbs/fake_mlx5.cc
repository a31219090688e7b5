// A stand-in for libmlx5: libmlx5.so.1 with the entry points that Paceline uses. Of the cards of fake_ibverbs.cc fake0
// is one of its own.
//
// Thread rule: one thread.
#include <infiniband/mlx5dv.h>

#include <cstring>

namespace {

uint32_t chosen_for = 0;
uint16_t chosen = 0;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the library's names.
extern "C" {

bool mlx5dv_is_supported(ibv_device* device) { return std::strcmp(device->name, "fake0") == 0; }

int mlx5dv_modify_qp_udp_sport(ibv_qp* qp, uint16_t port) {
  chosen_for = qp->qp_num;
  chosen = port;
  return 0;
}

// The number of the last queue pair that was given a port, and the port; 0: none was.
uint32_t fake_mlx5_chosen_for() { return chosen_for; }
uint16_t fake_mlx5_chosen() { return chosen; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
