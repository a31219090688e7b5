// Two hosts whose sender has the credit that the test gives it, and what they tell each other of it.
//
// Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline::support {

inline constexpr size_t kSegment = 4096;
inline constexpr uint32_t kBurstSegments = 16;
inline constexpr uint64_t kBurst = kBurstSegments * kSegment;

// Of one port; grants its only flow, once, what it is told to.
class ScriptedReceiver final : public ReceiverController {
 public:
  void Give(uint64_t credit_end) {
    credit_end_ = credit_end;
    due_ = true;
  }
  void AddFlow(uint32_t flow, const FlowInfo&, Time) override { flow_ = flow; }
  void RemoveFlow(uint32_t, Time) override {}
  void OnDemand(uint32_t, uint64_t, Rate, Time) override {}
  void OnArrival(uint32_t, const ArrivalSample&) override {}
  Time PollTimeout() const override { return due_ ? Time() : Time::Never(); }
  size_t PollGrants(Time, std::span<Grant> out) override {
    if (!std::exchange(due_, false)) return 0;
    out[0] = {.flow = flow_, .credit_end = credit_end_};
    return 1;
  }
  uint64_t outstanding_credit_bytes() const override { return 0; }

 private:
  uint32_t flow_ = 0;
  uint64_t credit_end_ = 0;
  bool due_ = false;
};

struct Script {
  std::vector<ScriptedReceiver*> receivers;  // of host 1, by port
  bool holds = false;
  Rate pace = Rate::Unlimited();
};

// Sends what it has credit for, unless it holds all of it.
class CreditedSender final : public SenderController {
 public:
  explicit CreditedSender(const Script* script) : script_(script) {}
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  void OnGrant(const GrantSample& sample) override { credit_end_ = std::max(credit_end_, sample.credit_end); }
  Allowance allowance() const override {
    return {.credit_end = script_->holds ? 0 : credit_end_,
            .pacing_rate = script_->pace,
            .held_end = script_->holds ? credit_end_ : 0};
  }

 private:
  const Script* const script_;
  uint64_t credit_end_ = 0;
};

class ScriptedControl final : public CongestionControl {
 public:
  ScriptedControl(Script* script, bool is_receiver) : script_(script), is_receiver_(is_receiver) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    return std::make_unique<CreditedSender>(script_);
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo&) override {
    auto receiver = std::make_unique<ScriptedReceiver>();
    if (is_receiver_) script_->receivers.push_back(receiver.get());
    return receiver;
  }

 private:
  Script* const script_;
  const bool is_receiver_;
};

// Host 0 sends, host 1 receives.
class CreditedHosts : public CoreFixture {
 protected:
  struct News {
    Time at;
    uint32_t port = 0;
    uint64_t credit_end = 0;
    uint32_t clear_limit = 0;
    uint64_t arrived = 0;  // bytes, when it was said
  };

  void Begin(uint32_t burst_segments = kBurstSegments, uint32_t ports = 1) { Begin({}, burst_segments, ports); }
  void Begin(WorldOptions options, uint32_t burst_segments, uint32_t ports) {
    options.ports = ports;
    options.network.poll_interval = Duration::Nanos(1);
    options.packet_capabilities.burst_segments = burst_segments;
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    options.new_congestion_control = [this](uint32_t host) {
      return std::make_unique<ScriptedControl>(&script_, host == 1);
    };
    Listen(options);
  }
  // The same by a window, without any credit.
  void BeginWithoutCredit() {
    WorldOptions options;
    options.packet_capabilities.burst_segments = kBurstSegments;
    Listen(options);
  }

  void Give(uint64_t credit_end, uint32_t port = 0) { script_.receivers[port]->Give(credit_end); }
  void Rest(Duration time = Duration::Millis(5)) { world().RunFor(time); }
  // Posts it at host 1.
  uint64_t Expect(uint64_t bytes) { return Receive(1, NewBuffer(bytes), 1); }
  uint64_t Send(uint64_t bytes) { return CoreFixture::Send(0, NewFilled(bytes, bytes), 1); }
  uint64_t arrived() { return endpoint(1).counters().rx_data_bytes; }
  // Sends four bursts without credit, so that host 0 asks for some; what it is answered stands in told_.
  uint64_t AskInVain() {
    Expect(4 * kBurst);
    Rest();
    told_.clear();
    const uint64_t send = Send(4 * kBurst);
    Rest(Duration::Micros(100));
    EXPECT_EQ(demands_, 1u);
    return send;
  }

  // Sends a message that ends a little behind a burst, and one of two, with credit for the first burst and then for two
  // more: what leaves then, as its headers say.
  std::vector<wire::DataHeader> SendAnEndAndMore(uint64_t end) {
    for (const uint64_t bytes : {kBurst + end, 2 * kBurst}) Expect(bytes);
    Give(kBurst);
    Rest();
    std::vector<wire::DataHeader> left;
    also_ = [&left](NetworkPacket& packet, Fate&) {
      bool bad_checksum = false;
      const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
      if (!common.has_value() || common->type != wire::PacketType::kData || packet.payload_bytes == 0) return;
      left.push_back(wire::ParseData(*common, packet.bytes).value());
    };
    for (const uint64_t bytes : {kBurst + end, 2 * kBurst}) Send(bytes);
    Rest();
    EXPECT_EQ(left.size(), kBurstSegments);
    left.clear();
    Give(3 * kBurst);
    Rest(Duration::Micros(50));
    also_ = nullptr;
    return left;
  }

  std::vector<News> told_;
  size_t demands_ = 0;
  std::function<void(NetworkPacket&, Fate&)> also_;  // sees all packets
  size_t lose_ = 0;                                  // of the next packets with news so many are lost
  Script script_;

 private:
  struct Listener final : wire::FrameHandler {
    CreditedHosts* test = nullptr;
    bool news = false;
    void OnGrant(const wire::GrantFrame& frame) override {
      news = true;
      test->told_.push_back({test->now(), frame.port, frame.credit_end, frame.clear_limit, test->arrived()});
    }
    void OnDemand(const wire::DemandFrame&) override { ++test->demands_; }
    void OnAck(const wire::AckFrame&) override {}
    void OnTrimmed(const wire::TrimmedFrame&) override {}
    void OnTelemetry(const wire::TelemetryFrame&) override {}
    void OnFence(const wire::FenceFrame&) override {}
    void OnFenced(const wire::FencedFrame&) override {}
    void OnNotReady(uint32_t) override {}
    void OnPing(uint32_t) override {}
    void OnPong(uint32_t) override {}
    void OnClose(uint16_t) override {}
    void OnCloseAck(uint16_t) override {}
    void OnAbort(uint16_t) override {}
  };

  void Listen(const WorldOptions& options) {
    script_ = Script();
    Start(options);
    told_.clear();
    network().SetHook([this](NetworkPacket& packet, Fate& fate) {
      if (also_) also_(packet, fate);
      bool bad_checksum = false;
      const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
      if (!common.has_value() || common->type != wire::PacketType::kControl) return;
      Listener listener;
      listener.test = this;
      wire::ParseFrames(std::span(packet.bytes).first(common->header_bytes).subspan(wire::kCommonBytes), listener);
      if (listener.news && lose_ > 0) {
        --lose_;
        fate.drop = true;
      }
    });
  }
};

}  // namespace paceline::support
