// The writing side of the counters page in shared memory; its layout stands in paceline/counters.h.
//
// Thread rule: one thread at a time. Ownership: the file is removed with the object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "paceline/counters.h"
#include "paceline/status.h"

namespace paceline::api {

class CountersPage {
 public:
  // A page with these names and units; values as they are now. Removes what dead processes have left.
  static Result<std::unique_ptr<CountersPage>> Create(std::span<const Counter> counters);
  ~CountersPage();
  CountersPage(const CountersPage&) = delete;
  CountersPage& operator=(const CountersPage&) = delete;

  const std::string& name() const { return name_; }

  void Set(size_t record, uint64_t value);
  // After the last Set of an update.
  void Stamp();

 private:
  CountersPage(std::string name, int fd, uint8_t* map, size_t bytes);
  std::string name_;
  int fd_;
  uint8_t* map_;
  size_t bytes_;
};

}  // namespace paceline::api
