#include "transport/base/intrusive_list.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

struct Item {
  explicit Item(char n) : name(n) {}
  char name;
  ListLink link;
  ListLink other;
};
using List = IntrusiveList<Item, &Item::link>;

std::string Names(const List& list) {
  std::string names;
  for (Item* item = list.front(); item != nullptr; item = list.Next(item)) names += item->name;
  return names;
}

TEST(IntrusiveListTest, KeepsOrder) {
  Item a('a'), b('b'), c('c');
  List list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  list.PushBack(&b);
  list.PushBack(&c);
  list.PushFront(&a);
  EXPECT_EQ(Names(list), "abc");
  EXPECT_EQ(list.PopFront(), &a);
  EXPECT_FALSE(a.link.linked());
  EXPECT_EQ(Names(list), "bc");
}

TEST(IntrusiveListTest, PushingAMemberAgainMovesIt) {
  Item a('a'), b('b');
  List list;
  list.PushBack(&a);
  list.PushBack(&b);
  list.PushBack(&b);  // already the last
  EXPECT_EQ(Names(list), "ab");
  list.PushBack(&a);
  EXPECT_EQ(Names(list), "ba");
  list.PushFront(&b);  // already the first
  EXPECT_EQ(Names(list), "ba");
}

TEST(IntrusiveListTest, AMemberLeavesWhenItDies) {
  Item a('a'), c('c');
  List list;
  list.PushBack(&a);
  {
    Item b('b');
    list.PushBack(&b);
    list.PushBack(&c);
    EXPECT_EQ(Names(list), "abc");
  }
  EXPECT_EQ(Names(list), "ac");
}

TEST(IntrusiveListTest, LinksOfOneItemAreIndependent) {
  Item a('a');
  List list;
  IntrusiveList<Item, &Item::other> others;
  list.PushBack(&a);
  others.PushBack(&a);
  a.link.Unlink();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(others.front(), &a);
}

TEST(IntrusiveListTest, ADyingListLetsItsMembersGo) {
  Item a('a');
  {
    List list;
    list.PushBack(&a);
  }
  EXPECT_FALSE(a.link.linked());
}

}  // namespace
}  // namespace paceline
