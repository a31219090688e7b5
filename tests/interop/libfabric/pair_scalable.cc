// Two scalable endpoints whose programs post each message once, as they would on queues that are always there.
#include <cstring>

#include "tests/interop/libfabric/pair_checks.h"

namespace paceline::fabric_pair {
namespace {

constexpr int kContexts = 2, kBits = 2;

struct Context {
  fid_cq *sent = nullptr, *received = nullptr;
  fid_ep *transmit = nullptr, *receive = nullptr;
};

fid_cq* NewQueue(fid_domain* domain) {
  fid_cq* queue = nullptr;
  fi_cq_attr attributes = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
  Require(fi_cq_open(domain, &attributes, &queue, nullptr) == 0, "fi_cq_open");
  return queue;
}

}  // namespace

void Scalable(const char* node, const char* port, bool is_server) {
  fi_info *hints = fi_allocinfo(), *info = nullptr;
  hints->fabric_attr->prov_name = strdup("paceline");
  hints->caps = FI_MSG | FI_NAMED_RX_CTX;
  const int found = fi_getinfo(FI_VERSION(1, 17), node, port, is_server ? FI_SOURCE : 0, hints, &info);
  fi_freeinfo(hints);
  Require(found == 0, "fi_getinfo", found);
  info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = kContexts;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_ep* whole = nullptr;
  Require(fi_fabric(info->fabric_attr, &fabric, nullptr) == 0, "fi_fabric");
  Require(fi_domain(fabric, info, &domain, nullptr) == 0, "fi_domain");
  fi_av_attr attributes = {.type = FI_AV_TABLE, .rx_ctx_bits = kBits};
  Require(fi_av_open(domain, &attributes, &av, nullptr) == 0, "fi_av_open");
  Require(fi_scalable_ep(domain, info, &whole, nullptr) == 0, "fi_scalable_ep");
  Require(fi_scalable_ep_bind(whole, &av->fid, 0) == 0, "binding the address vector");
  Context contexts[kContexts];
  int in[kContexts] = {};
  uint8_t name[64] = {}, own[64];
  for (int i = 0; i < kContexts; ++i) {
    Context& context = contexts[i];
    context = {.sent = NewQueue(domain), .received = NewQueue(domain)};
    Require(fi_tx_context(whole, i, nullptr, &context.transmit, nullptr) == 0, "fi_tx_context");
    Require(fi_rx_context(whole, i, nullptr, &context.receive, nullptr) == 0, "fi_rx_context");
    Require(fi_ep_bind(context.transmit, &context.sent->fid, FI_SEND) == 0, "binding a queue of sends");
    Require(fi_ep_bind(context.receive, &context.received->fid, FI_RECV) == 0, "binding a queue of receives");
    Require(fi_enable(context.transmit) == 0 && fi_enable(context.receive) == 0, "fi_enable");
  }
  Require(fi_enable(whole) == 0, "fi_enable of the whole");
  Require(fi_recv(contexts[0].receive, name, sizeof(name), nullptr, 0, nullptr) == 0, "fi_recv of a name");

  // The client says its name, and the server answers.
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  size_t size = sizeof(own);
  Require(fi_getname(&whole->fid, own, &size) == 0, "fi_getname");
  if (is_server) Await(contexts[0].received);
  Require(fi_av_insert(av, is_server ? name : info->dest_addr, 1, &peer, 0, nullptr) == 1, "fi_av_insert");
  Require(fi_send(contexts[0].transmit, own, size, nullptr, peer, nullptr) == 0, "the first fi_send");
  if (!is_server) Await(contexts[0].received);
  for (int i = 0; i < kContexts; ++i) {
    Require(fi_recv(contexts[i].receive, &in[i], sizeof(int), nullptr, 0, nullptr) == 0, "fi_recv");
  }
  Await(contexts[0].sent);

  for (int i = 0; i < kContexts; ++i) {
    const int out = 100 + i;
    const fi_addr_t there = fi_rx_addr(peer, i, kBits);
    if (!is_server) {
      Require(fi_send(contexts[i].transmit, &out, sizeof(out), nullptr, there, nullptr) == 0, "fi_send");
      Await(contexts[i].sent);
    }
    if (is_server) Await(contexts[i].received);
    Require(!is_server || in[i] == out, "what came to a context", in[i]);
  }
  for (const Context& context : contexts) {
    for (fid* object : {&context.transmit->fid, &context.receive->fid, &context.sent->fid, &context.received->fid}) {
      Require(fi_close(object) == 0, "fi_close", static_cast<long>(object->fclass));
    }
  }
  for (fid* object : {&whole->fid, &av->fid, &domain->fid, &fabric->fid}) {
    Require(fi_close(object) == 0, "fi_close", static_cast<long>(object->fclass));
  }
  fi_freeinfo(info);
}

}  // namespace paceline::fabric_pair
