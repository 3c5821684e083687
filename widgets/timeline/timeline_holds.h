#pragma once

#include "engine/gesture/gesture.h"
#include "widgets/scene/timeline_scene.h"

#include <cstddef>

namespace planloom {

/// A move in time says what comes first of two; the moved thing may run earlier still, or later. Held, it
/// stays between its new neighbours: not before the one that it goes behind, nor behind the one that it goes
/// before (ux.md, section 4.3: a release limit).

/// @param base  what moves block `own` of the lane to the caret before block `caret`
/// @return `base` and the row for its other neighbour; `base` alone where there is none, or where it comes
/// first anyway
Proposal holdingBlock(const GestureContext &context, const DeviceLane &lane, std::size_t own,
    std::size_t caret, bool onlyThis, const Proposal &base);

/// @param block  that spans `own` and `caret` are among
Proposal holdingSpan(const GestureContext &context, const TimelineScene &scene, const TimelineBlock &block,
    std::size_t own, std::size_t caret, bool onlyThis, const Proposal &base);

} // namespace planloom
