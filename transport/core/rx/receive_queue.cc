#include "transport/core/rx/receive_queue.h"

#include <algorithm>

#include "transport/core/rx/receiver.h"

namespace paceline {

void ReceiveQueue::Add(PostedReceive* receive) {
  matcher_.AddReceive(receive);
  if (!Counts(*receive)) return;
  Named& named = named_[receive->source];
  ++named.receives;
  for (Receiver* receiver : named.connections) {
    const bool first = receiver->SetNamedReceives(named.receives);
    const bool told = IsTold(*receive) && receiver->OnReady(*receive);
    if (first || told) changed_(*receiver);
  }
}

void ReceiveQueue::Take(PostedReceive* receive) {
  matcher_.Take(receive);
  if (!Counts(*receive)) return;
  Named& named = named_[receive->source];
  --named.receives;
  for (Receiver* receiver : named.connections) {
    receiver->SetNamedReceives(named.receives);
    if (IsTold(*receive) && receiver->OnTaken(*receive)) changed_(*receiver);
  }
  EraseIfUnused(receive->source);
}

void ReceiveQueue::Join(Receiver* receiver, Source source) {
  Named& named = named_[source];
  named.connections.push_back(receiver);
  receiver->SetNamedReceives(named.receives);
  if (named.receives == 0) return;
  matcher_.ForEachReceive([&](const PostedReceive& receive) {
    if (receive.source == source && Counts(receive) && IsTold(receive)) receiver->OnReady(receive);
  });
}

void ReceiveQueue::Leave(Receiver* receiver, Source source) {
  receiver->SetNamedReceives(0);
  auto& connections = named_[source].connections;
  connections.erase(std::find(connections.begin(), connections.end(), receiver));
  EraseIfUnused(source);
}

void ReceiveQueue::EraseIfUnused(Source source) {
  const auto found = named_.find(source);
  if (found->second.receives == 0 && found->second.connections.empty()) named_.erase(found);
}

}  // namespace paceline
