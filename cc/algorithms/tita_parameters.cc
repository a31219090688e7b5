#include "cc/algorithms/tita_parameters.h"

#include "cc/algorithms/parameters.h"

namespace paceline {

TitaParameters TitaParametersFrom(const ParameterMap& map) {
  TitaParameters p;
  p.rho = NumberOf(map, "rho");
  p.budget = NumberOf(map, "budget");
  p.budget_floor = NumberOf(map, "budget_floor");
  p.bucket = NumberOf(map, "bucket");
  p.grain_segments = static_cast<int>(NumberOf(map, "grain_segments"));
  p.park_rtts = NumberOf(map, "park_rtts");
  p.cap_slack = NumberOf(map, "cap_slack");
  p.srpt = ChoiceOf(map, "policy") == "srpt";
  const std::string& signal = ChoiceOf(map, "core_signal");
  p.core_ecn = signal == "auto" || signal == "ecn";
  p.core_delay = signal == "auto" || signal == "delay";
  p.core_gain = NumberOf(map, "core_gain");
  p.core_drain = NumberOf(map, "core_drain");
  p.core_floor = NumberOf(map, "core_floor");
  p.core_step = NumberOf(map, "core_step");
  p.core_heavy = NumberOf(map, "core_heavy");
  p.core_delay_rtts = NumberOf(map, "core_delay");
  p.unscheduled = NumberOf(map, "unscheduled");
  p.unscheduled_large = NumberOf(map, "unscheduled_large");
  p.pace_gain = NumberOf(map, "pace_gain");
  p.probe_rtts = NumberOf(map, "probe");
  p.phase = FlagOf(map, "phase");
  return p;
}

std::vector<ParameterSpec> TitaParameterSpecs() {
  const TitaParameters d;
  return {
      NumberSpec("rho", d.rho, 0.5, 1, "link rate",
                 "Credit is paced at this share of the port; 1 because the budget closes the loop (own model)"),
      NumberSpec("budget", d.budget, 0.5, 16, "BDP", "Credit in flight to a port at most (SIRD: B = 1.5 BDP)"),
      NumberSpec(
          "budget_floor", d.budget_floor, 0.5, 16, "BDP",
          "The same when many senders with a whole uplink each wait for this port (ours: keeps the last queue low)"),
      NumberSpec("bucket", d.bucket, 0.1, 16, "BDP",
                 "Credit in flight per sender at most (SIRD has 1; 1.5 keeps a sprayed flow from starving, own model)"),
      NumberSpec(
          "grain_segments", d.grain_segments, 0, 256, "segments",
          "Least size of a grant; 0: one below 400 Gb/s, two from there, or the lane's burst (UEC: 4 MTU a pull)"),
      NumberSpec("park_rtts", d.park_rtts, 2, 1000, "base RTT",
                 "Silence after which a sender's unused credit no longer counts against the budget (ours)"),
      NumberSpec("cap_slack", d.cap_slack, 1, 8, "",
                 "A sender that announces a cap is granted this much faster, as caps are a round trip old (ours)"),
      ChoiceSpec("policy", "round_robin", {"round_robin", "srpt"},
                 "Who is granted next; srpt gives half to the flow with least left (SIRD keeps 50 % for fair share)"),
      ChoiceSpec("core_signal", "auto", {"auto", "ecn", "delay", "off"},
                 "What tells of a queue in the core; auto: ECN marks, and delay until a mark has ever been seen"),
      NumberSpec("core_gain", d.core_gain, 0.001, 1, "",
                 "Gain of the average of the rate delivered under marks (own model)"),
      NumberSpec("core_drain", d.core_drain, 0, 0.9, "",
                 "Below the measured rate by this times the share of marks (own model)"),
      NumberSpec("core_floor", d.core_floor, 0.0001, 1, "link rate", "Least core limit (SIRD: 0.03)"),
      NumberSpec("core_step", d.core_step, 0.0001, 1, "link rate",
                 "First rise of a core limit in a window without marks (own model)"),
      NumberSpec("core_heavy", d.core_heavy, 0.01, 1, "",
                 "Share of marks from which the delivered rate itself is taken as the limit (ours)"),
      NumberSpec("core_delay", d.core_delay_rtts, 0.05, 10, "base RTT",
                 "Delay over the least seen that counts as a mark (NSCC: target 0.75 RTT)"),
      NumberSpec("unscheduled", 1.0 / 32, 0, 4, "BDP",
                 "A backlog up to this goes out without credit, at least a segment (BDP over an assumed fan-in of 32)"),
      NumberSpec("unscheduled_large", d.unscheduled_large, 0, 1024, "segments",
                 "What a larger backlog sends without credit; 0: a request alone, no first-round collisions (ours)"),
      NumberSpec("pace_gain", d.pace_gain, 1, 16, "", "Senders pace at this multiple of the granted rate (ours)"),
      NumberSpec("probe", d.probe_rtts, 1, 1000, "base RTT",
                 "A backlog without credit for so long sends one segment; doubles each time (ours)"),
      FlagSpec("phase", d.phase,
               "A sender whose credit came before its data keeps to the time slot in which the credit came (ours)"),
  };
}

}  // namespace paceline
