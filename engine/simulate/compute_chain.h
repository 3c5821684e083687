#pragma once

#include "engine/simulate/buffer_states.h"
#include "engine/simulate/memory_log.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace planloom {

/// Instructions of the compute queue that follow one another in a segment, with no others between them. What
/// they wait for, other than one another, is what other queues have written or read before: where that is
/// done in time, they run as they did for the micro-batch before, and are booked as a whole.
struct ComputeChain {
    static constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();

    /// How a buffer that several queues touch must be before the chain for it to run like this. Times are
    /// behind the chain's start.
    struct Need {
        std::int32_t buffer = 0;
        bool there = false; ///< Else it is not.
        bool awaitsThere = false; ///< The first instruction begins no sooner, and with it the chain.
        bool awaitsRead = false;
        std::int64_t thereBy = kAnyTime;
        std::int64_t readBy = kAnyTime;
    };
    /// How it is behind the chain.
    struct Effect {
        std::int32_t buffer = 0;
        bool dies = false;
        std::int64_t written = kAnyTime; ///< Behind the chain's start; `kAnyTime`: not.
        std::int64_t read = kAnyTime;
    };
    /// Which of the other buffers that it touches must be there before the chain, and which are behind it.
    struct Word {
        BufferStates::BitPlace place{}; ///< All bits of a word that are touched.
        std::uint64_t before = 0;
        std::uint64_t behind = 0;
    };

    std::int32_t begin = 0; ///< Instructions of the program.
    std::int32_t end = 0;
    std::vector<std::int64_t> start{}; ///< By instruction, behind the chain's.
    std::vector<std::int64_t> duration{};
    std::vector<std::int32_t> instruction{}; ///< Within the segment.
    std::int64_t length = 0;
    std::vector<Word> words{};
    std::vector<Need> needs{}; ///< In the order of the instructions.
    std::vector<Effect> effects{};
    std::vector<MemoryEvent> memory{}; ///< Behind the chain's start, in order of time.
};

/// The chain of instructions [begin, end) of `segment`, all of the compute queue, for a micro-batch whose
/// buffers are as `states` say while the queue is free at `free`, and for all that find theirs alike. It ends
/// where one of them would wait for another queue. Nothing where it has no form of its own (something is read
/// that is not there, or lies on the host). O(operands x log)
std::optional<ComputeChain> makeChain(const CompiledProgram &program, std::int32_t begin, std::int32_t end,
    std::int32_t segment, const BufferStates &states, std::int32_t microBatch, std::int64_t free);

/// When the chain starts if the compute queue is free at `free`; nothing where the buffers are otherwise than
/// it needs, or are not ready in time for all of its instructions.
std::optional<std::int64_t> startOf(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t free);

/// Leaves the buffers as the chain, started at `start`, leaves them.
void applyEffects(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t start);

} // namespace planloom
