// The table by which the rest of Paceline finds the lane in this module.
#include "transport/lane/dpdk/dpdk_module.h"

#include "transport/lane/dpdk/dpdk_eal.h"
#include "transport/lane/dpdk/dpdk_packet_lane.h"

extern "C" __attribute__((visibility("default")))
const paceline::DpdkModule kPacelineDpdkModule = {PACELINE_VERSION, &paceline::CheckDpdkEal, &paceline::OpenDpdkLanes};
