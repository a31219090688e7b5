// Which routes the queue pairs of a verbs lane ask for.
#include "transport/lane/verbs/verbs_flow.h"

#include <algorithm>
#include <set>

#include "tests/unit/transport/lane/verbs/verbs_fixture.h"

namespace paceline::support {
namespace {

using VerbsFlowTest = VerbsFixture;

TEST(VerbsFlow, PortsAreThoseOfRoceAndDifferForLongInARow) {
  std::set<uint16_t> ports;
  for (uint32_t number = 4'294'960'000; ports.size() < 16384; ++number) {
    const uint32_t label = VerbsFlowLabel(77, number);
    EXPECT_TRUE(label > 0 && label < 1u << 20) << label;
    EXPECT_GE(VerbsUdpPort(label), 0xc000);
    ASSERT_TRUE(ports.insert(VerbsUdpPort(label)).second) << number;
  }
  EXPECT_NE(VerbsFlowLabel(77, 1), VerbsFlowLabel(78, 1));
}

TEST_F(VerbsFlowTest, EachPathHasAFlowLabelOfItsOwnAndTheOtherSideHasTheSame) {
  for (uint16_t entropy = 0; entropy < 8; ++entropy) Send(WriteOf(entropy, 100, entropy));
  EXPECT_EQ(Immediates(Run()).size(), 8u);
  std::set<uint32_t> labels, answers;
  for (const uint32_t qp : cards_.PathQps(0)) labels.insert(cards_.FlowLabelOf(qp));
  for (const uint32_t qp : cards_.PathQps(1)) answers.insert(cards_.FlowLabelOf(qp));
  EXPECT_EQ(labels.size(), 8u);
  EXPECT_EQ(labels, answers) << "acknowledgements of RC take a way of their own too";
  EXPECT_FALSE(labels.contains(0));
}

TEST_F(VerbsFlowTest, APathThatIsResetTakesAnotherRoute) {
  Send(WriteOf(1, 100));
  Run();
  ASSERT_EQ(cards_.PathQps(0).size(), 1u);
  const uint32_t before = cards_.FlowLabelOf(cards_.PathQps(0)[0]);
  a_->ResetPath(to_b_, 7, 0);
  Send(WriteOf(2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
  ASSERT_EQ(cards_.PathQps(0).size(), 1u);
  EXPECT_NE(cards_.FlowLabelOf(cards_.PathQps(0)[0]), before);
}

TEST_F(VerbsFlowTest, ACardThatTakesUdpPortsIsToldThePortOfTheFlowLabel) {
  cards_.AnswerUdpPorts(0, 0);
  for (uint16_t entropy = 0; entropy < 4; ++entropy) Send(WriteOf(entropy, 100, entropy));
  EXPECT_EQ(Immediates(Run()).size(), 4u);
  ASSERT_EQ(cards_.PathQps(0).size(), 4u);
  for (const uint32_t qp : cards_.PathQps(0)) {
    EXPECT_EQ(cards_.UdpPortOf(qp), VerbsUdpPort(cards_.FlowLabelOf(qp)));
  }
}

TEST_F(VerbsFlowTest, ACardThatRefusesUdpPortsIsAskedOnceAndWrites) {
  for (const int error : {EOPNOTSUPP, EINVAL}) {
    a_ = Make("fake0");
    to_b_ = a_->OpenPeer(b_->address());
    cards_.AnswerUdpPorts(0, error);
    testing::internal::CaptureStderr();
    for (uint16_t entropy = 0; entropy < 4; ++entropy) {
      Send(WriteOf(entropy, 100, entropy));
      EXPECT_EQ(Immediates(Run()), List({entropy}));
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), error == EINVAL ? 1 : 0) << said;
    cards_.AnswerUdpPorts(0, 0);
    Send(WriteOf(9, 100, 5));
    EXPECT_EQ(Immediates(Run()), List({9}));
    for (const uint32_t qp : cards_.PathQps(0)) EXPECT_EQ(cards_.UdpPortOf(qp), 0) << "it was not to be asked again";
  }
}

}  // namespace
}  // namespace paceline::support
