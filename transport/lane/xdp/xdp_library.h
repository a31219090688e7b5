// The functions of libxdp and libbpf that the lane calls. The libraries are loaded when the first lane asks for them: a
// machine without them runs the same binary, and is told why it has no xdp lane. The rings of AF_XDP are inline
// functions of the header <xdp/xsk.h>.
//
// Thread rule: LoadXdpLibrary may be called from any thread; the functions are the libraries'.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#include <xdp/xsk.h>

#include "absl/status/statusor.h"

namespace paceline {

// Named as the functions are, but for the double underscore, which is not ours to use.
struct XdpLibrary {
  decltype(&::libbpf_set_print) libbpf_set_print;
  decltype(&::bpf_object__open_mem) bpf_object_open_mem;
  decltype(&::bpf_object__load) bpf_object_load;
  decltype(&::bpf_object__close) bpf_object_close;
  decltype(&::bpf_object__find_program_by_name) bpf_object_find_program_by_name;
  decltype(&::bpf_object__find_map_by_name) bpf_object_find_map_by_name;
  decltype(&::bpf_program__fd) bpf_program_fd;
  decltype(&::bpf_program__set_flags) bpf_program_set_flags;
  decltype(&::bpf_map__fd) bpf_map_fd;
  decltype(&::bpf_map__set_initial_value) bpf_map_set_initial_value;
  decltype(&::bpf_map_update_elem) bpf_map_update_elem;
  decltype(&::bpf_link_create) bpf_link_create;
  decltype(&::bpf_xdp_query_id) bpf_xdp_query_id;
  decltype(&::libxdp_set_print) libxdp_set_print;
  decltype(&::xsk_umem__create) xsk_umem_create;
  decltype(&::xsk_umem__delete) xsk_umem_delete;
  decltype(&::xsk_socket__create) xsk_socket_create;
  decltype(&::xsk_socket__delete) xsk_socket_delete;
  decltype(&::xsk_socket__fd) xsk_socket_fd;
};

// Stays loaded until the process ends; the same object each time. The error says what is missing.
absl::StatusOr<const XdpLibrary*> LoadXdpLibrary();

// While it lives, the libraries print nothing: what went wrong is in the status that the caller makes. They may be in
// use by the program that uses us, so what printed before does so again afterwards.
class XdpLibraryIsSilent {
 public:
  explicit XdpLibraryIsSilent(const XdpLibrary& library);
  ~XdpLibraryIsSilent();
  XdpLibraryIsSilent(const XdpLibraryIsSilent&) = delete;
  XdpLibraryIsSilent& operator=(const XdpLibraryIsSilent&) = delete;

 private:
  const XdpLibrary& library_;
  libbpf_print_fn_t libbpf_print_;
  libxdp_print_fn_t libxdp_print_;
};

}  // namespace paceline
