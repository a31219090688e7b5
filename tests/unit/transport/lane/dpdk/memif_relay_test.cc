// The relay between a memif's driver and its peer, with a driver and peers of the test's: plain sockets.
#include "transport/lane/dpdk/memif_relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/unix_socket.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

// Kinds of messages.
constexpr uint16_t kAck = 1, kHello = 2, kInit = 3, kAddRegion = 4, kConnect = 6, kConnected = 7, kDisconnect = 8;

// One end of a connection, as driver or peer.
class End {
 public:
  explicit End(FileDescriptor socket) : socket_(std::move(socket)) {}
  static End Connect(const UnixAddress& address) { return End(ConnectUnix(address)); }

  bool valid() const { return socket_.valid(); }
  void Close() { socket_ = FileDescriptor(); }

  void Say(uint16_t kind, uint32_t id = 0, const FileDescriptor& descriptor = FileDescriptor()) {
    std::array<uint8_t, 128> message{};
    std::memcpy(message.data(), &kind, sizeof(kind));
    std::memcpy(&message[4], &id, sizeof(id));
    message[127] = 0x7e;
    EXPECT_TRUE(SendUnixMessage(socket_, message, descriptor));
  }
  void SayBytes(size_t bytes) {
    const std::vector<uint8_t> message(bytes, 0x11);
    SendUnixMessage(socket_, message, FileDescriptor());
  }
  // 0: nothing; nothing at all: the other side has ended it.
  std::optional<uint16_t> Hear() {
    std::array<uint8_t, 256> room;
    UnixMessage message = TakeUnixMessage(socket_, room);
    heard_ = std::move(message.descriptor);
    if (message.state == UnixMessage::State::kWaiting) return uint16_t{0};
    if (message.state == UnixMessage::State::kEnd) return std::nullopt;
    EXPECT_EQ(message.bytes, 128u);
    EXPECT_EQ(room[127], 0x7e);
    uint16_t kind = 0;
    std::memcpy(&kind, room.data(), sizeof(kind));
    return kind;
  }
  const FileDescriptor& heard() const { return heard_; }

 private:
  FileDescriptor socket_, heard_;
};

class MemifRelayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "relay_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    address_ = folder + "/s";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<MemifRelay> Open(const std::string& role, uint32_t id = 0) const {
    auto relay = MemifRelay::Open(
        absl::StrCat("net_memif0,role=", role, ",socket=", address_, ",id=", id, ",socket-abstract=no,bsize=9216"));
    EXPECT_TRUE(relay.ok()) << relay.status();
    return relay.ok() ? *std::move(relay) : nullptr;
  }
  // What the driver is told to listen at, or to connect to.
  static std::string DriverAddress(const MemifRelay& relay) {
    const std::string& devargs = relay.devargs();
    const size_t from = devargs.find("socket=") + 7;
    return devargs.substr(from, devargs.find(',', from) - from);
  }
  UnixAddress address() const { return {address_, false}; }

  std::filesystem::path folder_;
  std::string address_;
};

// A server's driver and a peer that has connected to it.
class MemifServerRelayTest : public MemifRelayTest {
 protected:
  void SetUp() override {
    MemifRelayTest::SetUp();
    relay_ = Open("server");
    ASSERT_TRUE(relay_ != nullptr);
    drivers_ = ListenUnix({DriverAddress(*relay_), false}, 8);
    ASSERT_TRUE(drivers_.valid());
  }
  // Up to where the driver says that it has the memory.
  void Meet(End& driver, End& peer, uint32_t id = 0) {
    driver.Say(kHello);
    relay_->Pass();
    EXPECT_EQ(peer.Hear(), kHello);
    peer.Say(kInit, id);
    peer.Say(kConnect);
    relay_->Pass();
    EXPECT_EQ(driver.Hear(), kInit);
    EXPECT_EQ(driver.Hear(), kConnect);
    EXPECT_FALSE(relay_->connected());
    EXPECT_TRUE(relay_->is_meeting());
    driver.Say(kConnected);
    relay_->Pass();
    EXPECT_EQ(peer.Hear(), kConnected);
    EXPECT_TRUE(relay_->connected());
    EXPECT_FALSE(relay_->is_meeting());
  }
  End NextDriver() {
    relay_->Pass();
    return End(AcceptUnix(drivers_));
  }

  std::unique_ptr<MemifRelay> relay_;
  FileDescriptor drivers_;
};

TEST_F(MemifRelayTest, TheDriverGetsAllSettingsButTheAddress) {
  const auto relay = Open("server", 7);
  ASSERT_TRUE(relay != nullptr);
  EXPECT_TRUE(absl::StartsWith(relay->devargs(), "net_memif0,role=server,id=7,bsize=9216,socket=/"));
  EXPECT_TRUE(absl::EndsWith(relay->devargs(), "/s,socket-abstract=no"));
  EXPECT_EQ(relay->address(), address_);
}

TEST_F(MemifRelayTest, AnAddressThatIsTakenIsSaidAndLeftAlone) {
  const FileDescriptor other = ListenUnix(address(), 1);
  ASSERT_TRUE(other.valid());
  const auto taken = MemifRelay::Open(absl::StrCat("net_memif0,role=server,socket-abstract=no,socket=", address_));
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(address_));
  EXPECT_TRUE(ConnectUnix(address()).valid());
}

TEST_F(MemifRelayTest, TheFileOfAServerThatWasKilledIsNoHindrance) {
  ASSERT_TRUE(ListenUnix(address(), 1).valid());  // which leaves its file behind
  ASSERT_TRUE(std::filesystem::exists(address_));
  const auto relay = Open("server");
  ASSERT_TRUE(relay != nullptr);
  EXPECT_TRUE(ConnectUnix(address()).valid());
}

// Another that starts at the same moment looks dead while it has its file and does not listen yet.
TEST_F(MemifRelayTest, WhileAnotherServerMayBeStartingNoFileIsTakenAway) {
  ASSERT_TRUE(ListenUnix(address(), 1).valid());
  const FileDescriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(folder.get(), LOCK_EX | LOCK_NB), 0);
  const auto refused = MemifRelay::Open(absl::StrCat("net_memif0,role=server,socket-abstract=no,socket=", address_));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Address already in use"));
  EXPECT_TRUE(std::filesystem::exists(address_));
  EXPECT_TRUE(Open("client") != nullptr) << "who takes no file away needs no lock";
  ASSERT_EQ(flock(folder.get(), LOCK_UN), 0);
  EXPECT_TRUE(Open("server") != nullptr);
  EXPECT_EQ(flock(folder.get(), LOCK_EX | LOCK_NB), 0) << "it is held while a server starts, no longer";
}

TEST_F(MemifRelayTest, AFileThatIsAnotherServersByNowIsLeftAlone) {
  auto relay = Open("server");
  ASSERT_TRUE(relay != nullptr);
  ASSERT_TRUE(std::filesystem::remove(address_));
  const FileDescriptor other = ListenUnix(address(), 1);
  ASSERT_TRUE(other.valid());
  relay.reset();
  EXPECT_TRUE(ConnectUnix(address()).valid());
}

TEST_F(MemifRelayTest, AFileThatIsNoSocketIsLeftAlone) {
  const auto refused = [this] {
    const auto relay = MemifRelay::Open(absl::StrCat("net_memif0,role=server,socket-abstract=no,socket=", address_));
    EXPECT_FALSE(relay.ok());
    EXPECT_THAT(std::string(relay.status().message()), HasSubstr("Address already in use"));
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(address_)));
  };
  std::ofstream(address_) << "not ours";
  refused();
  std::filesystem::remove(address_);
  const std::string elsewhere = address_ + "0";
  ASSERT_TRUE(ListenUnix({elsewhere, false}, 1).valid());
  std::filesystem::create_symlink(elsewhere, address_);
  refused();
}

TEST_F(MemifRelayTest, ItsFilesGoWithIt) {
  auto relay = Open("server");
  ASSERT_TRUE(relay != nullptr);
  const std::filesystem::path own = std::filesystem::path(DriverAddress(*relay)).parent_path();
  EXPECT_TRUE(std::filesystem::exists(address_));
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all) << "nobody else's";
  relay.reset();
  EXPECT_FALSE(std::filesystem::exists(address_));
  EXPECT_FALSE(std::filesystem::exists(own));
}

TEST_F(MemifServerRelayTest, MessagesPassBothWaysWithWhatIsBesideThem) {
  End peer = End::Connect(address());
  ASSERT_TRUE(peer.valid());
  End driver = NextDriver();
  ASSERT_TRUE(driver.valid());
  const FileDescriptor memory(open("/dev/null", O_RDONLY | O_CLOEXEC));
  struct stat sent {};
  struct stat got {};
  ASSERT_EQ(fstat(memory.get(), &sent), 0);
  for (const bool from_peer : {true, false}) {
    End& from = from_peer ? peer : driver;
    End& to = from_peer ? driver : peer;
    from.Say(kAddRegion, 0, memory);
    from.Say(kAck);
    relay_->Pass();
    EXPECT_EQ(to.Hear(), kAddRegion);
    ASSERT_TRUE(to.heard().valid());
    ASSERT_EQ(fstat(to.heard().get(), &got), 0);
    EXPECT_EQ(got.st_rdev, sent.st_rdev);
    EXPECT_EQ(to.Hear(), kAck);
    EXPECT_FALSE(to.heard().valid());
    EXPECT_EQ(to.Hear(), 0);
  }
}

TEST_F(MemifServerRelayTest, ThatThePeerHasGoneTheDriverHearsInPassAlone) {
  for (const bool says_so : {false, true}) {
    SCOPED_TRACE(says_so);
    End peer = End::Connect(address());
    End driver = NextDriver();
    Meet(driver, peer);
    if (says_so) peer.Say(kDisconnect);
    peer.Close();
    EXPECT_EQ(driver.Hear(), 0) << "while its queues may be in use";
    EXPECT_TRUE(relay_->connected());
    relay_->Pass();
    EXPECT_FALSE(relay_->connected()) << "from the moment that the driver may give back the memory";
    EXPECT_FALSE(relay_->is_meeting());
    if (says_so) {
      EXPECT_EQ(driver.Hear(), kDisconnect);
    }
    EXPECT_EQ(driver.Hear(), std::nullopt);
    driver.Close();
    relay_->Pass();
    EXPECT_FALSE(relay_->connected());
  }
}

TEST_F(MemifServerRelayTest, WhateverThePeerSaysOnceConnectedEndsIt) {
  for (const size_t bytes : {1u, 128u, 200u}) {
    End peer = End::Connect(address());
    End driver = NextDriver();
    Meet(driver, peer);
    peer.SayBytes(bytes);
    relay_->Pass();
    EXPECT_FALSE(relay_->connected());
    EXPECT_EQ(driver.Hear(), std::nullopt) << "and is not passed on";
    driver.Close();
    relay_->Pass();
    EXPECT_EQ(peer.Hear(), std::nullopt);
  }
}

TEST_F(MemifServerRelayTest, ADriverThatEndsItIsHeardByThePeer) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  Meet(driver, peer);
  driver.Say(kDisconnect);
  driver.Close();
  relay_->Pass();
  EXPECT_FALSE(relay_->connected());
  EXPECT_EQ(peer.Hear(), kDisconnect);
  EXPECT_EQ(peer.Hear(), std::nullopt);
}

TEST_F(MemifServerRelayTest, APeerCannotSayForTheDriverThatItHasTheMemory) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  peer.Say(kInit);
  peer.Say(kConnected);
  relay_->Pass();
  EXPECT_FALSE(relay_->connected());
  EXPECT_TRUE(relay_->has_moved());
  relay_->Pass();
  EXPECT_FALSE(relay_->has_moved());
}

TEST_F(MemifServerRelayTest, ASecondPeerWaitsForTheDriversAnswerBesideTheFirst) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  Meet(driver, peer);
  End second = End::Connect(address());
  End again = NextDriver();
  ASSERT_TRUE(again.valid());
  second.Say(kInit);
  relay_->Pass();
  EXPECT_EQ(again.Hear(), kInit);
  EXPECT_TRUE(relay_->connected()) << "the first still is";
  again.Say(kDisconnect);
  again.Close();
  relay_->Pass();
  EXPECT_EQ(second.Hear(), kDisconnect);
  EXPECT_EQ(second.Hear(), std::nullopt);
  EXPECT_TRUE(relay_->connected());
}

TEST_F(MemifServerRelayTest, PeersThatNeverSayWhomTheyWantDoNotKeepOthersOut) {
  std::vector<End> silent, drivers;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(End::Connect(address()));
    drivers.push_back(NextDriver());
    ASSERT_TRUE(drivers.back().valid()) << i;
  }
  EXPECT_EQ(silent.front().Hear(), std::nullopt) << "the oldest went";
  EXPECT_EQ(drivers.front().Hear(), std::nullopt);
  EXPECT_EQ(silent.back().Hear(), 0);
  EXPECT_EQ(drivers.back().Hear(), 0);
  Meet(drivers.back(), silent.back());
}

// The driver of DPDK 22.11 sends without MSG_NOSIGNAL.
TEST_F(MemifServerRelayTest, APeerThatCameAndWentLeavesTheDriverAnOpenEnd) {
  End peer = End::Connect(address());
  peer.Close();
  End driver = NextDriver();
  ASSERT_TRUE(driver.valid());
  driver.Say(kHello);  // which fails where nobody has the other end
  EXPECT_EQ(driver.Hear(), std::nullopt);
  driver.Close();
  relay_->Pass();
  EXPECT_FALSE(relay_->is_meeting());
}

TEST_F(MemifServerRelayTest, OfAPeerThatGoesWhileTheDriverAnswersItHearsAfterwards) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  peer.Say(kInit);
  peer.Say(kConnect);
  peer.Say(kDisconnect);
  peer.Close();
  relay_->Pass();
  relay_->Pass();
  EXPECT_EQ(driver.Hear(), kInit);
  EXPECT_EQ(driver.Hear(), kConnect);
  EXPECT_EQ(driver.Hear(), 0) << "as it may have the memory before anybody knows";
  driver.Say(kConnected);
  relay_->Pass();
  EXPECT_FALSE(relay_->connected());
  EXPECT_EQ(driver.Hear(), kDisconnect);
  EXPECT_EQ(driver.Hear(), std::nullopt);
}

TEST_F(MemifServerRelayTest, WhoComesWhileTheDriverTakesNoMoreWaits) {
  drivers_ = FileDescriptor();
  ASSERT_EQ(std::filesystem::remove(DriverAddress(*relay_)), true);
  drivers_ = ListenUnix({DriverAddress(*relay_), false}, 0);  // room for one
  ASSERT_TRUE(drivers_.valid());
  std::vector<End> peers;
  for (int i = 0; i < 6; ++i) peers.push_back(End::Connect(address()));
  std::vector<End> drivers;
  for (int i = 0; i < 20; ++i) {
    End driver = NextDriver();
    if (driver.valid()) drivers.push_back(std::move(driver));
  }
  EXPECT_EQ(drivers.size(), peers.size());
  for (End& peer : peers) EXPECT_EQ(peer.Hear(), 0);
}

TEST_F(MemifServerRelayTest, APortOfTheSameNumberIsRefusedAndTheFirstGoesOn) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  Meet(driver, peer);
  const auto second = MemifRelay::Open(absl::StrCat("net_memif1,role=server,socket-abstract=no,socket=", address_));
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("id=0"));
  EXPECT_EQ(peer.Hear(), 0);
  EXPECT_EQ(driver.Hear(), 0);
  relay_->Pass();
  EXPECT_TRUE(relay_->connected());
}

// Two ports of one process that serve at one address.
TEST_F(MemifServerRelayTest, PortsAtOneAddressSeeToTheirOwn) {
  const auto other = Open("server", 5);
  ASSERT_TRUE(other != nullptr);
  EXPECT_EQ(DriverAddress(*other), DriverAddress(*relay_)) << "the driver tells them apart by itself";
  End peer = End::Connect(address());
  other->Pass();  // whoever comes first
  End driver(AcceptUnix(drivers_));
  ASSERT_TRUE(driver.valid());
  Meet(driver, peer);
  End peer5 = End::Connect(address());
  End driver5 = NextDriver();
  peer5.Say(kInit, 5);
  relay_->Pass();
  EXPECT_EQ(driver5.Hear(), kInit);
  peer5.Say(kConnect);
  relay_->Pass();
  EXPECT_EQ(driver5.Hear(), 0) << "from here on it is the other's";
  other->Pass();
  EXPECT_EQ(driver5.Hear(), kConnect);
  driver5.Say(kConnected);
  other->Pass();
  EXPECT_TRUE(other->connected());
  peer5.Close();
  relay_->Pass();
  EXPECT_TRUE(relay_->connected());
  EXPECT_TRUE(other->connected()) << "whose thread may be using the queues";
  EXPECT_EQ(driver5.Hear(), 0);
  other->Pass();
  EXPECT_FALSE(other->connected());
  EXPECT_EQ(driver5.Hear(), std::nullopt);
  EXPECT_TRUE(relay_->connected());
}

TEST_F(MemifServerRelayTest, WhoWantsAPortThatIsNotThereHearsTheDriversAnswer) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  peer.Say(kInit, 99);
  relay_->Pass();
  EXPECT_EQ(driver.Hear(), kInit);
  driver.Say(kDisconnect);
  driver.Close();
  relay_->Pass();
  EXPECT_EQ(peer.Hear(), kDisconnect);
  EXPECT_EQ(peer.Hear(), std::nullopt);
}

TEST_F(MemifServerRelayTest, APortThatGoesTakesItsPeerAlong) {
  End peer = End::Connect(address());
  End driver = NextDriver();
  Meet(driver, peer);
  relay_.reset();
  EXPECT_EQ(peer.Hear(), std::nullopt);
  EXPECT_EQ(driver.Hear(), std::nullopt);
  EXPECT_FALSE(ConnectUnix(address()).valid());
}

TEST_F(MemifRelayTest, AClientFindsItsServerBeforeTheDriverConnects) {
  const auto relay = Open("client");
  ASSERT_TRUE(relay != nullptr);
  EXPECT_FALSE(relay->FindServer());
  FileDescriptor servers = ListenUnix(address(), 8);
  ASSERT_TRUE(relay->FindServer());
  EXPECT_TRUE(relay->FindServer()) << "the one that it has";
  End peer(AcceptUnix(servers));
  ASSERT_TRUE(peer.valid());
  EXPECT_FALSE(AcceptUnix(servers).valid());
  peer.Close();
  ASSERT_TRUE(relay->FindServer()) << "another, as that one has gone";
  peer = End(AcceptUnix(servers));
  ASSERT_TRUE(peer.valid());

  End driver = End::Connect({DriverAddress(*relay), false});
  ASSERT_TRUE(driver.valid());
  peer.Say(kHello);
  relay->Pass();
  EXPECT_TRUE(relay->is_meeting());
  EXPECT_EQ(driver.Hear(), kHello);
  driver.Say(kInit);
  driver.Say(kConnect);
  driver.Say(kConnected);  // which is not a client's to say
  relay->Pass();
  EXPECT_FALSE(relay->connected());
  EXPECT_EQ(peer.Hear(), kInit);
  EXPECT_EQ(peer.Hear(), kConnect);
  peer.Say(kConnected);
  relay->Pass();
  EXPECT_TRUE(relay->connected());
  EXPECT_EQ(driver.Hear(), kConnected);
  peer.Close();
  EXPECT_EQ(driver.Hear(), 0);
  relay->Pass();
  EXPECT_FALSE(relay->connected());
  EXPECT_EQ(driver.Hear(), std::nullopt);
}

TEST_F(MemifRelayTest, ADriverThatConnectsToNobodyHearsSo) {
  const auto relay = Open("client");
  ASSERT_TRUE(relay != nullptr);
  End driver = End::Connect({DriverAddress(*relay), false});
  ASSERT_TRUE(driver.valid());
  relay->Pass();
  EXPECT_EQ(driver.Hear(), std::nullopt);
  EXPECT_FALSE(relay->is_meeting());
}

}  // namespace
}  // namespace paceline
