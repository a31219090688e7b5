#include "transport/lane/shm/shm_peers.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

namespace paceline {

uint32_t ShmPeers::Open(const LaneAddress& address) {
  for (uint32_t number = 1; number < peers_.size(); ++number) {
    Peer* peer = peers_[number].get();
    if (peer == nullptr || peer->address != address) continue;
    if (peer->references++ == 0) idle_.erase(std::find(idle_.begin(), idle_.end(), number));
    return number;
  }
  const auto number = free_.empty() ? static_cast<uint32_t>(peers_.size()) : free_.back();
  std::unique_ptr<Peer> peer = Connect(address, number);
  if (peer == nullptr) return kNowhere;
  if (free_.empty()) {
    peers_.emplace_back();
  } else {
    free_.pop_back();
  }
  peer->references = 1;
  peers_[number] = std::move(peer);
  return number;
}

std::unique_ptr<ShmPeers::Peer> ShmPeers::Connect(const LaneAddress& address, uint32_t number) {
  ShmToken token;
  if (!ToShmToken(address, token)) return nullptr;
  absl::StatusOr<FileDescriptor> socket = ConnectShm(token);
  if (!socket.ok()) return nullptr;
  FileDescriptor descriptor;
  absl::StatusOr<ShmMemory> memory = ShmMemory::Create(ring_bytes_, &descriptor);
  if (!memory.ok()) return nullptr;
  ShmOffer offer;
  offer.ring_bytes = ring_bytes_;
  offer.source_bytes = own_.size;
  offer.source = own_.bytes;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = mark_ + number;
  if (!SendOffer(*socket, offer, descriptor) || epoll_ctl(epoll_, EPOLL_CTL_ADD, socket->get(), &event) != 0) {
    return nullptr;
  }
  return std::make_unique<Peer>(address, *std::move(socket), *std::move(memory));
}

void ShmPeers::Close(uint32_t number) {
  Peer* peer = Find(number);
  if (peer == nullptr || --peer->references > 0) return;
  idle_.push_back(number);
  peer->full = false;  // nobody waits for room there
  if (peer->gone) Drop(number);
  if (idle_.size() > kMostIdle) Drop(idle_.front());
}

void ShmPeers::Drop(uint32_t number) {
  idle_.erase(std::find(idle_.begin(), idle_.end(), number));
  peers_[number].reset();
  free_.push_back(number);
}

void ShmPeers::OnSocket(uint32_t number) {
  Peer* peer = number < peers_.size() ? peers_[number].get() : nullptr;
  if (peer == nullptr || TakeRings(peer->socket)) return;
  peer->gone = true;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, peer->socket.get(), nullptr);
  if (peer->references == 0) Drop(number);
}

bool ShmPeers::AskForRoom(uint64_t bytes) {
  bool wait = true;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer == nullptr || !peer->full || peer->gone || peer->writer.AskForRoom(bytes)) continue;
    peer->full = false;  // whoever waits for room asks again in the pass that follows
    wait = false;
  }
  return wait;
}

void ShmPeers::AskNoMore() {
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer != nullptr && peer->full) peer->writer.AskNoMore();
  }
}

}  // namespace paceline
