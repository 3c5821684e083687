#include "engine/runtime/processes/run_peers.h"

#include "engine/runtime/devices/box_copy.h"

#include <cassert>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace planloom {

namespace {

/// Values one after another, as they lie in memory: only processes of one machine and program read them.
class Writer
{
public:
    template<typename T> void add(const T &value)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        m_bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
    }
    template<typename T> void addAll(const std::vector<T> &values)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        add(values.size());
        m_bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    }
    const std::string &bytes() const { return m_bytes; }

private:
    std::string m_bytes{};
};

class Reader
{
public:
    explicit Reader(std::string_view bytes)
        : m_bytes(bytes)
    {
    }
    bool atEnd() const { return m_bytes.empty(); }
    const char *rest() const { return m_bytes.data(); }
    template<typename T> T next()
    {
        T value{};
        std::memcpy(&value, advance(sizeof(T)), sizeof(T));
        return value;
    }
    template<typename T> std::vector<T> nextAll()
    {
        std::vector<T> values(next<std::size_t>());
        if (!values.empty())
            std::memcpy(values.data(), advance(values.size() * sizeof(T)), values.size() * sizeof(T));
        return values;
    }

private:
    const char *advance(std::size_t bytes)
    {
        assert(bytes <= m_bytes.size());
        const char *const at = m_bytes.data();
        m_bytes.remove_prefix(bytes);
        return at;
    }
    std::string_view m_bytes;
};

} // namespace

Result<void> RunPeers::requireMemory(const std::vector<MemoryNeed> &mine)
{
    if (m_end == nullptr)
        return planloom::requireMemory(mine, freeMemory());
    Writer writer;
    writer.addAll(mine);
    TRY(const auto all, m_end->gatherBytes(writer.bytes()));
    std::vector<MemoryNeed> needs;
    for (const std::string &bytes : all) {
        const auto theirs = Reader{bytes}.nextAll<MemoryNeed>();
        needs.insert(needs.end(), theirs.begin(), theirs.end());
    }
    if (isFirst())
        TRY_VOID(planloom::requireMemory(needs, freeMemory()));
    TRY_VOID(m_end->broadcastBytes({})); // nobody takes memory before
    return {};
}

Result<DeviceExecutor::Clock::time_point> RunPeers::begin(DeviceExecutor::Clock::time_point now)
{
    if (m_end == nullptr)
        return now;
    TRY_VOID(m_end->gatherBytes({})); // all are there
    Writer writer;
    writer.add(DeviceExecutor::Clock::now());
    TRY(const auto bytes, m_end->broadcastBytes(writer.bytes()));
    return Reader{bytes}.next<DeviceExecutor::Clock::time_point>();
}

Result<bool> RunPeers::decidedByFirst(bool mine)
{
    if (m_end == nullptr)
        return mine;
    Writer writer;
    writer.add(mine);
    TRY(const auto bytes, m_end->broadcastBytes(writer.bytes()));
    return Reader{bytes}.next<bool>();
}

Result<std::map<OperatorId, std::int64_t>> RunPeers::sumAtFirst(
    const std::map<OperatorId, std::int64_t> &mine)
{
    if (m_end == nullptr)
        return mine;
    Writer writer;
    for (const auto &[op, count] : mine) {
        writer.add(op);
        writer.add(count);
    }
    TRY(const auto all, m_end->gatherBytes(writer.bytes()));
    std::map<OperatorId, std::int64_t> sums;
    for (const std::string &bytes : all) {
        for (Reader reader{bytes}; !reader.atEnd();) {
            const auto op = reader.next<OperatorId>();
            sums[op] += reader.next<std::int64_t>();
        }
    }
    return sums;
}

Result<std::vector<DeviceMeasure>> RunPeers::gather(std::vector<DeviceMeasure> mine)
{
    if (m_end == nullptr)
        return mine;
    Writer writer;
    for (const DeviceMeasure &device : mine) {
        writer.addAll(device.spans);
        writer.addAll(device.memory.time.values());
        writer.addAll(device.memory.bytes.values());
        writer.add(device.memory.peak);
        writer.add(device.memory.atPeak);
        writer.add(device.peak);
        writer.add(device.hostPeak);
    }
    TRY(const auto all, m_end->gatherBytes(writer.bytes()));
    std::vector<DeviceMeasure> measures;
    for (const std::string &bytes : all) {
        for (Reader reader{bytes}; !reader.atEnd();) {
            DeviceMeasure &device = measures.emplace_back();
            device.spans = reader.nextAll<LiveSpan>();
            device.memory.time = reader.nextAll<std::int64_t>();
            device.memory.bytes = reader.nextAll<std::array<std::int64_t, kMemoryKindCount>>();
            device.memory.peak = reader.next<Bytes>();
            device.memory.atPeak = reader.next<std::array<std::int64_t, kMemoryKindCount>>();
            device.peak = reader.next<Bytes>();
            device.hostPeak = reader.next<Bytes>();
        }
    }
    return measures;
}

Result<void> RunPeers::post(
    const Collector::Claim &claim, const IndexMask &box, const std::byte *data, const Collector::Turn &turn)
{
    Writer writer;
    writer.add(claim);
    writer.add(turn.first);
    writer.add(turn.second);
    writer.addAll(std::vector<Range>(box.ranges.begin(), box.ranges.end()));
    const auto bytes = static_cast<std::size_t>(elementCount(box) * sizeOf(claim.dataType));
    return m_end->post(std::as_bytes(std::span{writer.bytes()}), {data, bytes});
}

void RunPeers::put(Collector &collector, std::span<const std::byte> posted)
{
    Reader reader{{reinterpret_cast<const char *>(posted.data()), posted.size()}};
    const auto claim = reader.next<Collector::Claim>();
    const auto device = reader.next<std::int32_t>();
    const auto event = reader.next<std::int32_t>();
    IndexMask box;
    for (const Range &range : reader.nextAll<Range>())
        box.ranges.push_back(range);
    // Behind ranges of 16 bytes, but perhaps not aligned as its type wants it.
    const auto bytes = static_cast<std::size_t>(elementCount(box) * sizeOf(claim.dataType));
    std::vector<std::byte> data(bytes);
    std::memcpy(data.data(), reader.rest(), bytes);
    collector.put(claim, box, data.data(), {device, event});
}

} // namespace planloom
