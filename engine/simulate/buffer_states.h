#pragma once

#include "engine/simulate/compiled_program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace planloom {

/// By buffer: whether a queue other than that of compute touches it. What a single queue touches is always
/// done in time for the next of its instructions.
std::vector<bool> touchedByOthers(const CompiledProgram &program);

/// When what is done with a buffer's instance is done.
struct BufferTimes {
    static constexpr std::int64_t kAbsent = -1; ///< Not written yet, or dead.

    std::int64_t there = kAbsent; ///< Its value.
    std::int64_t read = 0; ///< Its last reader.
};

/// The instances of a device class's buffers: which are there, and of those that several queues touch, since
/// when.
class BufferStates
{
public:
    BufferStates() = default;
    /// @param program  outlives this
    /// @param shared  by buffer: whether its times are kept; all but those that compute alone touches
    BufferStates(const CompiledProgram &program, std::int32_t microBatches, std::vector<bool> shared);

    bool isShared(std::int32_t buffer) const { return m_shared[static_cast<std::size_t>(buffer)]; }
    bool isThere(std::int32_t buffer, std::int32_t microBatch) const
    {
        const BitPlace place = placeOf(buffer, microBatch);
        return (m_there[wordOf(place, microBatch)] & place.bit) != 0;
    }
    /// Of a shared buffer.
    const BufferTimes &timesOf(std::int32_t buffer, std::int32_t microBatch) const
    {
        return m_times[timesPlace(buffer, microBatch)];
    }

    /// When a buffer that is there was written; 0 where that is always in time.
    std::int64_t thereAt(std::int32_t buffer, std::int32_t microBatch) const
    {
        return isShared(buffer) ? timesOf(buffer, microBatch).there : 0;
    }
    /// When all that was done with a buffer is done; 0 as above.
    std::int64_t doneAt(std::int32_t buffer, std::int32_t microBatch) const
    {
        if (!isShared(buffer))
            return 0;
        const BufferTimes &times = timesOf(buffer, microBatch);
        return std::max(times.there, times.read);
    }

    /// From the start of the step on: a persistent buffer.
    void hold(std::int32_t buffer);
    void write(std::int32_t buffer, std::int32_t microBatch, std::int64_t end)
    {
        const BitPlace place = placeOf(buffer, microBatch);
        m_there[wordOf(place, microBatch)] |= place.bit;
        if (isShared(buffer))
            m_times[timesPlace(buffer, microBatch)].there = end;
    }
    void read(std::int32_t buffer, std::int32_t microBatch, std::int64_t end)
    {
        if (!isShared(buffer))
            return;
        BufferTimes &times = m_times[timesPlace(buffer, microBatch)];
        times.read = std::max(times.read, end);
    }
    void drop(std::int32_t buffer, std::int32_t microBatch)
    {
        const BitPlace place = placeOf(buffer, microBatch);
        m_there[wordOf(place, microBatch)] &= ~place.bit;
        if (isShared(buffer))
            m_times[timesPlace(buffer, microBatch)].there = BufferTimes::kAbsent;
    }

    /// Whether a buffer is there is a bit of a word: of the step, or of the micro-batch.
    struct BitPlace {
        bool perMicroBatch = false;
        std::int32_t word = 0;
        std::uint64_t bit = 0;
    };
    BitPlace placeOf(std::int32_t buffer, std::int32_t microBatch) const
    {
        constexpr std::size_t kBits = 64;
        const BufferSlot slot = slotOf(buffer);
        const std::size_t index = slot.perMicroBatch ? static_cast<std::size_t>(slot.index)
                                                     : singlePlace(*m_program, slot, microBatch);
        return {slot.perMicroBatch, static_cast<std::int32_t>(index / kBits),
            std::uint64_t{1} << (index % kBits)};
    }
    std::uint64_t &thereWord(const BitPlace &place, std::int32_t microBatch)
    {
        return m_there[wordOf(place, microBatch)];
    }

private:
    BufferSlot slotOf(std::int32_t buffer) const
    {
        return m_program->buffers[static_cast<std::size_t>(buffer)];
    }
    std::size_t wordOf(const BitPlace &place, std::int32_t microBatch) const
    {
        return static_cast<std::size_t>(place.word)
            + (place.perMicroBatch ? m_stepWords + static_cast<std::size_t>(microBatch) * m_ownWords : 0);
    }
    std::size_t timesPlace(std::int32_t buffer, std::int32_t microBatch) const
    {
        const BufferSlot slot = slotOf(buffer);
        if (!slot.perMicroBatch)
            return singlePlace(*m_program, slot, microBatch);
        return static_cast<std::size_t>(m_program->singleCount)
            + static_cast<std::size_t>(microBatch) * m_sharedOwn
            + static_cast<std::size_t>(m_ownPlace[static_cast<std::size_t>(buffer)]);
    }

    const CompiledProgram *m_program = nullptr;
    std::vector<bool> m_shared{};
    std::size_t m_stepWords = 0;
    std::size_t m_ownWords = 0; ///< Of a micro-batch.
    std::vector<std::uint64_t> m_there{}; ///< The step's words, then micro-batch x word.
    std::size_t m_sharedOwn = 0; ///< Shared buffers of a micro-batch.
    std::vector<std::int32_t> m_ownPlace{}; ///< By buffer: among them.
    std::vector<BufferTimes> m_times{}; ///< Of the step's buffers, then micro-batch x shared buffer.
};

} // namespace planloom
