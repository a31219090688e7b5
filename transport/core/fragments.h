// Fragments: the parts in which a segment travels where its path takes only smaller packets than it did when the
// connection was set up. docs/protocol.md, section 8.
#pragma once

#include <cstdint>

namespace paceline {

// A fragment begins at a multiple of this in its segment and ends at one, or at the segment's end. So a segment has at
// most 64 units.
inline uint32_t FragmentUnit(uint32_t segment_bytes) { return (segment_bytes + 4095) / 4096 * 64; }

}  // namespace paceline
