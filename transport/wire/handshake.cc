#include "transport/wire/handshake.h"

#include <algorithm>

#include "transport/wire/packet.h"

namespace paceline::wire {
namespace {

constexpr size_t kMaxAlgorithmBytes = 32;
constexpr uint8_t kRefuseHasTag = 1;

template <typename Bytes>
void ReadArray(Reader& reader, Bytes& out) {
  const auto bytes = reader.Bytes(out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

void ReadCredentials(Reader& reader, const Hello& hello, Credentials* credentials) {
  if ((hello.features & kFeatureProtected) == 0) return;
  ReadArray(reader, credentials->public_key);
  ReadArray(reader, credentials->tag);
}

void WriteCredentials(Writer& writer, const Hello& hello, const Credentials& credentials) {
  if ((hello.features & kFeatureProtected) == 0) return;
  writer.Bytes(credentials.public_key);
  writer.Bytes(credentials.tag);
}

bool ReadHello(Reader& reader, Hello* hello) {
  hello->segment_bytes = reader.U32();
  hello->features = reader.U32();
  hello->ports = reader.U8();
  const uint8_t name_bytes = reader.U8();
  const uint8_t private_bytes = reader.U8();
  reader.U8();
  const auto name = reader.Bytes(name_bytes);
  if (reader.failed() || hello->ports == 0 || hello->ports > limits::kMaxPorts || name_bytes > kMaxAlgorithmBytes) {
    return false;
  }
  hello->algorithm.assign(name.begin(), name.end());
  for (uint8_t i = 0; i < hello->ports; ++i) {
    const uint8_t size = reader.U8();
    const auto bytes = reader.Bytes(size);
    if (reader.failed() || size > LaneAddress::kMaxBytes) return false;
    hello->addresses[i].size = size;
    std::copy(bytes.begin(), bytes.end(), hello->addresses[i].bytes.begin());
  }
  const auto private_data = reader.Bytes(private_bytes);
  if (reader.failed() || private_bytes > PrivateData::kMaxBytes) return false;
  hello->private_data = PrivateData::Of(private_data);
  return true;
}

void WriteHello(Writer& writer, const Hello& hello) {
  writer.U32(hello.segment_bytes);
  writer.U32(hello.features);
  writer.U8(hello.ports);
  const size_t name_bytes = std::min(hello.algorithm.size(), kMaxAlgorithmBytes);
  writer.U8(static_cast<uint8_t>(name_bytes));
  writer.U8(hello.private_data.size);
  writer.U8(0);
  writer.Bytes({reinterpret_cast<const uint8_t*>(hello.algorithm.data()), name_bytes});
  for (uint8_t i = 0; i < hello.ports; ++i) {
    writer.U8(hello.addresses[i].size);
    writer.Bytes(hello.addresses[i].view());
  }
  writer.Bytes(hello.private_data.view());
}

size_t Finish(Writer& writer, std::span<uint8_t> buffer, PacketType type, uint32_t connection) {
  FinishPacket(buffer.first(writer.size()), type, 0, connection);
  return writer.size();
}

}  // namespace

std::optional<InitPacket> ParseInit(std::span<const uint8_t> body) {
  Reader reader(body);
  InitPacket packet;
  packet.client_connection = reader.U32();
  reader.U32();
  packet.client_nonce = reader.U64();
  packet.listener_nonce = reader.U64();
  ReadArray(reader, packet.cookie);
  if (!ReadHello(reader, &packet.hello)) return std::nullopt;
  ReadCredentials(reader, packet.hello, &packet.credentials);
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return packet;
}

std::optional<CookiePacket> ParseCookie(std::span<const uint8_t> body) {
  Reader reader(body);
  CookiePacket packet;
  packet.client_nonce = reader.U64();
  ReadArray(reader, packet.cookie);
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return packet;
}

std::optional<AcceptPacket> ParseAccept(std::span<const uint8_t> body) {
  Reader reader(body);
  AcceptPacket packet;
  packet.client_nonce = reader.U64();
  packet.server_connection = reader.U32();
  reader.U32();
  if (!ReadHello(reader, &packet.hello)) return std::nullopt;
  ReadCredentials(reader, packet.hello, &packet.credentials);
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return packet;
}

std::optional<RefusePacket> ParseRefuse(std::span<const uint8_t> body) {
  Reader reader(body);
  RefusePacket packet;
  packet.client_nonce = reader.U64();
  packet.reason = reader.U16();
  packet.version = reader.U8();
  packet.tagged = (reader.U8() & kRefuseHasTag) != 0;
  if (packet.tagged) ReadArray(reader, packet.tag);
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return packet;
}

size_t EncodeInit(const InitPacket& packet, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  writer.U32(packet.client_connection);
  writer.U32(0);
  writer.U64(packet.client_nonce);
  writer.U64(packet.listener_nonce);
  writer.Bytes(packet.cookie);
  WriteHello(writer, packet.hello);
  WriteCredentials(writer, packet.hello, packet.credentials);
  return Finish(writer, buffer, PacketType::kInit, 0);
}

size_t EncodeCookie(const CookiePacket& packet, uint32_t connection, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  writer.U64(packet.client_nonce);
  writer.Bytes(packet.cookie);
  return Finish(writer, buffer, PacketType::kCookie, connection);
}

size_t EncodeAccept(const AcceptPacket& packet, uint32_t connection, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  writer.U64(packet.client_nonce);
  writer.U32(packet.server_connection);
  writer.U32(0);
  WriteHello(writer, packet.hello);
  WriteCredentials(writer, packet.hello, packet.credentials);
  return Finish(writer, buffer, PacketType::kAccept, connection);
}

size_t EncodeRefuse(const RefusePacket& packet, uint32_t connection, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  writer.U64(packet.client_nonce);
  writer.U16(packet.reason);
  writer.U8(packet.version);
  writer.U8(packet.tagged ? kRefuseHasTag : 0);
  if (packet.tagged) writer.Bytes(packet.tag);
  return Finish(writer, buffer, PacketType::kRefuse, connection);
}

std::span<const uint8_t> SignedBytes(std::span<const uint8_t> body) {
  return body.first(body.size() - std::min(body.size(), sizeof(HandshakeTag)));
}

std::span<const uint8_t> BodyOf(std::span<const uint8_t> packet) { return packet.subspan(kCommonBytes); }

void PlaceTag(std::span<uint8_t> packet, const HandshakeTag& tag) {
  const auto place = packet.last<sizeof(HandshakeTag)>();
  std::copy(tag.begin(), tag.end(), place.begin());
  RefreshChecksum(packet);
}

}  // namespace paceline::wire
