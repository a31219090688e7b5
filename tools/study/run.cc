#include "tools/study/run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/study/host.h"
#include "tools/study/ideal.h"
#include "transport/engine/clock.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::tools {
namespace {

// Without a deadline in the scenario a run may take this: many times its ideal, and some retransmission time-outs.
constexpr double kDeadlineFactor = 50;
constexpr double kDeadlineExtraMicros = 50'000;

class Run : public FlowEvents {
 public:
  Run(const Scenario& scenario, const AlgorithmChoice& algorithm, uint64_t seed, std::atomic<uint64_t>* progress)
      : scenario_(scenario), algorithm_(algorithm), seed_(seed), progress_(progress) {}

  absl::StatusOr<RunOutcome> Execute(Workload workload) {
    out_.algorithm = algorithm_.name;
    out_.seed = seed_;
    if (std::any_of(workload.flows.begin(), workload.flows.end(), [](const Flow& flow) { return flow.background; })) {
      without_background_ = WithoutBackground(workload);
    }
    out_.workload = std::move(workload);
    out_.flows.resize(out_.workload.flows.size());
    for (const Flow& flow : out_.workload.flows) unfinished_ += flow.background ? 0 : 1;
    for (const Trigger& trigger : out_.workload.triggers) unfinished_ += trigger.delay > 0 ? 1 : 0;
    if (absl::Status status = Build(); !status.ok()) return status;
    Connect();
    ScheduleAll();
    fabric_->Run(epoch_ + Duration::Nanos(static_cast<int64_t>(DeadlineMicros() * 1000)));
    Collect();
    return std::move(out_);
  }

  void OnStarted(uint32_t flow, Time now) override { out_.flows[flow].start_ns = (now - epoch_).nanos(); }

  void OnSent(uint32_t index, bool ok, Time now) override {
    if (!ok) {
      ++out_.failed_operations;
      return;
    }
    FlowOutcome& flow = out_.flows[index];
    flow.finish_ns = (now - epoch_).nanos();
    if (progress_ != nullptr) {
      const uint64_t effort = EffortOf(out_.workload.flows[index], scenario_.fabric.mtu_bytes);
      progress_->fetch_add(effort, std::memory_order_relaxed);
    }
    Fire(out_.workload.flows[index].fires_when_sent, now);
    if (!out_.workload.flows[index].background) Finished(now);
  }

  void OnReceived(uint32_t index, bool ok, Time now) override {
    if (!ok) {
      ++out_.failed_operations;
      return;
    }
    out_.flows[index].received_ns = (now - epoch_).nanos();
    Fire(out_.workload.flows[index].fires_when_received, now);
  }

  void OnTimer(uint32_t trigger, Time due) override {
    GoOff(trigger, due);
    if (out_.workload.triggers[trigger].delay > 0) Finished(due);
  }

 private:
  // Two hosts, the lower first, that exchange anything, and the NIC of both that their flows are bound to.
  using PairKey = std::tuple<uint32_t, uint32_t, uint8_t>;
  static PairKey KeyOf(const Flow& flow) {
    return {std::min(flow.source, flow.destination), std::max(flow.source, flow.destination), flow.nic};
  }
  // The ends of their connection.
  struct Pair {
    ConnectionId at_lower = kNoConnection;
    ConnectionId at_higher = kNoConnection;
    ConnectionId at(uint32_t host, uint32_t other) const { return host < other ? at_lower : at_higher; }
  };

  absl::Status Build() {
    sim::FabricConfig config = scenario_.fabric;
    config.seed = seed_;
    config.ecn_min_bytes = algorithm_.ecn_min_bytes;
    config.ecn_max_bytes = algorithm_.ecn_max_bytes;
    config.ecn_max_probability = algorithm_.ecn_max_probability;
    const absl::StatusOr<sim::Topology> topology = sim::Topology::Create(config.topology);
    if (!topology.ok()) return topology.status();
    if (scenario_.workload.posted_ahead) {
      const uint32_t full = config.mtu_bytes + config.header_bytes;
      epoch_ = sim::ToTime(topology->LongestBaseRtt(full, config.header_bytes));
    }
    for (sim::Fault& fault : config.faults) {
      fault.at += sim::ToPicos(epoch_);
      if (fault.until != sim::kNeverPicos) fault.until += sim::ToPicos(epoch_);
    }
    absl::StatusOr<std::unique_ptr<sim::Fabric>> fabric = sim::Fabric::Create(config);
    if (!fabric.ok()) return fabric.status();
    fabric_ = *std::move(fabric);
    ideal_ = std::make_unique<IdealModel>(fabric_->topology(), config.mtu_bytes, config.header_bytes);

    uint64_t largest = 1;
    for (const Flow& flow : out_.workload.flows) largest = std::max(largest, flow.bytes);
    EngineOptions options;
    options.endpoint.congestion_control = algorithm_.name;
    options.endpoint.path_policy = scenario_.path_policy;
    options.endpoint.entropies = config.entropies;
    options.endpoint.prompt_ack_bytes = 0;      // a flow ends with its acknowledgement
    options.endpoint.payload_checksum = false;  // there is no payload
    options.endpoint.max_operations = limits::kMaxOperations;
    options.endpoint.max_completions = 1u << 30;  // taken after every poll
    // A lossless fabric stops packets for as long as a buffer is full: the endpoint's own least time-out stays.
    if (!config.buffers.lossless) {
      options.endpoint.min_timeout = std::max(Duration::Millis(1), fabric_->LongestBaseRtt() * 20);
    }
    options.endpoint.min_probe = fabric_->LongestBaseRtt() * 2;
    options.congestion_control_parameters = algorithm_.parameters;
    for (uint32_t host = 0; host < fabric_->hosts(); ++host) {
      options.endpoint.seed = seed_ * 1'000'003 + host;
      options.endpoint.local_group = GroupOf(host);
      options.endpoint.core_rate = CoreRate();
      options.endpoint.group_ports = scenario_.hints ? GroupHosts() : 0;
      std::vector<std::unique_ptr<sim::SimLane>> lanes;
      for (uint32_t nic = 0; nic < config.topology.nics_per_host; ++nic) lanes.push_back(fabric_->TakeLane(host, nic));
      absl::StatusOr<std::unique_ptr<Host>> made = Host::Create(options, std::move(lanes), largest, this);
      if (!made.ok()) return made.status();
      hosts_.push_back(*std::move(made));
      fabric_->SetDriver(host, hosts_.back().get());
    }
    return absl::OkStatus();
  }

  uint64_t GroupOf(uint32_t host) const {
    if (!scenario_.hints) return 0;
    const sim::TopologyConfig& t = scenario_.fabric.topology;
    if (t.kind == sim::TopologyKind::kSingleSwitch) return 1;
    if (t.kind == sim::TopologyKind::kGraph) return 0;  // nobody has drawn groups
    return 1 + host / GroupHosts();
  }

  // On each plane and rail.
  uint32_t GroupHosts() const {
    const sim::TopologyConfig& t = scenario_.fabric.topology;
    if (t.kind == sim::TopologyKind::kDumbbell) return t.hosts / 2;
    const bool pods = t.kind != sim::TopologyKind::kLeafSpine && t.tiers == 3;
    return pods || t.kind == sim::TopologyKind::kDragonfly ? t.pod_size : t.tor_radix;
  }

  // What one host can take from other groups when all take theirs; zero: as much as its link.
  Rate CoreRate() const {
    const double ratio = fabric_->topology().core_oversubscription();
    return scenario_.hints && ratio > 1 ? Rate::Gbps(scenario_.fabric.topology.link_gbps / ratio) : Rate();
  }

  void ConnectPair(const PairKey& key, Pair* pair) {
    const auto [a, b, own_nic] = key;
    pair->at_lower = hosts_[a]->endpoint().ReserveConnection();
    pair->at_higher = hosts_[b]->endpoint().ReserveConnection();
    const uint32_t ends[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
      const uint32_t here = ends[i], there = ends[1 - i];
      EstablishedPeer peer;
      peer.peer_connection = pair->at(there, here);
      const uint32_t nics = scenario_.fabric.topology.nics_per_host;
      for (uint32_t nic = 0; nic < nics; ++nic) {
        peer.addresses.push_back(sim::SimLane::AddressOf(there * nics + nic));
      }
      peer.segment_bytes = scenario_.fabric.mtu_bytes;
      peer.remote_group = GroupOf(there);
      peer.base_rtt = fabric_->BaseRtt(here, there);
      if (own_nic != kAllNics) peer.ports = 1u << own_nic;
      hosts_[here]->endpoint().Establish(pair->at(here, there), peer, Time());
    }
  }

  void Connect() {
    for (const Flow& flow : out_.workload.flows) {
      const auto [found, added] = pairs_.try_emplace(KeyOf(flow));
      if (added) ConnectPair(found->first, &found->second);
    }
  }

  Posting PostingOf(uint32_t index, bool send) const {
    const Flow& flow = out_.workload.flows[index];
    const Pair& pair = pairs_.at(KeyOf(flow));
    Posting posting;
    posting.flow = index;
    posting.send = send;
    posting.bytes = flow.bytes;
    posting.connection = send ? pair.at(flow.source, flow.destination) : pair.at(flow.destination, flow.source);
    posting.due = epoch_ + (sim::ToTime(flow.start) - Time());
    return posting;
  }

  void ScheduleAll() {
    for (uint32_t index = 0; index < out_.workload.flows.size(); ++index) {
      const Flow& flow = out_.workload.flows[index];
      const bool dependent = flow.trigger != kNoTrigger;
      if (!dependent) hosts_[flow.source]->Schedule(PostingOf(index, true));
      Posting receive = PostingOf(index, false);
      if (scenario_.workload.posted_ahead) {
        // One base round trip before the flow, or at the start of the run (the epoch is one round trip after zero).
        receive.due = dependent ? Time() : receive.due - (epoch_ - Time());
        hosts_[flow.destination]->Schedule(receive);
      } else {
        hosts_[flow.destination]->AwaitFirstPacket(flow.source, receive.connection, flow.bytes);
      }
    }
    for (const Trigger& trigger : out_.workload.triggers) {
      triggers_.push_back({trigger.firings, 0});
    }
    for (uint32_t number = 0; number < triggers_.size(); ++number) {
      const Trigger& trigger = out_.workload.triggers[number];
      if (trigger.firings > 0 || trigger.one_at_a_time) continue;
      hosts_[trigger.host]->StartTimer(number, epoch_ + (sim::ToTime(trigger.start + trigger.delay) - Time()));
    }
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      const Time first = hosts_[host]->Prepare();
      if (!first.is_never()) fabric_->RequestPoll(host, first);
    }
  }

  void Fire(uint32_t number, Time now) {
    if (number == kNoTrigger) return;
    const Trigger& trigger = out_.workload.triggers[number];
    TriggerState& state = triggers_[number];
    if (trigger.one_at_a_time) {
      if (state.next < trigger.flows.size()) StartFlow(trigger.flows[state.next++], now);
      return;
    }
    if (state.firings_left == 0 || --state.firings_left > 0) return;
    if (trigger.delay == 0) return GoOff(number, now);
    const Time due = now + (sim::ToTime(trigger.delay) - Time());
    hosts_[trigger.host]->StartTimer(number, due);
    fabric_->RequestPoll(trigger.host, due);
  }

  void GoOff(uint32_t number, Time now) {
    const Trigger& trigger = out_.workload.triggers[number];
    for (uint32_t flow : trigger.flows) StartFlow(flow, now);
    for (uint32_t fired : trigger.fires) Fire(fired, now);
  }

  // A flow or a delay is over: the run ends with the last.
  void Finished(Time now) {
    if (--unfinished_ > 0) return;
    out_.end_ns = (now - epoch_).nanos();
    fabric_->Stop();
  }

  void StartFlow(uint32_t index, Time now) {
    const uint32_t host = out_.workload.flows[index].source;
    Posting posting = PostingOf(index, true);
    posting.due = now;
    hosts_[host]->PostNow(posting);
    fabric_->RequestPoll(host, now);
  }

  // What the run waits for and is measured by.
  const Workload& Main() const { return without_background_ ? *without_background_ : out_.workload; }

  double DeadlineMicros() const {
    if (scenario_.deadline_us > 0) return scenario_.deadline_us;
    const auto ideal = ideal_->WorkloadIdeal(Main());
    return sim::PicosToMicros(ideal ? ideal->end : 0) * kDeadlineFactor + kDeadlineExtraMicros;
  }

  void Collect() {
    const sim::Fabric& fabric = *fabric_;
    out_.fabric = fabric.counters();
    if (fabric.config().buffers.lossless) out_.pfc_paused_us = sim::PicosToMicros(fabric.PausedPicos());
    const CriticalPath best = ideal_->WorkloadIdeal(Main()).value_or(CriticalPath());
    out_.ideal_us = sim::PicosToMicros(best.flows);
    if (const auto windows = ideal_->WindowsBusyUntil(Main())) {
      out_.ideal_window_us = std::max(out_.ideal_us, sim::PicosToMicros(*windows));
    }
    out_.ideal_end_us = sim::PicosToMicros(best.end);
    out_.compute_us = sim::PicosToMicros(ComputingAlone(Main()));
    std::vector<double> left = LastingLinkFractions(fabric.config(), fabric.topology());
    if (!left.empty()) {
      out_.damaged = true;
      const IdealModel damaged(fabric.topology(), fabric.config().mtu_bytes, fabric.config().header_bytes,
                               std::move(left));
      if (const auto ideal = damaged.WorkloadIdeal(Main())) {
        out_.ideal_damaged_us = sim::PicosToMicros(ideal->flows);
      }
    }
    for (size_t i = 0; i < out_.flows.size(); ++i) {
      const Flow& flow = out_.workload.flows[i];
      if (!flow.background) out_.packets += ideal_->Packets(flow.bytes);
      FlowOutcome& outcome = out_.flows[i];
      if (outcome.finish_ns < 0) continue;
      outcome.slowdown = static_cast<double>(outcome.finish_ns - outcome.start_ns) * 1000 /
                         static_cast<double>(ideal_->FlowIdeal(flow));
    }
    for (const auto& host : hosts_) {
      const EndpointCounters& counters = host->endpoint().counters();
#define PACELINE_ADD(name, unit, meaning) out_.endpoints.name += counters.name;
      PACELINE_ENDPOINT_COUNTERS(PACELINE_ADD)
#undef PACELINE_ADD
    }
    out_.nic_sent_bytes.resize(fabric.config().topology.nics_per_host);
    for (uint32_t nic = 0; nic < fabric.first_switch_port(); ++nic) {
      out_.nic_sent_bytes[nic % out_.nic_sent_bytes.size()] += fabric.SentBytes(nic);
    }
    CollectQueues();
    CollectRecoveries();
  }

  void CollectRecoveries() {
    int64_t last = 0;
    for (const FlowOutcome& flow : out_.flows) last = std::max(last, flow.finish_ns);
    std::vector<int64_t> changes;
    for (const sim::Fault& fault : scenario_.fabric.faults) {
      for (const sim::Picos at : {fault.at, fault.until}) {
        if (at > 0 && at / sim::kPicosPerNano < last) changes.push_back(at / sim::kPicosPerNano);
      }
    }
    std::sort(changes.begin(), changes.end());
    changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
    out_.recoveries = MeasureRecoveries(out_.delivered_bytes, out_.interval_ns, out_.first_interval_ns,
                                        fabric_->LongestBaseRtt().nanos(), changes);
  }

  void CollectQueues() {
    const sim::Fabric& fabric = *fabric_;
    uint32_t busiest = fabric.first_switch_port(), last_hop = busiest;
    for (uint32_t port = fabric.first_switch_port(); port < fabric.end_port(); ++port) {
      const uint64_t largest = fabric.QueueMaxBytes(port), p99 = fabric.QueueQuantileBytes(port, 0.99);
      if (p99 > out_.queue_p99_bytes || (p99 == out_.queue_p99_bytes && largest > fabric.QueueMaxBytes(busiest))) {
        busiest = port;
      }
      out_.queue_p99_bytes = std::max(out_.queue_p99_bytes, p99);
      out_.queue_max_bytes = std::max(out_.queue_max_bytes, largest);
      if (!fabric.IsLastHop(port)) continue;
      if (largest > out_.queue_last_hop_max_bytes || !fabric.IsLastHop(last_hop)) last_hop = port;
      out_.queue_last_hop_max_bytes = std::max(out_.queue_last_hop_max_bytes, largest);
    }
    const sim::Series& series = fabric.series();
    out_.interval_ns = series.interval() / sim::kPicosPerNano;
    out_.first_interval_ns = -(epoch_ - Time()).nanos();
    for (size_t point = 0; point < series.size(); ++point) {
      out_.delivered_bytes.push_back(series.delivered_payload_bytes(point));
    }
    for (auto [port, into] : {std::pair{busiest, &out_.busiest}, std::pair{last_hop, &out_.last_hop}}) {
      into->name = DescribePort(port);
      for (size_t point = 0; point < series.size(); ++point) {
        into->queue_peak_bytes.push_back(series.queue_peak_bytes(point, port));
        into->sent_bytes.push_back(series.sent_bytes(point, port));
      }
    }
  }

  std::string DescribePort(uint32_t port) const {
    const sim::Topology& topology = fabric_->topology();
    const sim::LinkInfo& link = topology.links()[port];
    const auto node = [&](uint32_t number) {
      if (number < topology.nics()) {
        const uint32_t nics = topology.config().nics_per_host;
        return absl::StrCat("host ", number / nics, nics > 1 ? absl::StrCat(" NIC ", number % nics) : "");
      }
      const sim::SwitchInfo& s = topology.switch_of_node(number);
      return absl::StrCat(std::string(sim::TierName(s.tier)), " ", s.index);
    };
    return absl::StrCat(node(link.from), ", port to ", node(link.to));
  }

  struct TriggerState {
    uint32_t firings_left = 1;
    size_t next = 0;
  };

  const Scenario& scenario_;
  const AlgorithmChoice& algorithm_;
  const uint64_t seed_;
  std::atomic<uint64_t>* const progress_;
  RunOutcome out_;
  std::optional<Workload> without_background_;  // where there is any
  Time epoch_;  // of the fabric's clock at which the run starts: receives may be posted before
  std::unique_ptr<sim::Fabric> fabric_;
  std::unique_ptr<IdealModel> ideal_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<PairKey, Pair> pairs_;
  std::vector<TriggerState> triggers_;
  size_t unfinished_ = 0;
};

}  // namespace

uint64_t EffortOf(const Flow& flow, uint32_t mtu_bytes) {
  constexpr uint64_t kBeginningAndEnd = 4;
  return (flow.bytes + mtu_bytes - 1) / mtu_bytes + kBeginningAndEnd;
}

absl::StatusOr<RunOutcome> ExecuteRun(const Scenario& scenario, const AlgorithmChoice& algorithm, uint64_t seed,
                                      std::atomic<uint64_t>* progress) {
  const Time began = MonotonicNow();
  absl::StatusOr<Workload> workload = WorkloadOf(scenario, seed);
  if (!workload.ok()) return workload.status();
  std::vector<double> alone_us;
  if (std::any_of(workload->flows.begin(), workload->flows.end(), [](const Flow& flow) { return flow.victim; })) {
    absl::StatusOr<RunOutcome> alone = Run(scenario, algorithm, seed, nullptr).Execute(VictimsAlone(*workload));
    if (!alone.ok()) return alone.status();
    for (const FlowOutcome& flow : alone->flows) {
      if (flow.finish_ns >= 0) alone_us.push_back(static_cast<double>(flow.finish_ns - flow.start_ns) / 1e3);
    }
    std::sort(alone_us.begin(), alone_us.end());
  }
  absl::StatusOr<RunOutcome> outcome = Run(scenario, algorithm, seed, progress).Execute(*std::move(workload));
  if (!outcome.ok()) return outcome.status();
  outcome->victim_alone_fct_us = std::move(alone_us);
  outcome->wall_s = (MonotonicNow() - began).seconds();
  return outcome;
}

}  // namespace paceline::tools
