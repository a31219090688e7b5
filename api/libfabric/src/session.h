// The one connection of a connected endpoint (FI_EP_MSG): asked for or accepted, used, over. Who asks listens for the
// answer under a number of which only who was asked learns; who accepts connects there (cm_message.h).
//
// Thread rule: under the domain's guard. Owned by the endpoint.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/libfabric/src/address.h"
#include "api/libfabric/src/request.h"
#include "paceline/context.h"

namespace paceline::libfabric {

class Session {
 public:
  using Data = std::span<const uint8_t>;  // of the program, for the peer's

  // `request`: which it is to accept, if it is not to ask itself. `target`: whom it asks if nobody else is named.
  Session(api::Context* paceline, api::ReceiveQueue* receives, std::unique_ptr<Request> request,
          std::optional<Address> target);

  void UseReceives(api::ReceiveQueue* receives) { receives_ = receives; }
  // It has an address from now on. These answer 0 or a negative error.
  int Open();
  int Connect(const Address* to, Data data);
  int Accept(Data data);
  // What was posted is carried out, in the background; nothing is posted any more.
  int Shutdown();

  // What has become of the connection since it was last asked; to be asked now and then, until there is nothing.
  struct News {
    uint32_t event = 0;                           // FI_CONNECTED, FI_SHUTDOWN, each once; or, in their place,
    int error = 0;                                // FI_E*: there is no connection,
    api::CloseCode code = api::CloseCode::kNone;  // and why
    std::vector<uint8_t> data;                    // from who accepted or rejected
  };
  std::optional<News> Poll();

  // The connection, once there has been news of it, and until it is shut down. nullptr: *error says why not.
  api::Connection* Reach(ssize_t* error);
  bool Has(uint32_t connection) const { return connection_.valid() && connection_.id() == connection; }
  bool is_over() const { return state_ == State::kShut || state_ == State::kOver; }
  const Address& own_address() const { return own_; }
  // Who was asked, or asks: also before there is a connection.
  const Address& other_address() const { return peer_; }
  // nullptr: there is no connection.
  const Address* peer_address() const { return state_ == State::kConnected ? &peer_ : nullptr; }

  // Ends it in order, or at once.
  void Close();
  bool closed() const;
  void Abort();

 private:
  enum class State : uint8_t {
    kIdle,
    kAsking,        // until there is an answer
    kEstablishing,  // accepted, by us or by the peer
    kConnected,
    kShut,  // by us, and what was posted before is still under way
    kOver,
  };
  std::optional<News> PollAnswer();
  std::optional<News> PollEstablished();
  News Fail(int error, api::CloseCode code, std::vector<uint8_t> data = {});

  api::Context* paceline_;
  api::ReceiveQueue* receives_;
  std::unique_ptr<Request> request_;
  std::optional<Address> target_;
  State state_ = State::kIdle;
  std::optional<api::Listener> listener_;  // for the answer
  api::Connection question_;               // to who was asked, until there is an answer
  api::Connection connection_;
  std::vector<uint8_t> data_;  // that came with the answer
  Address own_, peer_;
};

}  // namespace paceline::libfabric
