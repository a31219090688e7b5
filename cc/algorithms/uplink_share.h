// What one port's uplink can give each flow that it sends: the max-min share that a `tita` sender announces as its
// cap(). A flow that its receiver grants less than an equal share leaves the rest to its siblings (the idea of PERC:
// Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets 2015).
//
// Work is bounded: shares are computed when one is asked for, and anew only after a number of changes in proportion to
// the flows that have a backlog, so a call costs O(log n) on average, and with fewer than eight flows the shares are
// always exact.
//
// Rates in wire bytes per second. Owned by the Tita object, one per local port; senders hold it by reference.
// Thread rule: as in cc/congestion_control.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

class UplinkShare {
 public:
  explicit UplinkShare(double capacity) : capacity_(capacity) {}

  uint32_t Add();
  void Remove(uint32_t id);
  void SetBacklogged(uint32_t id, bool backlogged);
  // What the receiver grants this flow; infinity when it has not said.
  void SetGrantedRate(uint32_t id, double rate);

  // The share of flow `id` if it took all that it can get. Never below an equal share.
  double Cap(uint32_t id);

  size_t backlogged_flows() const { return active_.size(); }

 private:
  struct Entry {
    double rate = 0;
    uint32_t active_index = 0;
    bool backlogged = false;
  };

  void Recompute();

  const double capacity_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> active_;  // flows with a backlog
  std::vector<double> scratch_;
  double level_ = 0;  // infinity: granted rates leave some capacity over
  double left_over_ = 0;
  bool stale_ = false;
  size_t steps_ = 0;  // changes since the shares were computed
};

}  // namespace paceline
