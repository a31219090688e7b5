// Checks of one process that is far ahead of the other, or comes and goes.
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "tests/interop/libfabric/pair_checks.h"

namespace paceline::fabric_pair {
namespace {

constexpr size_t kWindow = 64;

// Differs from one message to the next.
void Fill(std::vector<uint32_t>& words, uint32_t start) { std::iota(words.begin(), words.end(), start * 1'000'003u); }
bool IsFilled(const std::vector<uint32_t>& words, uint32_t start) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != start * 1'000'003u + i) return false;
  }
  return true;
}

}  // namespace

// A window of messages of each size goes to a server that does not call for a while and has posted no receive: all
// come, in their order.
void Asleep(Peer& peer) {
  for (const size_t bytes : {size_t{64}, size_t{4096}, size_t{65'536}, size_t{1} << 20}) {
    std::vector<std::vector<uint32_t>> buffers(kWindow, std::vector<uint32_t>(bytes / 4));
    if (peer.is_server()) sleep(1);
    for (uint32_t i = 0; i < kWindow; ++i) {
      auto& buffer = buffers[i];
      if (peer.is_server()) {
        peer.PostOk("fi_recv",
                    [&] { return fi_recv(peer.endpoint(), buffer.data(), bytes, nullptr, peer.peer(), &buffer); });
      } else {
        Fill(buffer, i);
        peer.PostOk("fi_send",
                    [&] { return fi_send(peer.endpoint(), buffer.data(), bytes, nullptr, peer.peer(), &buffer); });
      }
    }
    for (size_t i = 0; i < kWindow; ++i) Require(peer.Take().err == 0, "a message to who sleeps");
    for (uint32_t i = 0; i < kWindow; ++i) Require(IsFilled(buffers[i], i), "what came in its order", i);
    peer.Meet();
  }
}

// Thousands of messages that no receive waits for are kept, and found by their tags in the opposite order.
void Unexpected(Peer& peer) {
  constexpr uint64_t kMessages = 2000;
  std::vector<uint64_t> out(kMessages), in(kMessages);
  std::iota(out.begin(), out.end(), 1);
  for (uint64_t i = 0; i < kMessages; ++i) {
    peer.PostOk("fi_tsenddata",
                [&] { return fi_tsenddata(peer.endpoint(), &out[i], 8, nullptr, i + 10, peer.peer(), i, &out[i]); });
  }
  for (uint64_t i = 0; i < kMessages; ++i) Require(peer.Take().err == 0, "a message that nobody waits for");
  peer.Meet();
  for (uint64_t i = kMessages; i-- > 0;) {
    peer.PostOk("fi_trecv", [&] { return fi_trecv(peer.endpoint(), &in[i], 8, nullptr, peer.peer(), i, 0, &in[i]); });
    const fi_cq_err_entry taken = peer.Take();
    Require(taken.err == 0 && taken.op_context == &in[i] && taken.data == i + 10, "a message that was kept");
  }
  Require(in == out, "what was kept");
  peer.Meet();
}

// Both write whole windows of long pieces into each other's memory at a time, and read them back.
void Windows(Peer& peer) {
  constexpr size_t kBytes = 1 << 20;
  constexpr uint64_t kOwnKey = kKey + 1;
  std::vector<uint32_t> memory(kWindow * kBytes / 4), out(memory.size()), in(memory.size());
  fid_mr* region = nullptr;
  Require(fi_mr_reg(peer.domain(), memory.data(), kWindow * kBytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kOwnKey, 0,
                    &region, nullptr) == 0,
          "fi_mr_reg");
  peer.Meet();
  Fill(out, peer.is_server());
  const auto at = [](std::vector<uint32_t>& words, size_t i) { return words.data() + i * kBytes / 4; };
  for (size_t i = 0; i < kWindow; ++i) {
    peer.PostOk("fi_write", [&] {
      return fi_write(peer.endpoint(), at(out, i), kBytes, nullptr, peer.peer(), i * kBytes, kOwnKey, nullptr);
    });
  }
  for (size_t i = 0; i < kWindow; ++i) Require(peer.Take().err == 0, "a write of a window");
  for (size_t i = 0; i < kWindow; ++i) {
    peer.PostOk("fi_read", [&] {
      return fi_read(peer.endpoint(), at(in, i), kBytes, nullptr, peer.peer(), i * kBytes, kOwnKey, nullptr);
    });
  }
  for (size_t i = 0; i < kWindow; ++i) Require(peer.Take().err == 0, "a read of a window");
  Require(in == out, "what was written and read");
  peer.Meet();
  Require(IsFilled(memory, !peer.is_server()), "what the other has written");
  Require(fi_close(&region->fid) == 0, "fi_close of the region");
}

// A peer that is taken out of the address vector and put in again goes on being reached.
void Reinserted(Peer& peer) {
  for (int round = 0; round < 3; ++round) {
    peer.Reinsert();
    peer.Meet();
  }
}

// A server outlives its clients: one after the other says its name, talks and closes all that it has.
void Clients(const char* node, const char* port, bool is_server) {
  constexpr int kClients = 10, kMeetings = 5;
  const auto talk = [](Peer& peer) {
    for (int i = 0; i < kMeetings; ++i) peer.Meet();
  };
  if (is_server) {
    Peer peer(node, port, true);
    talk(peer);
    for (int client = 1; client < kClients; ++client) {
      peer.Welcome();
      talk(peer);
    }
  } else {
    for (int client = 0; client < kClients; ++client) {
      Peer peer(node, port, false);
      talk(peer);
    }
  }
}

}  // namespace paceline::fabric_pair
