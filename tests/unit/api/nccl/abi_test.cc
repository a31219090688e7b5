// The layouts of NCCL's tables and properties on 64-bit machines, as numbers counted by hand from the order and the
// types of their members: a member that is missing, moved or of another width changes them.
#include "api/nccl/src/abi.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace paceline::nccl::abi {
namespace {

// ---- properties
static_assert(sizeof(PropertiesV6) == 48);
static_assert(offsetof(PropertiesV6, pointer_support) == 24 && offsetof(PropertiesV6, speed) == 28);
static_assert(offsetof(PropertiesV6, latency) == 36 && offsetof(PropertiesV6, max_receives) == 44);
static_assert(sizeof(PropertiesV7) == 56);
static_assert(offsetof(PropertiesV7, device_type) == 48 && offsetof(PropertiesV7, device_version) == 52);
static_assert(sizeof(PropertiesV8) == 64);
static_assert(offsetof(PropertiesV8, registration_is_global) == 28 && offsetof(PropertiesV8, speed) == 32);
static_assert(offsetof(PropertiesV8, device_version) == 56);
static_assert(sizeof(PropertiesV9) == 104);
static_assert(offsetof(PropertiesV9, force_flush) == 32 && offsetof(PropertiesV9, speed) == 36);
static_assert(offsetof(PropertiesV9, device_version) == 60 && offsetof(PropertiesV9, virtual_device) == 64);
static_assert(offsetof(PropertiesV9, max_p2p_bytes) == 88 && offsetof(PropertiesV9, max_collective_bytes) == 96);
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, max_multi_request_size) == 104);
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, virtual_device) == 64);
static_assert(offsetof(PropertiesV12, max_p2p_bytes) == 104 && offsetof(PropertiesV12, max_multi_request_size) == 120);
static_assert(offsetof(PropertiesV12, rail) == 124 && offsetof(PropertiesV12, plane) == 126);
static_assert(sizeof(VirtualDevice<4>) == 20 && sizeof(VirtualDevice<8>) == 36);

// ---- tables: eight bytes a member
constexpr size_t At(size_t member) { return member * 8; }
template <typename Table>
constexpr bool LooksAlike() {
  return offsetof(Table, devices) == At(2) && offsetof(Table, listen) == At(4) && offsetof(Table, accept) == At(6) &&
         offsetof(Table, register_memory) == At(7) && offsetof(Table, deregister_memory) == At(9) &&
         offsetof(Table, send) == At(10) && offsetof(Table, receive) == At(11) && offsetof(Table, flush) == At(12) &&
         offsetof(Table, test) == At(13) && offsetof(Table, close) == At(14);
}
static_assert(LooksAlike<NetV6>() && sizeof(NetV6) == At(17));
static_assert(LooksAlike<NetV7>() && offsetof(NetV7, offload) == At(17) && sizeof(NetV7) == At(19));
static_assert(LooksAlike<NetV8>() && offsetof(NetV8, offload) == At(17) && sizeof(NetV8) == At(19));
static_assert(LooksAlike<NetV9>() && offsetof(NetV9, make_virtual_device) == At(19) && sizeof(NetV9) == At(20));
static_assert(LooksAlike<NetV10>() && offsetof(NetV10, make_virtual_device) == At(19) && sizeof(NetV10) == At(20));
static_assert(LooksAlike<NetV11>() && offsetof(NetV11, finalize) == At(20) && sizeof(NetV11) == At(22));
static_assert(LooksAlike<NetV12>() && offsetof(NetV12, set_attributes) == At(21) && sizeof(NetV12) == At(22));
static_assert(sizeof(NetAttributes) == 44 && offsetof(NetAttributes, receive) == 16);
static_assert(offsetof(NetAttributes, operation) == 32);

// ---- widths that changed from version to version
template <typename Function>
struct Arguments;
template <typename... Args>
struct Arguments<Result (*)(Args...)> {
  static constexpr size_t kCount = sizeof...(Args);
  template <size_t kIndex>
  using At = std::tuple_element_t<kIndex, std::tuple<Args...>>;
};

TEST(AbiTest, SizesAreAsWideAsInEachVersion) {
  using RegisterV7 = Arguments<decltype(NetV7::register_memory)>;
  using RegisterV8 = Arguments<decltype(NetV8::register_memory)>;
  EXPECT_EQ(sizeof(RegisterV7::At<2>), 4u);
  EXPECT_EQ(sizeof(RegisterV8::At<2>), 8u);
  using SendV8 = Arguments<decltype(NetV8::send)>;
  using SendV9 = Arguments<decltype(NetV9::send)>;
  EXPECT_EQ(sizeof(SendV8::At<2>), 4u);
  EXPECT_EQ(sizeof(SendV9::At<2>), 8u);
  EXPECT_EQ(SendV9::kCount, 6u);
  EXPECT_EQ(Arguments<decltype(NetV10::send)>::kCount, 7u);
  EXPECT_EQ(Arguments<decltype(NetV9::receive)>::kCount, 7u);
  EXPECT_EQ(Arguments<decltype(NetV10::receive)>::kCount, 8u);
  EXPECT_EQ(Arguments<decltype(NetV6::connect)>::kCount, 3u);
  EXPECT_EQ(Arguments<decltype(NetV10::connect)>::kCount, 5u);
  EXPECT_EQ(Arguments<decltype(NetV11::init)>::kCount, 5u);
}

}  // namespace
}  // namespace paceline::nccl::abi
