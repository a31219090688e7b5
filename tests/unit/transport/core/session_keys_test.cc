// What both sides of one handshake derive.
#include "transport/core/session_keys.h"

#include <gtest/gtest.h>

#include <array>

namespace paceline {
namespace {

TEST(SessionTest, EachDirectionHasASecretOfItsOwn) {
  Identity client({1}, {2}), server({1}, {3});
  const crypto::Secret client_key = client.NewPrivateKey(), server_key = server.NewPrivateKey(), init_digest{4};
  const auto at_client = Session::Derive(client, client_key, crypto::PublicKeyOf(server_key), init_digest);
  const auto at_server = Session::Derive(server, server_key, crypto::PublicKeyOf(client_key), init_digest);
  ASSERT_TRUE(at_client.has_value() && at_server.has_value());
  const std::array<uint8_t, 3> accept{5, 6, 7};
  const SecureChannel::Secrets ours = at_client->Keys(true, accept), theirs = at_server->Keys(false, accept);
  EXPECT_NE(ours.send, ours.receive);
  EXPECT_EQ(ours.send, theirs.receive);
  EXPECT_EQ(ours.receive, theirs.send);
}

}  // namespace
}  // namespace paceline
