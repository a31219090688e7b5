// Messages between pairs: sizes, order, wildcards, probes, cancelled receives, synchronous sends, a rank with itself.
#include <algorithm>

#include "tests/interop/mpi/mpi_check.h"

namespace paceline::mpi_check {
namespace {

constexpr int kTag = 17;

std::vector<uint8_t> Bytes(size_t count, int seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(seed + static_cast<int>(i * 13 + (i >> 8)));
  return bytes;
}

// Rank 0 and each other rank, both ways.
void Sizes() {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{257}, size_t{16384}, size_t{16385},
                             size_t{1'000'000}, size_t{8'000'000}}) {
    const int n = static_cast<int>(count);
    for (int peer = 1; peer < Ranks(); ++peer) {
      if (Rank() != 0 && Rank() != peer) continue;
      const int other = Rank() == 0 ? peer : 0;
      std::vector<uint8_t> in(count);
      const std::vector<uint8_t> out = Bytes(count, Rank());
      MPI_Status status;
      MPI_Sendrecv(out.data(), n, MPI_BYTE, other, kTag, in.data(), n, MPI_BYTE, other, kTag, MPI_COMM_WORLD, &status);
      int got = 0;
      MPI_Get_count(&status, MPI_BYTE, &got);
      Check(got == n && in == Bytes(count, other), "MPI_Sendrecv", n);
    }
  }
}

// All to rank 0, which takes them from anybody: of each rank in the order in which it sent.
void AnySource() {
  constexpr int kMessages = 200;
  if (Rank() != 0) {
    for (int i = 0; i < kMessages; ++i) MPI_Send(&i, 1, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
    return;
  }
  std::vector<int> next(static_cast<size_t>(Ranks()));
  for (int i = 0; i < kMessages * (Ranks() - 1); ++i) {
    int value = -1;
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    int& wanted = next[static_cast<size_t>(status.MPI_SOURCE)];
    Check(value == wanted && status.MPI_TAG == value % 3, "order of messages from any source", value);
    ++wanted;
  }
}

// From each rank by name, in the reverse order of ranks, the later tag first.
void BySource() {
  if (Rank() != 0) {
    const int values[] = {Rank() * 10, Rank() * 10 + 1};
    MPI_Send(&values[0], 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    MPI_Send(&values[1], 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    return;
  }
  for (int from = Ranks() - 1; from > 0; --from) {
    for (const int tag : {6, 5}) {
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      Check(value == from * 10 + tag - 5, "message by source and tag", value);
    }
  }
}

void Probes() {
  for (const size_t count : {size_t{0}, size_t{1000}, size_t{200'000}}) {
    const int n = static_cast<int>(count);
    if (Rank() == 1) {
      const std::vector<uint8_t> out = Bytes(count, 3);
      MPI_Send(out.data(), n, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
      MPI_Send(out.data(), n, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
    }
    if (Rank() != 0) continue;
    int there = 0;
    MPI_Iprobe(1, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    Check(there == 0, "MPI_Iprobe of what nobody has sent");
    MPI_Status status;
    MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status);
    int got = -1;
    MPI_Get_count(&status, MPI_BYTE, &got);
    Check(got == n && status.MPI_SOURCE == 1, "MPI_Probe", got);
    std::vector<uint8_t> in(count);
    MPI_Recv(in.data(), n, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    Check(in == Bytes(count, 3), "receive after a probe", n);
    MPI_Message message;
    MPI_Mprobe(1, 9, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    Check(got == n, "MPI_Mprobe", got);
    std::fill(in.begin(), in.end(), uint8_t{0});
    MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    Check(in == Bytes(count, 3), "MPI_Mrecv", n);
  }
}

void Cancels() {
  int value = -1;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, (Rank() + 1) % Ranks(), 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Status status;
  MPI_Wait(&request, &status);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  Check(cancelled != 0, "MPI_Cancel of a receive");
}

void Synchronous() {
  if (Rank() == 0) {
    for (int peer = 1; peer < Ranks(); ++peer) MPI_Ssend(&peer, 1, MPI_INT, peer, 21, MPI_COMM_WORLD);
  } else {
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    Check(value == Rank(), "MPI_Ssend", value);
  }
}

// Everybody to everybody at once, itself included, many outstanding.
void Crowd() {
  constexpr int kMessages = 30;
  constexpr size_t kCount = 3000;
  const int ranks = Ranks();
  std::vector<MPI_Request> requests;
  std::vector<std::vector<int32_t>> out, in;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int i = 0; i < kMessages; ++i) {
      in.emplace_back(kCount);
      out.emplace_back(kCount);
      for (size_t at = 0; at < kCount; ++at) out.back()[at] = Value(Rank(), peer, at, i);
    }
  }
  requests.resize(2 * in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const int peer = static_cast<int>(i) / kMessages, tag = static_cast<int>(i) % kMessages;
    MPI_Irecv(in[i].data(), kCount, MPI_INT32_T, peer, tag, MPI_COMM_WORLD, &requests[2 * i]);
    MPI_Isend(out[i].data(), kCount, MPI_INT32_T, peer, tag, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (size_t i = 0; i < in.size(); ++i) {
    const int peer = static_cast<int>(i) / kMessages, round = static_cast<int>(i) % kMessages;
    for (size_t at = 0; at < kCount; ++at) {
      Check(in[i][at] == Value(peer, Rank(), at, round), "messages of everybody to everybody", peer);
    }
  }
}

}  // namespace

void CheckPointToPoint() {
  for (const auto part : {Sizes, AnySource, BySource, Probes, Cancels, Synchronous, Crowd}) {
    part();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace paceline::mpi_check
