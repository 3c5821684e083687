#include "engine/runtime/machine/distinct_kernels.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <cstring>

namespace planloom {

namespace {

// Bytes that a device touches until what was there before has gone from caches. Two cores' own caches have 2
// to 4 MiB together; of the shared one, which on servers is much larger, other programs leave little.
constexpr std::int64_t kCoreCaches = std::int64_t{3} << 20;
constexpr std::int64_t kSharedCache = std::int64_t{16} << 20;

bool touches(const Instruction &instruction, std::int32_t buffer)
{
    const auto has = [buffer](const BufferList &list) {
        return std::find(list.begin(), list.end(), buffer) != list.end();
    };
    return has(instruction.inputs) || has(instruction.outputs);
}

std::int64_t bytesTouched(const DeviceProgram &program, const Instruction &instruction)
{
    std::int64_t bytes = 0;
    for (const auto *list : {&instruction.inputs, &instruction.outputs})
        for (const std::int32_t buffer : *list)
            if (buffer >= 0)
                bytes += sizeOf(program.buffers[static_cast<std::size_t>(buffer)]).count;
    return bytes;
}

} // namespace

OperandPlace operandPlace(const DeviceProgram &program, std::span<const Instruction> instructions,
    std::size_t index, std::int32_t buffer)
{
    std::int64_t between = sizeOf(program.buffers[static_cast<std::size_t>(buffer)]).count;
    for (std::size_t i = index; i-- > 0 && between <= kSharedCache;) {
        if (touches(instructions[i], buffer))
            return between <= kCoreCaches ? OperandPlace::Core : OperandPlace::Shared;
        between += bytesTouched(program, instructions[i]);
    }
    return OperandPlace::Memory;
}

std::map<std::string, DistinctKernel> kernelsOf(const ExecutionPlan &plan)
{
    std::map<std::string, DistinctKernel> found;
    for (const DeviceProgram &program : plan.devices) {
        for (const Segment &segment : program.segments) {
            for (std::size_t index = 0; index < segment.instructions.size(); ++index) {
                const Instruction &instruction = segment.instructions[index];
                if (instruction.kind != InstructionKind::Kernel
                    || plan.graph->at(instruction.op).kind == OperatorKind::Custom)
                    continue;
                CostModel asked; // asked for exactly what a simulation asks for
                asked.kernel = [&](const KernelQuery &query) {
                    const auto [at, isNew] = found.try_emplace(kernelKey(query),
                        DistinctKernel{&program, &instruction, categoryOf(query.op),
                            workOf(query.op, query.inputs, query.outputs, query.attention)});
                    for (std::size_t slot = 0; isNew && slot < instruction.inputs.size(); ++slot)
                        at->second.inputs.push_back(instruction.inputs[slot] < 0
                                ? OperandPlace::Memory
                                : operandPlace(
                                    program, segment.instructions, index, instruction.inputs[slot]));
                    return 0.0;
                };
                (void)localDuration(plan, program, instruction, asked);
            }
        }
    }
    return found;
}

std::vector<std::pair<std::string, DistinctKernel>> kernelsToMeasure(
    const ExecutionPlan &plan, const MachineProfile &profile, bool again)
{
    std::vector<std::pair<std::string, DistinctKernel>> unknown;
    for (auto &[key, kernel] : kernelsOf(plan))
        if (again || !profile.kernels.contains(key))
            unknown.emplace_back(key, kernel);
    std::stable_sort(unknown.begin(), unknown.end(), [](const auto &a, const auto &b) {
        return a.second.work.flops + a.second.work.bytes > b.second.work.flops + b.second.work.bytes;
    });
    return unknown;
}

void fillHarmlessly(std::byte *to, DataType type, std::int64_t count)
{
    if (!isFloating(type)) {
        std::memset(to, type == DataType::Bool ? 1 : 0, static_cast<std::size_t>(count * sizeOf(type)));
        return;
    }
    std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(count, 4099)));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.01F * static_cast<float>(1 + i * 7 % 13);
    for (std::int64_t at = 0; at < count; at += std::ssize(values))
        (void)convertFloats(reinterpret_cast<const std::byte *>(values.data()), DataType::Float32,
            to + at * sizeOf(type), type,
            static_cast<std::size_t>(std::min<std::int64_t>(count - at, std::ssize(values))));
}

} // namespace planloom
