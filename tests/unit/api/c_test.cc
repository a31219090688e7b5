#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "paceline/paceline.h"
#include "tests/unit/api/c_usage.h"

namespace {

using ::testing::HasSubstr;

TEST(CInterface, WorksFromCWithManualProgress) {
  const char* error = paceline_test_use_everything(PACELINE_PROGRESS_MANUAL, 0);
  EXPECT_EQ(error, nullptr) << error;
}

TEST(CInterface, WorksFromCWithAProgressThread) {
  const char* error = paceline_test_use_everything(PACELINE_PROGRESS_THREAD, 0);
  EXPECT_EQ(error, nullptr) << error;
}

TEST(CInterface, WorksFromCWithSeveralEngines) {
  const char* error = paceline_test_use_everything(PACELINE_PROGRESS_THREAD, 3);
  EXPECT_EQ(error, nullptr) << error;
}

TEST(CInterface, NullPointersAreRefused) {
  paceline_context* context = nullptr;
  EXPECT_EQ(paceline_context_create(nullptr, nullptr), PACELINE_INVALID_ARGUMENT);
  ASSERT_EQ(paceline_context_create(nullptr, &context), PACELINE_OK);
  EXPECT_EQ(paceline_listen(context, nullptr), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_listen(nullptr, nullptr), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_connect(context, nullptr, nullptr), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_send(nullptr, {}, 0, 0, nullptr), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_read(nullptr, {}, nullptr, 0, 0, nullptr), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_cancel(nullptr, 1), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_wait(nullptr, 0), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_poll(nullptr, nullptr, 1), 0u);
  EXPECT_EQ(paceline_descriptor(nullptr), -1);
  EXPECT_EQ(paceline_connection_id(nullptr), 0u);
  EXPECT_EQ(paceline_connection_get_state(nullptr), PACELINE_CLOSED);
  EXPECT_EQ(paceline_connection_get_close_code(nullptr), PACELINE_CLOSE_NONE);
  paceline_connection_destroy(nullptr);
  paceline_listener_destroy(nullptr);
  paceline_context_destroy(nullptr);
  paceline_context_destroy(context);
}

TEST(CInterface, ErrorsSayWhatIsWrong) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  paceline_context* context = nullptr;
  options.congestion_control = "hope";
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  EXPECT_THAT(paceline_last_error(), HasSubstr("hope"));
  EXPECT_EQ(context, nullptr);
  options = PACELINE_OPTIONS_INIT;
  options.congestion_control_parameters = "nonsense";
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  EXPECT_THAT(paceline_last_error(), HasSubstr("nonsense"));
  options = PACELINE_OPTIONS_INIT;
  options.struct_size = 0;
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  EXPECT_THAT(paceline_last_error(), HasSubstr("struct_size"));
  options = PACELINE_OPTIONS_INIT;
  options.engines = 2;  // and progress by the program
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  EXPECT_THAT(paceline_last_error(), HasSubstr("engines"));
}

TEST(CInterface, PortsAreWrittenAsInTheEnvironment) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  paceline_context* context = nullptr;
  options.lane = "udp";
  options.bind = "127.0.0.1, ::1";
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_OK) << paceline_last_error();
  paceline_context_destroy(context);
  options.bind = "127.0.0.1,role=server";  // a setting, of the port before it
  EXPECT_EQ(paceline_context_create(&options, &context), PACELINE_INVALID_ARGUMENT);
  EXPECT_THAT(paceline_last_error(), HasSubstr("127.0.0.1,role=server"));
}

TEST(CInterface, WhatIsNotThereYetIsSaidAndNotAnOlderError) {
  EXPECT_EQ(paceline_wait(nullptr, 0), PACELINE_INVALID_ARGUMENT);
  const std::string older = paceline_last_error();
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.lane = "udp";
  options.bind = "127.0.0.1";
  paceline_context* context = nullptr;
  ASSERT_EQ(paceline_context_create(&options, &context), PACELINE_OK) << paceline_last_error();
  paceline_listener* listener = nullptr;
  ASSERT_EQ(paceline_listen(context, &listener), PACELINE_OK);
  paceline_connection* connection = nullptr;
  EXPECT_EQ(paceline_accept(listener, &connection), PACELINE_TRY_AGAIN);
  EXPECT_STRNE(paceline_last_error(), older.c_str());
  EXPECT_EQ(paceline_wait(nullptr, 0), PACELINE_INVALID_ARGUMENT);
  EXPECT_EQ(paceline_wait(context, 0), PACELINE_TIMED_OUT);
  EXPECT_STRNE(paceline_last_error(), older.c_str());
  paceline_listener_destroy(listener);
  paceline_context_destroy(context);
}

TEST(CInterface, AccessHasBitsThatTheHeaderNamesAndNoOthers) {
  paceline_options options = PACELINE_OPTIONS_INIT;
  options.lane = "udp";
  paceline_context* context = nullptr;
  ASSERT_EQ(paceline_context_create(&options, &context), PACELINE_OK) << paceline_last_error();
  uint64_t word = 0;
  uint32_t region = 0;
  const uint32_t all = PACELINE_REMOTE_READ | PACELINE_REMOTE_WRITE | PACELINE_REMOTE_ATOMIC;
  EXPECT_EQ(paceline_register_memory(context, &word, sizeof(word), all, nullptr, &region), PACELINE_OK);
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((all & bit) != 0) continue;
    EXPECT_EQ(paceline_register_memory(context, &word, sizeof(word), bit, nullptr, &region), PACELINE_INVALID_ARGUMENT)
        << bit;
  }
  paceline_context_destroy(context);
}

TEST(CInterface, AnOlderAndANewerStructWork) {
  paceline_context* context = nullptr;
  struct {
    paceline_options options;
    char later[64];
  } newer = {PACELINE_OPTIONS_INIT, {}};
  newer.options.struct_size = sizeof(newer);
  EXPECT_EQ(paceline_context_create(&newer.options, &context), PACELINE_OK);
  paceline_context_destroy(context);
  paceline_options older = PACELINE_OPTIONS_INIT;
  older.struct_size = offsetof(paceline_options, progress);
  older.progress = 12345;  // not part of the struct that the size speaks of
  EXPECT_EQ(paceline_context_create(&older, &context), PACELINE_OK);
  paceline_context_destroy(context);
}

TEST(CInterface, EveryResultHasAName) {
  for (const paceline_result result :
       {PACELINE_OK, PACELINE_INVALID_ARGUMENT, PACELINE_NOT_FOUND, PACELINE_ALREADY_EXISTS, PACELINE_PERMISSION_DENIED,
        PACELINE_RESOURCE_EXHAUSTED, PACELINE_UNAVAILABLE, PACELINE_TIMED_OUT, PACELINE_UNIMPLEMENTED,
        PACELINE_INTERNAL, PACELINE_TRY_AGAIN, PACELINE_NOT_CONNECTED, PACELINE_INVALID_MEMORY}) {
    EXPECT_STRNE(paceline_result_name(result), "unknown");
  }
  EXPECT_STREQ(paceline_result_name(static_cast<paceline_result>(999)), "unknown");
}

}  // namespace
