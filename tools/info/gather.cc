#include "tools/info/gather.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "gpudirect/pci_distance.h"
#include "gpudirect/registration_path.h"
#include "paceline/counters.h"
#include "transport/core/path/path_policy.h"
#include "transport/engine/lane_factory.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline::tools {
namespace {

std::string FolderOfThisProgram() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

nlohmann::json ValueJson(const ParameterValue& value) {
  return std::visit([](const auto& content) { return nlohmann::json(content); }, value);
}

std::string AddressText(const SocketAddress& address) {
  std::string text = FormatLaneAddress(FromSocketAddress(address, false));
  const size_t colon = text.rfind(':');
  return colon == std::string::npos ? text : text.substr(0, colon);
}

// Which way memory of this GPU takes to this port's card.
gpudirect::RegistrationChoice ChooseForPort(const gpudirect::CudaDriver& driver, int gpu, const VerbsPortInfo& port) {
  return gpudirect::ChooseRegistration(
      driver, gpu,
      {.places = true, .dma_buf_problem = port.dma_buf_problem, .peer_memory = gpudirect::PeerMemoryModuleLoaded()});
}

std::string FateText(const gpudirect::RegistrationChoice& choice) {
  return std::string(gpudirect::RegistrationPathName(choice.path)) + " (" + choice.reason + ")";
}

// The places of this machine's GPUs, by ordinal.
std::vector<gpudirect::PciPlace> PlacesOfGpus() {
  std::vector<gpudirect::PciPlace> places;
  const gpudirect::CudaDriver* driver = gpudirect::CudaDriver::Get();
  for (int gpu = 0; driver != nullptr && gpu < driver->device_count(); ++gpu) {
    places.push_back(gpudirect::PciPlaceOf(*driver, gpu));
  }
  return places;
}

struct Nearest {
  std::vector<size_t> which;  // of the others, all as near; empty: it is not known of any how far it is
  gpudirect::PciDistance distance;
};
Nearest NearestTo(const gpudirect::PciPlace& place, const std::vector<gpudirect::PciPlace>& others) {
  Nearest nearest;
  for (size_t i = 0; i < others.size(); ++i) {
    const gpudirect::PciDistance distance = DistanceBetween(place, others[i]);
    if (distance.level == gpudirect::PciLevel::kUnknown) continue;
    if (nearest.which.empty() || distance < nearest.distance) nearest = {{}, distance};
    if (distance == nearest.distance) nearest.which.push_back(i);
  }
  return nearest;
}

std::string SummaryOf(const VerbsPortInfo& port, const Nearest& gpus) {
  std::string text = port.link + (port.address.empty() ? "" : " " + port.address) + "; MTU " + std::to_string(port.mtu);
  if (!port.rate.is_zero()) text += "; " + std::to_string(static_cast<int>(port.rate.gbps())) + " Gb/s";
  if (port.numa_node >= 0) text += "; NUMA node " + std::to_string(port.numa_node);
  for (size_t i = 0; i < gpus.which.size(); ++i) {
    text += (i == 0 ? "; nearest GPU: " : ", ") + std::to_string(gpus.which[i]);
  }
  if (!gpus.which.empty()) text += std::string(" (") + PciLevelName(gpus.distance.level) + ")";
  return text;
}

}  // namespace

nlohmann::json GatherLanes() {
  nlohmann::json list = nlohmann::json::array();
  for (const LaneKindInfo& kind : ListLaneKinds()) {
    nlohmann::json lane = {{"name", kind.name}, {"usable", kind.usable}, {"summary", kind.summary}};
    if (!kind.usable) lane["reason"] = kind.reason;
    list.push_back(lane);
  }
  return list;
}

nlohmann::json GatherInterfaces() {
  nlohmann::json list = nlohmann::json::array();
  const auto interfaces = ListUdpInterfaces();
  if (!interfaces.ok()) return list;
  for (const UdpInterface& interface : *interfaces) {
    nlohmann::json addresses = nlohmann::json::array();
    for (const SocketAddress& address : interface.addresses) addresses.push_back(AddressText(address));
    nlohmann::json one = {{"name", interface.name},
                          {"mtu", interface.mtu},
                          {"usable", interface.up && !interface.addresses.empty()},
                          {"addresses", addresses},
                          {"virtual", interface.is_virtual}};
    if (!interface.speed.is_zero()) one["gbps"] = interface.speed.gbps();
    if (!interface.up) {
      one["reason"] = "the link is down";
    } else if (interface.addresses.empty()) {
      one["reason"] = "it has no address";
    }
    list.push_back(one);
  }
  return list;
}

nlohmann::json GatherHcas() {
  nlohmann::json devices = nlohmann::json::array();
  const std::vector<gpudirect::PciPlace> gpus = PlacesOfGpus();
  for (const VerbsPortInfo& port : ListVerbsLanePorts()) {
    const Nearest nearest = NearestTo(gpudirect::PciPlaceOf(port.sysfs), gpus);
    nlohmann::json one = {{"name", port.name},
                          {"summary", SummaryOf(port, nearest)},
                          {"nearest_gpus", nearest.which},
                          {"usable", port.reason.empty()},
                          {"link", port.link},
                          {"address", port.address},
                          {"mtu", port.mtu}};
    if (!port.rate.is_zero()) one["gbps"] = port.rate.gbps();
    if (port.numa_node >= 0) one["numa_node"] = port.numa_node;
    if (!port.reason.empty()) one["reason"] = port.reason;
    devices.push_back(one);
  }
  if (!devices.empty()) return {{"devices", devices}};
  const absl::Status status = CheckVerbsLane();
  std::error_code error;
  if (std::filesystem::exists("/sys/class/infiniband", error)) {
    return {{"devices", devices}, {"reason", std::string(status.message())}};
  }
  return {{"devices", devices},
          {"reason", "no /sys/class/infiniband: the kernel has no RDMA core, or none of its drivers is loaded"}};
}

nlohmann::json GatherGpus() {
  nlohmann::json devices = nlohmann::json::array();
  std::string reason;
  const gpudirect::CudaDriver* driver = gpudirect::CudaDriver::Get(&reason);
  if (driver == nullptr) return {{"devices", devices}, {"reason", reason}};
  std::vector<VerbsPortInfo> ports = ListVerbsLanePorts();
  std::erase_if(ports, [](const VerbsPortInfo& port) { return !port.reason.empty(); });
  std::vector<gpudirect::PciPlace> cards;
  for (const VerbsPortInfo& port : ports) cards.push_back(gpudirect::PciPlaceOf(port.sysfs));
  for (int i = 0; i < driver->device_count(); ++i) {
    int device = 0;
    char name[256] = "";
    if (driver->cuDeviceGet(&device, i) == gpudirect::kCudaSuccess) driver->cuDeviceGetName(name, sizeof(name), device);
    nlohmann::json one = {{"name", name}, {"index", i}, {"usable", true}, {"hcas", nlohmann::json::array()}};
    std::map<std::string, std::string> fates;  // which way memory takes, and to what
    const gpudirect::PciPlace place = gpudirect::PciPlaceOf(*driver, i);
    for (size_t j = 0; j < ports.size(); ++j) {
      const VerbsPortInfo& port = ports[j];
      const auto choice = ChooseForPort(*driver, i, port);
      const gpudirect::PciDistance distance = DistanceBetween(place, cards[j]);
      one["hcas"].push_back({{"name", port.name},
                             {"distance", PciLevelName(distance.level)},
                             {"hops", distance.hops},
                             {"registration", gpudirect::RegistrationPathName(choice.path)},
                             {"needs_flush", choice.needs_flush},
                             {"reason", choice.reason}});
      std::string& list = fates[FateText(choice)];
      list += (list.empty() ? "" : ", ") + port.name;
    }
    const auto elsewhere = gpudirect::ChooseRegistration(*driver, i, {});
    one["registration"] = gpudirect::RegistrationPathName(elsewhere.path);
    one["reason"] = elsewhere.reason;
    std::string summary = "its memory travels by ";
    for (const auto& [fate, list] : fates) summary += fate + " over " + list + "; by ";
    summary += FateText(elsewhere) + " over other lanes. The NCCL plugin stages with PACELINE_GPU_STAGING=1";
    const Nearest nearest = NearestTo(place, cards);
    for (size_t j = 0; j < nearest.which.size(); ++j) {
      summary += (j == 0 ? ". Nearest card: " : ", ") + ports[nearest.which[j]].name;
    }
    if (!nearest.which.empty()) summary += std::string(" (") + PciLevelName(nearest.distance.level) + ")";
    one["summary"] = summary;
    devices.push_back(one);
  }
  return {{"devices", devices},
          {"driver",
           "CUDA " + std::to_string(driver->version() / 1000) + "." + std::to_string(driver->version() % 1000 / 10)}};
}

nlohmann::json GatherPlugins() {
  struct Plugin {
    const char *name, *file, *summary;
  };
  nlohmann::json list = nlohmann::json::array();
  const std::string folder = FolderOfThisProgram();
  for (const Plugin& plugin : {Plugin{"c", "libpaceline.so", "the C interface"},
                               Plugin{"nccl", "libnccl-net-paceline.so", "network plugin of NCCL"},
                               Plugin{"libfabric", "libpaceline-fi.so", "provider of libfabric"}}) {
    nlohmann::json one = {{"name", plugin.name}, {"file", plugin.file}, {"summary", plugin.summary}, {"usable", false}};
    for (const std::string& path :
         {folder + "/../lib/" + plugin.file, folder + "/../lib/libfabric/" + plugin.file,
          folder + "/../lib/x86_64-linux-gnu/" + plugin.file, folder + "/../lib/aarch64-linux-gnu/" + plugin.file}) {
      std::error_code error;
      if (!std::filesystem::exists(path, error)) continue;
      one["usable"] = true;
      one["path"] = std::filesystem::weakly_canonical(path, error).string();
      break;
    }
    if (!one["usable"].get<bool>()) {
      one["reason"] = "not found beside this program";
    }
    list.push_back(one);
  }
  return list;
}

nlohmann::json GatherAlgorithms() {
  nlohmann::json list = nlohmann::json::array();
  for (const AlgorithmInfo& algorithm : CongestionControlAlgorithms()) {
    nlohmann::json parameters = nlohmann::json::array();
    for (const ParameterSpec& spec : algorithm.parameters) {
      nlohmann::json one = {{"name", spec.name},
                            {"default", ValueJson(spec.default_value)},
                            {"unit", spec.unit},
                            {"meaning", spec.meaning}};
      if (std::holds_alternative<double>(spec.default_value)) {
        one["min"] = spec.min;
        one["max"] = spec.max;
      }
      if (!spec.choices.empty()) one["choices"] = spec.choices;
      parameters.push_back(one);
    }
    list.push_back(
        {{"name", algorithm.name}, {"usable", true}, {"summary", algorithm.summary}, {"parameters", parameters}});
  }
  return list;
}

nlohmann::json GatherPathPolicies() {
  nlohmann::json list = nlohmann::json::array();
  for (const PathPolicyInfo& policy : PathPolicies()) {
    list.push_back({{"name", policy.name}, {"usable", true}, {"summary", policy.summary}});
  }
  return list;
}

nlohmann::json GatherContexts() {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : api::ListCounterPages()) {
    const auto page = api::ReadCounterPage(name);
    if (page.ok()) list.push_back({{"name", name}, {"pid", page->pid}});
  }
  return list;
}

}  // namespace paceline::tools
