#include "api/nccl/src/nics.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "absl/strings/str_join.h"
#include "api/nccl/src/hca_list.h"

namespace paceline::nccl {
namespace {

constexpr double kAssumedGbps = 10;  // of a device whose driver states none, as NCCL does for sockets

using api::Interface;
using api::Status;
using api::StatusCode;

// Where the card stands among the machine's devices; empty where there is none.
std::string PciPathOf(const Interface& interface) {
  std::error_code error;
  const auto path = std::filesystem::canonical(interface.sysfs, error);
  return error ? std::string() : path.string();
}

Nic SharedMemoryNic(double stated_gbps) {
  // About what it moves. With the lane's own 400 NCCL keeps to its protocols for short messages far too long: an
  // all-reduce of 1 MiB took 3.6 times as long (docs/plugins/nccl.md).
  constexpr double kGbps = 100;
  return {.name = "shm",
          .guid = 1,
          .speed_mbps = static_cast<int>((stated_gbps > 0 ? stated_gbps : kGbps) * 1000),
          .parts = {0}};
}

std::string NamesOf(const std::vector<Interface>& interfaces) {
  return absl::StrJoin(interfaces, ", ", [](std::string* out, const Interface& one) {
    out->append(one.name + (one.usable ? "" : " (down or without address)"));
  });
}

}  // namespace

Nic NicOf(const Interface& interface, int number, double stated_gbps) {
  Nic nic{.name = interface.name, .bind = {interface.name}};
  nic.pci_path = PciPathOf(interface);
  nic.port = static_cast<int>(interface.port);
  nic.guid = interface.guid != 0 ? interface.guid : static_cast<uint64_t>(number) + 1;
  const double gbps = stated_gbps > 0 ? stated_gbps : interface.gbps > 0 ? interface.gbps : kAssumedGbps;
  nic.speed_mbps = static_cast<int>(gbps * 1000);
  nic.parts = {number};
  nic.open_to_others = !interface.loopback;
  nic.card = {.places = interface.places, .dma_buf_problem = interface.dma_buf_problem};
  return nic;
}

const Interface* Named(const std::vector<Interface>& interfaces, const std::string& bind) {
  const Interface* found = nullptr;
  for (const Interface& one : interfaces) {
    if (one.name == bind) return &one;
    if (found == nullptr && one.usable && one.name.starts_with(bind + ":")) found = &one;
  }
  return found;
}

api::Result<std::vector<Interface>> ChooseInterfaces(const std::vector<Interface>& interfaces, const std::string& hca) {
  std::vector<Interface> usable;
  std::copy_if(interfaces.begin(), interfaces.end(), std::back_inserter(usable),
               [](const Interface& one) { return one.usable; });
  std::vector<Interface> chosen;
  const auto choose = [&](auto wanted) {
    if (chosen.empty()) std::copy_if(usable.begin(), usable.end(), std::back_inserter(chosen), wanted);
  };
  if (!hca.empty()) {
    const auto list = HcaList::Parse(hca);
    if (!list.ok()) return list.status();
    choose([&](const Interface& one) { return list->Takes(one.name); });
  } else {
    choose([](const Interface& one) { return !one.is_virtual && !one.loopback; });
    choose([](const Interface& one) { return !one.loopback; });
    choose([](const Interface&) { return true; });
  }
  if (chosen.empty()) {
    return Status(StatusCode::kNotFound,
                  (hca.empty() ? std::string("no usable device") : "PACELINE_HCA=" + hca + ": no usable device") +
                      "; there are: " + NamesOf(interfaces));
  }
  return chosen;
}

std::string UsableCards() {
  const auto ports = api::ListInterfaces("verbs");
  if (!ports.ok()) return "";
  std::vector<Interface> usable;
  std::copy_if(ports->begin(), ports->end(), std::back_inserter(usable),
               [](const Interface& one) { return one.usable; });
  return NamesOf(usable);
}

api::Result<Nics> Nics::Find(const api::ContextOptions& options, const std::string& hca) {
  Nics result;
  if (options.lane == "shm") {
    result.nics_.push_back(SharedMemoryNic(options.link_gbps));
  } else {
    const auto interfaces = api::ListInterfaces(options.lane);
    if (!interfaces.ok()) return interfaces.status();
    if (!hca.empty() || options.bind.empty()) {
      const auto chosen = ChooseInterfaces(*interfaces, hca);
      if (!chosen.ok()) {
        const std::string cards = options.lane == "verbs" ? "" : UsableCards();
        return cards.empty()
                   ? chosen.status()
                   : Status(chosen.status().code(), chosen.status().message() + "; with PACELINE_LANE=verbs: " + cards);
      }
      for (const Interface& one : *chosen) {
        result.nics_.push_back(NicOf(one, static_cast<int>(result.nics_.size()), options.link_gbps));
      }
    } else {
      for (const std::string& bind : options.bind) {
        const Interface* known = Named(*interfaces, bind);
        const Interface address{.name = bind, .loopback = bind.starts_with("127.") || bind.starts_with("[::1]")};
        result.nics_.push_back(
            NicOf(known == nullptr ? address : *known, static_cast<int>(result.nics_.size()), options.link_gbps));
      }
    }
  }
  result.physical_ = result.count();
  return result;
}

const Nic* Nics::Get(int number) const {
  return number < 0 || number >= count() ? nullptr : &nics_[static_cast<size_t>(number)];
}

api::Result<int> Nics::Merge(const std::vector<int>& parts) {
  const auto refuse = [](const std::string& why) {
    return Status(StatusCode::kInvalidArgument, "a virtual device: " + why);
  };
  if (parts.empty() || parts.size() > kMostParts) {
    return refuse(std::to_string(parts.size()) + " parts; it may have 1 to " + std::to_string(kMostParts));
  }
  Nic merged;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 0 || parts[i] >= physical_) {
      return refuse("part " + std::to_string(parts[i]) + " is none of the devices 0 to " +
                    std::to_string(physical_ - 1));
    }
    if (std::find(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(i), parts[i]) !=
        parts.begin() + static_cast<ptrdiff_t>(i)) {
      return refuse("part " + std::to_string(parts[i]) + " is named twice");
    }
    const Nic& part = nics_[static_cast<size_t>(parts[i])];
    if (i == 0) {
      merged = part;
      continue;
    }
    merged.name += "+" + part.name;
    merged.bind.insert(merged.bind.end(), part.bind.begin(), part.bind.end());
    merged.speed_mbps += part.speed_mbps;
    merged.open_to_others |= part.open_to_others;
    merged.card.places &= part.card.places;
    if (merged.card.dma_buf_problem.empty()) merged.card.dma_buf_problem = part.card.dma_buf_problem;
  }
  merged.parts = parts;
  nics_.push_back(std::move(merged));
  return count() - 1;
}

std::vector<std::vector<int>> Nics::Merged() const {
  std::vector<std::vector<int>> all;
  std::transform(nics_.begin() + physical_, nics_.end(), std::back_inserter(all),
                 [](const Nic& nic) { return nic.parts; });
  return all;
}

}  // namespace paceline::nccl
