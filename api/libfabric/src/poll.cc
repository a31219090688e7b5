#include "api/libfabric/src/poll.h"

#include <new>
#include <utility>
#include <vector>

#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/cq.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/use.h"

namespace paceline::libfabric {
namespace {

class PollSet : public fid_poll {
 public:
  explicit PollSet(Domain* domain) : fid_poll{}, domain_(domain) { ++domain_->references; }
  ~PollSet() { --domain_->references; }

  int Poll(void** contexts, int room) {
    const Domain::Guard guard(domain_);
    domain_->Progress();
    int count = 0;
    for (Member& member : members_) {
      if (count < room && member.IsReady()) contexts[count++] = member.object->context;
    }
    return count;
  }
  int Add(fid_t object) {
    if (object->fclass != FI_CLASS_CQ && object->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
    const Domain::Guard guard(domain_);
    const bool queue = object->fclass == FI_CLASS_CQ;
    Usable* const used = queue ? static_cast<Usable*>(FromFid<Cq, fid_cq>(object)) : FromFid<Counter, fid_cntr>(object);
    members_.push_back({.object = object, .use = used});
    return 0;
  }
  int Remove(fid_t object) {
    const Domain::Guard guard(domain_);
    return std::erase_if(members_, [&](const Member& member) { return member.object == object; }) > 0 ? 0 : -FI_EINVAL;
  }

 private:
  struct Member {
    fid_t object = nullptr;
    Use<Usable> use;
    uint64_t seen = 0;  // counters: the sum that was told

    bool IsReady() {
      if (object->fclass == FI_CLASS_CQ) return !FromFid<Cq, fid_cq>(object)->empty();
      const auto* counter = FromFid<Counter, fid_cntr>(object);
      const uint64_t sum = counter->value_ + counter->errors_;
      return std::exchange(seen, sum) != sum;
    }
  };
  Domain* domain_;
  std::vector<Member> members_;
};

PollSet* Of(fid_poll* set) { return static_cast<PollSet*>(set); }

int Close(fid* object) {
  delete FromFid<PollSet, fid_poll>(object);
  return 0;
}

fi_ops object_calls = OnlyClose(Close);
fi_ops_poll calls = {
    .size = sizeof(fi_ops_poll),
    .poll = [](fid_poll* set, void** contexts, int room) { return Of(set)->Poll(contexts, room); },
    .poll_add = [](fid_poll* set, fid* object, uint64_t) { return Of(set)->Add(object); },
    .poll_del = [](fid_poll* set, fid* object, uint64_t) { return Of(set)->Remove(object); },
};

}  // namespace

int OpenPoll(fid_domain* domain, fi_poll_attr*, fid_poll** result) {
  auto* set = new (std::nothrow) PollSet(static_cast<Domain*>(domain));
  if (set == nullptr) return -FI_ENOMEM;
  set->fid = {.fclass = FI_CLASS_POLL, .context = nullptr, .ops = &object_calls};
  set->ops = &calls;
  *result = set;
  return 0;
}

}  // namespace paceline::libfabric
