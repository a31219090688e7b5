// A doubly linked list whose links live in its members: no allocation, removal in O(1) without searching. A member is
// in at most one list per link, unlinks itself when destroyed, and is owned by somebody else.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>

namespace paceline {

struct ListLink {
  ListLink* next = nullptr;
  ListLink* previous = nullptr;

  ListLink() = default;
  ListLink(const ListLink&) = delete;
  ListLink& operator=(const ListLink&) = delete;
  ~ListLink() { Unlink(); }

  bool linked() const { return next != nullptr; }
  void Unlink() {
    if (next == nullptr) return;
    next->previous = previous;
    previous->next = next;
    next = previous = nullptr;
  }
};

// List of T through the member `kLink`: IntrusiveList<Message, &Message::send_link>.
template <typename T, ListLink T::*kLink>
class IntrusiveList {
 public:
  IntrusiveList() { head_.next = head_.previous = &head_; }
  ~IntrusiveList() {
    while (!empty()) head_.next->Unlink();
    head_.next = head_.previous = nullptr;
  }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return head_.next == &head_; }
  T* front() const { return empty() ? nullptr : Owner(head_.next); }
  T* back() const { return empty() ? nullptr : Owner(head_.previous); }
  // The member after `item`, or nullptr.
  T* Next(T* item) const {
    ListLink* link = (item->*kLink).next;
    return link == &head_ ? nullptr : Owner(link);
  }
  void PushBack(T* item) {
    (item->*kLink).Unlink();  // first: the item itself may be the last
    Insert(&(item->*kLink), head_.previous);
  }
  void PushFront(T* item) {
    (item->*kLink).Unlink();
    Insert(&(item->*kLink), &head_);
  }
  T* PopFront() {
    T* item = front();
    if (item != nullptr) (item->*kLink).Unlink();
    return item;
  }

 private:
  static T* Owner(ListLink* link) {
    // Offset of the link inside T, measured on storage that is never read.
    alignas(T) static char storage[sizeof(T)];
    T* probe = reinterpret_cast<T*>(storage);
    const auto offset = reinterpret_cast<char*>(&(probe->*kLink)) - storage;
    return reinterpret_cast<T*>(reinterpret_cast<char*>(link) - offset);
  }
  static void Insert(ListLink* link, ListLink* after) {
    link->previous = after;
    link->next = after->next;
    after->next->previous = link;
    after->next = link;
  }
  ListLink head_;
};

}  // namespace paceline
