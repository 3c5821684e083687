#include "engine/runtime/thread_communicator.h"

#include "engine/runtime/box_copy.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

// What the world of threads, which has a name outside this file, is made of has names, too.

enum class Collective : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Shift };

/// What a member shows the others while they work on a collective.
struct PublishedBuffers {
    Collective kind{};
    CollectiveBuffer in{};
    CollectiveBuffer out{};
    std::int32_t dimension = -1;
    std::int32_t gatherDimension = -1;
    Combination combination = Combination::Sum;
};

/// Where the members of a group meet. Between `enter` and `leave` all members' `slots` may be read.
class GroupMeeting
{
public:
    explicit GroupMeeting(std::size_t size)
        : slots(size)
    {
    }

    /// Waits until all have entered. False if aborted before that.
    bool enter()
    {
        std::unique_lock lock{m_mutex};
        if (m_aborted)
            return false;
        const std::uint64_t generation = m_generation;
        if (arrived())
            return true;
        m_changed.wait(lock, [&] { return m_generation != generation || m_aborted; });
        return m_generation != generation; // where all have entered, an abort must not part them
    }

    /// Waits until all are about to leave. Not interrupted: all are here, none can take long.
    void leave()
    {
        std::unique_lock lock{m_mutex};
        const std::uint64_t generation = m_generation;
        if (!arrived())
            m_changed.wait(lock, [&] { return m_generation != generation; });
    }

    void abort()
    {
        const std::lock_guard lock{m_mutex};
        m_aborted = true;
        m_changed.notify_all();
    }

    std::vector<PublishedBuffers> slots; ///< By member; each writes its own before it enters.

private:
    bool arrived() // needs the lock
    {
        if (++m_arrived < slots.size())
            return false;
        m_arrived = 0;
        ++m_generation;
        m_changed.notify_all();
        return true;
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::size_t m_arrived = 0;
    std::uint64_t m_generation = 0;
    bool m_aborted = false;
};

/// Messages for one device.
class DeviceInbox
{
public:
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< Sender, tag, micro-batch.

    bool put(const Key &key, MemoryBlock block)
    {
        const std::lock_guard lock{m_mutex};
        if (m_aborted)
            return false;
        m_messages[key].push_back(std::move(block));
        m_changed.notify_all();
        return true;
    }

    bool take(const Key &key, MemoryBlock &block)
    {
        std::unique_lock lock{m_mutex};
        auto found = m_messages.end();
        m_changed.wait(lock, [&] {
            found = m_messages.find(key);
            return found != m_messages.end() || m_aborted;
        });
        if (m_aborted)
            return false;
        block = std::move(found->second.front());
        found->second.pop_front();
        if (found->second.empty())
            m_messages.erase(found);
        return true;
    }

    void abort()
    {
        const std::lock_guard lock{m_mutex};
        m_aborted = true;
        m_changed.notify_all();
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::map<Key, std::deque<MemoryBlock>> m_messages;
    bool m_aborted = false;
};

namespace {

const char *nameOf(Collective kind)
{
    switch (kind) {
    case Collective::AllReduce:
        return "all-reduce";
    case Collective::AllGather:
        return "all-gather";
    case Collective::ReduceScatter:
        return "reduce-scatter";
    case Collective::AllToAll:
        return "all-to-all";
    case Collective::Broadcast:
        return "broadcast";
    case Collective::Shift:
        return "shift";
    }
    return "collective";
}

/// What is wrong with the members' buffers; empty if they fit. Reads all slots, so that all members agree.
std::string misfit(const std::vector<PublishedBuffers> &slots)
{
    const PublishedBuffers &first = slots.front();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const PublishedBuffers &slot = slots[i];
        if (slot.kind != first.kind)
            return std::string{nameOf(first.kind)} + " meets " + nameOf(slot.kind);
        if (slot.dimension != first.dimension || slot.gatherDimension != first.gatherDimension)
            return "members name different dimensions";
        if (slot.combination != first.combination)
            return "members combine in different ways";
    }
    // Along `along`, `whole` is as long as the members' parts together; elsewhere extents agree.
    const auto fits = [&](const Shape &whole, const auto &partOf, std::int32_t along) {
        std::int64_t total = 0;
        for (const PublishedBuffers &slot : slots) {
            Shape part = partOf(slot);
            if (along < 0)
                return part == whole;
            const auto d = static_cast<std::size_t>(along);
            if (part.size() != whole.size() || d >= whole.size())
                return false;
            total += part[d];
            part[d] = whole[d];
            if (part != whole)
                return false;
        }
        return total == whole[static_cast<std::size_t>(along)];
    };
    const auto in = [](const PublishedBuffers &slot) { return slot.in.shape; };
    const auto out = [](const PublishedBuffers &slot) { return slot.out.shape; };
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const PublishedBuffers &slot = slots[i];
        bool ok = true;
        switch (first.kind) {
        case Collective::AllReduce:
            ok = slot.in.shape == first.in.shape && slot.out.shape == first.in.shape;
            break;
        case Collective::AllGather:
            ok = fits(slot.out.shape, in, first.dimension);
            break;
        case Collective::ReduceScatter:
            ok = fits(slot.in.shape, out, first.dimension);
            break;
        case Collective::AllToAll: {
            // Chunks cut from `in` are the outs' extents; pieces joined in `out` are the ins' extents.
            const auto cut = static_cast<std::size_t>(first.dimension);
            const auto join = static_cast<std::size_t>(first.gatherDimension);
            const std::size_t rank = first.in.shape.size();
            ok = cut < rank && join < rank && cut != join && slot.in.shape.size() == rank
                && slot.out.shape.size() == rank;
            if (ok) {
                std::int64_t cuts = 0;
                std::int64_t joins = 0;
                for (const PublishedBuffers &other : slots) {
                    if (other.in.shape.size() != rank || other.out.shape.size() != rank)
                        return "members' shapes do not fit";
                    cuts += other.out.shape[cut];
                    joins += other.in.shape[join];
                }
                Shape expected = slot.in.shape;
                expected[cut] = slot.out.shape[cut];
                expected[join] = joins;
                ok = slot.in.shape[cut] == cuts && slot.out.shape == expected;
            }
            break;
        }
        case Collective::Broadcast:
            ok = first.in.data != nullptr && (slot.out.data == nullptr || slot.out.shape == first.in.shape)
                && (slot.out.data != nullptr || &slot == &first);
            break;
        case Collective::Shift:
            ok = slot.in.data != nullptr && slot.out.data != nullptr && slot.in.data != slot.out.data
                && slot.out.shape == slots[(i + slots.size() - 1) % slots.size()].in.shape;
            break;
        }
        const bool sums = first.kind == Collective::AllReduce || first.kind == Collective::ReduceScatter;
        const bool reads = first.kind != Collective::Broadcast || &slot == &first;
        if (!ok)
            return "members' shapes do not fit: " + toString(slot.in.shape) + " to "
                + toString(slot.out.shape);
        if ((reads && slot.in.type != first.in.type)
            || (slot.out.data != nullptr && slot.out.type != first.in.type))
            return "members' data types differ";
        if (sums && !canCombine(first.in.type, first.combination))
            return std::string{"values of type "} + planloom::nameOf(first.in.type)
                + " cannot be combined by " + planloom::nameOf(first.combination);
    }
    return {};
}

void allReduceChunk(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const DataType type = slots[0].in.type;
    const auto size = static_cast<std::size_t>(sizeOf(type));
    const auto count = static_cast<std::size_t>(elementCount(slots[0].in.shape));
    // Each member adds its own chunk and hands the result to all; short tensors are left to the first few.
    const std::size_t chunk =
        std::max<std::size_t>(1024, ((count + slots.size() - 1) / slots.size() + 63) / 64 * 64);
    const std::size_t begin = std::min(count, member * chunk);
    const std::size_t end = std::min(count, begin + chunk);
    std::vector<const std::byte *> from(slots.size());
    constexpr std::size_t kBlock = 4096; // handed out while still in cache
    for (std::size_t at = begin; at < end; at += kBlock) {
        const std::size_t length = std::min(kBlock, end - at);
        for (std::size_t k = 0; k < slots.size(); ++k)
            from[k] = slots[k].in.data + at * size;
        std::byte *to = slots[member].out.data + at * size;
        combineInto(to, from, length, type, slots[0].combination);
        for (std::size_t k = 0; k < slots.size(); ++k)
            if (k != member)
                std::memcpy(slots[k].out.data + at * size, to, length * size);
    }
}

void gatherInto(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    const auto d = static_cast<std::size_t>(slots[member].dimension);
    std::int64_t offset = 0;
    for (const PublishedBuffers &slot : slots) {
        const IndexMask piece = wholeMask(slot.in.shape);
        IndexMask target = wholeMask(out.shape); // in the piece's coordinates
        target.ranges[d] = {-offset, out.shape[d] - offset};
        copyBox(slot.in.data, piece, out.data, target, piece, sizeOf(out.type));
        offset += slot.in.shape[d];
    }
}

void reduceInto(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots[member].in;
    const CollectiveBuffer &out = slots[member].out;
    const auto d = static_cast<std::size_t>(slots[member].dimension);
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < member; ++k)
        offset += slots[k].out.shape[d];
    std::int64_t outer = 1;
    for (std::size_t i = 0; i < d; ++i)
        outer *= in.shape[i];
    std::int64_t inner = sizeOf(in.type);
    for (std::size_t i = d + 1; i < in.shape.size(); ++i)
        inner *= in.shape[i];
    const std::int64_t run = out.shape[d] * inner;
    std::vector<const std::byte *> from(slots.size());
    for (std::int64_t o = 0; o < outer; ++o) {
        for (std::size_t k = 0; k < slots.size(); ++k)
            from[k] = slots[k].in.data + (o * in.shape[d] + offset) * inner;
        combineInto(out.data + o * run, from, static_cast<std::size_t>(run / sizeOf(in.type)), in.type,
            slots[0].combination);
    }
}

void exchangeInto(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    const auto cut = static_cast<std::size_t>(slots[member].dimension);
    const auto join = static_cast<std::size_t>(slots[member].gatherDimension);
    std::int64_t cutBegin = 0;
    for (std::size_t k = 0; k < member; ++k)
        cutBegin += slots[k].out.shape[cut];
    std::int64_t joined = 0;
    for (const PublishedBuffers &slot : slots) {
        const IndexMask whole = wholeMask(slot.in.shape);
        IndexMask region = whole;
        region.ranges[cut] = {cutBegin, cutBegin + out.shape[cut]};
        IndexMask target = wholeMask(out.shape); // in the sender's coordinates
        target.ranges[cut] = region.ranges[cut];
        target.ranges[join] = {-joined, out.shape[join] - joined};
        copyBox(slot.in.data, whole, out.data, target, region, sizeOf(out.type));
        joined += slot.in.shape[join];
    }
}

void copyFirst(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots.front().in;
    const CollectiveBuffer &out = slots[member].out;
    if (out.data != nullptr && out.data != in.data)
        std::memcpy(out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

void copyBefore(const std::vector<PublishedBuffers> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots[(member + slots.size() - 1) % slots.size()].in;
    std::memcpy(
        slots[member].out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

} // namespace

class ThreadWorld::Impl
{
public:
    Impl(std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups)
        : m_groups(std::move(groups))
        , m_everyone(static_cast<std::size_t>(deviceCount))
    {
        for (const std::vector<DeviceId> &members : m_groups)
            m_meetings.emplace_back(members.size());
        for (std::int32_t d = 0; d < deviceCount; ++d)
            m_inboxes.emplace_back();
    }

    Result<void> meet(DeviceId device, std::int32_t group, PublishedBuffers published)
    {
        const auto g = static_cast<std::size_t>(group);
        if (group < 0 || g >= m_groups.size())
            return Error{ErrorCode::InvalidInput, "there is no group " + std::to_string(group), {}, {}};
        const std::vector<DeviceId> &members = m_groups[g];
        const auto found = std::find(members.begin(), members.end(), device);
        if (found == members.end())
            return Error{ErrorCode::InvalidInput,
                "device " + std::to_string(device.index) + " is not in group " + std::to_string(group), {},
                {}};
        const auto member = static_cast<std::size_t>(found - members.begin());
        GroupMeeting &meeting = m_meetings[g];
        const Collective kind = published.kind;
        meeting.slots[member] = std::move(published);
        if (!meeting.enter())
            return cancelled("the run was stopped");
        const std::string problem = misfit(meeting.slots);
        if (problem.empty())
            work(kind, meeting.slots, member);
        meeting.leave();
        if (!problem.empty())
            return Error{ErrorCode::InvalidInput,
                std::string{nameOf(kind)} + " in group " + std::to_string(group) + ": " + problem,
                "this plan was not made by Planloom, or is damaged", {}};
        return {};
    }

    Result<void> everyone()
    {
        if (!m_everyone.enter())
            return cancelled("the run was stopped");
        m_everyone.leave();
        return {};
    }

    DeviceInbox &inbox(DeviceId device) { return m_inboxes[static_cast<std::size_t>(device.index)]; }
    bool holds(DeviceId device) const
    {
        return device.valid() && static_cast<std::size_t>(device.index) < m_inboxes.size();
    }

    void abort()
    {
        for (GroupMeeting &meeting : m_meetings)
            meeting.abort();
        for (DeviceInbox &inbox : m_inboxes)
            inbox.abort();
        m_everyone.abort();
    }

private:
    static void work(Collective kind, const std::vector<PublishedBuffers> &slots, std::size_t member)
    {
        switch (kind) {
        case Collective::AllReduce:
            return allReduceChunk(slots, member);
        case Collective::AllGather:
            return gatherInto(slots, member);
        case Collective::ReduceScatter:
            return reduceInto(slots, member);
        case Collective::AllToAll:
            return exchangeInto(slots, member);
        case Collective::Broadcast:
            return copyFirst(slots, member);
        case Collective::Shift:
            return copyBefore(slots, member);
        }
    }

    std::vector<std::vector<DeviceId>> m_groups;
    std::deque<GroupMeeting> m_meetings; ///< By group. A deque: they cannot move.
    std::deque<DeviceInbox> m_inboxes; ///< By device.
    GroupMeeting m_everyone;
};

namespace {

template<typename World> class ThreadCommunicator final : public Communicator
{
public:
    ThreadCommunicator(World &world, DeviceId device)
        : m_world(world)
        , m_device(device)
    {
    }

    DeviceId device() const override { return m_device; }
    Result<void> barrier() override { return m_world.everyone(); }

    Result<void> allReduce(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        Combination combination) override
    {
        return m_world.meet(m_device, group, {Collective::AllReduce, in, out, -1, -1, combination});
    }

    Result<void> allGather(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension) override
    {
        return m_world.meet(m_device, group, {Collective::AllGather, in, out, dimension});
    }

    Result<void> reduceScatter(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension, Combination combination) override
    {
        return m_world.meet(
            m_device, group, {Collective::ReduceScatter, in, out, dimension, -1, combination});
    }

    Result<void> allToAll(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension, std::int32_t gatherDimension) override
    {
        return m_world.meet(m_device, group, {Collective::AllToAll, in, out, dimension, gatherDimension});
    }

    Result<void> broadcast(
        std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out) override
    {
        return m_world.meet(m_device, group, {Collective::Broadcast, in, out});
    }

    Result<void> shift(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out) override
    {
        return m_world.meet(m_device, group, {Collective::Shift, in, out});
    }

    Result<void> send(const MessageKey &key, MemoryBlock block) override
    {
        if (!m_world.holds(key.peer))
            return Error{
                ErrorCode::InvalidInput, "there is no device " + std::to_string(key.peer.index), {}, {}};
        if (!m_world.inbox(key.peer).put({m_device.index, key.tag, key.microBatch}, std::move(block)))
            return cancelled("the run was stopped");
        return {};
    }

    Result<MemoryBlock> receive(const MessageKey &key) override
    {
        MemoryBlock block;
        if (!m_world.inbox(m_device).take({key.peer.index, key.tag, key.microBatch}, block))
            return cancelled("the run was stopped");
        return block;
    }

private:
    World &m_world;
    DeviceId m_device;
};

} // namespace

ThreadWorld::ThreadWorld(std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups)
    : m_impl(std::make_unique<Impl>(deviceCount, std::move(groups)))
{
}

ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<Communicator> ThreadWorld::communicator(DeviceId device)
{
    return std::make_unique<ThreadCommunicator<Impl>>(*m_impl, device);
}

void ThreadWorld::abort()
{
    m_impl->abort();
}

} // namespace planloom
