#pragma once

#include "engine/analyse/idle_chain.h"
#include "engine/analyse/idle_times.h"
#include "widgets/timeline/timeline_panel_text.h"
#include "widgets/timeline/timeline_text.h"

#include <functional>
#include <string>
#include <vector>

namespace planloom {

/// Why a device is idle: one sentence, the reasons with their times, then the chain by blocks, from the span
/// behind the pause back to the cause; the operators of each block are folded below it.
/// @param gap  of the bubble; null leaves its reasons out
/// @param textOfRow  a row of the table in words; empty where it is unknown
PanelTable bubbleTable(const TimelineScene &scene, const Bubble &bubble, const std::vector<WaitLink> &links,
    const IdleGap *gap, const std::function<std::string(RowId)> &textOfRow);

/// Where the idle time of all devices goes: by reason, for each and in all.
PanelTable idleTable(const TimelineScene &scene, const IdleTimes &idle);

/// What a pause is, why, and what is waited for.
std::vector<FactLine> factsOfIdle(
    const TimelineScene &scene, const Bubble &bubble, const std::vector<WaitLink> &links, const IdleGap &gap);

} // namespace planloom
