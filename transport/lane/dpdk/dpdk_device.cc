#include "transport/lane/dpdk/dpdk_device.h"

#include <arpa/inet.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace paceline {
namespace {

constexpr uint32_t kMostQueues = 64;

absl::Status Wrong(const std::string& device, const std::string& key, const std::string& value, const char* advice) {
  return absl::InvalidArgumentError(absl::StrCat("DPDK port ", device, ": ", key, "=", value, ": ", advice));
}

bool ParseIp(const std::string& text, IpVersion& version, IpAddress& out) {
  out = IpAddress{};
  version = text.find(':') == std::string::npos ? IpVersion::kV4 : IpVersion::kV6;
  return inet_pton(version == IpVersion::kV4 ? AF_INET : AF_INET6, text.c_str(), out.data()) == 1;
}

bool CanBeOwn(const IpAddress& address, IpVersion version) {
  if (version == IpVersion::kV6) return address[0] != 0xff && address != IpAddress{};
  return address[0] != 0 && address[0] < 224;
}

absl::Status SetAddress(const std::string& value, DpdkDevice& device) {
  constexpr char kAdvice[] = "write an address that is one host's, like 192.0.2.1/24 or fd00::1/64";
  const std::vector<std::string> parts = absl::StrSplit(value, '/');
  if (parts.size() > 2 || !ParseIp(parts[0], device.version, device.address) ||
      !CanBeOwn(device.address, device.version)) {
    return Wrong(device.name, "address", value, kAdvice);
  }
  uint32_t bits = 0;
  const uint32_t most = device.version == IpVersion::kV4 ? 32 : 128;
  if (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &bits) || bits < 1 || bits > most)) {
    return Wrong(device.name, "address", value, kAdvice);
  }
  device.prefix_bits = static_cast<uint8_t>(bits);
  return absl::OkStatus();
}

// Drivers that make their queues when the port is attached, and what they call the number (DPDK 22.11, drivers/net).
struct QueueSetting {
  const char* driver;
  const char* key;
};
constexpr QueueSetting kQueueSettings[] = {
    {"net_af_packet", "qpairs"}, {"net_af_xdp", "queue_count"}, {"net_vhost", "queues"}, {"net_virtio_user", "queues"}};

void TellDriverOfQueues(DpdkDevice& device) {
  for (const QueueSetting& setting : kQueueSettings) {
    const std::string key = absl::StrCat(",", setting.key, "=");
    if (!absl::StartsWith(device.name, setting.driver) || absl::StrContains(device.devargs, key)) continue;
    absl::StrAppend(&device.devargs, key, device.queues);
  }
}

bool AreHexadecimal(std::string_view text, size_t least, size_t most) {
  if (text.size() < least || text.size() > most) return false;
  for (const char c : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

}  // namespace

bool IsPciAddress(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || !AreHexadecimal(name.substr(dot + 1), 1, 1)) return false;
  const std::vector<std::string> parts = absl::StrSplit(std::string(name.substr(0, dot)), ':');
  if (parts.size() == 3 && !AreHexadecimal(parts[0], 4, 8)) return false;
  return (parts.size() == 2 || parts.size() == 3) && AreHexadecimal(parts[parts.size() - 2], 2, 2) &&
         AreHexadecimal(parts.back(), 2, 2);
}

uint32_t DpdkDriverNumber(std::string_view arguments, std::string_view key, uint32_t otherwise) {
  const std::string begin = absl::StrCat(std::string(key), "=");
  for (const std::string& argument : std::vector<std::string>(absl::StrSplit(std::string(arguments), ','))) {
    uint32_t number = 0;
    if (absl::StartsWith(argument, begin) && absl::SimpleAtoi(argument.substr(begin.size()), &number))
      otherwise = number;
  }
  return otherwise;
}

absl::StatusOr<DpdkDevice> ParseDpdkDevice(std::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  // DPDK finds cards by their full address alone.
  if (IsPciAddress(parts[0]) && std::count(parts[0].begin(), parts[0].end(), ':') == 1) parts[0].insert(0, "0000:");
  DpdkDevice device;
  device.name = parts[0];
  device.devargs = parts[0];
  if (device.name.empty() || device.name.find('=') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("DPDK port \"", std::string(text),
                     "\": begin with a PCI address (0000:3b:00.0) or the name of a port (net_memif0)"));
  }
  bool has_address = false;
  std::string gateway;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const auto& [key, value] = setting;
    if (key == "address") {
      if (absl::Status status = SetAddress(value, device); !status.ok()) return status;
      has_address = true;
    } else if (key == "gateway") {
      gateway = value;
    } else if (key == "udp_port") {
      uint32_t port = 0;
      if (!absl::SimpleAtoi(value, &port) || port < 1 || port > 65535) {
        return Wrong(device.name, key, value, "write a number from 1 to 65535");
      }
      device.udp_port = static_cast<uint16_t>(port);
    } else if (key == "queues") {
      uint32_t queues = 0;
      if (!absl::SimpleAtoi(value, &queues) || queues < 1 || queues > kMostQueues) {
        return Wrong(device.name, key, value, "write a number from 1 to 64");
      }
      device.queues = static_cast<uint16_t>(queues);
    } else if (key == "send_on_time") {
      if (value != "0" && value != "1") return Wrong(device.name, key, value, "write 1 or 0");
      device.send_on_time = value == "1";
    } else if (key == "card_reads") {
      if (value != "0" && value != "1") return Wrong(device.name, key, value, "write 1 or 0");
      device.card_reads = value == "1";
    } else {
      absl::StrAppend(&device.devargs, ",", parts[i]);
    }
  }
  if (device.queues > 0) TellDriverOfQueues(device);
  if (!has_address) {
    return absl::InvalidArgumentError(absl::StrCat("DPDK port ", device.name,
                                                   " has no IP address, as no kernel knows it: write ", device.devargs,
                                                   ",address=192.0.2.1/24 (one of the subnet that it is in)"));
  }
  if (!gateway.empty()) {
    IpVersion version = IpVersion::kV4;
    device.gateway.emplace();
    if (!ParseIp(gateway, version, *device.gateway) || version != device.version || device.prefix_bits == 0) {
      return Wrong(device.name, "gateway", gateway,
                   "write an address of the same kind as address=, which must say its prefix (/24)");
    }
  }
  return device;
}

}  // namespace paceline
