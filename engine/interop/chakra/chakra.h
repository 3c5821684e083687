#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace planloom {

/// The execution trace of one device as MLCommons' Chakra has them (schema/protobuf/et_def.proto): a
/// GlobalMetadata and a Node for each instruction that the device runs in a step, each behind its length as
/// protobuf writes delimited messages. What a node waits for, also the order of its queue, is in data_deps,
/// which is what simulators read; other devices are waited for by communication alone.
///
/// Durations are those of `timeline`, in whole microseconds. Attributes: is_cpu_op; of collectives comm_type,
/// comm_size (bytes), pg_name (index into `plan.groups`); of messages comm_size, comm_src, comm_dst,
/// comm_tag.
/// @param plan  written out for all ranks (`expandUnits`)
/// @return InvalidInput if `timeline` does not belong to `plan`
/// O(spans of all devices)
Result<std::vector<std::string>> chakraTraces(const ExecutionPlan &plan, const Timeline &timeline);

/// The groups that pg_name names, as ASTRA-sim's comm-group configuration: {"0": [0, 1], ...}.
std::string chakraGroups(const ExecutionPlan &plan);

/// Makes the folder, if there is none, and writes NAME.0.et, NAME.1.et, ... and comm_groups.json into it.
Result<void> writeChakraFolder(const ExecutionPlan &plan, const std::vector<std::string> &traces,
    const std::filesystem::path &folder, const std::string &name = "plan");

} // namespace planloom
