#include "engine/runtime/thread_communicator.h"

#include "engine/base/work_pool.h"
#include "engine/runtime/box_copy.h"
#include "engine/runtime/memory_pool.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// What is wrong with the members' buffers; empty if they fit. Reads all slots, so that all members agree.
std::string misfit(const std::vector<CollectiveCall> &slots)
{
    const CollectiveCall &first = slots.front();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const CollectiveCall &slot = slots[i];
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
        for (const CollectiveCall &slot : slots) {
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
    const auto in = [](const CollectiveCall &slot) { return slot.in.shape; };
    const auto out = [](const CollectiveCall &slot) { return slot.out.shape; };
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const CollectiveCall &slot = slots[i];
        bool ok = true;
        switch (first.kind) {
        case InstructionKind::AllReduce:
            ok = slot.in.shape == first.in.shape && slot.out.shape == first.in.shape;
            break;
        case InstructionKind::AllGather:
            ok = fits(slot.out.shape, in, first.dimension);
            break;
        case InstructionKind::ReduceScatter:
            ok = fits(slot.in.shape, out, first.dimension);
            break;
        case InstructionKind::AllToAll: {
            // Chunks cut from `in` are the outs' extents; pieces joined in `out` are the ins' extents.
            const auto cut = static_cast<std::size_t>(first.dimension);
            const auto join = static_cast<std::size_t>(first.gatherDimension);
            const std::size_t rank = first.in.shape.size();
            ok = cut < rank && join < rank && cut != join && slot.in.shape.size() == rank
                && slot.out.shape.size() == rank;
            if (ok) {
                std::int64_t cuts = 0;
                std::int64_t joins = 0;
                for (const CollectiveCall &other : slots) {
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
        case InstructionKind::Broadcast:
            ok = first.in.data != nullptr && (slot.out.data == nullptr || slot.out.shape == first.in.shape)
                && (slot.out.data != nullptr || &slot == &first);
            break;
        case InstructionKind::Shift:
            ok = slot.in.data != nullptr && slot.out.data != nullptr && slot.in.data != slot.out.data
                && slot.out.shape == slots[(i + slots.size() - 1) % slots.size()].in.shape;
            break;
        default:
            ok = false; // no collective
        }
        const bool sums =
            first.kind == InstructionKind::AllReduce || first.kind == InstructionKind::ReduceScatter;
        const bool reads = first.kind != InstructionKind::Broadcast || &slot == &first;
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

void allReduceChunk(const std::vector<CollectiveCall> &slots, std::size_t member)
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

void gatherInto(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    const auto d = static_cast<std::size_t>(slots[member].dimension);
    std::int64_t offset = 0;
    for (const CollectiveCall &slot : slots) {
        const IndexMask piece = wholeMask(slot.in.shape);
        IndexMask target = wholeMask(out.shape); // in the piece's coordinates
        target.ranges[d] = {-offset, out.shape[d] - offset};
        copyBox(slot.in.data, piece, out.data, target, piece, sizeOf(out.type));
        offset += slot.in.shape[d];
    }
}

void reduceInto(const std::vector<CollectiveCall> &slots, std::size_t member)
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

void exchangeInto(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    const auto cut = static_cast<std::size_t>(slots[member].dimension);
    const auto join = static_cast<std::size_t>(slots[member].gatherDimension);
    std::int64_t cutBegin = 0;
    for (std::size_t k = 0; k < member; ++k)
        cutBegin += slots[k].out.shape[cut];
    std::int64_t joined = 0;
    for (const CollectiveCall &slot : slots) {
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

void copyFirst(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots.front().in;
    const CollectiveBuffer &out = slots[member].out;
    if (out.data != nullptr && out.data != in.data)
        std::memcpy(out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

void copyBefore(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots[(member + slots.size() - 1) % slots.size()].in;
    std::memcpy(
        slots[member].out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

/// What member `member` of a collective makes of all members' buffers.
void work(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    switch (slots[member].kind) {
    case InstructionKind::AllReduce:
        return allReduceChunk(slots, member);
    case InstructionKind::AllGather:
        return gatherInto(slots, member);
    case InstructionKind::ReduceScatter:
        return reduceInto(slots, member);
    case InstructionKind::AllToAll:
        return exchangeInto(slots, member);
    case InstructionKind::Broadcast:
        return copyFirst(slots, member);
    case InstructionKind::Shift:
        return copyBefore(slots, member);
    default:
        assert(false); // refused before
    }
}

} // namespace

class ThreadWorld::Impl
{
public:
    using Done = Communicator::Done;
    /// Receiver, sender, tag, micro-batch.
    using MessageId = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

    Impl(std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups)
        : m_devices(deviceCount)
        , m_groups(std::move(groups))
    {
    }

    void join(DeviceId device, const CollectiveCall &call, Done done)
    {
        const auto g = static_cast<std::size_t>(call.group);
        if (call.group < 0 || g >= m_groups.size())
            return done(
                Error{ErrorCode::InvalidInput, "there is no group " + std::to_string(call.group), {}, {}});
        const std::vector<DeviceId> &members = m_groups[g];
        const auto found = std::find(members.begin(), members.end(), device);
        if (found == members.end())
            return done(Error{ErrorCode::InvalidInput,
                "device " + std::to_string(device.index) + " is not in group " + std::to_string(call.group),
                {}, {}});
        const auto member = static_cast<std::size_t>(found - members.begin());
        Meeting meeting;
        {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return done(cancelled("the run was stopped"));
            }
            const auto at = m_meetings.try_emplace({call.group, call.sequence}, members.size()).first;
            at->second.calls[member] = call;
            at->second.done[member] = std::move(done);
            if (++at->second.arrived < members.size())
                return;
            meeting = std::move(at->second);
            m_meetings.erase(at);
        }
        Result<void> outcome;
        if (const std::string problem = misfit(meeting.calls); problem.empty())
            forEachPiece(static_cast<std::int64_t>(members.size()),
                [&](std::int64_t each) { work(meeting.calls, static_cast<std::size_t>(each)); });
        else
            outcome = Error{ErrorCode::InvalidInput,
                std::string{nameOf(call.kind)} + " in group " + std::to_string(call.group) + ": " + problem,
                "this plan was not made by Planloom, or is damaged", {}};
        for (Done &each : meeting.done)
            each(outcome);
    }

    void send(DeviceId device, const MessageCall &message, Done done)
    {
        if (!holds(message.key.peer))
            return done(noDevice(message.key.peer));
        const MessageId id{message.key.peer.index, device.index, message.key.tag, message.key.microBatch};
        MemoryBlock copy;
        for (;;) {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return done(cancelled("the run was stopped"));
            }
            if (const auto found = m_receivers.find(id); found != m_receivers.end()) {
                Receiver receiver = std::move(found->second.front());
                found->second.pop_front();
                if (found->second.empty())
                    m_receivers.erase(found);
                lock.unlock();
                receiver.done(deliver(message.data, message.bytes, receiver.message));
                return done({});
            }
            if (message.bytes == 0 || copy) {
                m_messages[id].push_back({std::move(copy), message.bytes});
                lock.unlock();
                return done({});
            }
            lock.unlock(); // nobody has asked for it yet: it is put aside, and may be overwritten
            copy = m_pool.allocate(message.bytes);
            if (!copy)
                return done(
                    Error{ErrorCode::ResourceLimit, "no memory for a message", "use more micro-batches", {}});
            std::memcpy(copy.data(), message.data, message.bytes);
        }
    }

    void receive(DeviceId device, const MessageCall &message, Done done)
    {
        const MessageId id{device.index, message.key.peer.index, message.key.tag, message.key.microBatch};
        Aside aside;
        {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return done(cancelled("the run was stopped"));
            }
            const auto found = m_messages.find(id);
            if (found == m_messages.end()) {
                m_receivers[id].push_back({message, std::move(done)});
                return;
            }
            aside = std::move(found->second.front());
            found->second.pop_front();
            if (found->second.empty())
                m_messages.erase(found);
        }
        done(deliver(aside.data.data(), aside.bytes, message));
    }

    void abort()
    {
        std::map<std::pair<std::int32_t, std::int64_t>, Meeting> meetings;
        std::map<MessageId, std::deque<Receiver>> receivers;
        {
            const std::lock_guard lock{m_mutex};
            m_aborted = true;
            meetings.swap(m_meetings);
            receivers.swap(m_receivers);
        }
        for (auto &[key, meeting] : meetings)
            for (Done &done : meeting.done)
                if (done)
                    done(cancelled("the run was stopped"));
        for (auto &[key, waiting] : receivers)
            for (Receiver &receiver : waiting)
                receiver.done(cancelled("the run was stopped"));
    }

private:
    /// Where the members of a group gather for one collective.
    struct Meeting {
        Meeting() = default;
        explicit Meeting(std::size_t size)
            : calls(size)
            , done(size)
        {
        }
        std::vector<CollectiveCall> calls{}; ///< By member.
        std::vector<Done> done{};
        std::size_t arrived = 0;
    };
    struct Receiver {
        MessageCall message{};
        Done done{};
    };
    /// A message that came before it was asked for.
    struct Aside {
        MemoryBlock data{};
        std::size_t bytes = 0;
    };

    bool holds(DeviceId device) const { return device.valid() && device.index < m_devices; }
    static Error noDevice(DeviceId device)
    {
        return {ErrorCode::InvalidInput, "there is no device " + std::to_string(device.index), {}, {}};
    }
    static Result<void> deliver(const std::byte *from, std::size_t bytes, const MessageCall &to)
    {
        if (bytes != to.bytes)
            return Error{ErrorCode::InvalidInput,
                "expected " + std::to_string(to.bytes) + " bytes from device "
                    + std::to_string(to.key.peer.index) + ", got " + std::to_string(bytes),
                "this plan was not made by Planloom, or is damaged", {}};
        if (bytes > 0)
            std::memcpy(to.data, from, bytes);
        return {};
    }

    std::int32_t m_devices;
    std::vector<std::vector<DeviceId>> m_groups;
    MemoryPool m_pool{}; ///< Of messages put aside: kept, since every step has the same. Before them.
    std::mutex m_mutex{}; ///< Of all below.
    std::map<std::pair<std::int32_t, std::int64_t>, Meeting> m_meetings{}; ///< By group and sequence.
    std::map<MessageId, std::deque<Aside>> m_messages{};
    std::map<MessageId, std::deque<Receiver>> m_receivers{};
    bool m_aborted = false;
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
    void join(const CollectiveCall &call, Done done) override
    {
        m_world.join(m_device, call, std::move(done));
    }
    void send(const MessageCall &message, Done done) override
    {
        m_world.send(m_device, message, std::move(done));
    }
    void receive(const MessageCall &message, Done done) override
    {
        m_world.receive(m_device, message, std::move(done));
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
