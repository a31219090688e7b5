// A pool of objects of one type, allocated in slabs and used again: after it has grown to its working size, New and
// Delete are a few instructions. Addresses are stable.
//
// Thread rule: one owner. All objects must be deleted before the pool is destroyed.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace paceline {

template <typename T, size_t kSlab = 64>
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  template <typename... Args>
  T* New(Args&&... args) {
    if (free_ == nullptr) Grow();
    Cell* cell = free_;
    free_ = cell->next;
    ++live_;
    return new (cell->storage) T(std::forward<Args>(args)...);
  }
  void Delete(T* object) {
    object->~T();
    Cell* cell = reinterpret_cast<Cell*>(object);
    cell->next = free_;
    free_ = cell;
    --live_;
  }
  size_t live() const { return live_; }
  size_t memory_bytes() const { return slabs_.size() * kSlab * sizeof(Cell); }

 private:
  union Cell {
    Cell* next;
    alignas(T) unsigned char storage[sizeof(T)];
  };
  [[gnu::cold]] void Grow() {
    slabs_.push_back(std::make_unique<Cell[]>(kSlab));
    for (size_t i = kSlab; i-- > 0;) {
      Cell* cell = &slabs_.back()[i];
      cell->next = free_;
      free_ = cell;
    }
  }
  std::vector<std::unique_ptr<Cell[]>> slabs_;
  Cell* free_ = nullptr;
  size_t live_ = 0;
};

}  // namespace paceline
