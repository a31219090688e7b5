// A program of its own, as the sanitizers have such operators too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "paceline/paceline.h"

namespace {

thread_local bool no_memory = false;

}  // namespace

// For the whole program, the library under test included.
void* operator new(size_t bytes) {
  void* memory = no_memory ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return no_memory ? nullptr : std::malloc(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

TEST(CInterface, ALackOfMemoryIsSaidAndNotAnOlderError) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  paceline_context* context = nullptr;
  options.congestion_control = "hope";
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  options.congestion_control = "a name that does not fit into a string without an allocation";
  no_memory = true;
  const paceline_result result = paceline_context_create(&options, &context);
  no_memory = false;
  EXPECT_EQ(result, PACELINE_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(paceline_last_error(), "out of memory");
  EXPECT_EQ(context, nullptr);
}

TEST(CInterface, NothingIsThrownForANullPointerEither) {
  paceline_result result = PACELINE_OK;
  std::thread thread([&result] {  // has had no error yet, and so no room for the words of one
    no_memory = true;
    result = paceline_wait(nullptr, 0);
    no_memory = false;
  });
  thread.join();
  EXPECT_EQ(result, PACELINE_RESOURCE_EXHAUSTED);
}

}  // namespace
