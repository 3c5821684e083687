#pragma once

#include "tests/engine/verify/plan_mutations.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace planloom {

/// Ways to make a plan wrong that leave it one that runs: nothing waits for what never comes, and no buffer
/// is read beyond its end. `apply` returns false where the plan has nothing of the sort.
namespace wrong {

/// Calls `visit(instruction, device)` for all instructions of a step; ends where it returns true.
template<typename Visit> bool forEach(ExecutionPlan &plan, Visit visit)
{
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (Segment &segment : plan.devices[d].segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (visit(instruction, d))
                    return true;
    return false;
}

/// One of the instructions for which `is` is true, and its device.
template<typename Is> std::pair<Instruction *, std::size_t> pick(ExecutionPlan &plan, Dice &dice, Is is)
{
    std::vector<std::pair<Instruction *, std::size_t>> found;
    forEach(plan, [&](Instruction &instruction, std::size_t d) {
        if (is(instruction, d))
            found.emplace_back(&instruction, d);
        return false;
    });
    return found.empty() ? std::pair<Instruction *, std::size_t>{} : dice.of(found);
}

inline BufferInfo &bufferOf(ExecutionPlan &plan, std::size_t device, std::int32_t buffer)
{
    return plan.devices[device].buffers.edit()[static_cast<std::size_t>(buffer)];
}

/// The same collective on all devices of its group: of the same tensor, as often as before on each.
template<typename Edit> bool onAllMembers(ExecutionPlan &plan, Dice &dice, InstructionKind kind, Edit edit)
{
    const auto [chosen, device] = pick(plan, dice, [kind](const Instruction &instruction, std::size_t) {
        return instruction.kind == kind && instruction.group >= 0 && !instruction.inputs.empty()
            && instruction.inputs[0] >= 0 && !instruction.outputs.empty() && instruction.outputs[0] >= 0;
    });
    if (chosen == nullptr)
        return false;
    const std::int32_t group = chosen->group;
    std::size_t number = 0; // of the group's collectives on that device
    std::size_t count = 0;
    forEach(plan, [&, at = chosen, on = device](Instruction &instruction, std::size_t d) {
        if (d == on && instruction.group == group) {
            if (&instruction == at)
                number = count;
            ++count;
        }
        return false;
    });
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        std::size_t seen = 0;
        forEach(plan, [&](Instruction &instruction, std::size_t on) {
            if (on == d && instruction.group == group && seen++ == number) {
                edit(instruction);
                return true;
            }
            return false;
        });
    }
    return true;
}

inline bool leaveOutReduction(ExecutionPlan &plan, Dice &dice)
{
    return onAllMembers(plan, dice, InstructionKind::AllReduce, [](Instruction &instruction) {
        instruction.kind = InstructionKind::Cast;
        instruction.group = -1;
    });
}

inline bool doubleInPlaceOfReduction(ExecutionPlan &plan, Dice &dice)
{
    return onAllMembers(plan, dice, InstructionKind::AllReduce, [](Instruction &instruction) {
        instruction.kind = InstructionKind::Sum;
        instruction.group = -1;
        instruction.inputs.push_back(instruction.inputs[0]);
    });
}

inline bool reduceByTheLargest(ExecutionPlan &plan, Dice &dice)
{
    const bool scatters = dice.coin();
    return onAllMembers(plan, dice, scatters ? InstructionKind::ReduceScatter : InstructionKind::AllReduce,
        [](Instruction &instruction) {
            instruction.combination =
                instruction.combination == Combination::Sum ? Combination::Max : Combination::Sum;
        });
}

inline bool swapRanks(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return instruction.group >= 0
            && (instruction.kind == InstructionKind::AllGather
                || instruction.kind == InstructionKind::ReduceScatter
                || instruction.kind == InstructionKind::AllToAll
                || instruction.kind == InstructionKind::Shift);
    });
    if (chosen == nullptr)
        return false;
    auto &group = plan.groups[static_cast<std::size_t>(chosen->group)];
    if (group.size() < 2)
        return false;
    std::swap(group[0], group[1 + dice.below(group.size() - 1)]);
    return true;
}

/// The later summand in place of the sum.
inline bool missSummand(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return instruction.kind == InstructionKind::Accumulate
            || (instruction.kind == InstructionKind::Sum && instruction.inputs.size() > 1);
    });
    if (chosen == nullptr)
        return false;
    if (chosen->kind == InstructionKind::Sum)
        chosen->inputs.pop_back();
    else
        chosen->kind = InstructionKind::Cast;
    return true;
}

inline bool addTwice(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return instruction.kind == InstructionKind::Sum && !instruction.inputs.empty();
    });
    if (chosen == nullptr)
        return false;
    chosen->inputs.push_back(chosen->inputs[dice.below(chosen->inputs.size())]);
    return true;
}

/// Takes the slice beside the right one, where there is one of that size.
inline bool takeWrongSlice(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return instruction.kind == InstructionKind::Select || instruction.kind == InstructionKind::Load;
    });
    if (chosen == nullptr || chosen->outputs.empty())
        return false;
    BufferInfo &info = bufferOf(plan, device, chosen->outputs[0]);
    if (info.perMicroBatch && plan.microBatches > 1)
        return false; // moves by itself
    const Shape &shape = plan.graph->at(info.tensor).type.shape;
    for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
        Range &range = info.index.ranges[dimension];
        const std::int64_t size = range.size();
        if (2 * size > shape[dimension])
            continue;
        const std::int64_t begin = range.begin >= size ? range.begin - size : range.begin + size;
        if (begin + size > shape[dimension])
            continue;
        range = {begin, begin + size};
        return true;
    }
    return false;
}

/// The weight stays what it was.
inline bool keepStaleWeight(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return instruction.kind == InstructionKind::Update && !instruction.outputs.empty();
    });
    if (chosen == nullptr)
        return false;
    chosen->inputs[0] = chosen->outputs[0];
    return true;
}

/// An operator runs another of its parts, on the same buffers.
inline bool runAnotherPart(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [&](const Instruction &instruction, std::size_t) {
        return instruction.kind == InstructionKind::Kernel
            && partCount(plan.partitions[static_cast<std::size_t>(instruction.op.index)]) > 1;
    });
    if (chosen == nullptr)
        return false;
    const auto parts = partCount(plan.partitions[static_cast<std::size_t>(chosen->op.index)]);
    chosen->part = dice.another(chosen->part, static_cast<std::size_t>(parts));
    return true;
}

/// A kernel, or a send, reads another buffer of the same type and shape.
inline bool readAnother(ExecutionPlan &plan, Dice &dice)
{
    const auto [chosen, device] = pick(plan, dice, [](const Instruction &instruction, std::size_t) {
        return !instruction.inputs.empty()
            && (instruction.kind == InstructionKind::Kernel || instruction.kind == InstructionKind::Send
                || instruction.kind == InstructionKind::Accumulate);
    });
    if (chosen == nullptr)
        return false;
    const std::size_t slot = dice.below(chosen->inputs.size());
    if (chosen->inputs[slot] < 0)
        return false;
    const auto &buffers = plan.devices[device].buffers;
    const BufferInfo &own = buffers[static_cast<std::size_t>(chosen->inputs[slot])];
    if (!isFloating(own.dataType))
        return false; // an index out of range ends a run
    std::vector<std::int32_t> alike;
    for (std::size_t b = 0; b < buffers.size(); ++b)
        if (buffers[b].dataType == own.dataType && shapeOf(buffers[b].index) == shapeOf(own.index)
            && buffers[b].perMicroBatch == own.perMicroBatch && buffers[b].place == own.place
            && static_cast<std::int32_t>(b) != chosen->inputs[slot])
            alike.push_back(static_cast<std::int32_t>(b));
    if (alike.empty())
        return false;
    chosen->inputs[slot] = dice.of(alike);
    return true;
}

/// A micro-batch is computed a second time in place of the next one.
inline bool dropMicroBatch(ExecutionPlan &plan, Dice &dice)
{
    if (plan.microBatches < 2)
        return false;
    const auto from =
        static_cast<std::int32_t>(1 + dice.below(static_cast<std::size_t>(plan.microBatches) - 1));
    for (DeviceProgram &device : plan.devices)
        for (ScheduleEntry &entry : device.schedule)
            if (entry.microBatch == from
                && isPass(device.segments[static_cast<std::size_t>(entry.segment)].kind))
                entry.microBatch = from - 1;
    return true;
}

inline std::vector<Mutation> all()
{
    return {{"a reduction left out", leaveOutReduction},
        {"twice one's own in place of a reduction", doubleInPlaceOfReduction},
        {"reduced by another combination", reduceByTheLargest}, {"two ranks swapped", swapRanks},
        {"a summand missing", missSummand}, {"a summand added twice", addTwice},
        {"a wrong slice", takeWrongSlice}, {"a stale weight", keepStaleWeight},
        {"another part", runAnotherPart}, {"another buffer", readAnother},
        {"a micro-batch dropped", dropMicroBatch}};
}

} // namespace wrong
} // namespace planloom
