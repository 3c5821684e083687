#pragma once

#include "engine/schedule/search/block_options.h"
#include "engine/schedule/search/block_starts.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Names of the placements of Tessel's example file (HPCA '24).
std::vector<std::string> tesselPlacements();

/// One of them on so many devices: forward blocks take `forward`, backward blocks `backward` (finetune: one
/// less; 3F1B: as long as forward ones); memory 1, full-width blocks none (kshape: 1 too).
Placement tesselPlacement(const std::string &name, std::int32_t devices, std::int64_t limit,
    std::int64_t forward = 1, std::int64_t backward = 3);

/// A placement of up to 6 blocks on up to 3 devices, drawn: branches, blocks on several devices, now and then
/// a second queue, memory given back at the end, edges between micro-batches. What gives memory back waits
/// for what took it.
Placement drawnPlacement(std::uint32_t seed);

/// The same with options on most blocks that take memory and have another that gives it back: of up to 6
/// blocks, copies of offloads counted; some of them hold workspaces.
Placement drawnOptions(std::uint32_t seed);

/// The same as `drawnPlacement`, with half of the blocks that only begin or only end something running once.
Placement drawnOnce(std::uint32_t seed);

/// Such a placement far from both ends of a step: without what runs once, and with what that holds all the
/// while taken off the limits.
Placement withoutOnce(const Placement &placement);

/// All ways to decide on the options of a placement, as placements without any.
std::vector<Placement> allDecisions(const Placement &placement);

/// Whether a micro-batch can follow another every `period`, by trying all phases and stages.
bool hasPeriod(const Placement &placement, std::int64_t period);

/// Whether there is a schedule shorter than `makespan`, by trying all starts at moments when something ends.
bool hasShorter(const Placement &placement, std::int32_t microBatches, std::int64_t makespan);

/// Of all blocks, once.
std::int64_t sumOfTimes(const Placement &placement);

/// Violations as text, so that a failed test says them.
std::string textOf(const std::vector<ScheduleViolation> &violations);

} // namespace planloom
