#pragma once

#include "engine/lowering/program/instruction_cost.h"
#include "engine/simulate/symmetry.h"

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace planloom {

/// Where a buffer's state lies: instances of per-micro-batch buffers are `local` within each micro-batch's
/// window, the others have one place for the step.
struct BufferSlot {
    std::int32_t index = 0;
    bool perMicroBatch = false;
    /// As in `BufferInfo`: versions of a weight share their places out.
    std::int16_t staleness = 0;
    std::int16_t versions = 1;
};

/// An instruction made ready for the event loop; buffers lie in [begin, end) of the program's `operands`.
struct CompiledInstruction {
    std::int64_t duration =
        0; ///< Nanoseconds. Of communication: what the collective takes once all are there.
    std::int64_t firstDuration = 0; ///< Accumulate into nothing.
    std::int64_t bytes = 0; ///< Communication: as `collectiveSeconds` takes them.
    std::int32_t channel = -1; ///< Channel class; -1 for compute.
    std::int32_t slot = -1; ///< The device's own number for the channel.
    std::int32_t load =
        -1; ///< Communication: index into `ProgramCompiler::loads`; -1 where nothing is known.
    std::int64_t latency = 0; ///< Of `duration`, when no link is used.
    double speedBeside = 1; ///< Of a collective: what is computed meanwhile runs at this speed; at most 1.
    std::int32_t inputBegin = 0;
    std::int32_t outputBegin = 0;
    std::int32_t deathBegin = 0;
    std::int32_t deathEnd = 0;
    std::int32_t origin = 0; ///< Index into the segment's instructions.
    InstructionKind kind{};
    QueueKind queue{};
    bool paired = false; ///< Send or Recv.
    bool waits = false; ///< For the compute queue: see `Instruction::waits`.
    bool blocks = false; ///< The compute queue waits for it.
};

/// An entry of a schedule, by compiled instructions.
struct CompiledEntry {
    std::int32_t segment = 0;
    std::int32_t microBatch = 0;
    std::int32_t begin = 0; ///< Index into the program's instructions.
    std::int32_t end = 0;
};

/// What the event loop needs of one device class.
struct CompiledProgram {
    std::vector<BufferSlot> buffers{};
    std::vector<std::int64_t> bufferBytes{}; ///< In memory.
    std::vector<MemoryKind> bufferKind{};
    std::vector<bool> onHost{}; ///< By buffer.
    std::vector<std::int32_t> persistent{}; ///< Buffers that are there from the start.
    std::int32_t perMicroBatchCount = 0;
    std::int32_t singleCount = 0;
    std::int32_t microBatchesPerUpdate = 1;
    std::vector<std::int32_t> operands{}; ///< Buffers.
    std::vector<CompiledInstruction>
        instructions{}; ///< Of all segments, one after the other; no hidden stores.
    std::vector<std::int32_t> segmentBegin{}; ///< One more entry at the end.
    std::vector<CompiledEntry> schedule{};
    /// By index into `instructions`: bytes that a kernel needs only while it runs. Few kernels do.
    std::unordered_map<std::int32_t, std::int64_t> workspaces{};
    std::vector<std::int64_t> runs{}; ///< By instruction: how often it runs in a step.
    std::array<std::int64_t, kQueueCount> counts{}; ///< Instructions of the unrolled schedule, by queue.
    bool slowsBesideCollectives = false; ///< Some instruction's `speedBeside` is below 1.
};

/// The place of `slot`, which is not a micro-batch's own, for the update that `microBatch` belongs to.
inline std::size_t singlePlace(
    const CompiledProgram &program, const BufferSlot &slot, std::int32_t microBatch)
{
    return static_cast<std::size_t>(bufferOfVersion(
        slot.staleness, slot.versions, slot.index, microBatch / program.microBatchesPerUpdate));
}

/// Adds what depends on the order: the schedule with what follows from it, and the classes of channels.
/// O(entries of the schedule x log + instructions)
void addSchedule(
    CompiledProgram &compiled, const ExecutionPlan &plan, const Symmetry &symmetry, std::int32_t device);

/// Compiles programs and remembers durations: layers repeat, and stages repeat one another's.
class ProgramCompiler
{
public:
    /// Keeps references; the arguments must outlive it.
    ProgramCompiler(const ExecutionPlan &plan, const CostModel &costs)
        : m_plan(plan)
        , m_costs(costs)
    {
    }

    /// The program of device `device`, but for its schedule and for the classes of its channels. Every index
    /// in it has been checked by `findSymmetry`.
    CompiledProgram compile(const Symmetry &symmetry, std::int32_t device);

    /// What the communication of the programs compiled so far asks of links.
    const std::vector<CommunicationLoad> &loads() const { return m_loads; }

private:
    class OneProgram;
    std::int64_t exposedBesideProduct(const DeviceProgram &program,
        const std::vector<Instruction> &instructions, std::size_t index, std::int64_t duration,
        std::int32_t deviceClass);
    struct Priced {
        std::int64_t nanoseconds = 0;
        std::int32_t load = -1;
    };
    Priced priced(CollectiveKind kind, Bytes bytes, const Channel &channel);

    const ExecutionPlan &m_plan;
    const CostModel &m_costs;
    std::unordered_map<std::string, LocalDuration> m_local{};
    std::unordered_map<std::string, Priced> m_collective{};
    std::vector<CommunicationLoad> m_loads{};
};

} // namespace planloom
