#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/execution_plan.h"
#include "engine/runtime/machine_profile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// A kernel of a plan that stands for all with its key.
struct DistinctKernel {
    const DeviceProgram *program = nullptr;
    const Instruction *instruction = nullptr;
    OperatorCategory category{};
    Work work{};
};

/// By `kernelKey`: what a simulation of `plan` asks the times of. Operators of files are left out.
std::map<std::string, DistinctKernel> kernelsOf(const ExecutionPlan &plan);

/// Those that `profile` does not know, or (`again`) all: the largest first.
std::vector<std::pair<std::string, DistinctKernel>> kernelsToMeasure(
    const ExecutionPlan &plan, const MachineProfile &profile, bool again);

/// Numbers that no kernel stumbles over: small, positive, not all the same; the first class, token or place.
void fillHarmlessly(std::byte *to, DataType type, std::int64_t count);

} // namespace planloom
