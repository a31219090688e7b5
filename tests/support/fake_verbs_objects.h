// What the cards of fake_verbs.h are made of: for the files that implement them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "tests/support/fake_verbs.h"

namespace paceline::support {

struct FakeVerbs::Context : verbs_context {
  static Context* Of(ibv_context* handle) { return static_cast<Context*>(verbs_get_ctx(handle)); }

  uint32_t number = 0;
  std::deque<ibv_async_event> events;
};
struct FakeVerbs::Cq : ibv_cq_ex {
  static Cq* Of(ibv_cq* handle) { return static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(handle)); }

  size_t entries = 0;
  bool armed = false;
  bool timed = false;
  std::deque<VerbsCompletion> completions;
};
struct FakeVerbs::Srq : ibv_srq {
  size_t most = 0;
  std::deque<Receive> receives;
};
struct FakeVerbs::Ah : ibv_ah {
  uint32_t to_device = 0;
  uint8_t traffic_class = 0;
};
struct FakeVerbs::Qp : ibv_qp {
  static constexpr uint32_t kInlineBytes = 64;

  uint32_t device = 0;
  uint32_t most_sends = 0;
  uint32_t most_receives = 0;
  uint32_t to_qp = 0;
  uint32_t to_device = 0;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;
  uint16_t udp_port = 0;
  bool stopped = false;  // by its owner
  uint64_t posted = 0;   // sends
  uint64_t retired = 0;  // sends that a polled completion covers
  std::deque<Receive> receives;
};

}  // namespace paceline::support
