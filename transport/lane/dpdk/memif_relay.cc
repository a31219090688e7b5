#include "transport/lane/dpdk/memif_relay.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "transport/lane/dpdk/dpdk_memif.h"
#include "transport/lane/unix_socket.h"

namespace paceline {
namespace {

// memif.h: a message is 128 bytes, of which the first two are its kind.
constexpr size_t kMessageBytes = 128;
constexpr uint16_t kInit = 3, kConnect = 6, kConnected = 7, kDisconnect = 8;
constexpr size_t kInitIdAt = 4;  // four bytes, behind the version

constexpr char kDefaultSocket[] = "/run/memif.sock";  // of the driver's
constexpr int kBacklog = 64;
constexpr int kLockAttempts = 100;  // for a second: who opens a socket is done long before
constexpr useconds_t kLockRetryMicros = 10'000;
constexpr int kMostAccepts = 8;      // in one look: others may connect faster than we accept
constexpr size_t kMostUnnamed = 16;  // connections that have not said which port they are for

struct MemifSettings {
  std::string address = kDefaultSocket;
  bool is_abstract = true, is_server = false;
  uint32_t id = 0;
  std::string others;  // with the port's name

  explicit MemifSettings(std::string_view devargs) {
    for (const absl::string_view part : absl::StrSplit(absl::string_view(devargs.data(), devargs.size()), ',')) {
      const std::pair<absl::string_view, absl::string_view> setting = absl::StrSplit(part, absl::MaxSplits('=', 1));
      const auto& [key, value] = setting;
      if (key == "socket") {
        address = std::string(value);
      } else if (key == "socket-abstract") {
        is_abstract = value != "no";
      } else {
        // What the driver does not understand it says itself.
        if (key == "role") is_server = value == "server" || value == "master";
        if (key == "id" && !absl::SimpleAtoi(value, &id)) id = 0;
        absl::StrAppend(&others, others.empty() ? "" : ",", part);
      }
    }
  }
};

uint16_t KindOf(std::span<const uint8_t> message) {
  uint16_t kind = 0;
  if (message.size() >= sizeof(kind)) std::memcpy(&kind, message.data(), sizeof(kind));
  return kind;
}

// What a server that was killed leaves behind: a socket's file, at which nobody listens. False, and errno is left
// alone: it is something else.
bool RemoveDeadSocket(const UnixAddress& address) {
  const int before = errno;
  const std::string path(address.name);
  std::error_code error;
  const bool is_file = !address.is_abstract && std::filesystem::is_socket(std::filesystem::symlink_status(path, error));
  const bool is_dead = is_file && !ConnectUnix(address).valid() && errno == ECONNREFUSED;
  if (is_dead && unlink(path.c_str()) == 0) return true;
  errno = before;
  return false;
}

// Keeps servers of other processes out while one of them looks at the file of their socket: its folder's own lock,
// which leaves no file behind. Not valid: somebody has it for something else.
FileDescriptor LockFolderOf(const UnixAddress& address) {
  const std::filesystem::path folder = std::filesystem::path(std::string(address.name)).parent_path();
  FileDescriptor lock(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int attempt = 0; lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (attempt == kLockAttempts || errno != EWOULDBLOCK) return FileDescriptor();
    usleep(kLockRetryMicros);
  }
  return lock;
}

// Of several servers that start at one address at once the first has it. Without the lock one could take another for
// dead that has made its file and does not listen yet, or take away the file with which another has just replaced that
// of a dead one; so without it no file is taken away.
FileDescriptor ListenAsServer(const UnixAddress& address) {
  const FileDescriptor lock = address.is_abstract ? FileDescriptor() : LockFolderOf(address);
  FileDescriptor listener = ListenUnix(address, kBacklog);
  if (!listener.valid() && errno == EADDRINUSE && lock.valid() && RemoveDeadSocket(address)) {
    listener = ListenUnix(address, kBacklog);
  }
  return listener;
}

// What tells a file from another that has taken its name. Nothing: there is none.
std::optional<std::pair<dev_t, ino_t>> FileAt(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return std::nullopt;
  return std::pair(found.st_dev, found.st_ino);
}

// Guards who has which address: whoever opens one finds it whole, or gone with its file.
std::mutex& OpeningMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

// An address and all who meet there: ports that serve at one have it in common, and are told apart by their numbers.
class MemifSocket {
 public:
  static absl::StatusOr<std::shared_ptr<MemifSocket>> Open(const MemifSettings& settings);
  // Whoever has one gives it back here, as the last takes the file away.
  static void Close(std::shared_ptr<MemifSocket> socket);
  ~MemifSocket() {
    if (file_ && FileAt(address_) == file_) unlink(address_.c_str());
    std::error_code error;  // of what is left behind then
    if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
  }
  MemifSocket(const MemifSocket&) = delete;
  MemifSocket& operator=(const MemifSocket&) = delete;

  const std::string& address() const { return address_; }
  const std::string& driver_address() const { return driver_address_; }

  bool Enter(uint32_t id);  // false: that number is taken
  void Leave(uint32_t id);
  bool FindServer();
  struct Outlook {
    bool connected = false, is_meeting = false, has_moved = false;
  };
  // For the port of that number, and for connections that no port answers for.
  Outlook Pass(uint32_t id);

 private:
  // kAnswering: a server's driver has all that it needs, and says next that it has the memory or that it will not. Of
  // the peer nothing is passed on before that. kLeaving: the driver has heard that it is over, and ends its own side
  // when it has given back the memory.
  enum class Stage : uint8_t { kMeeting, kAnswering, kConnected, kLeaving };
  struct Connection {
    FileDescriptor driver, peer;
    std::optional<uint32_t> id;
    Stage stage = Stage::kMeeting;
    bool has_moved = false;  // in this look

    // The driver's end stays open until the driver has closed its own: it may be about to say something, and does not
    // bear that nobody listens.
    void Leave() {
      shutdown(driver.get(), SHUT_WR);
      stage = Stage::kLeaving;
    }
  };

  explicit MemifSocket(const MemifSettings& settings)
      : address_(settings.address), is_abstract_(settings.is_abstract), is_server_(settings.is_server) {}

  UnixAddress named() const { return {address_, is_abstract_}; }
  UnixAddress drivers() const { return {driver_address_, false}; }
  bool IsFor(const Connection& connection, uint32_t id) const;
  void Accept(uint32_t id);
  // False: none waits, or the driver takes none for now.
  bool AcceptOne(uint32_t id);
  // False: the driver has ended it.
  bool PassFromDriver(Connection& connection);
  void PassFromPeer(Connection& connection);

  const std::string address_;
  const bool is_abstract_, is_server_;
  std::optional<std::pair<dev_t, ino_t>> file_;  // of a server that listens; may have been taken away since
  std::string folder_;                           // nobody else may enter it
  std::string driver_address_;
  std::mutex mutex_;  // guards what follows
  FileDescriptor listener_;
  FileDescriptor waiting_;  // at a server, for the driver to take one more
  FileDescriptor server_;   // of a client: a connection that waits for the driver's
  std::vector<uint32_t> ids_;
  std::vector<Connection> connections_;
};

absl::StatusOr<std::shared_ptr<MemifSocket>> MemifSocket::Open(const MemifSettings& settings) {
  static auto* const servers = new std::map<std::pair<std::string, bool>, std::weak_ptr<MemifSocket>>;
  const std::lock_guard<std::mutex> lock(OpeningMutex());
  std::weak_ptr<MemifSocket> none;
  auto& known = settings.is_server ? (*servers)[{settings.address, settings.is_abstract}] : none;
  if (auto socket = known.lock()) return socket;
  std::shared_ptr<MemifSocket> socket(new MemifSocket(settings));
  const auto folder = OwnMemifFolder();
  if (!folder.ok()) return folder.status();
  socket->folder_ = absl::StrCat(*folder, "/memif-XXXXXX");
  if (mkdtemp(socket->folder_.data()) == nullptr) {
    const absl::Status failed = absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder in ", *folder));
    socket->folder_.clear();
    return failed;
  }
  socket->driver_address_ = socket->folder_ + "/s";
  const UnixAddress own = settings.is_server ? socket->named() : socket->drivers();
  socket->listener_ = settings.is_server ? ListenAsServer(own) : ListenUnix(own, kBacklog);
  if (!socket->listener_.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", std::string(own.name)));
  }
  if (settings.is_server && !settings.is_abstract) socket->file_ = FileAt(settings.address);
  known = socket;
  return socket;
}

void MemifSocket::Close(std::shared_ptr<MemifSocket> socket) {
  const std::lock_guard<std::mutex> lock(OpeningMutex());
  socket.reset();
}

bool MemifSocket::Enter(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(ids_.begin(), ids_.end(), id) != ids_.end()) return false;
  ids_.push_back(id);
  return true;
}

void MemifSocket::Leave(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(ids_, id);
  std::erase_if(connections_, [id](const Connection& connection) { return connection.id == id; });
}

bool MemifSocket::FindServer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (server_.valid()) {
    char byte;
    const ssize_t got = recv(server_.get(), &byte, sizeof(byte), MSG_PEEK);
    if (got > 0 || (got < 0 && errno == EAGAIN)) return true;
  }
  server_ = ConnectUnix(named());
  return server_.valid();
}

bool MemifSocket::IsFor(const Connection& connection, uint32_t id) const {
  if (connection.id && std::find(ids_.begin(), ids_.end(), *connection.id) != ids_.end()) return connection.id == id;
  return true;
}

bool MemifSocket::AcceptOne(uint32_t id) {
  Connection connection;
  if (is_server_) {
    connection.peer = waiting_.valid() ? std::exchange(waiting_, FileDescriptor()) : AcceptUnix(listener_);
    if (!connection.peer.valid()) return false;
    connection.driver = ConnectUnix(drivers());
    if (!connection.driver.valid() && errno == EAGAIN) {
      waiting_ = std::move(connection.peer);
      return false;
    }
    if (!connection.driver.valid()) return true;
  } else {
    connection.driver = AcceptUnix(listener_);
    if (!connection.driver.valid()) return false;
    connection.peer = server_.valid() ? std::exchange(server_, FileDescriptor()) : ConnectUnix(named());
    connection.id = id;
    if (!connection.peer.valid()) connection.Leave();
  }
  connections_.push_back(std::move(connection));
  const auto is_unnamed = [](const Connection& other) { return !other.id && other.stage == Stage::kMeeting; };
  if (std::count_if(connections_.begin(), connections_.end(), is_unnamed) > std::ptrdiff_t{kMostUnnamed}) {
    Connection& oldest = *std::find_if(connections_.begin(), connections_.end(), is_unnamed);
    oldest.peer = FileDescriptor();
    oldest.Leave();
  }
  return true;
}

void MemifSocket::Accept(uint32_t id) {
  for (int i = 0; i < kMostAccepts && AcceptOne(id); ++i) {
  }
}

bool MemifSocket::PassFromDriver(Connection& connection) {
  std::array<uint8_t, kMessageBytes> room;
  for (;;) {
    const UnixMessage message = TakeUnixMessage(connection.driver, room);
    if (message.state != UnixMessage::State::kTaken) return message.state == UnixMessage::State::kWaiting;
    connection.has_moved = true;
    const auto bytes = std::span(room).first(message.bytes);
    // To a peer that has gone: its end is heard of below.
    SendUnixMessage(connection.peer, bytes, message.descriptor);
    if (connection.stage == Stage::kAnswering && KindOf(bytes) == kConnected) connection.stage = Stage::kConnected;
  }
}

void MemifSocket::PassFromPeer(Connection& connection) {
  std::array<uint8_t, kMessageBytes> room;
  while (connection.stage == Stage::kMeeting || connection.stage == Stage::kConnected) {
    const UnixMessage message = TakeUnixMessage(connection.peer, room);
    if (message.state == UnixMessage::State::kWaiting) return;
    if (message.state == UnixMessage::State::kEnd) return connection.Leave();
    connection.has_moved = true;
    const auto bytes = std::span(room).first(message.bytes);
    const uint16_t kind = KindOf(bytes);
    if (connection.stage == Stage::kConnected) {  // nothing else is left to say between the two
      if (kind == kDisconnect) SendUnixMessage(connection.driver, bytes, message.descriptor);
      return connection.Leave();
    }
    if (!SendUnixMessage(connection.driver, bytes, message.descriptor)) return connection.Leave();
    if (is_server_ && kind == kConnect) connection.stage = Stage::kAnswering;
    if (!is_server_ && kind == kConnected) connection.stage = Stage::kConnected;
    if (kind == kInit && bytes.size() >= kInitIdAt + sizeof(uint32_t) && !connection.id) {
      uint32_t id = 0;
      std::memcpy(&id, &bytes[kInitIdAt], sizeof(id));
      connection.id = id;
    }
  }
}

MemifSocket::Outlook MemifSocket::Pass(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Accept(id);
  Outlook outlook;
  std::erase_if(connections_, [&](Connection& connection) {
    if (!IsFor(connection, id)) return false;
    connection.has_moved = false;
    if (!PassFromDriver(connection)) return true;
    PassFromPeer(connection);
    // Whose number was heard just now may be another thread's, which then sees to it.
    if (connection.id != id) return false;
    const bool is_meeting = connection.stage == Stage::kMeeting || connection.stage == Stage::kAnswering;
    outlook.connected |= connection.stage == Stage::kConnected;
    outlook.is_meeting |= is_meeting;
    outlook.has_moved |= is_meeting && connection.has_moved;
    return false;
  });
  return outlook;
}

absl::StatusOr<std::unique_ptr<MemifRelay>> MemifRelay::Open(std::string_view devargs) {
  const MemifSettings settings(devargs);
  auto socket = MemifSocket::Open(settings);
  if (!socket.ok()) return socket.status();
  if (!(*socket)->Enter(settings.id)) {
    MemifSocket::Close(*std::move(socket));
    return absl::AlreadyExistsError(absl::StrCat("id=", settings.id, " at socket=", settings.address,
                                                 " is another port's of this process: give each an id= of its own"));
  }
  std::string own = absl::StrCat(settings.others, ",socket=", (*socket)->driver_address(), ",socket-abstract=no");
  return std::unique_ptr<MemifRelay>(new MemifRelay(*std::move(socket), settings.id, std::move(own)));
}

MemifRelay::MemifRelay(std::shared_ptr<MemifSocket> socket, uint32_t id, std::string devargs)
    : socket_(std::move(socket)), id_(id), devargs_(std::move(devargs)) {}

MemifRelay::~MemifRelay() {
  socket_->Leave(id_);
  MemifSocket::Close(std::move(socket_));
}

const std::string& MemifRelay::address() const { return socket_->address(); }

bool MemifRelay::FindServer() { return socket_->FindServer(); }

void MemifRelay::Pass() {
  const MemifSocket::Outlook outlook = socket_->Pass(id_);
  connected_ = outlook.connected;
  is_meeting_ = outlook.is_meeting;
  has_moved_ = outlook.has_moved;
}

}  // namespace paceline
