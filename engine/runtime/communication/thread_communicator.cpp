#include "engine/runtime/communication/thread_communicator.h"

#include "engine/base/work_pool.h"
#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

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
        const auto member = memberOf(m_groups, call, device);
        if (!member)
            return done(member.error());
        const std::size_t size = m_groups[static_cast<std::size_t>(call.group)].size();
        Meeting meeting;
        {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return done(cancelled("the run was stopped"));
            }
            const auto at = m_meetings.try_emplace({call.group, call.sequence}, size).first;
            at->second.calls[*member] = call;
            at->second.done[*member] = std::move(done);
            if (++at->second.arrived < size)
                return;
            meeting = std::move(at->second);
            m_meetings.erase(at);
        }
        Result<void> outcome;
        if (const std::string problem = misfit(meeting.calls); problem.empty())
            forEachPiece(static_cast<std::int64_t>(size),
                [&](std::int64_t each) { memberPart(meeting.calls, static_cast<std::size_t>(each)); });
        else
            outcome = damagedPlan(
                std::string{nameOf(call.kind)} + " in group " + std::to_string(call.group) + ": " + problem);
        for (Done &each : meeting.done)
            each(outcome);
    }

    void send(DeviceId device, const MessageCall &message, Done done)
    {
        if (!holds(message.key.peer))
            return done(noSuchDevice(message.key.peer));
        const MessageId id{message.key.peer.index, device.index, message.key.tag, message.key.microBatch};
        MemoryBlock copy;
        for (;;) {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                copy.reset();
                return done(cancelled("the run was stopped"));
            }
            if (const auto found = m_receivers.find(id); found != m_receivers.end()) {
                Receiver receiver = std::move(found->second.front());
                found->second.pop_front();
                if (found->second.empty())
                    m_receivers.erase(found);
                lock.unlock();
                copy.reset(); // who is told last may end the world
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
        const Result<void> outcome = deliver(aside.data.data(), aside.bytes, message);
        aside.data.reset(); // who is told last may end the world, and what the block goes back to
        done(outcome);
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
    static Result<void> deliver(const std::byte *from, std::size_t bytes, const MessageCall &to)
    {
        TRY_VOID(checkLength(bytes, to));
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
