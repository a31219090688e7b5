#include "tests/simulation/run_scenario.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/simulation/oracle.h"
#include "tests/simulation/shared_receives.h"
#include "tests/simulation/universe.h"

namespace paceline::simulation {
namespace {

// Everything ends within this time after the last post, once the network is well.
constexpr Duration kPatience = Duration::Seconds(60);
constexpr Duration kPause = Duration::Seconds(4);
constexpr int64_t kLongestStallMillis = 3000;
constexpr int64_t kLongestLeapMillis = 30'000;
constexpr size_t kIdleBytes = 4096;  // per connection, with up to three ports
// Of all data packets of a run, and beside: how many may be sent again where none is lost.
constexpr double kNeedlessShare = 0.05;
constexpr uint64_t kNeedlessPackets = 200;

class Run {
 public:
  Run(const Scenario& scenario, bool verbose)
      : scenario_(scenario), verbose_(verbose), random_(scenario.seed * 77 + 5) {}

  RunResult Go() {
    RunResult result;
    auto universe = Universe::Create(scenario_, &random_);
    if (!universe.ok()) {
      result.findings.push_back("cannot be built: " + std::string(universe.status().message()));
      return result;
    }
    universe_ = *std::move(universe);
    if (Connect()) {
      Work();
      End();
      Check();
    }
    for (std::string& violation : universe_->Violations()) findings_.Note(std::move(violation));
    result.findings = findings_.all;
    result.virtual_seconds = static_cast<double>(universe_->now().nanos()) / 1e9;
    Summarise(&result);
    sides_.clear();
    return result;
  }

 private:
  void Say(const std::string& what) {
    if (verbose_) std::printf("%12.6f  %s\n", static_cast<double>(universe_->now().nanos()) / 1e9, what.c_str());
  }
  void RunFor(Duration time) {
    RunUntil([] { return false; }, time);
  }
  // In steps, so that faults come and go in time.
  bool RunUntil(const std::function<bool()>& done, Duration limit) {
    const Time deadline = universe_->now() + limit;
    while (true) {
      universe_->ApplyFaults();
      const bool faulty = universe_->now() < Time() + Duration::Millis(scenario_.fault_ms);
      // Short enough for links that come and go.
      const Duration pace = Duration::Micros(std::max<int64_t>(100, scenario_.fault_ms));
      const Time step = faulty ? std::min(deadline, universe_->now() + pace) : deadline;
      if (universe_->network().Run(step, done)) return true;
      if (universe_->now() >= deadline) return false;
    }
  }

  bool Connect() {
    for (uint32_t i = 0; i < universe_->hosts(); ++i) Attend(i);
    for (uint32_t c = 0; c < scenario_.connections; ++c) {
      const auto a = static_cast<uint32_t>(random_.Below(scenario_.hosts));
      const auto b = static_cast<uint32_t>((a + 1 + random_.Below(scenario_.hosts - 1)) % scenario_.hosts);
      if (!ConnectPair(a, b, scenario_.handshake)) return false;
    }
    return true;
  }

  void Attend(uint32_t host) {
    for (uint32_t i = 0; i < scenario_.receive_queues; ++i) {
      shared_.push_back(std::make_unique<SharedReceives>(scenario_, static_cast<uint32_t>(shared_.size()),
                                                         &universe_->host(host), &findings_, &random_));
    }
    universe_->host(host).on_completion = [this, host](const Completion& completion) {
      if (SharedReceives::IsOurs(completion.user_data)) {
        for (auto& shared : shared_) {
          if (shared->Owns(completion.user_data)) shared->OnCompletion(completion);
        }
        return;
      }
      const auto side = by_connection_.find({host, completion.connection});
      if (side == by_connection_.end()) return findings_.Note("a completion of an unknown connection");
      side->second->OnCompletion(completion);
    };
    universe_->host(host).on_event = [this, host](const ConnectionEvent& event) { OnEvent(host, event); };
  }

  bool ConnectPair(uint32_t a, uint32_t b, bool handshake) {
    SharedReceives* const shared_at[] = {DrawShared(a), DrawShared(b)};
    const ConnectionSetup setups[] = {NewSetup(shared_at[0], b), NewSetup(shared_at[1], a)};
    const std::pair<ConnectionId, ConnectionId> ids =
        handshake ? Handshake(a, b, setups[0], setups[1]) : Establish(a, b);
    if (ids.first == kNoConnection || ids.second == kNoConnection) {
      // Half of all packets may be lost for longer than the time-out; without faults it must work.
      if (scenario_.fault_ms < 1000 && scenario_.loss < 0.3) findings_.Note("no connection");
      return false;
    }
    AddSide(a, ids.first, shared_at[0]);
    AddSide(b, ids.second, shared_at[1]);
    Side* first = sides_[sides_.size() - 2].get();
    Side* second = sides_.back().get();
    first->SetPeer(second);
    second->SetPeer(first);
    return true;
  }

  // Where a new connection of this host has its receives: most share them, where there are any to share.
  SharedReceives* DrawShared(uint32_t host) {
    if (scenario_.receive_queues == 0 || random_.Chance(0.15)) return nullptr;
    return shared_[host * scenario_.receive_queues + random_.Below(scenario_.receive_queues)].get();
  }
  // Peers have the names of their hosts, or of their own.
  ConnectionSetup NewSetup(SharedReceives* shared, uint32_t peer) {
    if (shared == nullptr) return {};
    return shared->NewSetup(random_.Chance(0.5) ? peer : 1000 + sides_.size());
  }

  void AddSide(uint32_t host, ConnectionId id, SharedReceives* shared) {
    sides_.push_back(std::make_unique<Side>(scenario_, static_cast<uint32_t>(sides_.size()), &universe_->host(host),
                                            &findings_, &random_));
    sides_.back()->SetConnection(id, shared);
    if (shared != nullptr) shared->Join(sides_.back().get());
    by_connection_[{host, id}] = sides_.back().get();
  }

  std::pair<ConnectionId, ConnectionId> Establish(uint32_t a, uint32_t b) {
    const ConnectionId ours = universe_->host(a).endpoint().ReserveConnection();
    const ConnectionId theirs = universe_->host(b).endpoint().ReserveConnection();
    const auto peer = [&](uint32_t host, ConnectionId id) {
      EstablishedPeer established{.peer_connection = id};
      for (size_t port = 0; port < universe_->ports(); ++port)
        established.addresses.push_back(universe_->address(host, port));
      return established;
    };
    universe_->host(a).endpoint().Establish(ours, peer(b, theirs), universe_->host(a).now());
    universe_->host(b).endpoint().Establish(theirs, peer(a, ours), universe_->host(b).now());
    return {ours, theirs};
  }

  std::pair<ConnectionId, ConnectionId> Handshake(uint32_t a, uint32_t b, const ConnectionSetup& setup_a,
                                                  const ConnectionSetup& setup_b) {
    Endpoint& server = universe_->host(b).endpoint();
    const uint32_t listener = server.Listen(setup_b);
    const ConnectionId ours =
        universe_->host(a).endpoint().Connect(server.listen_address(listener), universe_->host(a).now(), setup_a);
    universe_->host(a).Touch();
    const auto up = [&](uint32_t host, ConnectionId id) { return established_.contains({host, id}); };
    std::pair<ConnectionId, ConnectionId> ids{ours, kNoConnection};
    RunUntil(
        [&] {
          for (const auto& [host, id] : established_) {
            if (host == b && !by_connection_.contains({b, id}) && !(a == b && id == ours)) ids.second = id;
          }
          return up(a, ours) && ids.second != kNoConnection;
        },
        Duration::Seconds(20));
    server.CloseListener(listener);
    if (!up(a, ours)) ids.first = kNoConnection;
    return ids;
  }

  void OnEvent(uint32_t host, const ConnectionEvent& event) {
    if (event.kind == ConnectionEventKind::kEstablished) established_.insert({host, event.connection});
    if (event.kind != ConnectionEventKind::kClosed) return;
    Say("host " + std::to_string(host) + ": connection closed, " + std::string(CloseReasonName(event.reason)));
    const auto side = by_connection_.find({host, event.connection});
    if (side != by_connection_.end()) side->second->OnClosed(event.reason);
  }

  bool AllPosted() const {
    for (const auto& side : sides_) {
      if (!side->host()->frozen() && !side->all_posted()) return false;
    }
    return true;
  }
  size_t Pending() const {
    size_t sum = 0;
    for (const auto& side : sides_) {
      if (!side->host()->frozen()) sum += side->pending();
    }
    for (const auto& shared : shared_) {
      if (!shared->host()->frozen()) sum += shared->pending();
    }
    return sum;
  }

  // Posts everything, in random order and with pauses.
  void Work() {
    const Time give_up = universe_->now() + Duration::Seconds(120);
    const uint64_t half = scenario_.connections * scenario_.operations;  // when the sudden endings strike
    uint64_t steps = 0;
    while (!AllPosted() && universe_->now() < give_up) {
      Side& side = *sides_[random_.Below(sides_.size())];
      if (side.host()->frozen()) continue;
      const bool posted = !side.host()->stalled() && side.PostNext();
      if (random_.Chance(scenario_.cancel)) side.CancelSome();
      if (side.shared_receives() != nullptr && random_.Chance(scenario_.cancel)) side.shared_receives()->CancelSome();
      const uint64_t pause = random_.Below(10);
      if (!posted || pause == 0) RunFor(Duration::Micros(static_cast<int64_t>(random_.Below(posted ? 100 : 400))));
      if (++steps == half) Strike();
      if (steps <= half && IsTurn(steps, half, scenario_.stalls)) {
        RandomHost().Stall(Duration::Millis(static_cast<int64_t>(random_.Below(kLongestStallMillis))));
      }
      if (steps <= half && IsTurn(steps, half, scenario_.shortages)) Exhaust(*sides_[random_.Below(sides_.size())]);
      if (steps <= half && IsTurn(steps, half, scenario_.revocations)) {
        Side& owner = *sides_[random_.Below(sides_.size())];
        if (!owner.host()->frozen() && !owner.host()->stalled()) owner.Revoke();
      }
      if (steps <= half && IsTurn(steps, half, scenario_.leaps)) {
        RandomHost().LeapClock(Duration::Millis(static_cast<int64_t>(random_.Below(kLongestLeapMillis))));
      }
    }
    if (!AllPosted()) findings_.Note("operations could not be posted: told to try again for too long");
  }

  // For a while the bound of operations is reached, and what is posted is told to try again.
  void Exhaust(Side& side) {
    if (side.host()->frozen() || !side.FillUp()) return;
    RunFor(Duration::Micros(static_cast<int64_t>(random_.Below(20'000))));
    side.MakeRoom();
  }
  // `times` times, evenly over the first `steps`.
  static bool IsTurn(uint64_t step, uint64_t steps, uint64_t times) {
    return times > 0 && step * times / steps != (step - 1) * times / steps;
  }
  support::TestHost& RandomHost() { return universe_->host(random_.Below(universe_->hosts())); }

  void Strike() {
    Side& side = *sides_[random_.Below(sides_.size())];
    Side& peer = *sides_[side_index(side) ^ 1];
    switch (scenario_.ending) {
      case Ending::kQuiet:
      case Ending::kClose:
      case Ending::kCloseBoth:
        break;
      case Ending::kCloseEarly:
        Say("close");
        Close(side);
        if (random_.Chance(0.5)) Close(peer);
        break;
      case Ending::kAbort:
        Say("abort");
        side.AllowFailure();
        peer.AllowFailure();
        if (random_.Chance(0.5)) side.DeregisterSome();  // which is a reason to abort, if it is in use
        side.host()->endpoint().Abort(side.connection(), side.host()->now());
        side.host()->Touch();
        if (side.shared_receives() != nullptr && random_.Chance(0.5)) EndShared(*side.shared_receives());
        break;
      case Ending::kCrash:
        Say("crash");
        AllowFailuresOf(*side.host());
        side.host()->Freeze();
        break;
      case Ending::kRestart: {
        Say("crash, and a new process at that address");
        AllowFailuresOf(*side.host());
        const auto fresh = static_cast<uint32_t>(universe_->Restart(HostIndex(*side.host())));
        Attend(fresh);
        ConnectPair(HostIndex(*peer.host()), fresh, true);
        break;
      }
      case Ending::kPause:
        Say("pause");
        side.host()->Freeze();
        RunFor(kPause);
        side.host()->Thaw();
        side.host()->Touch();
        break;
    }
  }
  void Close(Side& side) {
    side.AllowFailure();
    sides_[side_index(side) ^ 1]->AllowFailure();
    side.host()->endpoint().Close(side.connection(), side.host()->now());
    side.host()->Touch();
    ended_.insert({&side, sides_[side_index(side) ^ 1].get()});
  }
  void EndShared(SharedReceives& shared) {
    AllowFailuresOf(*shared.host());
    if (random_.Chance(0.5)) {
      shared.Delete();
    } else {
      shared.DeregisterSome();
    }
  }
  void AllowFailuresOf(const support::TestHost& host) {
    for (auto& side : sides_) {
      if (side->host() == &host || sides_[side_index(*side) ^ 1]->host() == &host) side->AllowFailure();
    }
  }
  uint32_t HostIndex(const support::TestHost& host) const {
    uint32_t i = 0;
    while (&universe_->host(i) != &host) ++i;
    return i;
  }
  size_t side_index(const Side& side) const {
    for (size_t i = 0; i < sides_.size(); ++i) {
      if (sides_[i].get() == &side) return i;
    }
    return 0;
  }

  void End() {
    if (scenario_.ending == Ending::kClose || scenario_.ending == Ending::kCloseBoth) {
      Say("close");
      for (size_t i = 0; i < sides_.size(); i += scenario_.ending == Ending::kClose ? 2 : 1) Close(*sides_[i]);
    }
    AwaitEndOfOrphans();
    for (auto& shared : shared_) {
      if (!shared->host()->frozen()) shared->TakeTheRest();
    }
    const bool may_hang = scenario_.cancel > 0 || a_host_dies() || scenario_.receive_queues > 0;
    if (may_hang) {
      // Sends first: then what is left are receives of messages that are not coming.
      RunUntil(
          [this] {
            size_t sum = 0;
            for (const auto& side : sides_) {
              if (!side->host()->frozen()) sum += side->pending_without_receives();
            }
            return sum == 0;
          },
          kPatience);
      for (auto& side : sides_) {
        if (!side->host()->frozen()) side->CancelLeftovers();
      }
      for (auto& shared : shared_) {
        if (!shared->host()->frozen()) shared->CancelLeftovers();
      }
    }
    if (!RunUntil([this] { return Pending() == 0; }, kPatience)) {
      findings_.Note(std::to_string(Pending()) + " operations hang");
    }
    if (!RunUntil([this] { return std::all_of(ended_.begin(), ended_.end(), std::mem_fn(&Side::closed)); },
                  kPatience)) {
      findings_.Note("a connection outlives its close");
    }
    Say("all complete");
  }

  bool a_host_dies() const { return scenario_.ending == Ending::kCrash || scenario_.ending == Ending::kRestart; }

  // Connections to a host that died end within the times of docs/failures.md.
  void AwaitEndOfOrphans() {
    const auto orphans_open = [this](bool with_operations) {
      return std::any_of(sides_.begin(), sides_.end(), [&](const auto& side) {
        return !side->host()->frozen() && sides_[side_index(*side) ^ 1]->host()->frozen() && !side->closed() &&
               (!with_operations || side->pending() > 0);
      });
    };
    if (!a_host_dies()) return;
    const Time well = Time() + Duration::Millis(scenario_.fault_ms);
    RunFor(std::max(Duration(), well - universe_->now()) +
           Duration::Millis(scenario_.stalls > 0 ? kLongestStallMillis : 0));
    const Duration busy = Duration::Seconds(scenario_.ending == Ending::kRestart ? 3 : 13);
    if (!RunUntil([&] { return !orphans_open(true); }, busy)) findings_.Note("operations outlive their dead peer");
    if (!RunUntil([&] { return !orphans_open(false); }, Duration::Seconds(37))) {
      findings_.Note("a connection outlives its dead peer");
    }
  }

  void Check() {
    // Who takes a pause or a leap for a long round trip is longer about it to ask what has become of the last packets.
    RunFor(Duration::Seconds(scenario_.stalls + scenario_.leaps > 0 ? 15 : 3));
    for (auto& side : sides_) {
      if (!side->host()->frozen()) side->CheckAtEnd();
    }
    for (auto& shared : shared_) {
      if (!shared->host()->frozen()) shared->CheckAtEnd();
    }
    if (!findings_.all.empty()) return;
    for (size_t i = 0; i < universe_->hosts(); ++i) CheckHost(i);
    if (LosesNothing(scenario_)) CheckNothingWasLost();
    for (const auto& side : sides_) {
      const size_t bytes = side->host()->endpoint().MemoryOf(side->connection());
      if (!a_host_dies() && bytes > kIdleBytes) {
        findings_.Note("an idle connection holds " + std::to_string(bytes) + " bytes");
      }
    }
  }

  // Retransmissions that nobody needed: of packets that arrived twice, or after they had been found lost. (Those that
  // the receiver had no memory for were needed; and what arrives for a connection that is over counts as a duplicate.)
  void CheckNothingWasLost() {
    uint64_t sent = 0, again = 0, duplicates = 0, spurious = 0, lost = 0;
    for (size_t i = 0; i < universe_->hosts(); ++i) {
      const EndpointCounters& counters = universe_->host(i).endpoint().counters();
      sent += counters.tx_data_packets - counters.retransmits;
      again += counters.retransmits;
      duplicates += counters.rx_duplicates;
      spurious += counters.spurious_retransmits;
      lost += counters.connections_lost;
    }
    if (lost > 0) findings_.Note(std::to_string(lost) + " connections were lost in a network that loses nothing");
    const uint64_t needless = std::min(again, std::max(duplicates, spurious));
    if (static_cast<double>(needless) > kNeedlessShare * static_cast<double>(sent) + kNeedlessPackets) {
      findings_.Note(std::to_string(needless) + " of " + std::to_string(sent) +
                     " data packets were sent again in a network that loses nothing");
    }
  }

  void CheckHost(size_t i) {
    support::TestHost& host = universe_->host(i);
    if (host.frozen()) return;
    const std::string name = "host " + std::to_string(i) + ": ";
    const EndpointCounters& counters = host.endpoint().counters();
    if (scenario_.ending == Ending::kRestart && counters.connections_lost != counters.connections_gone) {
      findings_.Note(name + "lost " + std::to_string(counters.connections_lost) +
                     " connections, but was told of only " + std::to_string(counters.connections_gone));
    }
    if (scenario_.ending != Ending::kRestart && ended_.empty() && scenario_.ending != Ending::kAbort &&
        counters.connections_gone > 0) {
      findings_.Note(name + "was told that connections are gone which are not");
    }
    if (!a_host_dies() && host.control().outstanding_credit_bytes() != 0) {
      findings_.Note(name + std::to_string(host.control().outstanding_credit_bytes()) + " bytes of credit leaked");
    }
    uint64_t told = 0;
    for (const auto& side : sides_) {
      if (side->host() == &host) told += side->writes_with_immediate_told();
    }
    for (const auto& shared : shared_) {
      if (shared->host() == &host) told += shared->further_completions();
    }
    if (counters.operations_completed + counters.operations_failed != counters.operations_posted + told) {
      findings_.Note(name + "operations posted and completed do not add up");
    }
    const bool clean = scenario_.corrupt == 0;
    if (clean && counters.rx_forged > 0) {
      findings_.Note(name + "took " + std::to_string(counters.rx_forged) +
                     " packets for forged in a network that changes none");
    }
    // What its owner has back before it is read shows as damaged.
    const bool damaged = counters.rx_bad_checksum > universe_->late_packets();
    if (clean && (damaged || counters.rx_malformed > 0)) {
      findings_.Note(name + "found " + std::to_string(counters.rx_bad_checksum) + " bad checksums and " +
                     std::to_string(counters.rx_malformed) + " malformed packets in a network that breaks none");
    }
    if (counters.tx_data_bytes < counters.retransmitted_bytes) findings_.Note(name + "more sent again than sent");
  }

  void Summarise(RunResult* result) {
    uint64_t print = 0;
    for (size_t i = 0; i < universe_->hosts(); ++i) {
      const EndpointCounters& counters = universe_->host(i).endpoint().counters();
      result->operations += counters.operations_posted;
#define PACELINE_MIX(name, unit, meaning) print = (print ^ counters.name) * 0x9e3779b97f4a7c15;
      PACELINE_ENDPOINT_COUNTERS(PACELINE_MIX)
#undef PACELINE_MIX
      if (verbose_) {
#define PACELINE_PRINT(name, unit, meaning) \
  if (counters.name > 0)                    \
    std::printf("host %zu  %-24s %llu\n", i, #name, static_cast<unsigned long long>(counters.name));
        PACELINE_ENDPOINT_COUNTERS(PACELINE_PRINT)
#undef PACELINE_PRINT
      }
    }
    result->fingerprint = print ^ static_cast<uint64_t>(universe_->now().nanos());
  }

  const Scenario scenario_;
  const bool verbose_;
  Random random_;
  Findings findings_;
  std::unique_ptr<Universe> universe_;
  std::vector<std::unique_ptr<SharedReceives>> shared_;  // as many for each host, in their order
  std::vector<std::unique_ptr<Side>> sides_;             // two by two
  std::map<std::pair<uint32_t, ConnectionId>, Side*> by_connection_;
  std::set<std::pair<uint32_t, ConnectionId>> established_;
  std::set<const Side*> ended_;  // those whose connections are closed
};

}  // namespace

RunResult RunScenario(const Scenario& scenario, bool verbose) { return Run(scenario, verbose).Go(); }

}  // namespace paceline::simulation
