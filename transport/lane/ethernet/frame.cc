#include "transport/lane/ethernet/frame.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/str_format.h"
#include "transport/lane/ethernet/internet_checksum.h"

namespace paceline {
namespace {

constexpr size_t kUdpChecksumAt = 6;  // in its header
constexpr uint8_t kVersionAndLengthV4 = 0x45;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kFragmentMask = 0x3fff;  // "more fragments" and the offset

void Put16(uint8_t* out, size_t value) {
  out[0] = static_cast<uint8_t>(value >> 8);
  out[1] = static_cast<uint8_t>(value);
}

uint16_t Get16(const uint8_t* in) { return static_cast<uint16_t>(in[0] << 8 | in[1]); }

size_t AddressBytes(IpVersion version) { return version == IpVersion::kV4 ? 4 : 16; }

// The pseudo-headers of RFC 768 and of RFC 8200 section 8.1: the same sum, as the upper half of the length is zero.
InternetChecksum SumPseudoHeader(const FrameFlow& flow, size_t udp_bytes) {
  InternetChecksum sum;
  const size_t size = AddressBytes(flow.version);
  sum.Add({flow.source.data(), size});
  sum.Add({flow.destination.data(), size});
  sum.AddWord(kIpProtocolUdp);
  sum.AddWord(static_cast<uint16_t>(udp_bytes));
  return sum;
}

void WriteIpv4(const FrameFlow& flow, size_t udp_bytes, uint8_t* out) {
  out[0] = kVersionAndLengthV4;
  out[1] = flow.traffic_class;
  Put16(out + 2, kIpv4HeaderBytes + udp_bytes);
  Put16(out + 4, 0);  // identification: free where fragments cannot be (RFC 6864)
  Put16(out + 6, kDontFragment);
  out[8] = flow.hop_limit;
  out[9] = kIpProtocolUdp;
  Put16(out + 10, 0);
  std::memcpy(out + 12, flow.source.data(), 4);
  std::memcpy(out + 16, flow.destination.data(), 4);
  InternetChecksum sum;
  sum.Add({out, kIpv4HeaderBytes});
  Put16(out + 10, sum.Checksum());
}

void WriteIpv6(const FrameFlow& flow, size_t udp_bytes, uint8_t* out) {
  out[0] = static_cast<uint8_t>(0x60 | flow.traffic_class >> 4);
  out[1] = static_cast<uint8_t>(flow.traffic_class << 4 | (flow.flow_label >> 16 & 0xf));
  Put16(out + 2, flow.flow_label & 0xffff);
  Put16(out + 4, udp_bytes);
  out[6] = kIpProtocolUdp;
  out[7] = flow.hop_limit;
  std::memcpy(out + 8, flow.source.data(), 16);
  std::memcpy(out + 24, flow.destination.data(), 16);
}

uint16_t UdpChecksumField(const FrameFlow& flow, size_t udp_bytes, const uint8_t* udp_header,
                          std::span<const std::span<const uint8_t>> payload, UdpChecksumMode mode) {
  if (mode == UdpChecksumMode::kWhereRequired && flow.version == IpVersion::kV4) return 0;
  InternetChecksum sum = SumPseudoHeader(flow, udp_bytes);
  if (mode == UdpChecksumMode::kPseudoHeader) return sum.Sum();
  sum.Add({udp_header, kUdpHeaderBytes});  // its own field is zero still
  for (const std::span<const uint8_t> piece : payload) sum.Add(piece);
  const uint16_t checksum = sum.Checksum();
  return checksum == 0 ? 0xffff : checksum;  // zero says that there is none
}

// True and the bytes of the UDP datagram when the header at `ip` is one that we take.
bool ReadIpv4(std::span<const uint8_t> ip, FrameFlow& flow, std::span<const uint8_t>& udp) {
  if (ip.size() < kIpv4HeaderBytes || ip[0] != kVersionAndLengthV4 || ip[9] != kIpProtocolUdp) return false;
  if ((Get16(&ip[6]) & kFragmentMask) != 0) return false;
  const size_t total = Get16(&ip[2]);
  if (total < kIpv4HeaderBytes + kUdpHeaderBytes || total > ip.size()) return false;
  InternetChecksum sum;
  sum.Add(ip.first(kIpv4HeaderBytes));
  if (sum.Checksum() != 0) return false;
  flow.version = IpVersion::kV4;
  flow.traffic_class = ip[1];
  flow.hop_limit = ip[8];
  std::memcpy(flow.source.data(), &ip[12], 4);
  std::memcpy(flow.destination.data(), &ip[16], 4);
  udp = ip.subspan(kIpv4HeaderBytes, total - kIpv4HeaderBytes);
  return flow.source[0] != 0 && flow.source[0] < 224;  // "this network", and multicast and what is above it
}

bool ReadIpv6(std::span<const uint8_t> ip, FrameFlow& flow, std::span<const uint8_t>& udp) {
  if (ip.size() < kIpv6HeaderBytes || ip[0] >> 4 != 6 || ip[6] != kIpProtocolUdp) return false;
  const size_t bytes = Get16(&ip[4]);
  if (bytes < kUdpHeaderBytes || bytes > ip.size() - kIpv6HeaderBytes) return false;
  flow.version = IpVersion::kV6;
  flow.traffic_class = static_cast<uint8_t>(ip[0] << 4 | ip[1] >> 4);
  flow.flow_label = static_cast<uint32_t>((ip[1] & 0xf) << 16 | Get16(&ip[2]));
  flow.hop_limit = ip[7];
  std::memcpy(flow.source.data(), &ip[8], 16);
  std::memcpy(flow.destination.data(), &ip[24], 16);
  udp = ip.subspan(kIpv6HeaderBytes, bytes);
  return flow.source[0] != 0xff && flow.source != IpAddress{};
}

bool UdpChecksumIsRight(const FrameFlow& flow, std::span<const uint8_t> udp) {
  if (Get16(&udp[kUdpChecksumAt]) == 0) return flow.version == IpVersion::kV4;
  InternetChecksum sum = SumPseudoHeader(flow, udp.size());
  sum.Add(udp);
  return sum.Checksum() == 0;
}

}  // namespace

std::optional<MacAddress> ParseMacAddress(std::string_view text) {
  MacAddress address;
  constexpr size_t kTextBytes = 6 * 3 - 1;
  if (text.size() != kTextBytes) return std::nullopt;
  for (size_t i = 0; i < address.bytes.size(); ++i) {
    const char* digits = text.data() + i * 3;
    const auto [end, error] = std::from_chars(digits, digits + 2, address.bytes[i], 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    if (i + 1 < address.bytes.size() && digits[2] != ':') return std::nullopt;
  }
  return address;
}

std::string FormatMacAddress(const MacAddress& address) {
  const auto& b = address.bytes;
  return absl::StrFormat("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
}

size_t WriteFrameHeaders(const FrameFlow& flow, std::span<const std::span<const uint8_t>> payload,
                         UdpChecksumMode checksum, uint8_t* out) {
  size_t udp_bytes = kUdpHeaderBytes;
  for (const std::span<const uint8_t> piece : payload) udp_bytes += piece.size();
  const bool v4 = flow.version == IpVersion::kV4;
  std::memcpy(out, flow.destination_mac.bytes.data(), 6);
  std::memcpy(out + 6, flow.source_mac.bytes.data(), 6);
  Put16(out + 12, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  uint8_t* ip = out + kEthernetHeaderBytes;
  if (v4) {
    WriteIpv4(flow, udp_bytes, ip);
  } else {
    WriteIpv6(flow, udp_bytes, ip);
  }
  uint8_t* udp = ip + (v4 ? kIpv4HeaderBytes : kIpv6HeaderBytes);
  Put16(udp, flow.source_port);
  Put16(udp + 2, flow.destination_port);
  Put16(udp + 4, udp_bytes);
  Put16(udp + kUdpChecksumAt, 0);
  Put16(udp + kUdpChecksumAt, UdpChecksumField(flow, udp_bytes, udp, payload, checksum));
  return FrameHeaderBytes(flow.version);
}

std::optional<ParsedFrame> ParseFrame(std::span<const uint8_t> frame, bool verify_udp) {
  if (frame.size() < kEthernetHeaderBytes) return std::nullopt;
  ParsedFrame parsed;
  FrameFlow& flow = parsed.flow;
  std::memcpy(flow.destination_mac.bytes.data(), &frame[0], 6);
  std::memcpy(flow.source_mac.bytes.data(), &frame[6], 6);
  if (flow.source_mac.is_group()) return std::nullopt;
  const uint16_t type = Get16(&frame[12]);
  const std::span<const uint8_t> ip = frame.subspan(kEthernetHeaderBytes);
  std::span<const uint8_t> udp;
  const bool taken =
      (type == kEtherTypeIpv4 && ReadIpv4(ip, flow, udp)) || (type == kEtherTypeIpv6 && ReadIpv6(ip, flow, udp));
  if (!taken || Get16(&udp[4]) != udp.size()) return std::nullopt;
  flow.source_port = Get16(&udp[0]);
  flow.destination_port = Get16(&udp[2]);
  if (flow.source_port == 0) return std::nullopt;
  if (verify_udp && !UdpChecksumIsRight(flow, udp)) return std::nullopt;
  parsed.payload = udp.subspan(kUdpHeaderBytes);
  return parsed;
}

}  // namespace paceline
