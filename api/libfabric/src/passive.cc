#include "api/libfabric/src/passive.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "api/libfabric/src/cm_message.h"
#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/names.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

constexpr int kLingerMillis = 250;     // who does not take its rejection holds nobody up for longer
constexpr size_t kMostWaiting = 1024;  // requests that the program has not answered

PassiveEndpoint* Of(fid* object) { return FromFid<PassiveEndpoint, fid_pep>(object); }

int Close(fid* object) {
  delete Of(object);
  return 0;
}

int GetOption(fid*, int level, int name, void* value, size_t* size) {
  return level == FI_OPT_ENDPOINT && name == FI_OPT_CM_DATA_SIZE ? GiveSize(kCmDataBytes, value, size)
                                                                 : -FI_ENOPROTOOPT;
}

fi_ops object_calls = {.size = sizeof(fi_ops),
                       .close = Close,
                       .bind = [](fid* object, fid* other, uint64_t) { return Of(object)->Bind(other); },
                       .control = NotSupported(),
                       .ops_open = NotSupported()};
fi_ops_ep calls = {
    .size = sizeof(fi_ops_ep),
    .cancel = NotSupported(),
    .getopt = GetOption,
    .setopt = NotSupported(),
    .tx_ctx = NotSupported(),
    .rx_ctx = NotSupported(),
    .rx_size_left = NotSupported(),
    .tx_size_left = NotSupported(),
};
fi_ops_cm cm_calls = {
    .size = sizeof(fi_ops_cm),
    .setname = [](fid_t object, void* address, size_t size) { return Of(object)->SetName(address, size); },
    .getname = [](fid_t object, void* address, size_t* size) { return Of(object)->GetName(address, size); },
    .getpeer = NotSupported(),
    .connect = NotSupported(),
    .listen = [](fid_pep* passive) { return static_cast<PassiveEndpoint*>(passive)->Listen(); },
    .accept = NotSupported(),
    .reject =
        [](fid_pep* passive, fid_t handle, const void* data, size_t size) {
          return static_cast<PassiveEndpoint*>(passive)->Reject(handle, {static_cast<const uint8_t*>(data), size});
        },
    .shutdown = NotSupported(),
    .join = NotSupported(),
};

}  // namespace

PassiveEndpoint::PassiveEndpoint(fid_fabric* fabric, OwnedInfo info)
    : fid_pep{}, fabric_(fabric), info_(std::move(info)) {}

PassiveEndpoint::~PassiveEndpoint() {
  if (domain_ == nullptr) return;
  eq_->Unwatch(domain_.get());
  {
    const Domain::Guard guard(domain_.get());
    listener_.reset();
  }
  RequestsOf(fabric_).EndAllOf(this);
  eq_->Forget(&fid);
  domain_->WaitUntil([this] { return rejections_.empty(); }, kLingerMillis);
  const Domain::Guard guard(domain_.get());
  domain_->SetPassive(nullptr);
  rejections_.clear();
}

int PassiveEndpoint::Bind(fid_t other) {
  if (other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  const std::lock_guard lock(mutex_);
  if (domain_ != nullptr) return -FI_EOPBADSTATE;
  eq_ = FromFid<Eq, fid_eq>(other);
  return 0;
}

int PassiveEndpoint::Listen() {
  const std::lock_guard lock(mutex_);
  if (domain_ != nullptr) return -FI_EOPBADSTATE;
  if (!eq_) return -FI_ENOEQ;
  Domain* opened = nullptr;
  if (const int error = NewDomain(fabric_, *info_, Places::kNamed, &opened); error != 0) return error;
  std::shared_ptr<Domain> domain(opened);
  {
    const Domain::Guard guard(opened);
    const uint64_t service = info_->src_addr == nullptr ? 0 : NamedService(Address::From(info_->src_addr));
    auto listener = opened->paceline().Listen({.service = service});
    if (!listener.ok()) return -ErrorOf(listener.status());
    listener_ = *std::move(listener);
    own_ = NameOf(listener_->handle());
    domain_ = std::move(domain);
    opened->SetPassive(this);
  }
  eq_->Watch(opened);
  return 0;
}

int PassiveEndpoint::GetName(void* address, size_t* size) {
  const std::lock_guard lock(mutex_);
  if (domain_ != nullptr) return GiveName(own_, address, size);
  return info_->src_addr == nullptr ? -FI_EOPBADSTATE : GiveName(Address::From(info_->src_addr), address, size);
}

int PassiveEndpoint::SetName(const void* address, size_t size) {
  if (address == nullptr || size != Address::kBytes) return -FI_EINVAL;
  const std::lock_guard lock(mutex_);
  if (domain_ != nullptr) return -FI_EOPBADSTATE;
  return GiveAddress(Address::From(address), &info_->src_addr, &info_->src_addrlen) ? 0 : -FI_ENOMEM;
}

int PassiveEndpoint::Reject(fid_t handle, std::span<const uint8_t> data) {
  if (data.size() > kCmDataBytes) return -FI_EINVAL;
  std::unique_ptr<Request> request = RequestsOf(fabric_).Take(handle, this);
  if (request == nullptr) return -FI_EINVAL;
  const Domain::Guard guard(domain_.get());
  const auto message = Encode({.kind = CmMessage::Kind::kReject, .from = {}, .data = {data.begin(), data.end()}});
  auto answer = domain_->paceline().Connect(ToHandle(request->from), {.private_data = message});
  if (!answer.ok()) return -ErrorOf(answer.status());  // who asked hears of the request's end
  rejections_.push_back({.request = std::move(request), .answer = *std::move(answer)});
  return 0;
}

void PassiveEndpoint::Care() {
  while (listener_.has_value()) {
    auto connection = listener_->Accept();
    if (!connection.has_value()) break;
    TakeRequest(*std::move(connection));
  }
  std::erase_if(rejections_, [](const Rejection& rejection) {
    return rejection.answer.state() != api::ConnectionState::kConnecting;
  });
}

// What is no request, or one too many, ends here.
void PassiveEndpoint::TakeRequest(api::Connection connection) {
  const auto message = DecodeCmMessage(connection.private_data());
  Requests& requests = RequestsOf(fabric_);
  if (!message.has_value() || message->kind != CmMessage::Kind::kRequest) return;
  if (requests.CountOf(this) >= kMostWaiting) return;
  OwnedInfo info(fi_dupinfo(info_.get()));
  if (info == nullptr || !GiveAddress(own_, &info->src_addr, &info->src_addrlen) ||
      !GiveAddress(message->from, &info->dest_addr, &info->dest_addrlen)) {
    return;
  }
  auto request = std::make_unique<Request>();
  request->domain = domain_;
  request->connection = std::move(connection);
  request->passive = this;
  request->from = message->from;
  request->to = own_;
  info->handle = requests.Add(std::move(request));
  eq_->WriteRequest(&fid, std::move(info), message->from, message->data);
}

int OpenPassive(fid_fabric* fabric, fi_info* info, fid_pep** result, void* context) {
  if (info == nullptr || !IsConnected(*info)) return -FI_EINVAL;
  if (info->domain_attr == nullptr || info->domain_attr->name == nullptr) return -FI_EINVAL;
  if (info->src_addr != nullptr && info->src_addrlen != Address::kBytes) return -FI_EINVAL;
  OwnedInfo own(fi_dupinfo(info));
  auto* passive = own == nullptr ? nullptr : new (std::nothrow) PassiveEndpoint(fabric, std::move(own));
  if (passive == nullptr) return -FI_ENOMEM;
  passive->fid = {.fclass = FI_CLASS_PEP, .context = context, .ops = &object_calls};
  passive->ops = &calls;
  passive->cm = &cm_calls;
  *result = passive;
  return 0;
}

}  // namespace paceline::libfabric
