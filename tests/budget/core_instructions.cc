// Carries out one piece of the core's work so many times, for instruction_budget.py to count instructions: the
// difference between two counts is what one more costs, both endpoints together, controller and checksums included, no
// lane.
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "tests/support/endpoint_pair.h"

namespace paceline {
namespace {

using Pair = support::EndpointPair;

// Segments of `bytes`, in messages of 64, until they are acknowledged; receives are posted ahead. `checked`: with a
// checksum over payloads, which lanes that keep bytes intact do without.
void Segments(size_t bytes, bool checked, size_t count) {
  Pair pair("tita", static_cast<uint32_t>(bytes) + 96, checked);
  const auto [a, b] = pair.Connect();
  constexpr size_t kPerMessage = 64;
  std::vector<uint8_t> out(bytes * kPerMessage, 1), in(out.size());
  std::array<Completion, 16> completions;
  const auto post_receive = [&] { pair.b().PostReceive(b, {.buffer = {in.data(), in.size()}}, pair.now()); };
  post_receive();
  for (size_t sent = 0; sent < count; sent += kPerMessage) {
    post_receive();
    pair.a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair.now());
    for (size_t done = 0; done < 2;) {
      pair.Step(Duration::Micros(5));
      done += pair.a().PollCompletions(completions);
      done += pair.b().PollCompletions(completions);
    }
  }
}

// Messages of 64 bytes, each answered by the next.
void SmallMessages(size_t count) {
  Pair pair("tita");
  const auto [a, b] = pair.Connect();
  std::array<uint8_t, 64> out{}, in{};
  std::array<Completion, 16> completions;
  for (size_t sent = 0; sent < count; ++sent) {
    const bool back = sent % 2 != 0;
    Endpoint& from = back ? pair.b() : pair.a();
    Endpoint& to = back ? pair.a() : pair.b();
    to.PostReceive(back ? a : b, {.buffer = {in.data(), in.size()}}, pair.now());
    from.PostSend(back ? b : a, {.buffer = {out.data(), out.size()}}, pair.now());
    for (bool arrived = false; !arrived;) {
      pair.Step();
      const size_t some = to.PollCompletions(completions);
      for (size_t i = 0; i < some; ++i) arrived |= completions[i].operation == Operation::kReceive;
    }
  }
}

// Messages of 64 bytes one way, 512 of them under way.
void StreamedMessages(size_t count) {
  Pair pair("tita", 1500);
  const auto [a, b] = pair.Connect();
  std::array<uint8_t, 64> out{}, in{};
  std::array<Completion, 64> completions;
  size_t to_send = 512, to_receive = 512;
  for (size_t received = 0; received < count;) {
    for (; to_receive > 0; --to_receive) pair.b().PostReceive(b, {.buffer = {in.data(), in.size()}}, pair.now());
    for (; to_send > 0; --to_send) pair.a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair.now());
    for (int i = 0; i < 8; ++i) pair.Step(Duration::Micros(3));
    for (size_t got; (got = pair.a().PollCompletions(completions)) > 0;) to_send += got;
    for (size_t got; (got = pair.b().PollCompletions(completions)) > 0;) to_receive += got;
    received += to_receive;
  }
}

// Passes of an endpoint that has `connections` and nothing to do.
void IdlePasses(size_t connections, size_t count) {
  Pair pair("tita");
  for (size_t i = 0; i < connections; ++i) pair.Connect();
  TxBurst burst;
  std::array<Completion, 16> completions;
  for (size_t pass = 0; pass < count; ++pass) {
    if (pair.a().PollTimeout() <= pair.now()) pair.a().HandleTimeout(pair.now());
    pair.a().PollTransmit(0, burst, TxBurst::kSegments, pair.now());
    pair.a().PollCompletions(completions);
  }
}

struct Work {
  std::string_view name;
  std::function<void(size_t)> run;
};

int Main(int count, char** arguments) {
  const std::array<Work, 7> all = {
      Work{"segment_4096_unchecked", [](size_t n) { Segments(4096, false, n); }},
      Work{"segment_4096_checked", [](size_t n) { Segments(4096, true, n); }},
      Work{"segment_1376_checked", [](size_t n) { Segments(1376, true, n); }},
      Work{"message_64", SmallMessages},
      Work{"message_64_streamed", StreamedMessages},
      Work{"idle_pass_10_connections", [](size_t n) { IdlePasses(10, n); }},
      Work{"idle_pass_1000_connections", [](size_t n) { IdlePasses(1000, n); }},
  };
  size_t times = 0;
  if (count == 3) {
    const std::string_view text = arguments[2];
    if (std::from_chars(text.begin(), text.end(), times).ptr != text.end()) times = 0;
  }
  for (const Work& work : all) {
    if (times == 0 || work.name != arguments[1]) continue;
    work.run(times);
    return 0;
  }
  std::fprintf(stderr, "usage: core_instructions WORK TIMES; WORK is one of:");
  for (const Work& work : all) std::fprintf(stderr, " %s", std::string(work.name).c_str());
  std::fprintf(stderr, "; TIMES is at least 1\n");
  return 2;
}

}  // namespace
}  // namespace paceline

int main(int count, char** arguments) { return paceline::Main(count, arguments); }
