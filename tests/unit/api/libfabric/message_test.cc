// Messages with and without tags, through libfabric.
#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class MessageTest : public FabricTest {};

TEST_F(MessageTest, TaggedMessagesOfManySizesBothWays) {
  Open();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{16384}, size_t{16385}, size_t{1'000'000}}) {
    for (auto [from, to] : {std::pair{&a_, &b_}, std::pair{&b_, &a_}}) {
      const auto out = Pattern(bytes, 3);
      std::vector<uint8_t> in(bytes);
      int send = 0, receive = 0;
      Post([&] { return fi_trecv(to->endpoint, in.data(), bytes, nullptr, FI_ADDR_UNSPEC, 0xf0, 0x0f, &receive); });
      Post([&] { return fi_tsend(from->endpoint, out.data(), bytes, nullptr, from->peer, 0xf7, &send); });
      const fi_cq_err_entry received = Take(*to);
      EXPECT_EQ(received.err, 0);
      EXPECT_EQ(received.op_context, &receive);
      EXPECT_EQ(received.flags, FI_RECV | FI_TAGGED);
      EXPECT_EQ(received.len, bytes);
      EXPECT_EQ(received.buf, in.data());
      EXPECT_EQ(received.tag, 0xf7u);
      EXPECT_EQ(source_, to->peer);
      const fi_cq_err_entry sent = Take(*from);
      EXPECT_EQ(sent.err, 0);
      EXPECT_EQ(sent.op_context, &send);
      EXPECT_EQ(sent.flags, FI_SEND | FI_TAGGED);
      EXPECT_EQ(in, out);
    }
  }
}

}  // namespace
}  // namespace paceline::libfabric
