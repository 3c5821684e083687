#include "engine/runtime/distinct_kernels.h"

#include "engine/graph/catalogue.h"
#include "engine/kernels/narrow_float.h"
#include "engine/lowering/instruction_cost.h"

#include <algorithm>
#include <cstring>

namespace planloom {

std::map<std::string, DistinctKernel> kernelsOf(const ExecutionPlan &plan)
{
    std::map<std::string, DistinctKernel> found;
    for (const DeviceProgram &program : plan.devices) {
        for (const Segment &segment : program.segments) {
            for (const Instruction &instruction : segment.instructions) {
                if (instruction.kind != InstructionKind::Kernel
                    || plan.graph->at(instruction.op).kind == OperatorKind::Custom)
                    continue;
                CostModel asked; // asked for exactly what a simulation asks for
                asked.kernel = [&](const KernelQuery &query) {
                    found.try_emplace(kernelKey(query),
                        DistinctKernel{&program, &instruction, categoryOf(query.op),
                            workOf(query.op, query.inputs, query.outputs, query.attention)});
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
