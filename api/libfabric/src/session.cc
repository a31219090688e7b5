#include "api/libfabric/src/session.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <utility>

#include "api/libfabric/src/cm_message.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

using api::ConnectionState;

// Of a connection that is over.
bool WasEstablished(api::CloseCode code) {
  switch (code) {
    case api::CloseCode::kByPeer:
    case api::CloseCode::kLocal:
    case api::CloseCode::kAborted:
    case api::CloseCode::kPeerLost:
    case api::CloseCode::kProtocolError:
      return true;
    default:
      return false;
  }
}

CmMessage Message(CmMessage::Kind kind, const Address& from, Session::Data data) {
  return {.kind = kind, .from = from, .data = {data.begin(), data.end()}};
}

}  // namespace

Session::Session(api::Context* paceline, api::ReceiveQueue* receives, std::unique_ptr<Request> request,
                 std::optional<Address> target)
    : paceline_(paceline), receives_(receives), request_(std::move(request)), target_(target) {
  if (request_ == nullptr) return;
  own_ = request_->to;
  peer_ = request_->from;
}

int Session::Open() {
  if (request_ != nullptr) return 0;
  auto listener = paceline_->Listen({.receives = receives_});
  if (!listener.ok()) return -ErrorOf(listener.status());
  listener_ = *std::move(listener);
  own_ = ToAddress(listener_->handle());
  return 0;
}

int Session::Connect(const Address* to, Data data) {
  if (state_ != State::kIdle || request_ != nullptr) return -FI_EOPBADSTATE;
  if (to == nullptr && target_.has_value()) to = &*target_;
  if (data.size() > kCmDataBytes || to == nullptr || to->bytes[8] == 0) return -FI_EINVAL;
  const auto message = Encode(Message(CmMessage::Kind::kRequest, own_, data));
  auto question = paceline_->Connect(ToHandle(*to), {.private_data = message});
  if (!question.ok()) return -ErrorOf(question.status());
  question_ = *std::move(question);
  peer_ = *to;
  state_ = State::kAsking;
  return 0;
}

int Session::Accept(Data data) {
  if (state_ != State::kIdle || request_ == nullptr) return -FI_EOPBADSTATE;
  if (data.size() > kCmDataBytes) return -FI_EINVAL;
  const auto message = Encode(Message(CmMessage::Kind::kAccept, {}, data));
  auto connection = paceline_->Connect(ToHandle(peer_), {.receives = receives_, .private_data = message});
  if (!connection.ok()) return -ErrorOf(connection.status());
  connection_ = *std::move(connection);
  state_ = State::kEstablishing;
  return 0;
}

int Session::Shutdown() {
  if (state_ != State::kConnected) return -FI_ENOTCONN;
  state_ = State::kShut;
  connection_.Close();
  return 0;
}

std::optional<Session::News> Session::Poll() {
  switch (state_) {
    case State::kAsking:
      return PollAnswer();
    case State::kEstablishing:
      return PollEstablished();
    case State::kConnected:
    case State::kShut:
      if (connection_.state() != ConnectionState::kClosed) return std::nullopt;
      state_ = State::kOver;
      return News{.event = FI_SHUTDOWN};
    case State::kIdle:
    case State::kOver:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Session::News> Session::PollAnswer() {
  while (auto answer = listener_->Accept()) {
    auto message = DecodeCmMessage(answer->private_data());
    if (!message.has_value() || message->kind == CmMessage::Kind::kRequest) continue;  // somebody else's: it ends here
    if (message->kind == CmMessage::Kind::kReject) {
      return Fail(FI_ECONNREFUSED, api::CloseCode::kRefusedByApplication, std::move(message->data));
    }
    connection_ = *std::move(answer);
    data_ = std::move(message->data);
    state_ = State::kEstablishing;
    return PollEstablished();
  }
  if (question_.state() != ConnectionState::kClosed) return std::nullopt;
  const api::CloseCode code = question_.close_code();
  return Fail(ErrorOf(code), code);
}

// It may have been established, and shut down by the peer, since it was last looked at.
std::optional<Session::News> Session::PollEstablished() {
  const ConnectionState state = connection_.state();
  if (state == ConnectionState::kConnecting) return std::nullopt;
  const api::CloseCode code = connection_.close_code();
  if (state == ConnectionState::kClosed && !WasEstablished(code)) return Fail(FI_ECONNABORTED, code);
  state_ = State::kConnected;
  listener_.reset();
  question_ = {};
  request_.reset();  // who asked has the answer: they wait for nothing else
  return News{.event = FI_CONNECTED, .data = std::move(data_)};
}

Session::News Session::Fail(int error, api::CloseCode code, std::vector<uint8_t> data) {
  state_ = State::kOver;
  listener_.reset();
  question_ = {};
  request_.reset();
  return {.error = error, .code = code, .data = std::move(data)};
}

api::Connection* Session::Reach(ssize_t* error) {
  if (state_ == State::kConnected) return &connection_;
  *error = -FI_ENOTCONN;
  return nullptr;
}

void Session::Close() {
  if (connection_.valid()) connection_.Close();
  state_ = State::kOver;
  listener_.reset();
  question_ = {};
  request_.reset();
}

bool Session::closed() const { return !connection_.valid() || connection_.state() == ConnectionState::kClosed; }

void Session::Abort() {
  if (connection_.valid()) connection_.Abort();
  connection_ = {};
}

}  // namespace paceline::libfabric
