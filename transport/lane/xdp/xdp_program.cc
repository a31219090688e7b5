#include "transport/lane/xdp/xdp_program.h"

#include <linux/if_link.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

absl::Status LoadError(int error) {
  if (error == EPERM || error == EACCES) {
    return absl::PermissionDeniedError(
        "the kernel lets this process load no BPF program: run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and "
        "CAP_BPF");
  }
  return absl::ErrnoToStatus(error, "the kernel does not take the program");
}

}  // namespace

absl::StatusOr<std::unique_ptr<XdpProgram>> XdpProgram::Load(const XdpLibrary& library, const XdpTarget& target,
                                                             bool fragments) {
  const XdpLibraryIsSilent silent(library);
  const std::span<const uint8_t> bytes = XdpProgramObject();
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = "paceline";
  Object object(library.bpf_object_open_mem(bytes.data(), bytes.size(), &options), Closer{&library});
  if (object == nullptr) return absl::ErrnoToStatus(errno, "libbpf does not read the program");
  bpf_map* constants = library.bpf_object_find_map_by_name(object.get(), ".rodata");
  bpf_map* sockets = library.bpf_object_find_map_by_name(object.get(), "sockets");
  bpf_program* program = library.bpf_object_find_program_by_name(object.get(), "paceline_xdp");
  if (constants == nullptr || sockets == nullptr || program == nullptr ||
      library.bpf_map_set_initial_value(constants, &target, sizeof(target)) != 0) {
    return absl::InternalError("the program that was built in is not the one that this code knows");
  }
  if (fragments) library.bpf_program_set_flags(program, BPF_F_XDP_HAS_FRAGS);
  if (const int error = library.bpf_object_load(object.get()); error != 0) return LoadError(-error);
  std::unique_ptr<XdpProgram> result(new XdpProgram(library, std::move(object)));
  result->program_ = library.bpf_program_fd(program);
  result->sockets_ = library.bpf_map_fd(sockets);
  return result;
}

absl::Status XdpProgram::Check(const XdpLibrary& library) { return Load(library, XdpTarget{}, false).status(); }

absl::StatusOr<std::unique_ptr<XdpProgram>> XdpProgram::Attach(const XdpLibrary& library, const std::string& interface,
                                                               uint32_t interface_index, const XdpTarget& target,
                                                               bool driver) {
  struct Way {
    bool native, fragments;
  };
  int error = 0;
  for (const Way way : {Way{true, false}, Way{true, true}, Way{false, false}}) {
    if (way.native && !driver) continue;
    absl::StatusOr<std::unique_ptr<XdpProgram>> program = Load(library, target, way.fragments);
    if (!program.ok()) {
      if (way.fragments) continue;  // a kernel before 5.18 knows no such program
      return program.status();
    }
    const XdpLibraryIsSilent silent(library);
    bpf_link_create_opts options{};
    options.sz = sizeof(options);
    options.flags = way.native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
    const int link =
        library.bpf_link_create((*program)->program_, static_cast<int>(interface_index), BPF_XDP, &options);
    if (link >= 0) {
      (*program)->link_ = FileDescriptor(link);
      (*program)->native_ = way.native;
      return program;
    }
    error = -link;
    if (error == EBUSY || error == EEXIST) {
      __u32 id = 0;
      library.bpf_xdp_query_id(static_cast<int>(interface_index), 0, &id);
      return absl::AlreadyExistsError(absl::StrCat("interface ", interface, " has an XDP program already (id ", id,
                                                   "): of another xdp lane, one for each interface, or of another ",
                                                   "program; `ip link show ", interface, "` tells"));
    }
    if (error == EPERM) break;
  }
  if (error == EPERM) return LoadError(error);
  return absl::ErrnoToStatus(error, absl::StrCat("interface ", interface, " takes no XDP program"));
}

absl::Status XdpProgram::AddSocket(uint32_t queue, int socket) {
  if (const int error = library_.bpf_map_update_elem(sockets_, &queue, &socket, BPF_ANY); error != 0) {
    return absl::ErrnoToStatus(-error, "the kernel does not take the socket of a queue");
  }
  return absl::OkStatus();
}

}  // namespace paceline
