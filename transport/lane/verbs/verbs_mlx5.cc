#include "transport/lane/verbs/verbs_mlx5.h"

#include <dlfcn.h>
#include <infiniband/mlx5dv.h>

#include <cerrno>

namespace paceline {
namespace {

constexpr char kLibrary[] = "libmlx5.so.1";

// Stays loaded until the process ends, as libibverbs does, which loads it too where there is such a card.
struct Library {
  decltype(mlx5dv_is_supported)* is_supported = nullptr;
  decltype(mlx5dv_modify_qp_udp_sport)* modify_qp_udp_sport = nullptr;  // since rdma-core 33

  Library() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    is_supported = reinterpret_cast<decltype(is_supported)>(dlsym(library, "mlx5dv_is_supported"));
    modify_qp_udp_sport = reinterpret_cast<decltype(modify_qp_udp_sport)>(dlsym(library, "mlx5dv_modify_qp_udp_sport"));
  }
};

}  // namespace

int SetMlx5UdpPort(ibv_qp* qp, uint16_t port) {
  static const Library library;
  if (library.is_supported == nullptr || library.modify_qp_udp_sport == nullptr) return EOPNOTSUPP;
  if (!library.is_supported(qp->context->device)) return EOPNOTSUPP;
  return library.modify_qp_udp_sport(qp, port);
}

}  // namespace paceline
