#include "transport/lane/ethernet/neighbours.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/lane/ethernet/internet_checksum.h"

namespace paceline {
namespace {

constexpr Duration kFirstInterval = Duration::Millis(100);
constexpr Duration kLongestInterval = Duration::Seconds(1);
constexpr Duration kKnownFor = Duration::Seconds(30);      // REACHABLE_TIME of RFC 4861
constexpr Duration kSweepInterval = Duration::Millis(10);  // at least, unless something is to be asked at once
constexpr uint8_t kMostAsks = 6;
constexpr uint8_t kDirectAsks = 3;  // of a probe, before everybody is asked

constexpr MacAddress kEverybody = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

// ARP for IPv4 over Ethernet (RFC 826), behind the Ethernet header:
//   0 hardware 1 | 2 protocol 0x0800 | 4 sizes 6, 4 | 6 operation | 8 sender MAC | 14 sender IP | 18 target MAC | 24 IP
constexpr size_t kArpBytes = 28;
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpReply = 2;
constexpr std::array<uint8_t, 6> kArpStart = {0, 1, 0x08, 0, 6, 4};

// Neighbour discovery (RFC 4861), behind the IPv6 header:
//   0 type | 1 code 0 | 2 checksum | 4 flags | 8 target | 24 options: type, length in units of 8 bytes, ...
constexpr uint8_t kProtocolIcmpV6 = 58;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr uint8_t kDiscoveryHopLimit = 255;  // no router has touched it
constexpr size_t kDiscoveryBytes = 24;
constexpr size_t kLinkOptionBytes = 8;
constexpr uint8_t kSourceLinkOption = 1;
constexpr uint8_t kTargetLinkOption = 2;
constexpr uint32_t kSolicitedFlag = 0x40000000;
constexpr uint32_t kOverrideFlag = 0x20000000;
constexpr IpAddress kAllNodes = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

void Put16(uint8_t* out, size_t value) {
  out[0] = static_cast<uint8_t>(value >> 8);
  out[1] = static_cast<uint8_t>(value);
}

uint16_t Get16(const uint8_t* in) { return static_cast<uint16_t>(in[0] << 8 | in[1]); }

IpAddress V4(const uint8_t* bytes) {
  IpAddress address{};
  std::copy_n(bytes, 4, address.begin());
  return address;
}

IpAddress V6(const uint8_t* bytes) {
  IpAddress address;
  std::copy_n(bytes, address.size(), address.begin());
  return address;
}

MacAddress Mac(const uint8_t* bytes) {
  MacAddress mac;
  std::copy_n(bytes, mac.bytes.size(), mac.bytes.begin());
  return mac;
}

bool CanBeNeighbour(const MacAddress& mac) { return !mac.is_group() && mac != MacAddress{}; }

// ff02::1:ffXX:XXXX, the group in which the owner of an address listens (RFC 4291 section 2.7.1).
IpAddress SolicitedNode(const IpAddress& address) {
  IpAddress group = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  std::copy_n(address.begin() + 13, 3, group.begin() + 13);
  return group;
}

// RFC 2464 section 7.
MacAddress GroupMac(const IpAddress& group) { return {{0x33, 0x33, group[12], group[13], group[14], group[15]}}; }

uint16_t IcmpChecksum(std::span<const uint8_t> ip) {
  InternetChecksum sum;
  sum.Add(ip.subspan(8, 32));  // both addresses
  sum.AddWord(static_cast<uint16_t>(ip.size() - kIpv6HeaderBytes));
  sum.AddWord(kProtocolIcmpV6);
  sum.Add(ip.subspan(kIpv6HeaderBytes));
  return sum.Checksum();
}

// The Ethernet address in an option of this type; nothing when the options are damaged or have none.
std::optional<MacAddress> FindLinkOption(std::span<const uint8_t> options, uint8_t type) {
  std::optional<MacAddress> found;
  while (!options.empty()) {
    if (options.size() < 2 || options[1] == 0) return std::nullopt;
    const size_t bytes = size_t{options[1]} * 8;
    if (bytes > options.size()) return std::nullopt;
    if (options[0] == type && bytes == kLinkOptionBytes && !found) found = Mac(&options[2]);
    options = options.subspan(bytes);
  }
  return found;
}

}  // namespace

Neighbours::Neighbours(const Options& options) : options_(options), entries_(1) { answers_.reserve(kMostAnswers); }

bool Neighbours::OnLink(const IpAddress& address) const {
  const size_t whole = options_.prefix_bits / 8;
  if (!std::equal(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(whole), options_.address.begin())) {
    return false;
  }
  const unsigned rest = options_.prefix_bits % 8;
  return rest == 0 || ((address[whole] ^ options_.address[whole]) >> (8 - rest)) == 0;
}

uint32_t Neighbours::Open(const IpAddress& destination) {
  const bool link_local = options_.version == IpVersion::kV6 && destination[0] == 0xfe && (destination[1] >> 6) == 2;
  const bool direct = OnLink(destination) || link_local;
  if (!direct && !options_.gateway) return kNowhere;
  const IpAddress& hop = direct ? destination : *options_.gateway;
  if (const auto known = numbers_.find(hop); known != numbers_.end()) {
    ++entries_[known->second].references;
    return known->second;
  }
  const uint32_t number = TakePlace();
  if (number == kNowhere) return kNowhere;
  numbers_[hop] = number;
  Entry& entry = entries_[number];
  entry.hop = hop;
  entry.references = 1;
  entry.state = State::kAsking;
  WakeAt(entry.due);  // at once
  return number;
}

uint32_t Neighbours::TakePlace() {
  if (entries_.size() <= kMostEntries) {
    entries_.emplace_back();
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  while (!closed_.empty()) {
    const uint32_t number = closed_.front();
    closed_.pop_front();
    Entry& entry = entries_[number];
    entry.in_closed = false;
    if (entry.references > 0) continue;
    numbers_.erase(entry.hop);
    entry = Entry();
    return number;
  }
  return kNowhere;
}

void Neighbours::Close(uint32_t neighbour) {
  if (neighbour == kNowhere || neighbour >= entries_.size() || entries_[neighbour].references == 0) return;
  Entry& entry = entries_[neighbour];
  if (--entry.references == 0 && !std::exchange(entry.in_closed, true)) closed_.push_back(neighbour);
}

void Neighbours::Learn(const IpAddress& address, const MacAddress& mac, bool may_replace, Time now) {
  const auto known = numbers_.find(address);
  if (known == numbers_.end() || !CanBeNeighbour(mac)) return;
  Entry& entry = entries_[known->second];
  if (entry.state == State::kKnown && !(entry.mac == mac) && !may_replace) return;
  if (entry.state != State::kKnown || !(entry.mac == mac)) ++change_count_;
  entry.mac = mac;
  entry.state = State::kKnown;
  entry.probing = false;
  entry.used = false;
  entry.asked = 0;
  entry.due = now + kKnownFor;
  WakeAt(entry.due);
}

void Neighbours::AddAnswer(const Answer& answer) {
  if (answers_.size() < kMostAnswers) answers_.push_back(answer);
}

// Whether a sweep is under way or not.
void Neighbours::WakeAt(Time due) {
  next_due_ = std::min(next_due_, due);
  sweep_due_ = std::min(sweep_due_, due);
}

bool Neighbours::HandleFrame(std::span<const uint8_t> frame, Time now) {
  if (frame.size() < kEthernetHeaderBytes) return false;
  switch (Get16(&frame[12])) {
    case kEtherTypeArp:
      return HandleArp(frame, now);
    case kEtherTypeIpv6:
      return HandleDiscovery(frame, now);
    default:
      return false;
  }
}

bool Neighbours::HandleArp(std::span<const uint8_t> frame, Time now) {
  const std::span<const uint8_t> arp = frame.subspan(kEthernetHeaderBytes);
  if (options_.version != IpVersion::kV4 || arp.size() < kArpBytes) return true;
  if (!std::equal(kArpStart.begin(), kArpStart.end(), arp.begin())) return true;
  const uint16_t operation = Get16(&arp[6]);
  if (operation != kArpRequest && operation != kArpReply) return true;
  const MacAddress sender_mac = Mac(&arp[8]);
  const IpAddress sender = V4(&arp[14]), target = V4(&arp[24]);
  if (!CanBeNeighbour(sender_mac) || sender_mac == options_.mac) return true;
  if (sender == options_.address) {
    Conflict(sender_mac);
    return true;
  }
  // What is said to others says nothing to us, unless everybody is to know it (gratuitous: for its own address).
  if (target == options_.address || target == sender) Learn(sender, sender_mac, true, now);
  if (operation == kArpRequest && target == options_.address) AddAnswer({sender_mac, sender, true});
  return true;
}

bool Neighbours::HandleDiscovery(std::span<const uint8_t> frame, Time now) {
  std::span<const uint8_t> ip = frame.subspan(kEthernetHeaderBytes);
  if (ip.size() < kIpv6HeaderBytes + 4 || ip[6] != kProtocolIcmpV6) return false;
  const uint8_t type = ip[kIpv6HeaderBytes];
  if (type != kSolicitation && type != kAdvertisement) return false;
  const size_t bytes = Get16(&ip[4]);
  if (options_.version != IpVersion::kV6 || ip[0] >> 4 != 6 || ip[7] != kDiscoveryHopLimit || bytes < kDiscoveryBytes ||
      bytes > ip.size() - kIpv6HeaderBytes || ip[kIpv6HeaderBytes + 1] != 0) {
    return true;
  }
  ip = ip.first(kIpv6HeaderBytes + bytes);
  if (IcmpChecksum(ip) != 0 || Mac(&frame[6]) == options_.mac) return true;
  if (type == kSolicitation) {
    HandleSolicitation(ip, frame, now);
  } else {
    HandleAdvertisement(ip, frame, now);
  }
  return true;
}

void Neighbours::HandleSolicitation(std::span<const uint8_t> ip, std::span<const uint8_t> frame, Time now) {
  const std::span<const uint8_t> icmp = ip.subspan(kIpv6HeaderBytes);
  const IpAddress source = V6(&ip[8]);
  const auto link = FindLinkOption(icmp.subspan(kDiscoveryBytes), kSourceLinkOption);
  if (source == options_.address) {
    Conflict(Mac(&frame[6]));
    return;
  }
  if (V6(&icmp[8]) != options_.address || source[0] == 0xff) return;
  if (source == IpAddress{}) {  // somebody wants the address for himself: all are told that it is taken
    Conflict(Mac(&frame[6]));
    AddAnswer({GroupMac(kAllNodes), kAllNodes, false});
    return;
  }
  const MacAddress from = link.value_or(Mac(&frame[6]));
  if (!CanBeNeighbour(from)) return;
  if (link) Learn(source, *link, true, now);
  AddAnswer({from, source, true});
}

void Neighbours::HandleAdvertisement(std::span<const uint8_t> ip, std::span<const uint8_t> frame, Time now) {
  const std::span<const uint8_t> icmp = ip.subspan(kIpv6HeaderBytes);
  const IpAddress target = V6(&icmp[8]);
  const uint32_t flags = static_cast<uint32_t>(icmp[4]) << 24;
  const auto link = FindLinkOption(icmp.subspan(kDiscoveryBytes), kTargetLinkOption);
  if (target == options_.address) {
    Conflict(Mac(&frame[6]));
    return;
  }
  const bool solicited = (flags & kSolicitedFlag) != 0;
  if (ip[24] == 0xff && solicited) return;  // RFC 4861 section 7.1.2
  if (link) {
    Learn(target, *link, (flags & kOverrideFlag) != 0, now);
  } else if (solicited) {
    Confirm(target, now);
  }
}

// Who was asked directly need not say the Ethernet address that the question had (RFC 4861 section 4.4).
void Neighbours::Confirm(const IpAddress& address, Time now) {
  const auto known = numbers_.find(address);
  if (known == numbers_.end() || entries_[known->second].state != State::kKnown) return;
  const MacAddress mac = entries_[known->second].mac;
  Learn(address, mac, false, now);
}

void Neighbours::Conflict(const MacAddress& with) {
  ++conflicts_;
  last_conflict_ = with;
}

bool Neighbours::Advance(Entry& entry, Time now) {
  if (entry.due > now) return false;
  switch (entry.state) {
    case State::kKnown:
      if (!entry.probing) {
        if (!entry.used) {  // nobody wants to know
          entry.due = now + kLongestInterval;
          return false;
        }
        entry.probing = true;
      }
      break;
    case State::kAsking:
      break;
    case State::kFailed:
      entry.due = now + kLongestInterval;
      return std::exchange(entry.used, false);
  }
  if (entry.asked == kMostAsks) {
    entry.state = State::kFailed;
    entry.probing = false;
    entry.due = now + kLongestInterval;
    ++change_count_;
    return false;
  }
  entry.due = now + std::min(kFirstInterval * (int64_t{1} << entry.asked), kLongestInterval);
  ++entry.asked;
  return true;
}

std::optional<NeighbourFrame> Neighbours::PollTransmit(Time now) {
  // In turn: those who ask without an end do not keep us from asking.
  const bool may_answer = !std::exchange(question_is_next_, false);
  if (may_answer) {
    if (auto answer = PollAnswer()) {
      question_is_next_ = true;
      return answer;
    }
  }
  if (auto question = PollQuestion(now)) return question;
  return may_answer ? std::nullopt : PollAnswer();
}

std::optional<NeighbourFrame> Neighbours::PollAnswer() {
  if (answers_.empty()) return std::nullopt;
  const NeighbourFrame frame = MakeAnswer(answers_.back());
  answers_.pop_back();
  return frame;
}

std::optional<NeighbourFrame> Neighbours::PollQuestion(Time now) {
  if (next_due_ > now) return std::nullopt;
  for (; cursor_ < entries_.size(); ++cursor_) {
    Entry& entry = entries_[cursor_];
    const bool ask = Advance(entry, now);
    sweep_due_ = std::min(sweep_due_, entry.due);
    if (!ask) continue;
    ++cursor_;
    return MakeRequest(entry);
  }
  cursor_ = 1;
  next_due_ = std::max(std::exchange(sweep_due_, Time::Never()), now + kSweepInterval);
  return std::nullopt;
}

NeighbourFrame Neighbours::MakeRequest(const Entry& entry) const {
  const bool direct = entry.probing && entry.asked <= kDirectAsks;
  if (options_.version == IpVersion::kV4) {
    return MakeArp(kArpRequest, direct ? entry.mac : kEverybody, MacAddress{}, entry.hop);
  }
  const IpAddress group = SolicitedNode(entry.hop);
  return MakeDiscovery(kSolicitation, 0, direct ? entry.mac : GroupMac(group), direct ? entry.hop : group, entry.hop);
}

NeighbourFrame Neighbours::MakeAnswer(const Answer& answer) const {
  if (options_.version == IpVersion::kV4) return MakeArp(kArpReply, answer.to_mac, answer.to_mac, answer.to);
  return MakeDiscovery(kAdvertisement, kOverrideFlag | (answer.solicited ? kSolicitedFlag : 0), answer.to_mac,
                       answer.to, options_.address);
}

NeighbourFrame Neighbours::MakeArp(uint16_t operation, const MacAddress& to_mac, const MacAddress& target_mac,
                                   const IpAddress& target) const {
  NeighbourFrame frame;
  uint8_t* out = frame.bytes.data();
  std::copy_n(to_mac.bytes.begin(), 6, out);
  std::copy_n(options_.mac.bytes.begin(), 6, out + 6);
  Put16(out + 12, kEtherTypeArp);
  uint8_t* arp = out + kEthernetHeaderBytes;
  std::copy(kArpStart.begin(), kArpStart.end(), arp);
  Put16(arp + 6, operation);
  std::copy_n(options_.mac.bytes.begin(), 6, arp + 8);
  std::copy_n(options_.address.begin(), 4, arp + 14);
  std::copy_n(target_mac.bytes.begin(), 6, arp + 18);
  std::copy_n(target.begin(), 4, arp + 24);
  frame.size = 60;  // the least frame of Ethernet, its checksum apart
  return frame;
}

NeighbourFrame Neighbours::MakeDiscovery(uint8_t type, uint32_t flags, const MacAddress& to_mac, const IpAddress& to,
                                         const IpAddress& target) const {
  NeighbourFrame frame;
  frame.size = kEthernetHeaderBytes + kIpv6HeaderBytes + kDiscoveryBytes + kLinkOptionBytes;
  uint8_t* out = frame.bytes.data();
  std::copy_n(to_mac.bytes.begin(), 6, out);
  std::copy_n(options_.mac.bytes.begin(), 6, out + 6);
  Put16(out + 12, kEtherTypeIpv6);
  uint8_t* ip = out + kEthernetHeaderBytes;
  ip[0] = 0x60;
  Put16(ip + 4, kDiscoveryBytes + kLinkOptionBytes);
  ip[6] = kProtocolIcmpV6;
  ip[7] = kDiscoveryHopLimit;
  std::copy_n(options_.address.begin(), 16, ip + 8);
  std::copy_n(to.begin(), 16, ip + 24);
  uint8_t* icmp = ip + kIpv6HeaderBytes;
  icmp[0] = type;
  icmp[4] = static_cast<uint8_t>(flags >> 24);
  std::copy_n(target.begin(), 16, icmp + 8);
  uint8_t* option = icmp + kDiscoveryBytes;
  option[0] = type == kSolicitation ? kSourceLinkOption : kTargetLinkOption;
  option[1] = 1;
  std::copy_n(options_.mac.bytes.begin(), 6, option + 2);
  Put16(icmp + 2, IcmpChecksum({ip, frame.size - kEthernetHeaderBytes}));
  return frame;
}

}  // namespace paceline
