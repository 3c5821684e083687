#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/machine/machine_profile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Where a kernel of a step finds what it reads, by how much its device touches in between.
enum class OperandPlace : std::uint8_t {
    Core, ///< In a core's own caches: it has just been made or read.
    Shared, ///< In what caches cores share.
    Memory, ///< Weights and states, and what was made long before.
};

/// Where `instruction`, number `index` of `instructions`, finds `buffer`: by what those before it touch since
/// one of them touched the buffer. What none of them did is in memory.
OperandPlace operandPlace(const DeviceProgram &program, std::span<const Instruction> instructions,
    std::size_t index, std::int32_t buffer);

/// A kernel of a plan that stands for all with its key.
struct DistinctKernel {
    const DeviceProgram *program = nullptr;
    const Instruction *instruction = nullptr;
    OperatorCategory category{};
    Work work{};
    std::vector<OperandPlace> inputs{}; ///< By slot.
};

/// By `kernelKey`: what a simulation of `plan` asks the times of. Operators of files are left out.
std::map<std::string, DistinctKernel> kernelsOf(const ExecutionPlan &plan);

/// Those that `profile` does not know, or (`again`) all: the largest first.
std::vector<std::pair<std::string, DistinctKernel>> kernelsToMeasure(
    const ExecutionPlan &plan, const MachineProfile &profile, bool again);

/// Numbers that no kernel stumbles over: small, positive, not all the same; the first class, token or place.
void fillHarmlessly(std::byte *to, DataType type, std::int64_t count);

} // namespace planloom
