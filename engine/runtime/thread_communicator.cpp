#include "engine/runtime/thread_communicator.h"

#include "engine/base/work_pool.h"
#include "engine/runtime/box_copy.h"
#include "engine/runtime/collective_fit.h"
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
