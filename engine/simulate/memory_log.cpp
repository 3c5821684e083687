#include "engine/simulate/memory_log.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace planloom {

namespace {

void sortByTime(std::vector<MemoryEvent> &events)
{
    const auto earlier = [](const MemoryEvent &a, const MemoryEvent &b) { return a.time < b.time; };
    if (!std::is_sorted(events.begin(), events.end(), earlier))
        std::stable_sort(events.begin(), events.end(), earlier);
}

/// Goes through events in the order of time.
class Cursor
{
public:
    explicit Cursor(std::span<const MemoryEvent> events)
        : m_now(events.data())
        , m_end(events.data() + events.size())
    {
    }
    explicit Cursor(const MemoryLog &log)
        : m_log(&log)
    {
        nextPiece();
    }

    bool isAtEnd() const { return m_now == m_end; }
    std::int64_t time() const { return m_behind + m_now->time; }
    std::int64_t bytes() const { return m_now->bytes; }
    MemoryKind kind() const { return m_now->kind; }
    void advance()
    {
        if (++m_now == m_end && m_log)
            nextPiece();
    }

private:
    void nextPiece()
    {
        if (m_piece == m_log->pieces().size())
            return;
        const MemoryLog::Piece &piece = m_log->pieces()[m_piece++];
        m_now = (piece.events ? piece.events : m_log->own().data()) + piece.begin;
        m_end = m_now + piece.count;
        m_behind = piece.behind;
    }

    const MemoryLog *m_log = nullptr;
    std::size_t m_piece = 0; ///< The next.
    const MemoryEvent *m_now = nullptr;
    const MemoryEvent *m_end = nullptr;
    std::int64_t m_behind = 0;
};

using Lists = std::vector<Cursor>;

/// The peak alone: when it is, by sums over all kinds; then what it is made of.
MemoryCurve peakOf(Lists lists)
{
    const Lists all = lists;
    MemoryCurve curve;
    std::int64_t total = 0;
    std::int64_t peakAt = std::numeric_limits<std::int64_t>::min();
    for (;;) {
        std::erase_if(lists, [](const Cursor &list) { return list.isAtEnd(); });
        if (lists.empty())
            break;
        // Until one of them is at its end.
        for (bool atEnd = false; !atEnd;) {
            std::int64_t time = std::numeric_limits<std::int64_t>::max();
            for (const Cursor &list : lists)
                time = std::min(time, list.time());
            for (Cursor &list : lists) {
                for (; !list.isAtEnd() && list.time() == time; list.advance())
                    total += list.bytes();
                atEnd = atEnd || list.isAtEnd();
            }
            if (total > curve.peak.count) {
                curve.peak = {total};
                peakAt = time;
            }
        }
    }
    for (Cursor list : all)
        for (; !list.isAtEnd() && list.time() <= peakAt; list.advance())
            curve.atPeak[static_cast<std::size_t>(list.kind())] += list.bytes();
    return curve;
}

/// @param most  events at most
MemoryCurve curveOf(Lists lists, std::size_t most, bool points)
{
    if (!points)
        return peakOf(std::move(lists));
    MemoryCurve curve;
    std::vector<std::int64_t> times;
    std::vector<std::array<std::int64_t, kMemoryKindCount>> bytes;
    times.reserve(most);
    bytes.reserve(most);
    std::array<std::int64_t, kMemoryKindCount> now{};
    std::int64_t total = 0;
    for (;;) {
        std::erase_if(lists, [](const Cursor &list) { return list.isAtEnd(); });
        if (lists.empty())
            break;
        // Until one of them is at its end.
        for (bool atEnd = false; !atEnd;) {
            std::int64_t time = std::numeric_limits<std::int64_t>::max();
            for (const Cursor &list : lists)
                time = std::min(time, list.time());
            auto next = now;
            for (Cursor &list : lists) {
                for (; !list.isAtEnd() && list.time() == time; list.advance()) {
                    next[static_cast<std::size_t>(list.kind())] += list.bytes();
                    total += list.bytes();
                }
                atEnd = atEnd || list.isAtEnd();
            }
            if (next == now)
                continue;
            now = next;
            times.push_back(time);
            bytes.push_back(now);
            if (total > curve.peak.count) {
                curve.peak = {total};
                curve.atPeak = now;
            }
        }
    }
    curve.time = std::move(times);
    curve.bytes = std::move(bytes);
    return curve;
}

} // namespace

void MemoryLog::add(const MemoryEvent &event)
{
    if (event.time < m_last) {
        m_late.push_back(event);
        return;
    }
    m_last = event.time;
    if (m_pieces.empty() || m_pieces.back().events)
        m_pieces.push_back({nullptr, m_own.size(), 0, 0});
    Piece &piece = m_pieces.back();
    for (std::size_t i = 0; i < piece.count; ++i) { // one of each kind at most
        MemoryEvent &last = m_own[m_own.size() - 1 - i];
        if (last.time < event.time)
            break;
        if (last.kind == event.kind) {
            last.bytes += event.bytes;
            return;
        }
    }
    m_own.push_back(event);
    ++piece.count;
}

void MemoryLog::add(const std::vector<MemoryEvent> &events, std::int64_t behind)
{
    std::size_t i = 0; // what comes later than something behind it that is noted already
    for (; i < events.size() && behind + events[i].time < m_last; ++i)
        m_late.push_back({behind + events[i].time, events[i].bytes, events[i].kind});
    if (i == events.size())
        return;
    m_pieces.push_back({events.data(), i, events.size() - i, behind});
    m_last = behind + events.back().time;
}

MemoryCurve memoryCurve(const std::array<MemoryLog, kQueueCount> &queues, bool points)
{
    Lists lists;
    std::vector<MemoryEvent> late;
    std::size_t most = 0;
    for (const MemoryLog &queue : queues) {
        lists.emplace_back(queue);
        late.insert(late.end(), queue.late().begin(), queue.late().end());
        for (const MemoryLog::Piece &piece : queue.pieces())
            most += piece.count;
    }
    sortByTime(late);
    lists.emplace_back(std::span<const MemoryEvent>(late));
    return curveOf(std::move(lists), most + late.size(), points);
}

MemoryCurve memoryCurve(std::vector<MemoryEvent> events, bool points)
{
    sortByTime(events);
    return curveOf({Cursor(std::span<const MemoryEvent>(events))}, events.size(), points);
}

} // namespace planloom
