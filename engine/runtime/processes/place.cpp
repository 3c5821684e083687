#include "engine/runtime/processes/place.h"

namespace planloom {

std::optional<InstructionPlace> placeOf(const ExecutionPlan &plan, std::int32_t device, std::int64_t count)
{
    const DeviceProgram &program = plan.devices[static_cast<std::size_t>(device)];
    std::int64_t perStep = 0;
    for (const ScheduleEntry &entry : program.schedule)
        perStep += static_cast<std::int64_t>(instructionsOf(program, entry).size());
    if (count <= 0 || perStep == 0)
        return std::nullopt;
    std::int64_t left = (count - 1) % perStep;
    for (const ScheduleEntry &entry : program.schedule) {
        const auto size = static_cast<std::int64_t>(instructionsOf(program, entry).size());
        if (left < size)
            return InstructionPlace{static_cast<std::int32_t>((count - 1) / perStep), entry.segment,
                static_cast<std::int32_t>(left) + entry.begin, entry.microBatch};
        left -= size;
    }
    return std::nullopt;
}

std::string describe(const ExecutionPlan &plan, std::int32_t device, const InstructionPlace &place)
{
    const Instruction &instruction = plan.devices[static_cast<std::size_t>(device)]
                                         .segments[static_cast<std::size_t>(place.segment)]
                                         .instructions[static_cast<std::size_t>(place.instruction)];
    std::string text = nameOf(instruction.kind);
    if (instruction.op.valid())
        text += " of " + plan.graph->at(instruction.op).name;
    return text + ", micro-batch " + std::to_string(place.microBatch) + ", step "
        + std::to_string(place.step);
}

} // namespace planloom
