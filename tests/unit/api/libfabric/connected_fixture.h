// Two parties that connect: b listens and a asks, each with an event queue and domain of its own, and what both have
// been told so far. Both are moved in turn, as one thread has both.
//
// Thread rule: one thread.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {

// What an event queue told.
struct Event {
  uint32_t kind = 0;  // FI_CONNREQ, ...; 0: an error
  int error = 0;
  fid_t about = nullptr;
  Info info;
  std::string data;
  std::string text;  // of an error, from who knows why
};

struct Party : Side {
  fid_eq* eq = nullptr;
  std::deque<Event> events;

  void OpenParty(Info with);
  // Before the domain: its endpoints.
  void CloseParty();
  fid_ep* NewEndpoint(fi_info* of, const std::function<void(fid_ep*)>& bind = {});
  void ReadEvents();

  std::vector<fid_ep*> endpoints;  // all of them
};

class ConnectedTest : public FabricTest {
 protected:
  void TearDown() override;
  void MoveBoth() override;

  // Opens both; b listens.
  void OpenParties(const std::function<void(fi_info&)>& change = {});
  void Listen(fi_info* info);
  std::vector<uint8_t> NameOfPassive();
  // The next event of a party; without one for a long time: an error.
  Event TakeEvent(Party& party);
  // Connects an endpoint of a with one of b, each made by the party, told of in order.
  std::pair<fid_ep*, fid_ep*> Connect(const std::function<void(fid_ep*)>& bind_a = {},
                                      const std::function<void(fid_ep*)>& bind_b = {});
  // a sends to b, and the other way round.
  void Talk(fid_ep* a, fid_ep* b);

  Party asks_, listens_;
  fid_pep* passive_ = nullptr;
};

inline Info ConnectedInfo(const std::function<void(fi_info&)>& change = {}) {
  return GetInfo([&](fi_info& hints) {
    hints.ep_attr->type = FI_EP_MSG;
    if (change) change(hints);
  });
}

}  // namespace paceline::libfabric
