// A packet lane over the scripted network: takes segments while its queue has room, copies them onto the network, and
// hands out what has arrived. It states whatever capabilities the test gives it.
//
// Thread rule: one thread. The network must outlive the lane.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scripted_network.h"
#include "transport/lane/lane.h"

namespace paceline::support {

// Capabilities of an ordinary packet lane in tests: 4 KB payloads, 64 entropies, ECN and trimming seen.
LaneCapabilities PacketLaneCapabilities();

class ScriptedLane : public Lane, private ScriptedNetwork::Receiver {
 public:
  ScriptedLane(ScriptedNetwork* network, const LaneCapabilities& capabilities);
  ~ScriptedLane() override;

  static LaneAddress AddressOfPort(uint32_t port);

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return {network_->port_up(port_), network_->port_changes(port_)}; }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress& address) override;
  void ClosePeer(uint32_t peer) override;
  size_t room() const override { return network_->PortHasRoom(port_) ? room_limit_ : 0; }
  size_t RoomTo(uint32_t peer) override;
  size_t Send(std::span<const TxSegment> segments) override;
  void GuessPlacement(const PlacementGuess& guess) override { guess_ = guess; }
  size_t Receive(std::span<RxSegment> out, Time now) override;
  // With reads_later: what is lent is read when a packet arrives at the other end, no sooner.
  bool LendMemory(const LaneMemory& memory) override;
  void ReturnMemory(const LaneMemory& memory) override;
  bool ReadsFromDevice(const uint8_t* payload, size_t bytes) const override;

  uint32_t port() const { return port_; }
  // How many segments one Send takes at most: a small number exercises back-pressure.
  void set_room(size_t segments) { room_limit_ = segments; }
  // How many packets wait to be received before what comes is lost; 0: no bound.
  void set_rx_queue(size_t packets) { rx_queue_limit_ = packets; }
  // What arrives has waited for so long before Receive hands it out, and is stamped with the time at which it came. For
  // lanes that state rx_timestamps.
  void set_waited(Duration waited) { waited_ = waited; }
  // A port that takes nothing from here any more, as RoomTo says, until `full` is false.
  void set_full(uint32_t port, bool full) { full_port_ = full ? port : ~0u; }
  // Only these ports can be reached from here; all, unless set.
  void set_reach(std::function<bool(uint32_t port)> reach) { reach_ = std::move(reach); }
  // Peers that are open now, for leak checks.
  size_t open_peers() const { return peers_.size(); }
  // From now on memory of GPUs can be lent, of which packets of so many bytes of payload and more read whole pages.
  void ReadDevices(size_t least) { least_of_devices_ = least; }
  // Memory that is lent now, and packets whose payload was to be read later.
  size_t lent() const { return lent_.size(); }
  uint64_t late_packets() const { return late_packets_; }

 protected:
  // Where the payload of a segment can be read.
  virtual const uint8_t* PayloadOf(const TxSegment& segment) { return segment.payload; }
  // Called for each write when it lands; true: tell the endpoint of it.
  virtual bool Place(const NetworkPacket& packet);
  // Fills in NetworkPacket::way and `opened` of a write.
  virtual void TakeWay(const TxSegment&, NetworkPacket&) {}
  // Receive hands it out behind what has arrived before.
  void HandOut(NetworkPacket packet) { arrived_.push_back(std::move(packet)); }
  ScriptedNetwork& network() { return *network_; }

 private:
  struct Peer {
    uint32_t port = 0;
    uint32_t references = 0;
  };
  struct Lent {
    const uint8_t* base = nullptr;
    size_t bytes = 0;
    const uint8_t* view = nullptr;  // where the card sees it
    bool on_device = false;
    std::shared_ptr<void> mapping;  // of a GPU's memory
    std::vector<uint8_t> kept;      // what was there when it was given back
    bool returned = false;
  };
  std::shared_ptr<Lent> LentAt(const uint8_t* payload, size_t bytes) const;
  void CheckSegment(const TxSegment& segment);
  void Deliver(NetworkPacket packet) override;
  void PutWhereGuessed(std::span<RxSegment> segments);

  ScriptedNetwork* network_;
  LaneCapabilities capabilities_;
  uint32_t port_;
  LaneAddress address_;
  std::string name_;
  size_t room_limit_ = 64;
  size_t rx_queue_limit_ = 0;
  uint32_t full_port_ = ~0u;
  Duration waited_;
  std::function<bool(uint32_t port)> reach_;
  LaneCounters counters_;
  std::map<uint32_t, Peer> peers_;  // by number
  uint32_t next_peer_ = 1;
  std::vector<std::shared_ptr<Lent>> lent_;
  uint64_t late_packets_ = 0;
  size_t least_of_devices_ = SIZE_MAX;
  PlacementGuess guess_;  // for the next Receive
  std::vector<std::vector<uint8_t>> guessed_headers_;
  std::deque<NetworkPacket> arrived_;
  std::vector<NetworkPacket> handed_out_;  // what the pointers of the last Receive point to
  std::vector<LaneAddress> sources_;
};

}  // namespace paceline::support
