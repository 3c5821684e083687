#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

// The folded form of an execution plan's programs: what layers and devices have in common stands there once.
//
//   templates   [{known, new, tags, instructions}]    what one operator does, whichever layer's it is
//   forms       [buffer without its tensor]
//   programs    [{setup: [call], segments: [{kind, stage, calls: [call]}], schedule}]
//   devices     [{program, buffers: [[step, form] or {"again": [first, count]}]}]
//
//   call        [template, operator, tag?, buffer ... x known]
//
// A call stands for the instructions of its template, all of which are about `operator` (-1: none). They name
// buffers by place: the first `known` are those that the call lists, the next `new` follow the highest one
// that an earlier call of the device made: buffers are mostly numbered in the order they are written in, so
// that a call rarely lists more than what other operators made. `part` counts from the operator's first part
// on the device, `tag` from the one that the call names where the template has `tags`.
//
// A buffer's tensor is `step` after that of the buffer before it (of tensor 0 for the first). `again` stands
// for the same steps and forms as those of `count` buffers from `first` on, counted over all devices; it may
// reach into itself.

/// Fewer of them (`itemCount`) are written out: about two megabytes.
inline constexpr std::int64_t kLeastFolded = std::int64_t{1} << 14;

/// The members above as text that goes into a document, each with a comma before it.
std::string foldedPrograms(const ExecutionPlan &plan);

/// By operator, the first of its parts that runs on `device`; 0 where none does.
/// @return by device, for each of so many. O(devices x operators + parts of all operators)
std::vector<std::vector<std::int32_t>> firstParts(const ExecutionPlan &plan, std::size_t deviceCount);

} // namespace planloom
