#pragma once

#include "engine/schedule/schedule.h"
#include "engine/schedule/search/stage_blocks.h"

#include <vector>

namespace planloom {

/// A template at work on a small pipeline: for pictures of it.
struct TemplateExample {
    ScheduleSetting setting{};
    StagePlacement stages{}; ///< Forward blocks take 2 steps, both halves of backward blocks 2 each.
    std::vector<BlockStart> starts{}; ///< All of them, valid.
};

/// Four ranks, or one where the template is for one, and eight micro-batches, on stages that lie as the
/// template needs them: in two directions, in a wave, dealt out in turn, with one on all ranks, one on each.
/// @return InvalidInput if it takes none of these, which none of `scheduleTemplates` does
Result<TemplateExample> exampleOf(ScheduleKind kind);

} // namespace planloom
