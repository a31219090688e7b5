#include "tests/unit/api/libfabric/connected_fixture.h"

#include <algorithm>
#include <cstring>

namespace paceline::libfabric {

void Party::OpenParty(Info with) {
  info = std::move(with);
  ASSERT_NE(info, nullptr);
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  fi_eq_attr eq_attributes = {.wait_obj = FI_WAIT_FD};
  ASSERT_EQ(fi_eq_open(fabric, &eq_attributes, &eq, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  fi_cq_attr cq_attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
  ASSERT_EQ(fi_cq_open(domain, &cq_attributes, &cq, nullptr), 0);
}

void Party::CloseParty() {
  for (fid_ep* one : endpoints) EXPECT_EQ(fi_close(&one->fid), 0);
  endpoints.clear();
  if (eq != nullptr) {
    EXPECT_EQ(fi_close(&eq->fid), 0);
  }
  eq = nullptr;
  Close();
}

fid_ep* Party::NewEndpoint(fi_info* of, const std::function<void(fid_ep*)>& bind) {
  fid_ep* made = nullptr;
  EXPECT_EQ(fi_endpoint(domain, of, &made, nullptr), 0);
  if (made == nullptr) return nullptr;
  endpoints.push_back(made);
  EXPECT_EQ(fi_ep_bind(made, &eq->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(made, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  if (bind) bind(made);
  EXPECT_EQ(fi_enable(made), 0);
  return made;
}

void Party::ReadEvents() {
  while (eq != nullptr) {
    alignas(fi_eq_cm_entry) char bytes[256] = {};
    uint32_t kind = 0;
    const ssize_t got = fi_eq_read(eq, &kind, bytes, sizeof(bytes), 0);
    if (got == -FI_EAGAIN) return;
    if (got == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      ASSERT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
      const auto* detail = static_cast<const char*>(error.err_data);
      events.push_back({.error = error.err,
                        .about = error.fid,
                        .data = std::string(detail, error.err_data_size),
                        .text = fi_eq_strerror(eq, error.prov_errno, error.err_data, nullptr, 0)});
      continue;
    }
    ASSERT_GE(got, static_cast<ssize_t>(sizeof(fi_eq_cm_entry)));
    fi_eq_cm_entry entry{};
    std::memcpy(&entry, bytes, sizeof(entry));
    events.push_back({.kind = kind,
                      .about = entry.fid,
                      .info = Info(entry.info),
                      .data = std::string(bytes + sizeof(entry), static_cast<size_t>(got) - sizeof(entry))});
  }
}

void ConnectedTest::TearDown() {
  if (passive_ != nullptr) {
    EXPECT_EQ(fi_close(&passive_->fid), 0);
  }
  asks_.CloseParty();
  listens_.CloseParty();
}

void ConnectedTest::MoveBoth() {
  for (Party* party : {&asks_, &listens_}) {
    party->Read();
    party->ReadEvents();
  }
}

void ConnectedTest::OpenParties(const std::function<void(fi_info&)>& change) {
  asks_.OpenParty(ConnectedInfo(change));
  listens_.OpenParty(ConnectedInfo(change));
  ASSERT_FALSE(HasFatalFailure());
  Listen(listens_.info.get());
}

void ConnectedTest::Listen(fi_info* info) {
  ASSERT_EQ(fi_passive_ep(listens_.fabric, info, &passive_, nullptr), 0);
  ASSERT_EQ(fi_pep_bind(passive_, &listens_.eq->fid, 0), 0);
  ASSERT_EQ(fi_listen(passive_), 0);
}

std::vector<uint8_t> ConnectedTest::NameOfPassive() {
  std::vector<uint8_t> name(64);
  size_t size = name.size();
  EXPECT_EQ(fi_getname(&passive_->fid, name.data(), &size), 0);
  EXPECT_EQ(size, name.size());
  return name;
}

Event ConnectedTest::TakeEvent(Party& party) {
  EXPECT_TRUE(Until([&] { return !party.events.empty(); }));
  if (party.events.empty()) return {.error = FI_ETIMEDOUT};
  Event first = std::move(party.events.front());
  party.events.pop_front();
  return first;
}

std::pair<fid_ep*, fid_ep*> ConnectedTest::Connect(const std::function<void(fid_ep*)>& bind_a,
                                                   const std::function<void(fid_ep*)>& bind_b) {
  fid_ep* a = asks_.NewEndpoint(asks_.info.get(), bind_a);
  EXPECT_EQ(fi_connect(a, NameOfPassive().data(), nullptr, 0), 0);
  const Event request = TakeEvent(listens_);
  EXPECT_EQ(request.kind, FI_CONNREQ);
  if (request.info == nullptr) return {};
  fid_ep* b = listens_.NewEndpoint(request.info.get(), bind_b);
  EXPECT_EQ(fi_accept(b, nullptr, 0), 0);
  const Event at_b = TakeEvent(listens_), at_a = TakeEvent(asks_);
  EXPECT_EQ(at_a.kind, FI_CONNECTED);
  EXPECT_EQ(at_a.about, &a->fid);
  EXPECT_EQ(at_b.kind, FI_CONNECTED);
  EXPECT_EQ(at_b.about, &b->fid);
  return {a, b};
}

void ConnectedTest::Talk(fid_ep* a, fid_ep* b) {
  for (const bool back : {false, true}) {
    Party& from = back ? listens_ : asks_;
    Party& to = back ? asks_ : listens_;
    const auto out = Pattern(100'000, back ? 3 : 4);
    std::vector<uint8_t> in(out.size());
    ASSERT_EQ(fi_recv(back ? a : b, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &in), 0);
    Post([&] { return fi_send(back ? b : a, out.data(), out.size(), nullptr, 0, nullptr); });
    const fi_cq_err_entry received = Take(to);
    EXPECT_EQ(received.err, 0);
    EXPECT_EQ(received.op_context, &in);
    EXPECT_EQ(Take(from).err, 0);
    EXPECT_EQ(in, out);
  }
}

}  // namespace paceline::libfabric
