#include "tests/interop/libfabric/fabric_pair.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace paceline::fabric_pair {

void Require(bool good, const char* what, long detail) {
  if (good) return;
  std::fprintf(stderr, "failed: %s (%ld)\n", what, detail);
  std::exit(1);
}

void Await(fid_cq* queue) {
  fi_cq_entry entry{};
  ssize_t got;
  while ((got = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) continue;
  Require(got == 1, "a completion", got);
}

Peer::Peer(const char* node, const char* port, bool is_server) : is_server_(is_server) {
  fi_info* hints = fi_allocinfo();
  hints->fabric_attr->prov_name = strdup("paceline");
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_TRIGGER | FI_DIRECTED_RECV | FI_SOURCE;
  hints->mode = ~0ull;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  const int found = fi_getinfo(FI_VERSION(1, 17), node, port, is_server ? FI_SOURCE : 0, hints, &info_);
  fi_freeinfo(hints);
  Require(found == 0, "fi_getinfo", found);
  Require(fi_fabric(info_->fabric_attr, &fabric_, nullptr) == 0, "fi_fabric");
  Require(fi_domain(fabric_, info_, &domain_, nullptr) == 0, "fi_domain");
  fi_av_attr av_attributes = {.type = FI_AV_TABLE};
  Require(fi_av_open(domain_, &av_attributes, &av_, nullptr) == 0, "fi_av_open");
  fi_cq_attr cq_attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
  Require(fi_cq_open(domain_, &cq_attributes, &cq_, nullptr) == 0, "fi_cq_open");
  fi_cntr_attr counter_attributes = {.events = FI_CNTR_EVENTS_COMP};
  Require(fi_cntr_open(domain_, &counter_attributes, &remote_writes_, nullptr) == 0, "fi_cntr_open");
  Require(fi_endpoint(domain_, info_, &endpoint_, nullptr) == 0, "fi_endpoint");
  Require(fi_ep_bind(endpoint_, &av_->fid, 0) == 0, "binding the address vector");
  Require(fi_ep_bind(endpoint_, &cq_->fid, FI_TRANSMIT | FI_RECV) == 0, "binding the queue");
  Require(fi_ep_bind(endpoint_, &remote_writes_->fid, FI_REMOTE_WRITE) == 0, "binding the counter");
  Require(fi_enable(endpoint_) == 0, "fi_enable");
  Require(fi_mr_reg(domain_, memory_.data(), memory_.size() * 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region_,
                    nullptr) == 0,
          "fi_mr_reg");

  if (is_server) {
    Welcome();
  } else {
    uint8_t name[64];
    size_t size = sizeof(name);
    Require(info_->dest_addr != nullptr, "fi_getinfo gives the server's address");
    Require(fi_av_insert(av_, info_->dest_addr, 1, &peer_, 0, nullptr) == 1, "fi_av_insert of the server");
    Require(fi_getname(&endpoint_->fid, name, &size) == 0, "fi_getname");
    PostOk("fi_send of a name", [&] { return fi_send(endpoint_, name, size, nullptr, peer_, nullptr); });
    Require(Take().err == 0, "sending the name");
    Meet();
  }
}

void Peer::Welcome() {
  uint8_t name[64];
  PostOk("fi_recv of a name", [&] { return fi_recv(endpoint_, name, sizeof(name), nullptr, FI_ADDR_UNSPEC, nullptr); });
  Require(Take().len == sizeof(name), "the client's name");
  Require(fi_av_insert(av_, name, 1, &peer_, 0, nullptr) == 1, "fi_av_insert of the client");
  Meet();
}

Peer::~Peer() {
  for (fid* object :
       {&region_->fid, &endpoint_->fid, &remote_writes_->fid, &cq_->fid, &av_->fid, &domain_->fid, &fabric_->fid}) {
    Require(fi_close(object) == 0, "fi_close", static_cast<long>(object->fclass));
  }
  fi_freeinfo(info_);
}

void Peer::Progress() {
  fi_cq_err_entry entry{};
  const ssize_t got = fi_cq_read(cq_, &entry, 1);
  if (got == -FI_EAVAIL) Require(fi_cq_readerr(cq_, &entry, 0) == 1, "fi_cq_readerr");
  if (got == 1 || got == -FI_EAVAIL) completions_.push_back(entry);
  Require(got == 1 || got == -FI_EAVAIL || got == -FI_EAGAIN, "fi_cq_read", got);
}

ssize_t Peer::Post(const std::function<ssize_t()>& post) {
  ssize_t result;
  while ((result = post()) == -FI_EAGAIN) Progress();
  return result;
}

void Peer::PostOk(const char* what, const std::function<ssize_t()>& post) {
  const ssize_t result = Post(post);
  Require(result == 0, what, result);
}

fi_cq_err_entry Peer::Take() {
  while (completions_.empty()) Progress();
  const fi_cq_err_entry first = completions_.front();
  completions_.pop_front();
  return first;
}

void Peer::Until(const char* what, const std::function<bool()>& done) {
  while (!done()) {
    Progress();
    Require(completions_.empty(), what);
  }
}

void Peer::Meet() {
  char in = 0;
  PostOk("fi_trecv", [&] { return fi_trecv(endpoint_, &in, 1, nullptr, peer_, ~0u, 0, nullptr); });
  PostOk("fi_tinject", [&] { return fi_tinject(endpoint_, "x", 1, peer_, ~0u); });
  Require(Take().err == 0 && in == 'x', "meeting");
}

void Peer::Reinsert() {
  uint8_t name[64];
  size_t size = sizeof(name);
  Require(fi_av_lookup(av_, peer_, name, &size) == 0, "fi_av_lookup");
  const fi_addr_t before = peer_;
  Require(fi_av_remove(av_, &peer_, 1, 0) == 0, "fi_av_remove");
  // Somebody else gets the index that is free.
  fi_addr_t other = FI_ADDR_NOTAVAIL;
  ++name[0];
  Require(fi_av_insert(av_, name, 1, &other, 0, nullptr) == 1, "fi_av_insert of another");
  --name[0];
  Require(fi_av_insert(av_, name, 1, &peer_, 0, nullptr) == 1 && peer_ != before, "fi_av_insert again");
}

}  // namespace paceline::fabric_pair
