#include "transport/core/rx/write_fences.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace paceline {

bool WriteFences::OnAsked(uint32_t port, uint64_t end, uint64_t from) {
  Fence& fence = fences_[port];
  fence.from = from;
  fence.wanted = std::max(fence.wanted, end);
  if (end <= fence.held) {
    due_ |= static_cast<uint8_t>(1u << port);
    return false;
  }
  if (fence.told != 0) return false;
  fence.told = fence.wanted;
  return true;
}

bool WriteFences::OnHeld(uint32_t port) {
  Fence& fence = fences_[port];
  if (fence.told == 0) return false;
  fence.held = std::exchange(fence.told, 0);
  due_ |= static_cast<uint8_t>(1u << port);
  if (fence.wanted <= fence.held) return false;
  fence.told = fence.wanted;
  return true;
}

bool WriteFences::PollAnswer(const AckState& acks, wire::FencedFrame* frame) {
  if (due_ == 0) return false;
  const auto port = static_cast<uint8_t>(std::countr_zero(due_));
  due_ &= static_cast<uint8_t>(due_ - 1);
  const Fence& fence = fences_[port];
  frame->port = port;
  frame->end = static_cast<uint32_t>(fence.held);
  frame->from = static_cast<uint32_t>(fence.from);
  frame->words = 0;
  for (uint64_t base = fence.from; base < fence.held && frame->words < limits::kFencedWords; base += 64) {
    frame->arrived[frame->words++] = acks.ArrivedWord(base);
  }
  return true;
}

}  // namespace paceline
