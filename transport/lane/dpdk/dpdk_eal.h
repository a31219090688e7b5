// EAL, DPDK's base: started once in the life of a process, or found running because the application uses DPDK too.
//
// Thread rule: any thread. The thread that starts it keeps the cores that it may use.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "transport/lane/dpdk/dpdk_device.h"

namespace paceline {

// Whether it could start here, as far as can be said without starting it.
absl::Status CheckDpdkEal();

// OK: it runs. `devices` and `arguments` matter only when it has to be started.
absl::Status StartDpdkEal(std::span<const DpdkDevice> devices, const std::string& arguments);

// The last things that DPDK had to say of errors, for a message; empty when it says them itself (the application's
// DPDK, or a --log-level of the user's).
std::string LastDpdkErrors();

// Gives the calling thread what DPDK calls an lcore, without which taking and giving back buffers is slower. Cheap
// after the first time; gives it back when the thread ends.
void JoinDpdk();

}  // namespace paceline
