#include "tests/support/scripted_world.h"

namespace paceline::support {

ScriptedWorld::ScriptedWorld(const WorldOptions& options) : options_(options), network_(options.network) {
  for (uint32_t i = 0; i < options_.hosts * options_.ports; ++i) {
    if (options_.lanes == LaneKind::kHca) {
      lanes_.push_back(std::make_unique<FakeHcaLane>(&network_, options_.hca_capabilities));
    } else {
      LaneCapabilities capabilities = options_.packet_capabilities;
      if (options_.customize_lane) options_.customize_lane(i % options_.ports, capabilities);
      lanes_.push_back(std::make_unique<ScriptedLane>(&network_, capabilities));
    }
  }
  for (uint32_t i = 0; i < options_.hosts; ++i) hosts_.push_back(NewHost(i, options_.endpoint.seed + i));
}

std::unique_ptr<TestHost> ScriptedWorld::NewHost(uint32_t host, uint64_t seed) {
  EndpointOptions endpoint = options_.endpoint;
  endpoint.seed = seed;
  endpoint.cookie_secret.fill(static_cast<uint8_t>(seed));
  if (options_.customize) options_.customize(host, endpoint);
  std::vector<Lane*> lanes;
  for (uint32_t port = 0; port < options_.ports; ++port) lanes.push_back(&lane(host, port));
  auto control = options_.new_congestion_control ? options_.new_congestion_control(host)
                                                 : NewTestCongestionControl(options_.control, options_.control_bytes);
  return std::make_unique<TestHost>(endpoint, std::move(control), std::move(lanes), &network_);
}

std::pair<ConnectionId, ConnectionId> ScriptedWorld::Connect(uint32_t a, uint32_t b) {
  const uint32_t listener = endpoint(b).Listen();
  const ConnectionId ours = endpoint(a).Connect(endpoint(b).listen_address(listener), now());
  const size_t events_before = host(b).events.size();
  auto established = [&](uint32_t h, size_t from) {
    for (size_t i = from; i < host(h).events.size(); ++i) {
      if (host(h).events[i].kind == ConnectionEventKind::kEstablished) return host(h).events[i].connection;
    }
    return kNoConnection;
  };
  auto is_up = [&] {
    for (const ConnectionEvent& event : host(a).events) {
      if (event.kind == ConnectionEventKind::kEstablished && event.connection == ours) return true;
    }
    return false;
  };
  if (!RunUntil([&] { return is_up() && established(b, events_before) != kNoConnection; })) return {};
  const ConnectionId theirs = established(b, events_before);
  endpoint(b).CloseListener(listener);
  return {ours, theirs};
}

std::pair<ConnectionId, ConnectionId> ScriptedWorld::Establish(uint32_t a, uint32_t b, uint32_t ports) {
  const ConnectionId ours = endpoint(a).ReserveConnection();
  const ConnectionId theirs = endpoint(b).ReserveConnection();
  auto addresses = [this](uint32_t h) {
    std::vector<LaneAddress> all;
    for (uint32_t port = 0; port < options_.ports; ++port) all.push_back(lane(h, port).address());
    return all;
  };
  endpoint(a).Establish(ours, {.peer_connection = theirs, .addresses = addresses(b), .ports = ports}, now());
  endpoint(b).Establish(theirs, {.peer_connection = ours, .addresses = addresses(a), .ports = ports}, now());
  return {ours, theirs};
}

void ScriptedWorld::Restart(uint32_t host, uint64_t seed) {
  network_.DetachHost(hosts_[host].get());
  hosts_[host].reset();
  hosts_[host] = NewHost(host, seed);
}

std::vector<std::string> ScriptedWorld::Violations() const {
  std::vector<std::string> all = network_.violations();
  for (size_t i = 0; i < hosts_.size(); ++i) {
    for (const std::string& what : hosts_[i]->Violations()) all.push_back("host " + std::to_string(i) + ": " + what);
  }
  return all;
}

}  // namespace paceline::support
