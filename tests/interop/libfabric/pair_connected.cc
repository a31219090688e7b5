// Connected endpoints of two processes: requests, rejections and acceptances in a row, and a peer that is killed, with
// or without having answered.
#include <csignal>
#include <cstring>
#include <string>

#include "tests/interop/libfabric/pair_checks.h"

namespace paceline::fabric_pair {
namespace {

constexpr size_t kEntry = sizeof(fi_eq_cm_entry);

// What a process has of one connection at a time, opened in the order of libfabric's own tests.
class Side {
 public:
  Side(const char* node, const char* port, bool is_server) {
    fi_info* hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("paceline");
    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG;
    hints->mode = ~0ull;
    const int found = fi_getinfo(FI_VERSION(1, 17), node, port, is_server ? FI_SOURCE : 0, hints, &info_);
    fi_freeinfo(hints);
    Require(found == 0, "fi_getinfo", found);
    Require(fi_fabric(info_->fabric_attr, &fabric_, nullptr) == 0, "fi_fabric");
    fi_eq_attr attributes = {.wait_obj = FI_WAIT_UNSPEC};
    Require(fi_eq_open(fabric_, &attributes, &eq_, nullptr) == 0, "fi_eq_open");
    if (!is_server) return;
    Require(fi_passive_ep(fabric_, info_, &passive_, nullptr) == 0, "fi_passive_ep");
    Require(fi_pep_bind(passive_, &eq_->fid, 0) == 0, "fi_pep_bind");
    Require(fi_listen(passive_) == 0, "fi_listen");
  }
  ~Side() {
    if (passive_ != nullptr) Require(fi_close(&passive_->fid) == 0, "closing the passive endpoint");
    Require(fi_close(&eq_->fid) == 0, "closing the event queue");
    Require(fi_close(&fabric_->fid) == 0, "closing the fabric");
    fi_freeinfo(info_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  fi_info* info() const { return info_; }
  fid_ep* endpoint() const { return endpoint_; }
  fid_pep* passive() const { return passive_; }
  fid_eq* eq() const { return eq_; }
  fid_cq* cq() const { return cq_; }

  void OpenDomain(fi_info* of) {
    Require(fi_domain(fabric_, of, &domain_, nullptr) == 0, "fi_domain");
    fi_cq_attr attributes = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};
    Require(fi_cq_open(domain_, &attributes, &cq_, nullptr) == 0, "fi_cq_open");
  }
  void OpenEndpoint(fi_info* of) {
    Require(fi_endpoint(domain_, of, &endpoint_, nullptr) == 0, "fi_endpoint");
    Require(fi_ep_bind(endpoint_, &eq_->fid, 0) == 0, "binding the event queue");
    Require(fi_ep_bind(endpoint_, &cq_->fid, FI_TRANSMIT | FI_RECV) == 0, "binding the queue");
    Require(fi_enable(endpoint_) == 0, "fi_enable");
  }
  void CloseEndpoint() { Require(fi_close(&endpoint_->fid) == 0, "closing the endpoint"); }
  void CloseDomain() {
    Require(fi_close(&cq_->fid) == 0, "closing the queue");
    Require(fi_close(&domain_->fid) == 0, "closing the domain");
  }
  // The next event, which must be of this kind and bring these data.
  fi_info* Expect(uint32_t kind, const std::string& data = "") {
    alignas(fi_eq_cm_entry) char bytes[kEntry + 64];
    uint32_t event = 0;
    const ssize_t got = fi_eq_sread(eq_, &event, bytes, sizeof(bytes), -1, 0);
    Require(got == static_cast<ssize_t>(kEntry + data.size()), "an event of the right size", got);
    Require(event == kind, "the right event", static_cast<long>(event));
    Require(std::memcmp(bytes + kEntry, data.data(), data.size()) == 0, "the event's data");
    fi_eq_cm_entry entry{};
    std::memcpy(&entry, bytes, kEntry);
    return entry.info;
  }
  // The next event, which must be an error of this number and bring these data.
  void ExpectError(int number, const std::string& data) {
    uint32_t event = 0;
    fi_eq_cm_entry entry{};
    const ssize_t got = fi_eq_sread(eq_, &event, &entry, kEntry, -1, 0);
    Require(got == -FI_EAVAIL, "an error event", got);
    fi_eq_err_entry error{};
    Require(fi_eq_readerr(eq_, &error, 0) == sizeof(error), "fi_eq_readerr");
    Require(error.err == number, "the right error", error.err);
    Require(std::string(static_cast<char*>(error.err_data), error.err_data_size) == data, "the error's data");
  }
  // The next completion; 0 or FI_E*.
  int Take() {
    fi_cq_entry entry{};
    const ssize_t got = fi_cq_sread(cq_, &entry, 1, nullptr, -1);
    if (got == 1) return 0;
    fi_cq_err_entry error{};
    Require(got == -FI_EAVAIL && fi_cq_readerr(cq_, &error, 0) == 1, "a completion", got);
    return error.err;
  }

 private:
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_eq* eq_ = nullptr;
  fid_pep* passive_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_ep* endpoint_ = nullptr;
};

void Ask(Side& side, const std::string& data) {
  Require(fi_connect(side.endpoint(), side.info()->dest_addr, data.data(), data.size()) == 0, "fi_connect");
}

void Answer(Side& side) {
  for (size_t bytes = 1; bytes <= 32; bytes *= 2) {
    const std::string question(bytes, 'q'), answer(bytes, 'a');
    fi_info* refused = side.Expect(FI_CONNREQ, question);
    Require(fi_reject(side.passive(), refused->handle, answer.data(), bytes) == 0, "fi_reject");
    fi_freeinfo(refused);
    fi_info* request = side.Expect(FI_CONNREQ, question);
    side.OpenDomain(request);
    side.OpenEndpoint(request);
    fi_freeinfo(request);
    Require(fi_accept(side.endpoint(), answer.data(), bytes) == 0, "fi_accept");
    side.Expect(FI_CONNECTED);
    const std::string text(bytes * 1000, 't');
    Require(fi_send(side.endpoint(), text.data(), text.size(), nullptr, 0, nullptr) == 0, "fi_send");
    Require(side.Take() == 0, "sending");
    Require(fi_shutdown(side.endpoint(), 0) == 0, "fi_shutdown");
    side.Expect(FI_SHUTDOWN);
    side.CloseEndpoint();
    side.CloseDomain();
  }
}

void AskInARow(Side& side) {
  side.OpenDomain(side.info());
  for (size_t bytes = 1; bytes <= 32; bytes *= 2) {
    const std::string question(bytes, 'q'), answer(bytes, 'a');
    side.OpenEndpoint(side.info());
    Ask(side, question);
    side.ExpectError(FI_ECONNREFUSED, answer);
    side.CloseEndpoint();  // each asks once
    side.OpenEndpoint(side.info());
    std::string text(bytes * 1000, ' ');
    Require(fi_recv(side.endpoint(), text.data(), text.size(), nullptr, 0, nullptr) == 0, "fi_recv");
    Ask(side, question);
    side.Expect(FI_CONNECTED, answer);
    Require(side.Take() == 0 && text == std::string(text.size(), 't'), "what the server sends");
    side.Expect(FI_SHUTDOWN);
    side.CloseEndpoint();
  }
  side.CloseDomain();
}

}  // namespace

void Connecting(const char* node, const char* port, bool is_server) {
  Side side(node, port, is_server);
  is_server ? Answer(side) : AskInARow(side);
}

void UnansweredKilled(const char* node, const char* port, bool is_server) {
  Side side(node, port, is_server);
  if (is_server) {
    fi_freeinfo(side.Expect(FI_CONNREQ));
    uint32_t event = 0;
    fi_eq_cm_entry entry{};
    // Meanwhile who asks hears that the request has arrived.
    Require(fi_eq_sread(side.eq(), &event, &entry, kEntry, 200, 0) == -FI_EAGAIN, "no event");
    raise(SIGKILL);
  }
  side.OpenDomain(side.info());
  side.OpenEndpoint(side.info());
  Ask(side, "");
  side.ExpectError(FI_EHOSTUNREACH, "");
  side.CloseEndpoint();
  side.CloseDomain();
}

void ConnectedKilled(const char* node, const char* port, bool is_server) {
  Side side(node, port, is_server);
  char byte = 'x';
  if (is_server) {
    fi_info* request = side.Expect(FI_CONNREQ);
    side.OpenDomain(request);
    side.OpenEndpoint(request);
    fi_freeinfo(request);
    Require(fi_recv(side.endpoint(), &byte, 1, nullptr, 0, nullptr) == 0, "fi_recv");
    Require(fi_accept(side.endpoint(), nullptr, 0) == 0, "fi_accept");
    side.Expect(FI_CONNECTED);
    Require(side.Take() == 0, "the client's message");
    raise(SIGKILL);
  }
  side.OpenDomain(side.info());
  side.OpenEndpoint(side.info());
  Ask(side, "");
  side.Expect(FI_CONNECTED);
  Require(fi_recv(side.endpoint(), &byte, 1, nullptr, 0, nullptr) == 0, "fi_recv");
  Require(fi_send(side.endpoint(), "x", 1, nullptr, 0, nullptr) == 0, "fi_send");
  Require(side.Take() == 0, "sending");
  side.Expect(FI_SHUTDOWN);
  Require(side.Take() == FI_ECANCELED, "the receive is over");
  const ssize_t sent = fi_send(side.endpoint(), "x", 1, nullptr, 0, nullptr);
  Require(sent == -FI_ENOTCONN, "nothing is sent any more", sent);
  side.CloseEndpoint();
  side.CloseDomain();
}

}  // namespace paceline::fabric_pair
