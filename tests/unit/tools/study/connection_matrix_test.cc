#include "tools/study/connection_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& text) {
  const auto matrix = ParseConnectionMatrix(text, "x.cm");
  return matrix.ok() ? "parsed" : std::string(matrix.status().message());
}

TEST(ConnectionMatrixTest, PlainFlows) {
  const auto matrix = ParseConnectionMatrix(
      "Nodes 16\nConnections 2\n\n# a comment\n0->5 id 1 start 0 size 2000000\n15->3 id 2 start 1500000 size 1\n",
      "x.cm");
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->nodes, 16u);
  ASSERT_EQ(matrix->workload.flows.size(), 2u);
  EXPECT_EQ(matrix->workload.flows[0].source, 0u);
  EXPECT_EQ(matrix->workload.flows[0].destination, 5u);
  EXPECT_EQ(matrix->workload.flows[0].bytes, 2'000'000u);
  EXPECT_EQ(matrix->workload.flows[1].start, 1'500'000);
  EXPECT_EQ(matrix->workload.flows[1].trigger, kNoTrigger);
}

TEST(ConnectionMatrixTest, TriggersOfAllKinds) {
  const auto matrix = ParseConnectionMatrix(
      "Nodes 8\nConnections 5\nTriggers 3\n"
      "0->1 id 1 start 0 size 100 send_done_trigger 1\n"
      "1->2 id 2 trigger 1 size 100 recv_done_trigger 2\n"
      "2->3 id 3 trigger 1 size 100 send_done_trigger 2\n"
      "3->4 id 4 trigger 2 size 100 send_done_trigger 9\n"
      "4->5 id 5 trigger 9 size 100\n"
      "trigger id 1 oneshot\ntrigger id 2 barrier count 2\ntrigger id 9 multishot\n",
      "x.cm");
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  const Workload& w = matrix->workload;
  ASSERT_EQ(w.triggers.size(), 3u);
  EXPECT_THAT(w.triggers[0].flows, ElementsAre(1, 2));
  EXPECT_FALSE(w.triggers[0].one_at_a_time);
  EXPECT_EQ(w.triggers[1].firings, 2u);
  EXPECT_TRUE(w.triggers[2].one_at_a_time);
  EXPECT_EQ(w.flows[1].fires_when_received, 1u);
  EXPECT_EQ(w.flows[1].fires_when_sent, kNoTrigger);
  EXPECT_EQ(w.flows[2].fires_when_sent, 1u);
  EXPECT_EQ(w.flows[4].trigger, 2u);
}

TEST(ConnectionMatrixTest, StartsWithADecimalPointAndWindowsLineEnds) {
  const auto matrix = ParseConnectionMatrix("Nodes 2\r\nConnections 1\r\n0->1 start 1000.0 size 5\r\n", "x.cm");
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->workload.flows[0].start, 1000);
}

TEST(ConnectionMatrixTest, RefusesTheMalformedWithItsLine) {
  const std::string head = "Nodes 4\nConnections 1\n";
  EXPECT_THAT(ErrorOf(head + "0->4 start 0 size 1\n"), StartsWith("x.cm:3: "));
  EXPECT_THAT(ErrorOf(head + "0->4 start 0 size 1\n"), HasSubstr("node from 0 to 3"));
  EXPECT_THAT(ErrorOf(head + "1->1 start 0 size 1\n"), HasSubstr("to itself"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0\n"), HasSubstr("no size"));
  EXPECT_THAT(ErrorOf(head + "0->1 size 5\n"), HasSubstr("neither a start nor a trigger"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 trigger 1 size 5\n"), HasSubstr("both"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 size zebra\n"), StartsWith("x.cm:3: "));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 size 0\n"), HasSubstr("size 0"));
  EXPECT_THAT(ErrorOf(head + "0->1 start -5 size 1\n"), HasSubstr("picoseconds"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 size 1 colour 3\n"), HasSubstr("\"colour\" is not known"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 size\n"), HasSubstr("needs a number"));
  EXPECT_THAT(ErrorOf(head + "0->1 start 0 size 1 size 2\n"), HasSubstr("x.cm:3: a second \"size\""));
  EXPECT_THAT(ErrorOf(head + "a->1 start 0 size 1\n"), StartsWith("x.cm:3: "));
  EXPECT_THAT(ErrorOf(head + "hello\n"), HasSubstr("\"hello\" is not known"));
  EXPECT_THAT(ErrorOf("0->1 start 0 size 1\n"), StartsWith("x.cm:1: "));
  EXPECT_THAT(ErrorOf("Nodes 1\n"), StartsWith("x.cm:1: "));
  EXPECT_THAT(ErrorOf("Nodes 4\nNodes 4\n"), HasSubstr("a second"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("no \"Nodes\""));
  EXPECT_THAT(ErrorOf("Nodes 4\nConnections 2\n0->1 start 0 size 1\n"), HasSubstr("1 connections, its head says 2"));
  EXPECT_THAT(ErrorOf(head + "0->1 id 0 start 0 size 1\n"), HasSubstr("id 0"));
  EXPECT_THAT(ErrorOf("Nodes 4\nConnections 2\n0->1 id 7 start 0 size 1\n1->2 id 7 start 0 size 1\n"),
              HasSubstr("a second flow with id 7"));
}

TEST(ConnectionMatrixTest, RefusesTriggersThatMakeNoSense) {
  const std::string head =
      "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 1 send_done_trigger 5\n1->2 id 2 trigger 5 size 1\n";
  EXPECT_EQ(ErrorOf(head + "trigger id 5 oneshot\n"), "parsed");
  EXPECT_THAT(ErrorOf(head), HasSubstr("trigger 5 is not defined"));
  EXPECT_THAT(ErrorOf(head), StartsWith("x.cm:3: "));
  EXPECT_THAT(ErrorOf(head + "trigger id 5\n"), HasSubstr("no type"));
  EXPECT_THAT(ErrorOf(head + "trigger id 5 barrier\n"), HasSubstr("no count"));
  EXPECT_THAT(ErrorOf(head + "trigger id 5 barrier count 2\n"), HasSubstr("fired by 1 flows"));
  EXPECT_THAT(ErrorOf(head + "trigger oneshot\n"), HasSubstr("no id"));
  EXPECT_THAT(ErrorOf(head + "trigger id 5 oneshot\ntrigger id 5 oneshot\n"), HasSubstr("a second trigger"));
  EXPECT_THAT(ErrorOf(head + "trigger id 5 oneshot multishot\n"), HasSubstr("two types"));
}

TEST(ConnectionMatrixTest, RefusesFlowsThatWaitForEachOther) {
  EXPECT_THAT(ErrorOf("Nodes 4\nConnections 1\n0->1 id 1 trigger 5 size 1 recv_done_trigger 5\ntrigger id 5 oneshot\n"),
              HasSubstr("x.cm:3: trigger 5 never goes off"));
  const std::string circle =
      "Nodes 4\nConnections 3\n0->1 id 1 trigger 1 size 1 send_done_trigger 2\n"
      "1->2 id 2 trigger 2 size 1 send_done_trigger 1\n2->3 id 3 start 0 size 1 send_done_trigger ";
  EXPECT_THAT(ErrorOf(circle + "3\ntrigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 oneshot\n"),
              HasSubstr("x.cm:3: trigger 1 never goes off"));
  // From outside, the circle can be started; where both are needed, it cannot.
  EXPECT_EQ(ErrorOf(circle + "1\ntrigger id 1 oneshot\ntrigger id 2 multishot\n"), "parsed");
  EXPECT_THAT(ErrorOf(circle + "1\ntrigger id 1 barrier count 2\ntrigger id 2 oneshot\n"),
              HasSubstr("x.cm:3: trigger 1 never goes off"));
}

}  // namespace
}  // namespace paceline::tools
