#pragma once

#include "engine/gesture/gesture.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Lines of the document that `edit` leaves which `edit` wrote itself, ascending. O(lines).
std::vector<std::int32_t> linesWrittenBy(const TableEdit &edit, std::int32_t lineCountBefore);

/// The same gesture, and the rows at `lines` (of the document as the proposal leaves it) switched off with
/// it, as one edit: what someone asks for who lets go where other rows are in the way (ux.md, section 4.5).
/// The proposal itself if it is refused or there is nothing to switch off. O(lines).
Proposal switchingOff(
    const GestureContext &context, const Proposal &proposal, const std::vector<std::int32_t> &lines);

} // namespace planloom
