#include "transport/lane/verbs/verbs_memory.h"

#include <iterator>

namespace paceline {
namespace {

constexpr uint64_t kNotZero = uint64_t{1} << 32;

bool Holds(const ibv_mr& mr, uintptr_t start, size_t bytes) {
  const auto base = reinterpret_cast<uintptr_t>(mr.addr);
  return start >= base && bytes <= mr.length && start - base <= mr.length - bytes;
}

}  // namespace

VerbsMemory::~VerbsMemory() {
  for (const auto& [key, mr] : by_key_) card_->calls().DeregMr(mr);
}

uint64_t VerbsMemory::Register(const LaneMemory& memory) {
  if (memory.bytes == 0) return 0;
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  auto mr = memory.dma_buf >= 0 ? card_->RegisterDmaBuf(memory, kAccess)
                                : card_->Register(memory.base, memory.bytes, kAccess);
  if (!mr.ok()) {  // the transport goes on with packets
    problem_ = std::string(mr.status().message());
    return 0;
  }
  const uint64_t key = kNotZero | (*mr)->rkey;
  by_key_[key] = *mr;
  if (!memory.on_device()) by_base_.emplace(reinterpret_cast<uintptr_t>(memory.base), *mr);
  return key;
}

void VerbsMemory::Deregister(uint64_t key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  ibv_mr* const mr = found->second;
  auto [first, end] = by_base_.equal_range(reinterpret_cast<uintptr_t>(mr->addr));
  for (; first != end; ++first) {
    if (first->second != mr) continue;
    by_base_.erase(first);
    break;
  }
  if (last_ == mr) last_ = nullptr;
  by_key_.erase(found);
  card_->calls().DeregMr(mr);
}

std::optional<uint32_t> VerbsMemory::LocalKeyOf(uint64_t key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  return found->second->lkey;
}

std::optional<uint32_t> VerbsMemory::LocalKey(const uint8_t* data, size_t bytes) const {
  const auto start = reinterpret_cast<uintptr_t>(data);
  if (last_ != nullptr && Holds(*last_, start, bytes)) return last_->lkey;
  // Registrations may overlap; the nearest that begins before the data is the likeliest, and the only one looked at.
  auto next = by_base_.upper_bound(start);
  if (next == by_base_.begin() || !Holds(*std::prev(next)->second, start, bytes)) return std::nullopt;
  last_ = std::prev(next)->second;
  return last_->lkey;
}

}  // namespace paceline
