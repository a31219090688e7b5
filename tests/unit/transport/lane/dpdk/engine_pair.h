// Two engines, each on a lane of its own, with a connection between them, polled in turn by one thread.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "transport/engine/engine.h"

namespace paceline {

class EnginePair {
 public:
  EnginePair(std::unique_ptr<Lane> a, std::unique_ptr<Lane> b, const char* algorithm) {
    std::unique_ptr<Lane> lanes[2] = {std::move(a), std::move(b)};
    for (int side = 0; side < 2; ++side) {
      EngineOptions options;
      options.endpoint.congestion_control = algorithm;
      std::vector<std::unique_ptr<Lane>> list;
      list.push_back(std::move(lanes[side]));
      engines_[side] = Engine::Create(options, std::move(list)).value();
    }
  }

  // The first connects to the second. False: not within five seconds.
  bool Connect() {
    Endpoint& listening = engines_[1]->endpoint();
    connections_[0] = engines_[0]->endpoint().Connect(listening.listen_address(listening.Listen()), Now());
    bool up[2] = {};
    const Time end = Now() + Duration::Seconds(5);
    while (!(up[0] && up[1])) {
      if (Now() > end) return false;
      Poll();
      for (int side = 0; side < 2; ++side) {
        ConnectionEvent event;
        while (engines_[side]->endpoint().PollConnectionEvents({&event, 1}) == 1) {
          if (event.kind == ConnectionEventKind::kRequest) {
            connections_[side] = event.connection;
            listening.Accept(event.connection, Now());
          }
          up[side] |= event.kind == ConnectionEventKind::kEstablished;
        }
      }
    }
    return true;
  }

  void Poll() {
    for (const auto& engine : engines_) engine->Poll(Now());
  }
  static Time Now() {
    return Time::FromNanos(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
  }
  Endpoint& endpoint(int side) { return engines_[side]->endpoint(); }
  ConnectionId connection(int side) const { return connections_[side]; }
  const Lane& lane(int side) const { return *engines_[side]->lanes().front(); }

 private:
  std::unique_ptr<Engine> engines_[2];
  ConnectionId connections_[2] = {kNoConnection, kNoConnection};
};

}  // namespace paceline
