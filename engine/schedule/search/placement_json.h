#pragma once

#include "engine/base/result.h"
#include "engine/schedule/search/find_schedule.h"
#include "engine/schedule/search/placement.h"

#include <nlohmann/json_fwd.hpp>

#include <string_view>

namespace planloom {

/// A placement from its JSON form, a valid one:
///
///     {"devices": 4, "memory_limit": 4,
///      "blocks": [{"id": 0, "kind": "forward", "devices": [0], "time": 1, "memory": 1},
///                 {"id": 8, "kind": "send", "devices": [0, 1], "queue": 1, "time": 1}, ...,
///                 {"id": 2, "devices": [1], "time": 1, "memory": 4,
///                  "recompute": {"until": 5, "time": 1, "memory": 3},
///                  "offload": {"until": 5, "time": 2, "memory": 4, "queue": 1}}, ...],
///      "edges": [[0, 1], [1, 2, 1], ...]}
///
/// `memory_limit` is a number for all devices, a list of one for each, or absent. Of a block only `id`,
/// `devices` and `time` must be there; `"gives_back": "end"` is for memory below 0, `workspace` is held while
/// the block runs. `recompute` and `offload` are its `MemoryOption`s, one or a list of them: without `memory`
/// they save all that the block takes; `queue` is the next above all others if absent, `back_time` and
/// `back_queue` are `time` and `queue`. The third number of an edge is its distance in micro-batches.
/// @return InvalidInput with the path ("blocks/3/time") of what is wrong
Result<Placement> placementFromJson(std::string_view text);

nlohmann::json placementToJson(const Placement &placement);

/// What the search says, as scripts read it:
///
///     {"status": "optimal", "period": 4, "period_bound": 4, "gap": 0, "micro_batches": 8,
///      "makespan": {"8": 44}, "makespan_bound": {"8": 44}, "peak_memory": [4, 3, 2, 1], "in_flight": 4,
///      "bubble": [0.27, ...], "repetend": [{"id": 0, "stage": 0, "phase": 0}, ...],
///      "blocks": [{"id": 0, "micro_batch": 0, "start": 0}, ...], "period_seconds": ..., "seconds": ...,
///      "choices": [{"id": 2, "choice": "recompute", "until": 5},
///                  {"id": 3, "choice": "offload", "until": 4, "out": 9, "back": 10},
///                  {"id": 4, "choice": "kept"}], "repetend_choices": [...]}
///
/// What there is none of is null. `choices` are those of the blocks that have options, in `blocks`, where
/// copies are blocks too (`out` and `back` are their ids); `repetend_choices` those of `repetend`. Both are
/// there where the placement has options.
nlohmann::json toJson(const Placement &placement, const ScheduleAnswer &answer);

} // namespace planloom
