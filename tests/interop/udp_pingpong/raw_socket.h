// What yardstick programs of two processes share: a plain UDP socket, a clock, percentiles, running both ends at once.
// Thread rule: single-threaded programs.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/lane/udp/udp_address.h"

namespace paceline::interop {

// Nanoseconds of CLOCK_MONOTONIC.
int64_t NowNanos();

// CPU seconds that this process has used (user and system).
double CpuSeconds();

// The value below which `fraction` of the samples lie. Sorts them.
double Percentile(std::vector<double>& samples, double fraction);

// A non-blocking UDP socket bound to `address` ("192.0.2.1:0"); ends the program with a message where that fails.
// `buffer_bytes` for both directions; UDP_GRO when `gro`.
int OpenRawSocket(const std::string& address, int buffer_bytes, bool gro, SocketAddress& bound);

// Ties this process to one CPU; negative: leaves it alone.
void PinTo(int cpu);

// The CPUs that this process may use, in order.
std::vector<int> AllowedCpus();

// Ends the program with status 2 and a message.
[[noreturn]] void Fail(const std::string& message);

// Runs `server` in a child process that tells its address (at most 511 bytes) through `publish`, and `client` here with
// that address. Ends the child when the client is done. Returns the CPU seconds of the child.
double RunBoth(const std::function<void(const std::function<void(const std::string&)>& publish)>& server,
               const std::function<void(const std::string& address)>& client);

}  // namespace paceline::interop
