#pragma once

#include "engine/simulate/compiled_program.h"
#include "engine/simulate/memory_log.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace planloom {

/// A buffer's instance.
struct BufferState {
    static constexpr std::int64_t kAbsent = -1; ///< Not written yet, or dead.

    std::int64_t there = kAbsent; ///< When its value is there.
    std::int64_t read = 0; ///< When its last reader is done.

    bool isThere() const { return there != kAbsent; }
};

/// The instances of a device class's buffers.
class BufferStates
{
public:
    BufferStates() = default;
    BufferStates(const CompiledProgram &program, std::int32_t microBatches);

    BufferState &of(std::int32_t buffer, std::int32_t microBatch)
    {
        const BufferSlot slot = m_program->buffers[static_cast<std::size_t>(buffer)];
        if (!slot.perMicroBatch)
            return m_single[singlePlace(*m_program, slot, microBatch)];
        return m_perMicroBatch[static_cast<std::size_t>(microBatch)
                * static_cast<std::size_t>(m_program->perMicroBatchCount)
            + static_cast<std::size_t>(slot.index)];
    }

    /// By the index of its slot: of a buffer that is no micro-batch's own, and has one version.
    BufferState &ofSingle(std::int32_t index) { return m_single[static_cast<std::size_t>(index)]; }

private:
    const CompiledProgram *m_program = nullptr; ///< It outlives this.
    std::vector<BufferState> m_single{};
    std::vector<BufferState> m_perMicroBatch{}; ///< Micro-batch x buffer.
};

/// Instructions of the compute queue that follow one another in a segment, with no others between them. What
/// they wait for, other than one another, is what other queues have written or read before: where that is
/// done in time, they run as they did for the micro-batch before, and are booked as a whole.
struct ComputeChain {
    static constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();

    /// How a buffer must be before the chain for it to run like this. Times are behind the chain's start.
    struct Need {
        std::int32_t buffer = 0;
        bool there = false; ///< Else it is not.
        bool awaitsThere = false; ///< The first instruction begins no sooner, and with it the chain.
        bool awaitsRead = false;
        std::int64_t thereBy = kAnyTime;
        std::int64_t readBy = kAnyTime;
    };
    /// How a buffer is behind the chain.
    struct Effect {
        std::int32_t buffer = 0;
        bool dies = false;
        std::int64_t there = kAnyTime; ///< Behind the chain's start; `kAnyTime`: as before.
        std::int64_t read = kAnyTime;
    };

    std::int32_t begin = 0; ///< Instructions of the program.
    std::int32_t end = 0;
    std::vector<std::int64_t> start{}; ///< By instruction, behind the chain's.
    std::vector<std::int64_t> duration{};
    std::vector<std::int32_t> instruction{}; ///< Within the segment.
    std::int64_t length = 0;
    std::vector<Need> needs{}; ///< Those of the first instruction first.
    std::vector<Effect> effects{};
    std::vector<MemoryEvent> memory{}; ///< Behind the chain's start, in order of time.
};

/// By buffer: whether a queue other than that of compute touches it.
std::vector<bool> touchedByOthers(const CompiledProgram &program);

/// The chain of instructions [begin, end) of `segment`, all of the compute queue, for a micro-batch whose
/// buffers are as `states` say while the queue is free at `free`, and for all that find theirs alike. It ends
/// where one of them would wait for another queue. Nothing where it has no form of its own (something is read
/// that is not there, or lies on the host). O(operands x log)
std::optional<ComputeChain> makeChain(const CompiledProgram &program, const std::vector<bool> &shared,
    std::int32_t begin, std::int32_t end, std::int32_t segment, BufferStates &states,
    std::int32_t microBatch, std::int64_t free);

/// When the chain starts if the compute queue is free at `free`; nothing where the buffers are otherwise than
/// it needs, or are not ready in time for all of its instructions.
std::optional<std::int64_t> startOf(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t free);

/// Leaves the buffers as the chain, started at `start`, leaves them.
void applyEffects(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t start);

} // namespace planloom
