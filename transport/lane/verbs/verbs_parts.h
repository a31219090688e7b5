// What a verbs lane is made of, in the order in which the parts need one another.
//
// Thread rule: the engine's thread.
#pragma once

#include <memory>
#include <utility>

#include "transport/lane/verbs/verbs_card.h"
#include "transport/lane/verbs/verbs_datagrams.h"
#include "transport/lane/verbs/verbs_memory.h"
#include "transport/lane/verbs/verbs_paths.h"
#include "transport/lane/verbs/verbs_peers.h"
#include "transport/lane/verbs/verbs_targets.h"

namespace paceline {

struct VerbsParts {
  std::unique_ptr<VerbsCard> card;
  std::unique_ptr<VerbsMemory> memory;
  std::unique_ptr<VerbsDatagrams> datagrams;
  std::unique_ptr<VerbsPeers> peers;
  std::unique_ptr<VerbsTargets> targets;

  static absl::StatusOr<VerbsParts> Make(VerbsCalls& calls, const VerbsPort& port, const VerbsCardOptions& options) {
    VerbsParts parts;
    auto card = VerbsCard::Open(calls, port, options);
    if (!card.ok()) return card.status();
    parts.card = *std::move(card);
    auto datagrams = VerbsDatagrams::Create(parts.card.get());
    if (!datagrams.ok()) return datagrams.status();
    parts.datagrams = *std::move(datagrams);
    parts.memory = std::make_unique<VerbsMemory>(parts.card.get());
    parts.peers = std::make_unique<VerbsPeers>(parts.card.get(), parts.datagrams->qp_number());
    parts.targets = std::make_unique<VerbsTargets>(parts.card.get(), parts.card->options().targets);
    return parts;
  }
};

}  // namespace paceline
