// Random calls to the controllers of any registered algorithm, with an oracle that knows only the contract of
// cc/congestion_control.h. The input is a program: the first byte picks the algorithm, each further instruction is an
// operation byte with its operands. Time never runs backwards; all else may be absurd.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "cc/registry.h"

namespace paceline {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), end_(data + size) {}
  bool empty() const { return data_ == end_; }
  uint8_t Byte() { return empty() ? 0 : *data_++; }
  // A number whose size the input chooses: small ones are common, and all 64 bits are within reach.
  uint64_t Number() {
    const uint8_t shape = Byte();
    uint64_t value = 0;
    for (int i = 0; i < (shape & 7) + 1; ++i) value = value << 8 | Byte();
    return (shape & 0x80) != 0 ? ~value : value;
  }
  Duration Span() { return Duration::Nanos(static_cast<int64_t>(Number())); }
  Rate AnyRate() {
    const uint8_t shape = Byte();
    if (shape == 0) return Rate::Unlimited();
    if (shape == 1) return Rate::BytesPerSecond(std::nan(""));
    if (shape == 2) return Rate::BytesPerSecond(-1);
    return Rate::BytesPerSecond(static_cast<double>(Number()));
  }

 private:
  const uint8_t* data_;
  const uint8_t* end_;
};

class Program {
 public:
  Program(const uint8_t* data, size_t size) : input_(data, size) {
    const auto algorithms = CongestionControlAlgorithms();
    control_ = *CreateCongestionControl(algorithms[input_.Byte() % algorithms.size()].name, {}, 1);
    const uint8_t shape = input_.Byte();
    port_.link_rate = Rate::Gbps(shape & 1 ? 400 : 100);
    port_.base_rtt = Duration::Micros(shape & 2 ? 14 : 200);
    port_.segment_bytes = shape & 4 ? 4096 : 1400;
    port_.overhead_bytes = 64;
    port_.control_packet_bytes = 64;
    port_.burst_segments = shape & 8 ? 46 : 1;
    port_.receive_buffer_bytes = shape & 16 ? 212'992 : 0;
    port_.local_group = shape & 32 ? 1 : 0;
    if (shape & 64) port_.core_rate = Rate::Gbps(25);
    receiver_ = control_->NewReceiver(port_);
  }

  void Run() {
    for (int step = 0; step < 5000 && !input_.empty(); ++step) {
      const uint8_t operation = input_.Byte();
      now_ = now_ + Duration::Nanos(static_cast<int64_t>(input_.Byte()) << (operation >> 5 << 1));
      if (receiver_ != nullptr && (operation & 1) != 0) {
        ReceiverStep((operation >> 1) % 6);
      } else {
        SenderStep((operation >> 1) % 8);
      }
    }
    for (const auto& [flow, state] : flows_) receiver_->RemoveFlow(flow, now_);
    if (receiver_ != nullptr) {
      Require(receiver_->outstanding_credit_bytes() == 0, "credit is left without flows");
      Require(receiver_->PollTimeout().is_never(), "a timer is left without flows");
    }
  }

 private:
  struct FlowState {
    uint64_t demand = 0, tx_total = 0, granted = 0;
  };

  void SenderStep(int operation) {
    if (senders_.empty() || operation == 0) {
      if (senders_.size() < 20) {
        senders_.push_back(
            control_->NewSender({.remote_group = input_.Byte() % 4u, .base_rtt = input_.Span()}, port_, now_));
      }
      return;
    }
    const size_t index = input_.Byte() % senders_.size();
    SenderController& sender = *senders_[index];
    switch (operation) {
      case 1: {
        AckSample sample{.now = now_, .acked_bytes = input_.Number(), .marked_bytes = input_.Number()};
        sample.acked_packets = static_cast<uint32_t>(input_.Number());
        sample.marked_packets = static_cast<uint32_t>(input_.Number());
        sample.rtt = input_.Span();
        sample.in_flight_bytes = input_.Number();
        const uint8_t shape = input_.Byte();
        sample.backlogged = (shape & 1) != 0;
        std::vector<HopTelemetry> hops(shape >> 1 & 7);
        for (HopTelemetry& hop : hops) {
          hop.link = input_.Byte() % 16u;
          hop.queue_bytes = static_cast<uint32_t>(input_.Number());
          hop.sent_bytes = static_cast<uint32_t>(input_.Number());
          hop.time_nanos = static_cast<uint32_t>(input_.Number());
          hop.rate = input_.AnyRate();
        }
        sample.hops = hops;
        sender.OnAck(sample);
        break;
      }
      case 2:
        sender.OnLoss({now_, input_.Number(), static_cast<uint32_t>(input_.Number()),
                       static_cast<LossCause>(input_.Byte() % 4), input_.Number()});
        break;
      case 3:
        sender.OnGrant({now_, input_.Number(), input_.AnyRate()});
        break;
      case 4: {
        const uint64_t backlog = input_.Number();
        sender.OnBacklog(now_, backlog, input_.Number());
        break;
      }
      case 5:
        sender.OnSent(now_, input_.Number(), input_.Number());
        break;
      case 6:
        if (sender.PollTimeout() <= now_) {
          sender.HandleTimeout(now_);
          Require(sender.PollTimeout() > now_, "a sender's timer does not advance");
        }
        break;
      case 7:
        sender.OnBaseRtt(input_.Span(), now_);
        break;
      default:
        senders_.erase(senders_.begin() + static_cast<std::ptrdiff_t>(index));
        return;
    }
    const Allowance allowance = sender.allowance();
    Require(allowance.window_bytes >= port_.segment_bytes, "a window below one segment");
    Require(allowance.pacing_rate.bytes_per_second() > 0, "no rate");
    Require(sender.cap().bytes_per_second() > 0, "no cap");
  }

  void ReceiverStep(int operation) {
    const uint32_t flow = input_.Byte() % 64u;
    const auto known = flows_.find(flow);
    switch (operation) {
      case 0:
        receiver_->AddFlow(flow, {.remote_group = input_.Byte() % 4u}, now_);
        flows_[flow] = FlowState();
        return;
      case 1:
        if ((input_.Byte() & 3) != 0) return;
        receiver_->RemoveFlow(flow, now_);
        flows_.erase(flow);
        return;
      case 2: {
        const uint64_t demand = input_.Number();
        receiver_->OnDemand(flow, demand, input_.AnyRate(), now_);
        if (known != flows_.end()) known->second.demand = demand;
        return;
      }
      case 3: {
        ArrivalSample sample{.now = now_, .bytes = input_.Number()};
        sample.packets = input_.Byte();
        sample.marked_packets = input_.Byte();
        sample.trimmed_packets = input_.Byte();
        sample.tx_total = input_.Number();
        sample.lost_total = input_.Number();
        sample.relative_delay_nanos = static_cast<int64_t>(input_.Number());
        receiver_->OnArrival(flow, sample);
        if (known != flows_.end()) known->second.tx_total = std::max(known->second.tx_total, sample.tx_total);
        return;
      }
      case 4:
        receiver_->OnBaseRtt(flow, input_.Span(), now_);
        return;
      default:
        Poll();
    }
  }

  void Poll() {
    std::array<Grant, 5> out;
    for (int calls = 0;; ++calls) {
      Require(calls < 100'000, "grants without end");
      const size_t count = receiver_->PollGrants(now_, out);
      Require(count <= out.size(), "more grants than room");
      for (size_t i = 0; i < count; ++i) {
        const auto known = flows_.find(out[i].flow);
        Require(known != flows_.end(), "a grant for a flow that is not there");
        for (size_t k = 0; k < i; ++k) Require(out[k].flow != out[i].flow, "two grants for one flow in one call");
        FlowState& state = known->second;
        Require(out[i].credit_end >= state.granted, "credit taken back");
        Require(out[i].credit_end <= std::max({state.demand, state.tx_total, state.granted}),
                "credit beyond the demand");
        Require(out[i].rate.bytes_per_second() >= 0, "a rate below zero");
        Require(out[i].rate <= port_.link_rate, "a rate above the port's");
        state.granted = out[i].credit_end;
      }
      if (count < out.size()) break;
    }
    Require(receiver_->PollTimeout() > now_, "work is left after everything was taken");
  }

  Input input_;
  PortInfo port_;
  std::unique_ptr<CongestionControl> control_;
  std::unique_ptr<ReceiverController> receiver_;
  std::vector<std::unique_ptr<SenderController>> senders_;
  std::map<uint32_t, FlowState> flows_;
  Time now_ = Time::FromNanos(1'000'000);
};

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paceline::Program(data, size).Run();
  return 0;
}
