// Checks of what two processes carry to each other.
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/interop/libfabric/pair_checks.h"

namespace paceline::fabric_pair {

// Messages in pieces, both ways, short and long.
void Vectors(Peer& peer) {
  for (const size_t count : {size_t{9}, size_t{900}, size_t{90'000}}) {
    std::vector<uint32_t> out(count), in(count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint32_t>(i * 3 + (peer.is_server() ? 1 : 0));
    const size_t third = count / 3;
    const iovec from[] = {{out.data(), 4 * third}, {out.data() + third, 4 * (count - third)}};
    const iovec to[] = {{in.data(), 8 * third}, {in.data() + 2 * third, 4 * (count - 2 * third)}};
    peer.PostOk("fi_recvv", [&] { return fi_recvv(peer.endpoint(), to, nullptr, 2, peer.peer(), nullptr); });
    peer.PostOk("fi_sendv", [&] { return fi_sendv(peer.endpoint(), from, nullptr, 2, peer.peer(), nullptr); });
    for (int i = 0; i < 2; ++i) Require(peer.Take().err == 0, "a message in pieces");
    for (size_t i = 0; i < count; ++i) {
      Require(in[i] == i * 3 + (peer.is_server() ? 0 : 1), "what came in pieces", static_cast<long>(i));
    }
  }
}

// The client adds to words of the server, in every integer type of 8 bytes and in doubles, and looks what was there.
void Atomics(Peer& peer) {
  constexpr uint64_t kAdds = 200;
  if (!peer.is_server()) {
    for (uint64_t i = 0; i < kAdds; ++i) {
      uint64_t before = ~0ull;
      peer.PostOk("fi_fetch_atomic", [&] {
        return fi_fetch_atomic(peer.endpoint(), &i, 1, nullptr, &before, nullptr, peer.peer(), 0, kKey, FI_UINT64,
                               FI_SUM, nullptr);
      });
      Require(peer.Take().err == 0 && before == i * (i - 1) / 2, "fetch and add", static_cast<long>(before));
    }
    const double halves[] = {0.5, 1.5, 2.5};
    peer.PostOk("fi_atomic", [&] {
      return fi_atomic(peer.endpoint(), halves, 3, nullptr, peer.peer(), 64, kKey, FI_DOUBLE, FI_SUM, nullptr);
    });
    Require(peer.Take().err == 0, "an atomic on doubles");
    const uint64_t wrong = 1;
    uint64_t before = 0, swap = 5;
    peer.PostOk("fi_compare_atomic", [&] {
      return fi_compare_atomic(peer.endpoint(), &swap, 1, nullptr, &wrong, nullptr, &before, nullptr, peer.peer(), 0,
                               kKey, FI_UINT64, FI_CSWAP, nullptr);
    });
    Require(peer.Take().err == 0 && before == kAdds * (kAdds - 1) / 2, "a swap that does not swap");
  }
  peer.Meet();
  if (!peer.is_server()) return;
  double sums[3];
  std::memcpy(sums, &peer.memory()[8], sizeof(sums));
  Require(peer.memory()[0] == kAdds * (kAdds - 1) / 2, "the sum", static_cast<long>(peer.memory()[0]));
  Require(sums[0] == 0.5 && sums[2] == 2.5, "the sums of doubles");
}

// The server learns by its counter alone that it was written to.
void Events(Peer& peer) {
  constexpr uint64_t kWrites = 50;
  if (peer.is_server()) {
    peer.Until("nothing but the counter tells of writes",
               [&] { return fi_cntr_read(peer.remote_writes()) == kWrites; });
    for (uint64_t i = 0; i < kWrites; ++i) Require(peer.memory()[i] == i + 1, "a write that was counted");
  } else {
    for (uint64_t i = 0; i < kWrites; ++i) {
      const uint64_t value = i + 1;
      peer.PostOk("fi_inject_write",
                  [&] { return fi_inject_write(peer.endpoint(), &value, 8, peer.peer(), i * 8, kKey); });
    }
  }
  peer.Meet();
}

// Each answers the other's write by one of its own that was posted before, and waited for the count.
void Triggered(Peer& peer) {
  uint64_t value = 99;
  iovec local = {&value, sizeof(value)};
  const fi_rma_iov remote = {.addr = 0, .len = sizeof(value), .key = kKey};
  fi_triggered_context context = {.event_type = FI_TRIGGER_THRESHOLD,
                                  .trigger = {.threshold = {peer.remote_writes(), 1}}};
  const fi_msg_rma message = {.msg_iov = &local,
                              .iov_count = 1,
                              .addr = peer.peer(),
                              .rma_iov = &remote,
                              .rma_iov_count = 1,
                              .context = &context};
  if (peer.is_server()) {
    Require(fi_writemsg(peer.endpoint(), &message, FI_TRIGGER) == 0, "a triggered write");
    peer.Meet();
    const fi_cq_err_entry done = peer.Take();
    Require(done.err == 0 && done.op_context == &context, "the triggered write's completion");
  } else {
    peer.Meet();
    Require(peer.memory()[0] == 0, "a triggered write waits");
    peer.PostOk("fi_inject_write", [&] { return fi_inject_write(peer.endpoint(), &value, 8, peer.peer(), 8, kKey); });
    peer.Until("the triggered write", [&] { return fi_cntr_read(peer.remote_writes()) == 1; });
    Require(peer.memory()[0] == 99, "what the triggered write has written");
  }
  peer.Meet();
}

// The server is killed: every operation of the client ends in an error, and new ones do not try for ever.
void Killed(Peer& peer) {
  int pid = getpid();
  if (peer.is_server()) {
    peer.PostOk("fi_tinject", [&] { return fi_tinject(peer.endpoint(), &pid, sizeof(pid), peer.peer(), 1); });
    while (true) peer.Progress();
  }
  peer.PostOk("fi_trecv",
              [&] { return fi_trecv(peer.endpoint(), &pid, sizeof(pid), nullptr, peer.peer(), 1, 0, nullptr); });
  Require(peer.Take().err == 0, "the server's number");
  std::vector<uint8_t> bytes(1'000'000);
  uint64_t one = 1, before = 0;
  fid_ep* endpoint = peer.endpoint();
  const fi_addr_t server = peer.peer();
  peer.PostOk("fi_trecv", [&] { return fi_trecv(endpoint, &before, 8, nullptr, server, 2, 0, nullptr); });
  Require(kill(pid, SIGKILL) == 0, "kill");
  peer.PostOk("fi_tsend", [&] { return fi_tsend(endpoint, bytes.data(), bytes.size(), nullptr, server, 3, nullptr); });
  peer.PostOk("fi_send", [&] { return fi_send(endpoint, &one, 8, nullptr, server, nullptr); });
  peer.PostOk("fi_write", [&] { return fi_write(endpoint, &one, 8, nullptr, server, 0, kKey, nullptr); });
  peer.PostOk("fi_read", [&] { return fi_read(endpoint, &before, 8, nullptr, server, 0, kKey, nullptr); });
  peer.PostOk("fi_fetch_atomic", [&] {
    return fi_fetch_atomic(endpoint, &one, 1, nullptr, &before, nullptr, server, 0, kKey, FI_UINT64, FI_SUM, nullptr);
  });
  for (int i = 0; i < 6; ++i) {
    const fi_cq_err_entry entry = peer.Take();
    Require(entry.err == FI_EHOSTUNREACH || entry.err == FI_ECONNABORTED, "an error for each operation", entry.err);
  }
  const ssize_t result = peer.Post([&] { return fi_tinject(endpoint, "x", 1, server, 1); });
  Require(result == -FI_ETIMEDOUT, "no endless try again", result);
}

}  // namespace paceline::fabric_pair
