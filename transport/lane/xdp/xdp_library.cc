#include "transport/lane/xdp/xdp_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

class Loader {
 public:
  // `debian_package` has the library.
  void Open(const char* name, const char* debian_package) {
    name_ = name;
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) Complain(absl::StrCat(name, " is not installed (Debian: ", debian_package, ")"));
  }

  template <typename Function>
  void Find(Function& function, const char* symbol) {
    if (library_ == nullptr) return;
    function = reinterpret_cast<Function>(dlsym(library_, symbol));
    if (function == nullptr) Complain(absl::StrCat(name_, " has no ", symbol));
  }

  const std::string& problem() const { return problem_; }

 private:
  void Complain(const std::string& text) { absl::StrAppend(&problem_, problem_.empty() ? "" : "; ", text); }

  void* library_ = nullptr;
  const char* name_ = "";
  std::string problem_;
};

std::string Load(XdpLibrary& library) {
  Loader loader;
  loader.Open("libbpf.so.1", "libbpf1");
  loader.Find(library.libbpf_set_print, "libbpf_set_print");
  loader.Find(library.bpf_object_open_mem, "bpf_object__open_mem");
  loader.Find(library.bpf_object_load, "bpf_object__load");
  loader.Find(library.bpf_object_close, "bpf_object__close");
  loader.Find(library.bpf_object_find_program_by_name, "bpf_object__find_program_by_name");
  loader.Find(library.bpf_object_find_map_by_name, "bpf_object__find_map_by_name");
  loader.Find(library.bpf_program_fd, "bpf_program__fd");
  loader.Find(library.bpf_program_set_flags, "bpf_program__set_flags");
  loader.Find(library.bpf_map_fd, "bpf_map__fd");
  loader.Find(library.bpf_map_set_initial_value, "bpf_map__set_initial_value");
  loader.Find(library.bpf_map_update_elem, "bpf_map_update_elem");
  loader.Find(library.bpf_link_create, "bpf_link_create");
  loader.Find(library.bpf_xdp_query_id, "bpf_xdp_query_id");
  loader.Open("libxdp.so.1", "libxdp1");
  loader.Find(library.libxdp_set_print, "libxdp_set_print");
  loader.Find(library.xsk_umem_create, "xsk_umem__create");
  loader.Find(library.xsk_umem_delete, "xsk_umem__delete");
  loader.Find(library.xsk_socket_create, "xsk_socket__create");
  loader.Find(library.xsk_socket_delete, "xsk_socket__delete");
  loader.Find(library.xsk_socket_fd, "xsk_socket__fd");
  return loader.problem();
}

}  // namespace

absl::StatusOr<const XdpLibrary*> LoadXdpLibrary() {
  static XdpLibrary library{};
  static const std::string problem = Load(library);
  if (!problem.empty()) return absl::UnavailableError(problem);
  return &library;
}

XdpLibraryIsSilent::XdpLibraryIsSilent(const XdpLibrary& library)
    : library_(library),
      libbpf_print_(library.libbpf_set_print(nullptr)),
      libxdp_print_(library.libxdp_set_print(nullptr)) {}

XdpLibraryIsSilent::~XdpLibraryIsSilent() {
  library_.libbpf_set_print(libbpf_print_);
  library_.libxdp_set_print(libxdp_print_);
}

}  // namespace paceline
