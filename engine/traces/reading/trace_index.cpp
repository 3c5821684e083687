#include "engine/traces/reading/trace_index.h"

#include "engine/traces/trace_builder.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace planloom {

namespace {

constexpr std::string_view kMagic = "PLTRACE\3"; ///< Its last byte is the version of the format.

// An index is read on the machine that wrote it, so numbers are written as they lie in memory.
class IndexWriter
{
public:
    template<typename T> void plain(const T &value)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        m_bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    void text(std::string_view value)
    {
        plain(static_cast<std::uint64_t>(value.size()));
        m_bytes.append(value);
    }
    template<typename T> void plainList(const std::vector<T> &values)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        plain(static_cast<std::uint64_t>(values.size()));
        m_bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    }
    template<typename T, typename Write> void list(const std::vector<T> &values, const Write &write)
    {
        plain(static_cast<std::uint64_t>(values.size()));
        for (const T &value : values)
            write(value);
    }
    std::string &bytes() { return m_bytes; }

private:
    std::string m_bytes;
};

/// Reads what was written, and nothing beyond the bytes: once something does not fit, all else is empty.
class IndexReader
{
public:
    explicit IndexReader(std::string_view bytes)
        : m_bytes(bytes)
    {
    }
    template<typename T> T plain()
    {
        T value{};
        if (m_bytes.size() < sizeof value) {
            fail();
            return value;
        }
        std::memcpy(&value, m_bytes.data(), sizeof value);
        m_bytes.remove_prefix(sizeof value);
        return value;
    }
    std::string text()
    {
        const std::uint64_t size = count(1);
        std::string value(m_bytes.substr(0, size));
        m_bytes.remove_prefix(size);
        return value;
    }
    template<typename T> std::vector<T> plainList()
    {
        std::vector<T> values(count(sizeof(T)));
        if (!values.empty())
            std::memcpy(static_cast<void *>(values.data()), m_bytes.data(), values.size() * sizeof(T));
        m_bytes.remove_prefix(values.size() * sizeof(T));
        return values;
    }
    template<typename Read> auto list(const Read &read)
    {
        std::vector<decltype(read())> values;
        const std::uint64_t size = count(1); // every element takes a byte at least
        values.reserve(std::min<std::uint64_t>(size, 1024));
        for (std::uint64_t i = 0; i < size && !m_isBroken; ++i)
            values.push_back(read());
        return values;
    }
    bool isBroken() const { return m_isBroken; }
    bool hasEnded() const { return m_bytes.empty(); }

private:
    void fail()
    {
        m_isBroken = true;
        m_bytes = {};
    }
    std::uint64_t count(std::size_t bytesEach)
    {
        const auto size = plain<std::uint64_t>();
        if (size <= m_bytes.size() / bytesEach)
            return size;
        fail();
        return 0;
    }

    std::string_view m_bytes;
    bool m_isBroken = false;
};

void writeRank(IndexWriter &writer, const RankTrace &rank)
{
    writer.plain(rank.rank);
    writer.plain(rank.world);
    writer.plain(static_cast<std::uint8_t>(rank.isOnHost));
    writer.text(rank.file);
    writer.text(rank.host);
    writer.plainList(rank.events);
    writer.list(rank.lanes, [&](const TraceLane &lane) {
        writer.text(lane.name);
        writer.plain(static_cast<std::uint8_t>(lane.isHost));
    });
    writer.list(rank.names, [&](const std::string &name) { writer.text(name); });
    writer.list(rank.groups, [&](const TraceGroup &group) {
        writer.text(group.name);
        writer.text(group.description);
        writer.plainList(group.ranks);
        writer.plain(group.size);
    });
    writer.plainList(rank.collectives);
    writer.plainList(rank.instructions);
    writer.list(rank.remarks, [&](const TraceRemark &remark) {
        writer.text(remark.where);
        writer.text(remark.text);
        writer.plain(remark.count);
    });
}

RankTrace readRank(IndexReader &reader)
{
    RankTrace rank;
    rank.rank = reader.plain<std::int32_t>();
    rank.world = reader.plain<std::int32_t>();
    rank.isOnHost = reader.plain<std::uint8_t>() != 0;
    rank.file = reader.text();
    rank.host = reader.text();
    rank.events = reader.plainList<TraceEvent>();
    rank.lanes = reader.list([&] {
        std::string name = reader.text();
        return TraceLane{std::move(name), reader.plain<std::uint8_t>() != 0};
    });
    rank.names = reader.list([&] { return reader.text(); });
    rank.groups = reader.list([&] {
        TraceGroup group;
        group.name = reader.text();
        group.description = reader.text();
        group.ranks = reader.plainList<std::int32_t>();
        group.size = reader.plain<std::int32_t>();
        return group;
    });
    rank.collectives = reader.plainList<TraceCollective>();
    rank.instructions = reader.plainList<TraceInstruction>();
    rank.remarks = reader.list([&] {
        TraceRemark remark;
        remark.where = reader.text();
        remark.text = reader.text();
        remark.count = reader.plain<std::int64_t>();
        return remark;
    });
    return rank;
}

/// Whether a rank is one that a reader could have made.
bool isPossible(const RankTrace &rank)
{
    const std::size_t lanes = rank.lanes.size();
    if (rank.rank < -1 || rank.rank > (1 << 24) || rank.world < 0 || lanes > kMostTraceLanes
        || rank.names.size() >= kNoLink)
        return false;
    for (const TraceGroup &group : rank.groups)
        for (const std::int32_t member : group.ranks)
            if (member < 0)
                return false;
    for (const TraceCollective &each : rank.collectives)
        if ((each.group != kNoLink && each.group >= rank.groups.size()) || each.inBytes > kMostTraceBytes
            || each.outBytes > kMostTraceBytes)
            return false;
    std::int64_t total = 0;
    const TraceEvent *before = nullptr;
    for (const TraceEvent &event : rank.events) {
        const std::size_t links = isCommunication(event.kind) ? rank.collectives.size()
            : event.kind == TraceKind::Instruction            ? rank.instructions.size()
                                                              : kNoLink;
        // The first event of a file need not be the first in order: twice the extent is room enough.
        if (event.lane >= lanes || event.name >= rank.names.size()
            || static_cast<std::size_t>(event.kind) >= kTraceKindCount
            || (event.link != kNoLink && event.link >= links) || event.start > kMostTraceTime
            || event.start < -kMostTraceTime || event.duration < 0
            || event.duration > kMostTraceExtent - total
            || (before
                && (before->lane > event.lane || (before->lane == event.lane && before->start > event.start)))
            || event.start - rank.events.front().start > 2 * kMostTraceExtent
            || rank.events.front().start - event.start > 2 * kMostTraceExtent
            || (event.launch != kNoTime
                && (event.launch > event.start || event.launch < event.start - kMostTraceExtent)))
            return false;
        total += event.duration;
        before = &event;
    }
    return true;
}

std::uint32_t checksumOf(std::string_view bytes)
{
    uLong sum = crc32_z(0, nullptr, 0);
    sum = crc32_z(sum, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size());
    return static_cast<std::uint32_t>(sum);
}

Error damaged(std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "the trace is read anew", "index of a trace"};
}

} // namespace

std::string printTraceIndex(const std::vector<RankTrace> &ranks, std::string_view key)
{
    IndexWriter writer;
    writer.bytes() += kMagic;
    writer.text(key);
    writer.list(ranks, [&](const RankTrace &rank) { writeRank(writer, rank); });
    writer.plain(checksumOf(writer.bytes()));
    return std::move(writer.bytes());
}

Result<std::vector<RankTrace>> readTraceIndex(std::string_view bytes, std::string_view key)
{
    std::uint32_t sum = 0;
    if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + sizeof sum)
        return damaged("expected an index of a trace");
    const std::string_view content = bytes.substr(0, bytes.size() - sizeof sum);
    std::memcpy(&sum, bytes.data() + content.size(), sizeof sum);
    IndexReader reader(content.substr(kMagic.size()));
    if (reader.text() != key)
        return Error{ErrorCode::NotFound, "the index is of another file", {}, "index of a trace"};
    if (checksumOf(content) != sum)
        return damaged("the checksum does not match");
    auto ranks = reader.list([&] { return readRank(reader); });
    if (reader.isBroken() || !reader.hasEnded())
        return damaged("the index ends in the wrong place");
    for (RankTrace &rank : ranks) {
        if (!isPossible(rank))
            return damaged("the index says what no trace can");
        markLanes(rank);
    }
    return ranks;
}

} // namespace planloom
