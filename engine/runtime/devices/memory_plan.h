#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace planloom {

/// One run of one instruction in a step.
struct StepInstruction {
    std::int32_t segment = 0;
    std::int32_t instruction = 0; ///< Index into the segment's instructions.
    std::int32_t microBatch = 0;
    friend bool operator==(const StepInstruction &, const StepInstruction &) = default;
};

/// Memory that is used from one instruction of a step to another, by one buffer or by several in turn, each
/// of which is made where the one before it lies.
struct PlannedBlock {
    MemoryPlace place = MemoryPlace::Device;
    std::int64_t bytes = 0;
    std::int32_t first = 0; ///< Instructions of the step, both included.
    std::int32_t last = 0;
    std::int64_t offset = 0; ///< In the device's arena, or in its host's.
    std::int32_t owner = -1; ///< The device whose arena it lies in; -1: the one whose plan this is.
    friend bool operator==(const PlannedBlock &, const PlannedBlock &) = default;
};

/// What an instruction does with one of its buffers.
enum class OperandUse : std::uint8_t {
    Absent,
    Reads,
    Makes, ///< An output that was not there.
    Takes, ///< An output made where an input lies that is needed no more: nothing has to be moved.
    Changes, ///< An output that is there already: added to, or written anew.
    Adds, ///< An output that the kernel adds to what is there, in place of the Accumulate behind it.
    Shared, ///< An output that another device of the process makes, see shared_values.h.
};

struct StepOperand {
    std::int32_t block = -1; ///< Index into `MemoryPlan::blocks`.
    OperandUse use = OperandUse::Absent;
    friend bool operator==(const StepOperand &, const StepOperand &) = default;
};

/// A buffer comes to life, or dies.
struct MemoryChange {
    std::int32_t buffer = 0;
    std::int32_t at = 0; ///< Instruction of the step; -1: before all of them.
    bool isBirth = true;
    bool before = true; ///< When the instruction starts; else once it is done.
};

/// All memory of one device, laid out before it runs: one arena on the device, and one on its host.
struct MemoryPlan {
    std::vector<StepInstruction> instructions{}; ///< Of one step, in the order of the program.
    std::vector<PlannedBlock> blocks{};
    std::array<std::int64_t, 2> arenaBytes{}; ///< By `MemoryPlace`.
    std::array<std::int64_t, 2> peak{}; ///< Most bytes of buffers that live at once, by `MemoryPlace`.
    std::vector<MemoryChange> changes{}; ///< In the order of the program.

    /// Of instruction `step`: its inputs by slot, then its outputs by slot.
    std::span<const StepOperand> operandsOf(std::size_t step) const
    {
        return {operands.data() + firstOperand[step], firstOperand[step + 1] - firstOperand[step]};
    }
    /// Of the buffers that live across steps: block by buffer; -1 for others.
    std::vector<std::int32_t> persistent{};

    std::vector<StepOperand> operands{}; ///< Of all instructions, one after another.
    std::vector<std::size_t> firstOperand{}; ///< By instruction, and one behind the last.
};

/// Finds a place for every buffer of `device` from when each is made and when it is needed for the last time,
/// so that a step allocates nothing. Buffers that live at the same time never overlap; offsets are multiples
/// of `alignment`, a power of two.
///
/// Kernels that only look at their input in another shape, copies of what dies, and updates of weights are
/// laid into the memory of what they read or write: they cost neither memory nor time. Likewise, if
/// `addsInPlace`, what a kernel makes that can add it to the sum that it is for (`canAddTo`); it still counts
/// in `changes` and `peak`, as the plan has it.
///
/// Blocks are placed where they fit best: large ones first, each at the tightest gap among those that live
/// beside it (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
/// arXiv:2001.03288, section 4.3); and, for steps too long for that, in the order of the program into the
/// tightest hole. O(instructions log blocks) beside the first, which is O(blocks^2) of at most 4096.
///
/// @param firstUpdate  updates made before the step: weights kept in several versions change places with it
/// @return InvalidInput for a buffer that is read before it is made, with the operator in `where`
Result<MemoryPlan> planMemory(const ExecutionPlan &plan, std::int32_t device, std::int64_t alignment,
    std::int64_t firstUpdate = 0, bool addsInPlace = false);

/// Gives all blocks of `memory` their offsets, and sets its arenas: blocks that persist lie in front, the
/// others by `placeBlocks`.
void layOut(MemoryPlan &memory, std::int64_t alignment);

/// Offsets for `blocks` of one place, and the bytes that they take together. Blocks without bytes lie at 0.
std::int64_t placeBlocks(std::vector<PlannedBlock *> blocks, std::int64_t alignment);

/// After how many updates a device's weights are where they were: 1 where each has one version.
std::int32_t versionCycle(const DeviceProgram &program);
/// The same in steps of `plan`: so many layouts take turns.
std::int32_t stepCycle(const ExecutionPlan &plan, const DeviceProgram &program);
/// Of all devices together.
std::int32_t stepCycle(const ExecutionPlan &plan);

} // namespace planloom
