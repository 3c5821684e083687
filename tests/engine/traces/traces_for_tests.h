#pragma once

#include "engine/traces/trace_builder.h"

#include <string>
#include <utility>
#include <vector>

namespace planloom::test {

/// A rank of a made-up run, event by event. Times are in microseconds.
class RankMaker
{
public:
    explicit RankMaker(std::int32_t rank, std::int64_t clock = 0)
        : m_builder("rank" + std::to_string(rank) + ".json")
        , m_clock(clock)
    {
        m_builder.trace().rank = rank;
    }

    RankMaker &compute(std::int64_t start, std::int64_t duration, const std::string &name = "gemm",
        std::int64_t launch = kNoTime)
    {
        return add(TraceKind::Compute, "stream 7", start, duration, name, kNoLink, launch);
    }
    RankMaker &collective(TraceKind kind, std::int64_t start, std::int64_t duration, const TraceGroup &group,
        std::int64_t sequence, std::int64_t bytes = 1024)
    {
        TraceCollective made;
        made.group = m_builder.group(group);
        made.sequence = sequence;
        made.inBytes = made.outBytes = bytes;
        return add(kind, "stream 20", start, duration, std::string("nccl ") + nameOf(kind),
            m_builder.collective(made));
    }
    RankMaker &message(
        TraceKind kind, std::int64_t start, std::int64_t duration, std::int32_t from, std::int32_t to)
    {
        TraceCollective made;
        made.source = from;
        made.target = to;
        return add(kind, "stream 24", start, duration, "SendRecv", m_builder.collective(made));
    }
    RankMaker &step(std::uint32_t number, std::int64_t start, std::int64_t duration)
    {
        return add(
            TraceKind::Step, "steps", start, duration, "ProfilerStep#" + std::to_string(number), number);
    }
    RankTrace make() { return std::move(m_builder).finish(); }

private:
    RankMaker &add(TraceKind kind, const std::string &lane, std::int64_t start, std::int64_t duration,
        const std::string &name, std::uint32_t link, std::int64_t launch = kNoTime)
    {
        TraceEvent event{.start = (start + m_clock) * 1000, .duration = duration * 1000};
        event.launch = launch == kNoTime ? kNoTime : (launch + m_clock) * 1000;
        event.kind = kind;
        event.lane = m_builder.lane(lane, kind == TraceKind::Step);
        event.name = m_builder.name(name);
        event.link = link;
        m_builder.add(event, 0);
        return *this;
    }

    RankTraceBuilder m_builder;
    std::int64_t m_clock; ///< Microseconds by which the rank's clock is ahead.
};

/// All ranks of a run.
inline TraceGroup allOf(std::int32_t ranks)
{
    TraceGroup group{.name = "0", .description = "default_pg", .size = ranks};
    for (std::int32_t rank = 0; rank < ranks; ++rank)
        group.ranks.push_back(rank);
    return group;
}

} // namespace planloom::test
