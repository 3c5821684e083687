#include "engine/traces/reading/kineto_reader.h"

#include "engine/traces/reading/kineto_assembly.h"

#include <utility>

namespace planloom {

namespace {

constexpr std::uint64_t kSampleStretches = 12;
constexpr std::uint64_t kSampleBytes = std::uint64_t{64} << 10; ///< Of each stretch.
constexpr std::size_t kEventsBetweenStops = 4096;

/// A document as it is read.
class KinetoDocument
{
public:
    KinetoDocument(TraceBytes &bytes, const std::string &where, const std::stop_token &stop)
        : m_scanner(bytes, where)
        , m_where(where)
        , m_assembly(where)
        , m_stop(stop)
    {
    }

    Result<RankTrace> read()
    {
        const JsonToken first = m_scanner.next();
        if (first == JsonToken::BeginArray)
            m_hasEvents = readEvents();
        else if (first == JsonToken::BeginObject)
            readMembers();
        return end();
    }

    /// What begins up to byte `end` of the file, at the first event behind the scanner's place.
    void readStretch(JsonScanner &scanner, std::uint64_t end)
    {
        while (scanner.offset() < end && !m_stop.stop_requested() && scanner.findObject("ph")) {
            const std::uint64_t place = scanner.offset();
            if (scanner.next() != JsonToken::BeginObject || !readKinetoEvent(scanner, m_event))
                return;
            m_assembly.take(m_event, place);
        }
    }

    /// The members that stand before the events, such as the rank.
    /// @return the scanner, behind them
    JsonScanner &readHead()
    {
        if (m_scanner.next() == JsonToken::BeginObject) {
            m_isHead = true;
            readMembers();
        }
        return m_scanner;
    }

    KinetoAssembly &assembly() { return m_assembly; }
    bool isStopped() const { return m_stop.stop_requested(); }

private:
    void readMembers()
    {
        for (;;) {
            const JsonToken token = m_scanner.next();
            if (token != JsonToken::Key)
                return;
            const std::string key(m_scanner.text().substr(0, 64));
            bool goesOn = true;
            if (key == "traceEvents") {
                if (m_isHead)
                    return;
                m_hasEvents = true;
                const JsonToken begin = m_scanner.next();
                goesOn = begin == JsonToken::BeginArray
                    ? readEvents()
                    : begin != JsonToken::BeginObject || m_scanner.skipRest();
            } else if (key == "distributedInfo") {
                goesOn = readDistributed();
            } else if (key == "host_name") {
                if (m_scanner.next() == JsonToken::String)
                    m_assembly.setHost(unescapedJson(m_scanner.text().substr(0, 256)));
            } else if (key == "baseTimeNanoseconds") {
                if (m_scanner.next() == JsonToken::Number)
                    m_assembly.setBase(numberOrMinusOne(m_scanner.text()));
            } else {
                goesOn = m_scanner.skipValue();
            }
            if (!goesOn)
                return;
        }
    }

    /// Calls `read` for each member of the object that has begun.
    template<typename Read> bool forEachMember(const Read &read)
    {
        for (;;) {
            const JsonToken token = m_scanner.next();
            if (token != JsonToken::Key)
                return token == JsonToken::EndObject || (token != JsonToken::End && m_scanner.skipRest());
            const std::string key(m_scanner.text().substr(0, 32));
            if (!read(key))
                return false;
        }
    }

    /// The number that comes next; -1 for anything else.
    bool readNumber(std::int64_t &number)
    {
        const JsonToken value = m_scanner.next();
        number = value == JsonToken::Number ? numberOrMinusOne(m_scanner.text()) : -1;
        if (value == JsonToken::BeginObject || value == JsonToken::BeginArray)
            return m_scanner.skipRest();
        return value != JsonToken::End;
    }

    bool readDistributed()
    {
        if (m_scanner.next() != JsonToken::BeginObject)
            return m_scanner.failure() == nullptr;
        std::int64_t rank = -1;
        std::int64_t world = 0;
        const bool hasEnded = forEachMember([&](const std::string &key) {
            if (key == "rank" || key == "world_size")
                return readNumber(key == "rank" ? rank : world);
            return key == "pg_config" ? readGroups() : m_scanner.skipValue();
        });
        m_assembly.setRank(rank, world);
        return hasEnded;
    }

    /// The process groups of the run, as far as this rank is in them.
    bool readGroups()
    {
        const JsonToken begin = m_scanner.next();
        if (begin != JsonToken::BeginArray)
            return begin == JsonToken::BeginObject ? m_scanner.skipRest() : begin != JsonToken::End;
        for (;;) {
            const JsonToken token = m_scanner.next();
            if (token != JsonToken::BeginObject)
                return token == JsonToken::EndArray || (token != JsonToken::End && m_scanner.skipRest());
            TraceGroup group;
            const bool hasEnded = forEachMember([&](const std::string &key) {
                if (key == "ranks")
                    return readGroupRanks(m_scanner, group.ranks);
                if (key != "pg_name" && key != "pg_desc")
                    return m_scanner.skipValue();
                if (m_scanner.next() == JsonToken::String)
                    (key == "pg_name" ? group.name : group.description) =
                        unescapedJson(m_scanner.text().substr(0, 256));
                return true;
            });
            if (!hasEnded)
                return false;
            group.size = static_cast<std::int32_t>(group.ranks.size());
            m_assembly.addKnownGroup(group);
        }
    }

    bool readEvents()
    {
        for (std::size_t count = 1;; ++count) {
            const std::uint64_t place = m_scanner.offset();
            const JsonToken token = m_scanner.next();
            if (token == JsonToken::EndArray)
                return true;
            if (token == JsonToken::BeginObject) {
                if (!readKinetoEvent(m_scanner, m_event))
                    return false;
                m_assembly.take(m_event, place);
            } else if (token == JsonToken::BeginArray) {
                m_assembly.builder().remark("an event is no object", place);
                if (!m_scanner.skipRest())
                    return false;
            } else if (token == JsonToken::End || token == JsonToken::EndObject) {
                return false;
            } else {
                m_assembly.builder().remark("an event is no object", place);
            }
            if (count % kEventsBetweenStops == 0 && m_stop.stop_requested())
                return false;
        }
    }

    Result<RankTrace> end()
    {
        if (m_stop.stop_requested())
            return cancelled();
        const Error *const failure = m_scanner.failure();
        if (failure && (m_assembly.isEmpty() || failure->code == ErrorCode::Io))
            return *failure;
        if (m_assembly.isEmpty())
            return Error{ErrorCode::InvalidInput,
                m_hasEvents ? "the trace has no kernel, operator or annotation that can be read"
                            : "expected a trace of torch.profiler, with \"traceEvents\"",
                "export_chrome_trace() and tensorboard_trace_handler() of torch.profiler write such traces",
                m_where};
        if (failure)
            m_assembly.builder().remark(
                failure->message + ": what stands before it is read", m_scanner.offset());
        return std::move(m_assembly).finish();
    }

    JsonScanner m_scanner;
    std::string m_where;
    KinetoAssembly m_assembly;
    KinetoEvent m_event{};
    std::stop_token m_stop;
    bool m_hasEvents = false;
    bool m_isHead = false;
};

} // namespace

Result<RankTrace> readKineto(TraceBytes &bytes, const std::string &where, const std::stop_token &stop)
{
    return KinetoDocument(bytes, where, stop).read();
}

Result<RankTrace> sampleKineto(TraceBytes &bytes, const std::string &where, const std::stop_token &stop)
{
    KinetoDocument document(bytes, where, stop);
    JsonScanner &head = document.readHead();
    if (bytes.isPacked())
        document.readStretch(head, kSampleStretches * kSampleBytes);
    for (std::uint64_t i = 0; !bytes.isPacked() && i < kSampleStretches && !document.isStopped(); ++i) {
        const std::uint64_t begin = bytes.size() / kSampleStretches * i;
        bytes.seek(begin, begin + kSampleBytes);
        JsonScanner scanner(bytes, where);
        document.readStretch(scanner, kSampleBytes);
    }
    if (document.isStopped())
        return cancelled();
    if (document.assembly().isEmpty())
        return Error{ErrorCode::InvalidInput, "a first look finds no event of torch.profiler", {}, where};
    RankTrace trace = std::move(document.assembly()).finish();
    trace.isSample = true;
    return trace;
}

} // namespace planloom
