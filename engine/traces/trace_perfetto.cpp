#include "engine/traces/trace_perfetto.h"

#include "engine/interop/perfetto.h"

#include <algorithm>
#include <limits>
#include <string>

namespace planloom {

namespace {

/// A slice, or what names a process or thread, behind a comma where others stand before it.
class EventWriter
{
public:
    explicit EventWriter(std::ostream &stream)
        : m_stream(stream)
    {
    }
    std::ostream &next()
    {
        m_stream << (m_first ? "\n" : ",\n");
        m_first = false;
        return m_stream;
    }

private:
    std::ostream &m_stream;
    bool m_first = true;
};

void writeRank(EventWriter &writer, const RankTrace &rank, std::int64_t shift)
{
    writer.next() << R"({"ph":"M","name":"process_name","pid":)" << rank.rank << R"(,"args":{"name":"rank )"
                  << rank.rank << "\"}}";
    for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
        writer.next() << R"({"ph":"M","name":"thread_name","pid":)" << rank.rank << R"(,"tid":)" << lane
                      << R"(,"args":{"name":)" << quotedForTrace(rank.lanes[lane].name) << "}}";
        for (std::size_t i = rank.laneBegin[lane]; i < rank.laneBegin[lane + 1]; ++i) {
            const TraceEvent &event = rank.events[i];
            writer.next() << R"({"ph":"X","name":)" << quotedForTrace(rank.nameOfEvent(event))
                          << R"(,"cat":")" << nameOf(event.kind) << R"(","pid":)" << rank.rank << R"(,"tid":)"
                          << lane << R"(,"ts":)" << microsecondsForTrace(event.start + shift) << R"(,"dur":)"
                          << microsecondsForTrace(event.duration) << "}";
        }
    }
}

} // namespace

bool writeTracePerfetto(std::ostream &stream, const Trace &trace, const ClockAlignment &clocks)
{
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
        if (!trace.ranks[r].events.empty())
            begin = std::min(begin, extentOf(trace.ranks[r]).first + clocks.offset[r]);
    stream << R"({"displayTimeUnit":"ns","traceEvents":[)";
    EventWriter writer(stream);
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
        if (!trace.ranks[r].events.empty())
            writeRank(writer, trace.ranks[r], clocks.offset[r] - begin);
    stream << "\n]}\n";
    stream.flush();
    return stream.good();
}

} // namespace planloom
