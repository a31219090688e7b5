// A pointer to an object that another uses until it is unbound or closed: the object counts such pointers, and while
// there is one its own closing answers -FI_EBUSY, as libfabric has it for what is bound.
//
// Thread rule: the count may change in any thread; a Use itself is its owner's.
#pragma once

#include <atomic>
#include <utility>

namespace paceline::libfabric {

class Usable {
 public:
  void Hold() { uses_.fetch_add(1, std::memory_order_relaxed); }
  void LetGo() { uses_.fetch_sub(1, std::memory_order_relaxed); }
  bool in_use() const { return uses_.load(std::memory_order_relaxed) > 0; }

 private:
  std::atomic<int> uses_{0};
};

template <typename T>
class Use {
 public:
  Use() = default;
  Use(T* object) : object_(object) {  // NOLINT: implicit on purpose
    if (object_ != nullptr) object_->Hold();
  }
  Use(const Use& other) : Use(other.object_) {}
  Use& operator=(Use other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Use() {
    if (object_ != nullptr) object_->LetGo();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace paceline::libfabric
