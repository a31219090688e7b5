// Several endpoints a process that share their receives, of which only the first is known by host and port.
#include <cstring>

#include "tests/interop/libfabric/pair_checks.h"

namespace paceline::fabric_pair {
namespace {

constexpr int kEndpoints = 4;
constexpr size_t kNameBytes = 64;

fi_info* GetInfo(const char* node, const char* port, bool is_server) {
  fi_info *hints = fi_allocinfo(), *info = nullptr;
  hints->fabric_attr->prov_name = strdup("paceline");
  hints->caps = FI_MSG;
  hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  const int found = fi_getinfo(FI_VERSION(1, 17), node, port, is_server ? FI_SOURCE : 0, hints, &info);
  fi_freeinfo(hints);
  Require(found == 0, "fi_getinfo", found);
  return info;
}

void Send(fid_ep* endpoint, fid_cq* queue, const void* bytes, size_t size, fi_addr_t peer) {
  ssize_t result;
  while ((result = fi_send(endpoint, bytes, size, nullptr, peer, nullptr)) == -FI_EAGAIN) {
    fi_cq_read(queue, nullptr, 0);
  }
  Require(result == 0, "fi_send", result);
  Await(queue);
}

}  // namespace

void Shared(const char* node, const char* port, bool is_server) {
  fi_info *named = GetInfo(node, port, is_server), *others = GetInfo(node, nullptr, is_server);
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq *sent = nullptr, *received = nullptr;
  fid_ep *receives = nullptr, *endpoints[kEndpoints] = {};
  fid_stx* transmits = nullptr;
  Require(fi_fabric(named->fabric_attr, &fabric, nullptr) == 0, "fi_fabric");
  Require(fi_domain(fabric, named, &domain, nullptr) == 0, "fi_domain");
  Require(fi_stx_context(domain, named->tx_attr, &transmits, nullptr) == 0, "fi_stx_context");
  Require(fi_srx_context(domain, named->rx_attr, &receives, nullptr) == 0, "fi_srx_context");
  fi_cq_attr queue = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
  Require(fi_cq_open(domain, &queue, &sent, nullptr) == 0, "fi_cq_open");
  Require(fi_cq_open(domain, &queue, &received, nullptr) == 0, "fi_cq_open");
  fi_av_attr vector = {.type = FI_AV_MAP, .count = kEndpoints};
  Require(fi_av_open(domain, &vector, &av, nullptr) == 0, "fi_av_open");
  for (fid_ep*& endpoint : endpoints) {
    Require(fi_endpoint(domain, &endpoint == endpoints ? named : others, &endpoint, nullptr) == 0, "fi_endpoint");
    for (fid* object : {&av->fid, &transmits->fid, &receives->fid}) {
      Require(fi_ep_bind(endpoint, object, 0) == 0, "fi_ep_bind");
    }
    Require(fi_ep_bind(endpoint, &sent->fid, FI_TRANSMIT) == 0, "fi_ep_bind to the queue of sends");
    Require(fi_ep_bind(endpoint, &received->fid, FI_RECV) == 0, "fi_ep_bind to the queue of receives");
    Require(fi_enable(endpoint) == 0, "fi_enable");
  }

  // Names go between the first endpoints, one at a time.
  fi_addr_t peers[kEndpoints];
  uint8_t own[kNameBytes], name[kNameBytes];
  if (!is_server) Require(fi_av_insert(av, named->dest_addr, 1, &peers[0], 0, nullptr) == 1, "fi_av_insert");
  for (int i = 0; i < kEndpoints; ++i) {
    size_t size = sizeof(own);
    Require(fi_getname(&endpoints[i]->fid, own, &size) == 0, "fi_getname");
    Require(fi_recv(receives, name, sizeof(name), nullptr, FI_ADDR_UNSPEC, nullptr) == 0, "fi_recv of a name");
    if (!is_server) Send(endpoints[0], sent, own, size, peers[0]);
    Await(received);
    if (is_server || i > 0) Require(fi_av_insert(av, name, 1, &peers[i], 0, nullptr) == 1, "fi_av_insert of a name");
    if (is_server) Send(endpoints[0], sent, own, size, peers[0]);
  }
  // Each endpoint to its like, and back.
  int in[kEndpoints] = {};
  for (int& value : in) {
    Require(fi_recv(receives, &value, sizeof(value), nullptr, FI_ADDR_UNSPEC, nullptr) == 0, "fi_recv");
  }
  const auto send = [&] {
    for (int i = 0; i < kEndpoints; ++i) {
      const int out = i + 1;
      Send(endpoints[i], sent, &out, sizeof(out), peers[i]);
    }
  };
  if (!is_server) send();
  for (int i = 0; i < kEndpoints; ++i) Await(received);
  if (is_server) send();
  int sum = 0;
  for (const int value : in) sum += value;
  Require(sum == kEndpoints * (kEndpoints + 1) / 2, "what came to the shared receives", sum);

  for (fid_ep* endpoint : endpoints) Require(fi_close(&endpoint->fid) == 0, "fi_close of an endpoint");
  for (fid* object :
       {&received->fid, &sent->fid, &av->fid, &receives->fid, &transmits->fid, &domain->fid, &fabric->fid}) {
    Require(fi_close(object) == 0, "fi_close", static_cast<long>(object->fclass));
  }
  fi_freeinfo(named);
  fi_freeinfo(others);
}

}  // namespace paceline::fabric_pair
