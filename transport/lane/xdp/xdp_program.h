// The lane's program in the kernel (xdp_program.bpf.c): loaded, attached to one interface, told of the lane's sockets.
//
// It is held by a link of the kernel's, a descriptor: when that closes, at the end of the lane or of the process,
// however that ends, the interface is as it was. Nothing is pinned to a file system.
//
// Thread rule: control path, one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/xdp/xdp_library.h"
#include "transport/lane/xdp/xdp_target.h"

namespace paceline {

// The compiled program, an ELF object; made at build time.
std::span<const uint8_t> XdpProgramObject();

class XdpProgram {
 public:
  // Attaches to the interface: by its driver where that can and `driver` is set, else by the kernel's generic code,
  // which is slower and takes any interface. PermissionDenied without CAP_BPF and CAP_NET_ADMIN; AlreadyExists where
  // another program is.
  static absl::StatusOr<std::unique_ptr<XdpProgram>> Attach(const XdpLibrary& library, const std::string& interface,
                                                            uint32_t interface_index, const XdpTarget& target,
                                                            bool driver);
  // Loads the program and lets go of it: whether the kernel takes it from this process.
  static absl::Status Check(const XdpLibrary& library);

  // What arrives by this receive queue for the target goes to `socket` (AF_XDP, bound to the queue).
  absl::Status AddSocket(uint32_t queue, int socket);

  // Whether the driver runs it.
  bool native() const { return native_; }

 private:
  struct Closer {
    const XdpLibrary* library;
    void operator()(bpf_object* object) const { library->bpf_object_close(object); }
  };
  using Object = std::unique_ptr<bpf_object, Closer>;

  XdpProgram(const XdpLibrary& library, Object object) : library_(library), object_(std::move(object)) {}
  // `fragments`: the program takes frames of several pages too, which some drivers want to hear at large MTUs.
  static absl::StatusOr<std::unique_ptr<XdpProgram>> Load(const XdpLibrary& library, const XdpTarget& target,
                                                          bool fragments);

  const XdpLibrary& library_;
  Object object_;
  int program_ = -1;  // of the object
  int sockets_ = -1;  // the map, of the object
  FileDescriptor link_;
  bool native_ = false;
};

}  // namespace paceline
