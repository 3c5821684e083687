#pragma once

#include "engine/simulate/timeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace planloom {

/// Finds the span of each instruction of one device, asked for in program order. Queues are in order, so
/// that it is mostly the next one. Keeps a reference to the timeline.
class SpanFinder
{
public:
    SpanFinder(const Timeline &timeline, std::size_t device)
        : m_spans(timeline.spans)
        , m_begin(timeline.deviceBegin[device])
        , m_end(timeline.deviceBegin[device + 1])
    {
        std::size_t row = m_begin;
        for (std::size_t q = 0; q < m_next.size(); ++q) {
            m_next[q] = row;
            while (row < m_end && m_spans.queue[row] == static_cast<QueueKind>(q))
                ++row;
            m_queueEnd[q] = row;
        }
    }

    /// -1 if the instruction has no span.
    std::int32_t find(
        QueueKind queue, std::int32_t segment, std::int32_t instruction, std::int32_t microBatch)
    {
        // Stores without duration lie in the queue of what runs before them.
        for (std::size_t i = 0; i < m_next.size(); ++i) {
            const std::size_t q = (static_cast<std::size_t>(queue) + i) % m_next.size();
            const std::size_t row = m_next[q];
            if (row < m_queueEnd[q] && isAt(row, segment, instruction, microBatch)) {
                ++m_next[q];
                return static_cast<std::int32_t>(row);
            }
        }
        if (!m_indexed)
            makeIndex();
        const auto found = m_index.find(keyOf(segment, instruction, microBatch));
        if (found == m_index.end())
            return -1;
        const std::size_t row = found->second;
        std::size_t q = 0;
        while (row >= m_queueEnd[q])
            ++q;
        m_next[q] = std::max(m_next[q], row + 1);
        return static_cast<std::int32_t>(row);
    }

private:
    using Key = std::pair<std::int64_t, std::int32_t>;
    struct Hash {
        std::size_t operator()(const Key &key) const
        {
            return static_cast<std::size_t>(static_cast<std::uint64_t>(key.first) * 0x9e3779b97f4a7c15u
                + static_cast<std::uint64_t>(key.second));
        }
    };

    bool isAt(std::size_t row, std::int32_t segment, std::int32_t instruction, std::int32_t microBatch) const
    {
        return m_spans.segment[row] == segment && m_spans.instruction[row] == instruction
            && m_spans.microBatch[row] == microBatch;
    }
    static Key keyOf(std::int32_t segment, std::int32_t instruction, std::int32_t microBatch)
    {
        return {(static_cast<std::int64_t>(segment) << 32) + instruction, microBatch};
    }
    void makeIndex()
    {
        m_indexed = true;
        for (std::size_t row = m_begin; row < m_end; ++row)
            m_index.emplace(
                keyOf(m_spans.segment[row], m_spans.instruction[row], m_spans.microBatch[row]), row);
    }

    const SpanColumns &m_spans;
    std::size_t m_begin;
    std::size_t m_end;
    std::array<std::size_t, kQueueCount> m_next{};
    std::array<std::size_t, kQueueCount> m_queueEnd{};
    bool m_indexed = false;
    std::unordered_map<Key, std::size_t, Hash> m_index{};
};

} // namespace planloom
