// The LaneAddress of a UDP endpoint that a frame names, as the udp lane writes it: lanes over Ethernet and the udp lane
// reach each other.
//
// Thread rule: a pure function.
#pragma once

#include "transport/lane/ethernet/frame.h"
#include "transport/lane/lane.h"

namespace paceline {

LaneAddress ToLaneAddress(IpVersion version, const IpAddress& address, uint16_t port);

}  // namespace paceline
