// Ethernet frames that hold one UDP datagram, for lanes that build and read them by themselves: Ethernet II, IPv4
// without options or IPv6 without extension headers, UDP. No VLAN tags, no fragments.
//
// Sources: RFC 894 and RFC 2464 (Ethernet), RFC 791 (IPv4), RFC 8200 (IPv6), RFC 768 (UDP), RFC 3168 (ECN).
//
// Thread rule: pure functions and values, free to use anywhere. Nothing allocates but the text of a MacAddress.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/lane/ip_address.h"

namespace paceline {

inline constexpr size_t kEthernetHeaderBytes = 14;
inline constexpr size_t kIpv4HeaderBytes = 20;
inline constexpr size_t kIpv6HeaderBytes = 40;
inline constexpr size_t kUdpHeaderBytes = 8;
inline constexpr size_t kFrameHeaderBytesV4 = kEthernetHeaderBytes + kIpv4HeaderBytes + kUdpHeaderBytes;  // 42
inline constexpr size_t kFrameHeaderBytesV6 = kEthernetHeaderBytes + kIpv6HeaderBytes + kUdpHeaderBytes;  // 62

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint8_t kIpProtocolUdp = 17;

// The two lowest bits of the traffic class (RFC 3168).
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnCapable = 2;  // ECT(0)
inline constexpr uint8_t kEcnCongestionExperienced = 3;

struct MacAddress {
  std::array<uint8_t, 6> bytes{};

  bool operator==(const MacAddress&) const = default;
  // Multicast or broadcast: never a source.
  bool is_group() const { return (bytes[0] & 1) != 0; }
};

// "02:00:5e:10:00:0a"; hexadecimal digits of either case.
std::optional<MacAddress> ParseMacAddress(std::string_view text);
std::string FormatMacAddress(const MacAddress& address);  // in lower case

// What a frame's headers say, lengths and checksums apart.
struct FrameFlow {
  MacAddress source_mac, destination_mac;
  IpVersion version = IpVersion::kV4;
  IpAddress source{}, destination{};
  uint16_t source_port = 0, destination_port = 0;
  uint8_t traffic_class = 0;  // the two ECN bits included
  uint8_t hop_limit = 64;
  uint32_t flow_label = 0;  // IPv6: 20 bits, which switches may hash; IPv4: not used

  bool operator==(const FrameFlow&) const = default;
};

constexpr size_t FrameHeaderBytes(IpVersion version) {
  return version == IpVersion::kV4 ? kFrameHeaderBytesV4 : kFrameHeaderBytesV6;
}

enum class UdpChecksumMode : uint8_t {
  kWhereRequired,  // none (zero) over IPv4; computed over IPv6, which has no frames without one
  kComputed,       // over header and payload
  kPseudoHeader,   // of the pseudo-header alone, not complemented: the card finishes it
};

// The largest payload that 16 bits of length leave: 65,507 over IPv4, 65,527 over IPv6.
constexpr size_t MaxUdpPayload(IpVersion version) {
  return 65535 - kUdpHeaderBytes - (version == IpVersion::kV4 ? kIpv4HeaderBytes : 0);
}

// Writes all headers of a frame whose payload is `payload`, piece by piece (they are read only where the checksum is
// computed), to `out`, which has room for FrameHeaderBytes(flow.version); returns that many. DF is set over IPv4. The
// payload is at most MaxUdpPayload; the caller sees to it that the card takes the frame.
size_t WriteFrameHeaders(const FrameFlow& flow, std::span<const std::span<const uint8_t>> payload,
                         UdpChecksumMode checksum, uint8_t* out);

struct ParsedFrame {
  FrameFlow flow;
  std::span<const uint8_t> payload;  // within the frame; what pads a short frame is left out

  bool congestion_experienced() const { return (flow.traffic_class & kEcnMask) == kEcnCongestionExperienced; }
};

// Nothing unless `frame` is one whole UDP datagram in one whole frame as described above, whose lengths agree, whose
// IPv4 header has the right checksum, and whose source could be answered: no group address, no port 0, not "any".
// `verify_udp`: its UDP checksum must be right too; zero, where IPv4 has none, is. Frames that a virtual cable hands
// over before a card finished them have it unfinished.
std::optional<ParsedFrame> ParseFrame(std::span<const uint8_t> frame, bool verify_udp);

}  // namespace paceline
