// How many of a port's buffers refer to payloads in some memory. Each holds one count until the driver lets go of it,
// in whatever thread; so the counts are DPDK's (rte_mbuf_ext_shared_info).
#pragma once

#include <rte_mbuf.h>

#include <utility>

namespace paceline {

class PayloadLoans {
 public:
  static constexpr unsigned kMost = 60'000;  // buffers; DPDK counts in 16 bits

  PayloadLoans() : info_(new rte_mbuf_ext_shared_info{}) {
    info_->free_cb = [](void*, void* info) { delete static_cast<rte_mbuf_ext_shared_info*>(info); };
    info_->fcb_opaque = info_;
    rte_mbuf_ext_refcnt_set(info_, 1);
  }
  // Buffers may still be out: the last takes the count along.
  ~PayloadLoans() {
    if (info_ != nullptr && rte_mbuf_ext_refcnt_update(info_, -1) == 0) delete info_;
  }
  PayloadLoans(const PayloadLoans&) = delete;
  PayloadLoans& operator=(const PayloadLoans&) = delete;
  PayloadLoans(PayloadLoans&& other) noexcept : info_(std::exchange(other.info_, nullptr)) {}
  PayloadLoans& operator=(PayloadLoans&& other) noexcept {
    std::swap(info_, other.info_);
    return *this;
  }

  // For one buffer more, which gives it back when it is freed.
  rte_mbuf_ext_shared_info* Add() const {
    rte_mbuf_ext_refcnt_update(info_, 1);
    return info_;
  }
  bool any() const { return rte_mbuf_ext_refcnt_read(info_) > 1; }

 private:
  rte_mbuf_ext_shared_info* info_;
};

}  // namespace paceline
