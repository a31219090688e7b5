#include "transport/lane/verbs/verbs_messages.h"

#include <gtest/gtest.h>

#include "transport/lane/verbs/verbs_address.h"

namespace paceline {
namespace {

TEST(VerbsMessages, WhatIsWrittenIsRead) {
  const VerbsMessage message = {.type = VerbsMessageType::kAccept,
                                .entropy = 0x1234,
                                .connection = 0xdeadbeef,
                                .epoch = 0x01020304,
                                .attempt = 77,
                                .qp_number = 0xabcdef,
                                .psn = 0x123456,
                                .mtu = 4096,
                                .service = VerbsService::kReliable};
  const auto read = ParseVerbsMessage(EncodeVerbsMessage(message));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->type, message.type);
  EXPECT_EQ(read->entropy, message.entropy);
  EXPECT_EQ(read->connection, message.connection);
  EXPECT_EQ(read->epoch, message.epoch);
  EXPECT_EQ(read->attempt, message.attempt);
  EXPECT_EQ(read->qp_number, message.qp_number);
  EXPECT_EQ(read->psn, message.psn);
  EXPECT_EQ(read->mtu, message.mtu);
  EXPECT_EQ(read->service, message.service);
}

TEST(VerbsMessages, WhatCannotBeIsRefused) {
  VerbsMessage message;
  message.mtu = 1024;
  const auto good = EncodeVerbsMessage(message);
  ASSERT_TRUE(ParseVerbsMessage(good).has_value());
  EXPECT_FALSE(ParseVerbsMessage(std::span(good).first(27)).has_value());
  const auto damaged = [&good](size_t at, uint8_t value) {
    auto bytes = good;
    bytes[at] = value;
    return ParseVerbsMessage(bytes).has_value();
  };
  EXPECT_FALSE(damaged(0, 0)) << "type";
  EXPECT_FALSE(damaged(0, 5)) << "type";
  EXPECT_FALSE(damaged(1, 2)) << "version";
  EXPECT_FALSE(damaged(16, 1)) << "a QP number of more than 24 bits";
  EXPECT_FALSE(damaged(20, 1)) << "a PSN of more than 24 bits";
  EXPECT_FALSE(damaged(24, 0xff)) << "MTU";
  EXPECT_FALSE(damaged(24, 0)) << "MTU";
  EXPECT_FALSE(damaged(26, 3)) << "service";
}

TEST(VerbsAddress, ThereAndBack) {
  VerbsAddress address = {.qp_number = 0x010203, .lid = 0x0405, .ethernet = false};
  for (uint8_t i = 0; i < address.gid.size(); ++i) address.gid[i] = i;
  VerbsAddress read;
  ASSERT_TRUE(ToVerbsAddress(ToLaneAddress(address), read));
  EXPECT_EQ(read, address);
  LaneAddress foreign = ToLaneAddress(address);
  foreign.bytes[0] = 's';
  EXPECT_FALSE(ToVerbsAddress(foreign, read));
  foreign = ToLaneAddress(address);
  foreign.bytes[22] = 9;
  EXPECT_FALSE(ToVerbsAddress(foreign, read));
  EXPECT_FALSE(ToVerbsAddress(LaneAddress{}, read));
}

}  // namespace
}  // namespace paceline
