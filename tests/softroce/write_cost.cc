// Writes 64 KiB of payload again and again over an RDMA device, to itself: first by a bare loop over ibv_post_send and
// ibv_poll_cq, then through the verbs lane. Run under callgrind, which is told to collect only inside the functions
// named Counted..., and to write down what it has at BareIsDone and at LaneIsDone, it gives the instructions that each
// takes to post the work and to take its completions, the device's user-space provider included (one_guest.sh).
//
//   verbs_write_cost DEVICE ROUNDS
//
// A round is 16 writes with immediate of 4,096 bytes out of registered memory, in lists of 8 of which the last asks for
// a completion. The bare loop has one queue pair; the lane goes over all its paths in turn, as the transport has it do.
// What waits for the network, and the receiving side, is not counted.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/lane/verbs/verbs_card.h"
#include "transport/lane/verbs/verbs_lane.h"
#include "transport/lane/verbs/verbs_library.h"

namespace paceline {
namespace {

constexpr uint32_t kWriteBytes = 4096;
constexpr size_t kList = 8;
constexpr size_t kRound = 16;
constexpr size_t kWarmRounds = 16;                      // opens all paths of the lane
constexpr int kWaitMicros = 200;                        // between two looks at what has arrived
constexpr int kMostLooks = 50'000;                      // 10 s
constexpr Duration kRoundTime = Duration::Nanos(5243);  // what 64 KiB take at 100 Gb/s: how the lane's clock goes

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "verbs_write_cost: %s\n", what.c_str());
  std::exit(1);
}

template <typename Value>
Value Need(absl::StatusOr<Value> value) {
  if (!value.ok()) Fail(std::string(value.status().message()));
  return *std::move(value);
}

void Need(const absl::Status& status) {
  if (!status.ok()) Fail(std::string(status.message()));
}

// What is sent, and where it goes.
struct Memory {
  std::vector<uint8_t> out = std::vector<uint8_t>(kRound * kWriteBytes);
  std::vector<uint8_t> in = std::vector<uint8_t>(kRound * kWriteBytes);

  Memory() {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(i * 31 + i / 251);
  }
  void Check() const {
    if (in != out) Fail("what has arrived is not what was sent");
  }
};

// Calls `arrived`, which says how many writes have come since the last call, until a round has.
template <typename Arrived>
void AwaitRound(const Arrived& arrived) {
  size_t count = 0;
  for (int looks = 0; (count += arrived()) < kRound; ++looks) {
    if (looks == kMostLooks) Fail("a write has not arrived");
    usleep(kWaitMicros);
  }
}

// ---- bare

class Bare {
 public:
  explicit Bare(const std::string& device) {
    VerbsCalls& calls = *Need(LoadVerbsLibrary());
    const VerbsPort port = Need(FindVerbsPort(calls, device));
    sender_ = Need(VerbsCard::Open(calls, port, {}));
    receiver_ = Need(VerbsCard::Open(calls, port, {}));
    uint32_t inline_bytes = 0;
    qp_ = Need(sender_->MakePathQp(IBV_QPT_UC, &inline_bytes));
    target_ = Need(receiver_->MakePathQp(IBV_QPT_UC, &inline_bytes));
    Join(*sender_, qp_, target_->qp_num);
    Join(*receiver_, target_, qp_->qp_num);
    out_ = Need(sender_->Register(memory_.out.data(), memory_.out.size(), 0));
    in_ = Need(
        receiver_->Register(memory_.in.data(), memory_.in.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  }
  ~Bare() {
    sender_->Destroy(qp_);
    receiver_->Destroy(target_);
    sender_->calls().DeregMr(out_);
    sender_->calls().DeregMr(in_);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void Post() {
    for (size_t first = 0; first < kRound; first += kList) {
      std::array<ibv_sge, kList> pieces;
      std::array<ibv_send_wr, kList> list;
      for (size_t i = 0; i < kList; ++i) {
        const size_t at = (first + i) * kWriteBytes;
        pieces[i] = {reinterpret_cast<uint64_t>(memory_.out.data() + at), kWriteBytes, out_->lkey};
        list[i] = {};
        list[i].wr_id = first + i;
        list[i].next = i + 1 < kList ? &list[i + 1] : nullptr;
        list[i].sg_list = &pieces[i];
        list[i].num_sge = 1;
        list[i].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        list[i].imm_data = htobe32(static_cast<uint32_t>(first + i));
        list[i].send_flags = i + 1 == kList ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0;
        list[i].wr.rdma.remote_addr = reinterpret_cast<uint64_t>(memory_.in.data() + at);
        list[i].wr.rdma.rkey = in_->rkey;
      }
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(qp_, list.data(), &bad) != 0) Fail("ibv_post_send failed");
    }
  }
  void Take() {
    const int count = ibv_poll_cq(sender_->cq(), static_cast<int>(done_.size()), done_.data());
    for (int i = 0; i < count; ++i) {
      if (done_[static_cast<size_t>(i)].status != IBV_WC_SUCCESS) Fail("a write has failed");
    }
  }
  void Await(bool /*opening*/) {
    AwaitRound([this] {
      const size_t count = receiver_->Poll(arrived_);
      for (size_t i = 0; i < count; ++i) receiver_->OnWriteArrived();
      receiver_->RefillArrivals();
      return count;
    });
  }
  void Check() const { memory_.Check(); }

 private:
  static void Join(VerbsCard& card, ibv_qp* qp, uint32_t peer) {
    const VerbsPort& port = card.port();
    Need(card.ReadyToReceive(qp, IBV_QPT_UC,
                             {.gid = port.gid, .lid = port.lid, .qp_number = peer, .psn = 0, .mtu = port.mtu}));
    Need(card.ReadyToSend(qp, IBV_QPT_UC, 0, 0));
  }

  Memory memory_;
  std::unique_ptr<VerbsCard> sender_, receiver_;
  ibv_qp* qp_ = nullptr;
  ibv_qp* target_ = nullptr;
  ibv_mr* out_ = nullptr;
  ibv_mr* in_ = nullptr;
  std::array<ibv_wc, 64> done_;
  std::array<VerbsCompletion, 64> arrived_;
};

// ---- the lane

class ByLane {
 public:
  explicit ByLane(const std::string& device)
      : sender_(Need(CreateVerbsLane({.device = device}))), receiver_(Need(CreateVerbsLane({.device = device}))) {
    peer_ = sender_->OpenPeer(receiver_->address());
    sender_->RegisterMemory({.base = memory_.out.data(), .bytes = memory_.out.size()});
    const uint64_t key = receiver_->RegisterMemory({.base = memory_.in.data(), .bytes = memory_.in.size()});
    for (size_t i = 0; i < kRound; ++i) {
      TxSegment& segment = segments_[i];
      segment.kind = SegmentKind::kWrite;
      segment.peer = peer_;
      segment.connection = 1;
      segment.immediate = static_cast<uint32_t>(i);
      segment.payload = memory_.out.data() + i * kWriteBytes;
      segment.payload_bytes = kWriteBytes;
      segment.remote_address = reinterpret_cast<uint64_t>(memory_.in.data() + i * kWriteBytes);
      segment.remote_key = key;
    }
  }

  void Post() {
    for (size_t i = 0; i < kRound; ++i) {
      if (i % kList == 0) entropy_ = (entropy_ + 1) % sender_->capabilities().entropies;
      segments_[i].entropy = static_cast<uint16_t>(entropy_);
    }
    if (sender_->RoomTo(peer_) < kRound) Fail("the lane has no room");
    sender_->Send(segments_);
  }
  void Take() {
    now_ = now_ + kRoundTime;
    sender_->Receive(arrived_, now_);
  }
  // `opening`: what was posted waits for the answers of the receiving lane.
  void Await(bool opening) {
    AwaitRound([this, opening] {
      if (opening) Take();
      now_ = now_ + kRoundTime;
      const size_t count = receiver_->Receive(arrived_, now_);
      return static_cast<size_t>(
          std::count_if(arrived_.begin(), arrived_.begin() + static_cast<ptrdiff_t>(count),
                        [](const RxSegment& segment) { return segment.kind == SegmentKind::kWrite; }));
    });
  }
  void Check() const { memory_.Check(); }

 private:
  Memory memory_;
  std::unique_ptr<Lane> sender_, receiver_;
  uint32_t peer_ = 0;
  uint32_t entropy_ = 0;
  Time now_;
  std::array<TxSegment, kRound> segments_;
  std::array<RxSegment, 64> arrived_;
};

// ---- what callgrind counts

[[gnu::noinline]] void CountedPost(Bare& bare) { bare.Post(); }
[[gnu::noinline]] void CountedTake(Bare& bare) { bare.Take(); }
[[gnu::noinline]] void CountedPost(ByLane& lane) { lane.Post(); }
[[gnu::noinline]] void CountedTake(ByLane& lane) { lane.Take(); }
[[gnu::noinline]] void BareIsDone() { std::puts("the bare loop is done"); }
[[gnu::noinline]] void LaneIsDone() { std::puts("the lane is done"); }

template <typename Writer>
void Run(Writer& writer, size_t rounds) {
  for (size_t i = 0; i < kWarmRounds; ++i) {
    writer.Post();
    writer.Await(true);
    writer.Take();
  }
  for (size_t i = 0; i < rounds; ++i) {
    CountedPost(writer);
    writer.Await(false);
    CountedTake(writer);
  }
  writer.Check();
}

int Main(int count, char** arguments) {
  size_t rounds = 0;
  if (count == 3) std::from_chars(arguments[2], arguments[2] + std::strlen(arguments[2]), rounds);
  if (rounds == 0) {
    std::fprintf(stderr, "usage: verbs_write_cost DEVICE ROUNDS\n");
    return 2;
  }
  {
    Bare bare(arguments[1]);
    Run(bare, rounds);
  }
  BareIsDone();
  ByLane lane(arguments[1]);
  Run(lane, rounds);
  LaneIsDone();
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int count, char** arguments) { return paceline::Main(count, arguments); }
