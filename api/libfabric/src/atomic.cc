#include "api/libfabric/src/atomic.h"

#include <array>
#include <vector>

#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

// Our operations and types have libfabric's numbers.
static_assert(FI_SUM == static_cast<int>(api::AtomicOp::kSum) && FI_BXOR == static_cast<int>(api::AtomicOp::kBitXor) &&
              FI_ATOMIC_WRITE == static_cast<int>(api::AtomicOp::kWrite) &&
              FI_CSWAP_GT == static_cast<int>(api::AtomicOp::kSwapIfGreater) &&
              FI_MSWAP == static_cast<int>(api::AtomicOp::kMaskedSwap));
static_assert(FI_UINT64 == static_cast<int>(api::AtomicType::kUint64) &&
              FI_DOUBLE == static_cast<int>(api::AtomicType::kDouble) &&
              FI_LONG_DOUBLE_COMPLEX == static_cast<int>(api::AtomicType::kLongDoubleComplex));

// The most elements of one operation; 0: there is no such operation. `form`: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC.
size_t MostElements(fi_datatype type, fi_op operation, uint64_t form) {
  if (operation < 0 || operation >= FI_ATOMIC_OP_LAST || type < 0 || type >= FI_DATATYPE_LAST) return 0;
  const bool compares = operation >= FI_CSWAP;
  if (compares != (form == FI_COMPARE_ATOMIC) || (form == 0 && operation == FI_ATOMIC_READ)) return 0;
  const auto element = static_cast<api::AtomicType>(type);
  if (!api::IsAtomicValid(static_cast<api::AtomicOp>(operation), element)) return 0;
  return api::kMaxAtomicBytes / api::AtomicElementBytes(element);
}

template <uint64_t kForm>
int Valid(fid_ep*, fi_datatype type, fi_op operation, size_t* count) {
  const size_t most = MostElements(type, operation, kForm);
  if (most == 0) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = most;
  return 0;
}

// A vector of elements as one of bytes.
class Bytes {
 public:
  Bytes(const fi_ioc* entries, size_t count, size_t element) {
    for (size_t i = 0; i < std::min(count, kIoVectors); ++i) {
      pieces_[i] = {.iov_base = entries[i].addr, .iov_len = entries[i].count * element};
    }
    count_ = std::min(count, kIoVectors);
  }
  operator Vector() const { return {pieces_.data(), count_}; }  // NOLINT: implicit on purpose

 private:
  std::array<iovec, kIoVectors> pieces_{};
  size_t count_ = 0;
};

struct Form {
  uint64_t form = 0;
  const fi_ioc* compares = nullptr;
  size_t compare_count = 0;
  const fi_ioc* results = nullptr;
  size_t result_count = 0;
};

ssize_t PostForm(fid_ep* endpoint, const fi_msg_atomic& message, const Form& form, uint64_t flags) {
  if ((flags & FI_TRIGGER) != 0) {
    return form.form == 0 ? Trigger(endpoint, message, flags, AtomicMessage, FI_ATOMIC | FI_WRITE) : -FI_ENOSYS;
  }
  const size_t most = MostElements(message.datatype, message.op, form.form);
  if (most == 0) return -FI_EOPNOTSUPP;
  if (message.rma_iov_count != 1 || message.iov_count > kIoVectors || form.compare_count > kIoVectors ||
      form.result_count > kIoVectors) {
    return -FI_EINVAL;
  }
  const auto type = static_cast<api::AtomicType>(message.datatype);
  const size_t element = api::AtomicElementBytes(type);
  const Bytes operands(message.msg_iov, message.op == FI_ATOMIC_READ ? 0 : message.iov_count, element);
  const Bytes compares(form.compares, form.compare_count, element);
  const Bytes results(form.results, form.result_count, element);
  const size_t bytes = message.rma_iov->count * element;
  if (message.rma_iov->count == 0 || message.rma_iov->count > most) return -FI_EINVAL;
  if (message.op != FI_ATOMIC_READ && BytesOf(operands) != bytes) return -FI_EINVAL;
  if (form.form != 0 && BytesOf(results) < bytes) return -FI_EINVAL;
  if (form.form == FI_COMPARE_ATOMIC && BytesOf(compares) != bytes) return -FI_EINVAL;
  return FidOf(endpoint)->endpoint->Post(
      Endpoint::AtomicTransmit{.op = static_cast<api::AtomicOp>(message.op),
                               .type = type,
                               .elements = static_cast<uint32_t>(message.rma_iov->count),
                               .operands = operands,
                               .compares = compares,
                               .results = results,
                               .peer = message.addr,
                               .context = message.context,
                               .flags = flags | (form.form == 0 ? FI_WRITE : FI_READ),
                               .remote_offset = message.rma_iov->addr,
                               .remote_key = message.rma_iov->key});
}

// Where the elements are and what is done to them, for calls that name the target by address and key.
struct Target {
  fi_addr_t peer;
  uint64_t address, key;
  fi_datatype type;
  fi_op operation;
};

ssize_t PostVectors(fid_ep* endpoint, const fi_ioc* operands, size_t count, const Target& target, const Form& form,
                    void* context, uint64_t flags) {
  fi_rma_ioc remote = {.addr = target.address, .count = 0, .key = target.key};
  const bool reads = target.operation == FI_ATOMIC_READ;
  const fi_ioc* counted = reads ? form.results : operands;
  for (size_t i = 0; i < (reads ? form.result_count : count); ++i) remote.count += counted[i].count;
  const fi_msg_atomic message = {.msg_iov = operands,
                                 .iov_count = count,
                                 .addr = target.peer,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .datatype = target.type,
                                 .op = target.operation,
                                 .context = context};
  return PostForm(endpoint, message, form, flags);
}

uint64_t Flags(fid_ep* endpoint) { return FidOf(endpoint)->transmit_flags; }

fi_ioc Entry(const void* buffer, size_t count) { return {.addr = const_cast<void*>(buffer), .count = count}; }

}  // namespace

int QueryAtomic(fid_domain*, fi_datatype type, fi_op operation, fi_atomic_attr* attributes, uint64_t flags) {
  if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) return -FI_EOPNOTSUPP;
  const uint64_t form = (flags & FI_COMPARE_ATOMIC) != 0 ? FI_COMPARE_ATOMIC : flags & FI_FETCH_ATOMIC;
  const size_t most = MostElements(type, operation, form);
  if (most == 0) return -FI_EOPNOTSUPP;
  attributes->count = most;
  attributes->size = api::AtomicElementBytes(static_cast<api::AtomicType>(type));
  return 0;
}

ssize_t AtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, uint64_t flags) {
  return PostForm(endpoint, *message, {}, flags);
}

ssize_t FetchAtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**, size_t result_count,
                           uint64_t flags) {
  const Form form = {.form = FI_FETCH_ATOMIC, .results = results, .result_count = result_count};
  return PostForm(endpoint, *message, form, flags);
}

ssize_t CompareAtomicMessage(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* compares, void**,
                             size_t compare_count, fi_ioc* results, void**, size_t result_count, uint64_t flags) {
  const Form form = {.form = FI_COMPARE_ATOMIC,
                     .compares = compares,
                     .compare_count = compare_count,
                     .results = results,
                     .result_count = result_count};
  return PostForm(endpoint, *message, form, flags);
}

fi_ops_atomic atomic_calls = {
    .size = sizeof(fi_ops_atomic),
    .write =
        [](fid_ep* endpoint, const void* buffer, size_t count, void*, fi_addr_t peer, uint64_t address, uint64_t key,
           fi_datatype type, fi_op operation, void* context) {
          const fi_ioc operands = Entry(buffer, count);
          return PostVectors(endpoint, &operands, 1, {peer, address, key, type, operation}, {}, context,
                             Flags(endpoint));
        },
    .writev =
        [](fid_ep* endpoint, const fi_ioc* operands, void**, size_t count, fi_addr_t peer, uint64_t address,
           uint64_t key, fi_datatype type, fi_op operation, void* context) {
          return PostVectors(endpoint, operands, count, {peer, address, key, type, operation}, {}, context,
                             Flags(endpoint));
        },
    .writemsg = AtomicMessage,
    .inject =
        [](fid_ep* endpoint, const void* buffer, size_t count, fi_addr_t peer, uint64_t address, uint64_t key,
           fi_datatype type, fi_op operation) {
          const fi_ioc operands = Entry(buffer, count);
          return PostVectors(endpoint, &operands, 1, {peer, address, key, type, operation}, {}, nullptr,
                             FI_INJECT | kSilent);
        },
    .readwrite =
        [](fid_ep* endpoint, const void* buffer, size_t count, void*, void* result, void*, fi_addr_t peer,
           uint64_t address, uint64_t key, fi_datatype type, fi_op operation, void* context) {
          const fi_ioc operands = Entry(buffer, count), results = Entry(result, count);
          const Form form = {.form = FI_FETCH_ATOMIC, .results = &results, .result_count = 1};
          return PostVectors(endpoint, &operands, 1, {peer, address, key, type, operation}, form, context,
                             Flags(endpoint));
        },
    .readwritev =
        [](fid_ep* endpoint, const fi_ioc* operands, void**, size_t count, fi_ioc* results, void**, size_t result_count,
           fi_addr_t peer, uint64_t address, uint64_t key, fi_datatype type, fi_op operation, void* context) {
          const Form form = {.form = FI_FETCH_ATOMIC, .results = results, .result_count = result_count};
          return PostVectors(endpoint, operands, count, {peer, address, key, type, operation}, form, context,
                             Flags(endpoint));
        },
    .readwritemsg = FetchAtomicMessage,
    .compwrite =
        [](fid_ep* endpoint, const void* buffer, size_t count, void*, const void* compare, void*, void* result, void*,
           fi_addr_t peer, uint64_t address, uint64_t key, fi_datatype type, fi_op operation, void* context) {
          const fi_ioc operands = Entry(buffer, count), compares = Entry(compare, count),
                       results = Entry(result, count);
          const Form form = {.form = FI_COMPARE_ATOMIC,
                             .compares = &compares,
                             .compare_count = 1,
                             .results = &results,
                             .result_count = 1};
          return PostVectors(endpoint, &operands, 1, {peer, address, key, type, operation}, form, context,
                             Flags(endpoint));
        },
    .compwritev =
        [](fid_ep* endpoint, const fi_ioc* operands, void**, size_t count, const fi_ioc* compares, void**,
           size_t compare_count, fi_ioc* results, void**, size_t result_count, fi_addr_t peer, uint64_t address,
           uint64_t key, fi_datatype type, fi_op operation, void* context) {
          const Form form = {.form = FI_COMPARE_ATOMIC,
                             .compares = compares,
                             .compare_count = compare_count,
                             .results = results,
                             .result_count = result_count};
          return PostVectors(endpoint, operands, count, {peer, address, key, type, operation}, form, context,
                             Flags(endpoint));
        },
    .compwritemsg = CompareAtomicMessage,
    .writevalid = Valid<0>,
    .readwritevalid = Valid<FI_FETCH_ATOMIC>,
    .compwritevalid = Valid<FI_COMPARE_ATOMIC>,
};

}  // namespace paceline::libfabric
