#include "engine/interop/torch/program_text.h"

#include <algorithm>

namespace planloom {

namespace {

/// One collective of one member: where it stands.
struct Place {
    std::int32_t device = 0;
    std::int32_t segment = 0;
    std::int32_t instruction = 0;
};

std::int64_t extentAlong(const DeviceProgram &program, const BufferList &buffers, std::int32_t dimension)
{
    if (buffers.empty() || buffers[0] < 0 || dimension < 0)
        return 0;
    return program.buffers[static_cast<std::size_t>(buffers[0])]
        .index.ranges[static_cast<std::size_t>(dimension)]
        .size();
}

bool areAlike(const std::vector<std::int64_t> &sizes)
{
    return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>{}) == sizes.end();
}

} // namespace

UnevenCollectives unevenCollectives(const ExecutionPlan &plan)
{
    // By group, and number in its order: the members' places, as far as they are known.
    std::vector<std::vector<std::vector<Place>>> meetings(plan.groups.size());
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceProgram &program = plan.devices[d];
        std::vector<std::size_t> next(plan.groups.size(), 0);
        for (const ScheduleEntry &entry : program.schedule) {
            const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
            const auto [begin, end] = indicesOf(program, entry);
            for (std::size_t i = begin; i < end; ++i) {
                const Instruction &instruction = segment.instructions[i];
                if (instruction.group < 0 || instruction.acrossUnits || !isCommunication(instruction.kind))
                    continue;
                const auto group = static_cast<std::size_t>(instruction.group);
                const std::size_t number = next[group]++;
                if (number >= meetings[group].size())
                    meetings[group].resize(number + 1);
                meetings[group][number].push_back(
                    {static_cast<std::int32_t>(d), entry.segment, static_cast<std::int32_t>(i)});
            }
        }
    }
    UnevenCollectives uneven;
    for (std::size_t g = 0; g < meetings.size(); ++g) {
        for (std::vector<Place> &members : meetings[g]) {
            const auto numberOf = [&](const Place &place) {
                const auto &group = plan.groups[g];
                return std::find(group.begin(), group.end(), DeviceId{place.device}) - group.begin();
            };
            std::sort(members.begin(), members.end(),
                [&](const Place &a, const Place &b) { return numberOf(a) < numberOf(b); });
            CollectiveSizes sizes;
            for (const Place &place : members) {
                const DeviceProgram &program = plan.devices[static_cast<std::size_t>(place.device)];
                const Instruction &instruction =
                    program.segments[static_cast<std::size_t>(place.segment)]
                        .instructions[static_cast<std::size_t>(place.instruction)];
                const bool exchanges = instruction.kind == InstructionKind::AllToAll;
                if (instruction.kind == InstructionKind::AllGather || exchanges)
                    sizes.ofInputs.push_back(extentAlong(program, instruction.inputs,
                        exchanges ? instruction.gatherDimension : instruction.dimension));
                if (instruction.kind == InstructionKind::ReduceScatter || exchanges)
                    sizes.ofOutputs.push_back(
                        extentAlong(program, instruction.outputs, instruction.dimension));
            }
            if (areAlike(sizes.ofInputs) && areAlike(sizes.ofOutputs))
                continue;
            for (const Place &place : members)
                uneven.try_emplace({place.device, place.segment, place.instruction}, sizes);
        }
    }
    return uneven;
}

} // namespace planloom
