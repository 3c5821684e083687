#include "engine/cuda/nccl/emulated_world.h"

#include "engine/cuda/kernels/nests.h"
#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::size_t bytesOf(const CollectiveBuffer &buffer)
{
    return static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(buffer.type));
}

void allReduce(CudaQueue &queue, const std::vector<CollectiveCall> &calls)
{
    const CollectiveBuffer &first = calls.front().out;
    std::vector<const std::byte *> from;
    for (const CollectiveCall &call : calls)
        from.push_back(call.in.data);
    (void)queue.combine(first.data, from, static_cast<std::size_t>(elementCount(first.shape)), first.type,
        calls.front().combination);
    for (std::size_t k = 1; k < calls.size(); ++k)
        queue.copy(calls[k].out.data, first.data, bytesOf(first));
}

void gather(CudaQueue &queue, const std::vector<CollectiveCall> &calls)
{
    const auto d = static_cast<std::size_t>(calls.front().dimension);
    for (const CollectiveCall &call : calls) {
        std::int64_t offset = 0;
        for (const CollectiveCall &other : calls) {
            const IndexMask piece = wholeMask(other.in.shape);
            IndexMask target = wholeMask(call.out.shape); // in the piece's coordinates
            target.ranges[d] = {-offset, call.out.shape[d] - offset};
            queue.copyBox(other.in.data, piece, call.out.data, target, piece, sizeOf(call.out.type));
            offset += other.in.shape[d];
        }
    }
}

void reduceScatter(CudaQueue &queue, const std::vector<CollectiveCall> &calls)
{
    const CollectiveBuffer &whole = calls.front().in;
    const auto d = static_cast<std::size_t>(calls.front().dimension);
    std::int64_t inner = 1;
    for (std::size_t i = d + 1; i < whole.shape.size(); ++i)
        inner *= whole.shape[i];
    std::int64_t offset = 0;
    for (const CollectiveCall &call : calls) {
        std::vector<const std::byte *> from;
        for (const CollectiveCall &other : calls)
            from.push_back(other.in.data + offset * inner * sizeOf(whole.type));
        (void)queue.combineRuns(call.out.data, from, static_cast<std::size_t>(elementCount(call.out.shape)),
            whole.type, call.combination, call.out.shape[d] * inner, whole.shape[d] * inner);
        offset += call.out.shape[d];
    }
}

void allToAll(CudaQueue &queue, const std::vector<CollectiveCall> &calls)
{
    const auto cut = static_cast<std::size_t>(calls.front().dimension);
    const auto join = static_cast<std::size_t>(calls.front().gatherDimension);
    std::int64_t cutBegin = 0;
    for (const CollectiveCall &call : calls) {
        const CollectiveBuffer &out = call.out;
        std::int64_t joined = 0;
        for (const CollectiveCall &other : calls) {
            const IndexMask whole = wholeMask(other.in.shape);
            IndexMask region = whole;
            region.ranges[cut] = {cutBegin, cutBegin + out.shape[cut]};
            IndexMask target = wholeMask(out.shape); // in the sender's coordinates
            target.ranges[cut] = region.ranges[cut];
            target.ranges[join] = {-joined, out.shape[join] - joined};
            queue.copyBox(other.in.data, whole, out.data, target, region, sizeOf(out.type));
            joined += other.in.shape[join];
        }
        cutBegin += out.shape[cut];
    }
}

/// Puts all that a collective does into one queue.
Result<void> carryOut(CudaQueue &queue, const std::vector<CollectiveCall> &calls)
{
    switch (calls.front().kind) {
    case InstructionKind::AllReduce:
        allReduce(queue, calls);
        break;
    case InstructionKind::AllGather:
        gather(queue, calls);
        break;
    case InstructionKind::ReduceScatter:
        reduceScatter(queue, calls);
        break;
    case InstructionKind::AllToAll:
        allToAll(queue, calls);
        break;
    case InstructionKind::Broadcast:
        for (const CollectiveCall &call : calls)
            if (call.out.data != nullptr && call.out.data != calls.front().in.data)
                queue.copy(call.out.data, calls.front().in.data, bytesOf(calls.front().in));
        break;
    default: // Shift; others do not fit
        for (std::size_t k = 0; k < calls.size(); ++k) {
            const CollectiveBuffer &in = calls[(k + calls.size() - 1) % calls.size()].in;
            queue.copy(calls[k].out.data, in.data, bytesOf(in));
        }
    }
    return queue.outcome();
}

} // namespace

class EmulatedWorld::Impl
{
public:
    using Launched = CudaCommunicator::Launched;
    /// Receiver, sender, tag, micro-batch.
    using MessageId = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

    Impl(CudaShared &shared, std::int32_t devices, std::vector<std::vector<DeviceId>> groups)
        : m_shared(shared)
        , m_cuda(shared.cuda)
        , m_devices(devices)
        , m_groups(std::move(groups))
    {
    }
    ~Impl()
    {
        m_messages.clear();
        endStep();
        for (const CudaEvent event : m_freeEvents)
            (void)m_cuda.destroyEvent(event);
    }

    void join(DeviceId device, const CollectiveCall &call, CudaQueue &queue, Launched launched)
    {
        const auto member = memberOf(m_groups, call, device);
        if (!member)
            return launched(member.error());
        if (m_aborted)
            return launched(cancelled("the run was stopped"));
        const std::size_t size = m_groups[static_cast<std::size_t>(call.group)].size();
        Meeting &meeting = m_meetings.try_emplace({call.group, call.sequence}, size).first->second;
        meeting.calls[*member] = call;
        meeting.members[*member] = {&queue, std::move(launched)};
        if (++meeting.arrived < size)
            return;
        const Meeting met = std::move(meeting);
        m_meetings.erase({call.group, call.sequence});
        Result<void> outcome;
        if (const std::string problem = misfit(met.calls); !problem.empty())
            outcome = damagedPlan(
                std::string{nameOf(call.kind)} + " in group " + std::to_string(call.group) + ": " + problem);
        else
            outcome = meet(met);
        for (const Waiting &each : met.members)
            each.launched(outcome);
    }

    void send(DeviceId device, const MessageCall &message, CudaQueue &queue, const Launched &launched)
    {
        if (!message.key.peer.valid() || message.key.peer.index >= m_devices)
            return launched(noSuchDevice(message.key.peer));
        if (m_aborted)
            return launched(cancelled("the run was stopped"));
        const MessageId id{message.key.peer.index, device.index, message.key.tag, message.key.microBatch};
        if (const auto found = m_receivers.find(id); found != m_receivers.end()) {
            const Receiver receiver = std::move(found->second.front());
            found->second.pop_front();
            if (found->second.empty())
                m_receivers.erase(found);
            const auto outcome = handOver(queue, message, *receiver.waiting.queue, receiver.message);
            receiver.waiting.launched(outcome);
            return launched(outcome);
        }
        launched(putAside(id, message, queue));
    }

    void receive(DeviceId device, const MessageCall &message, CudaQueue &queue, Launched launched)
    {
        if (m_aborted)
            return launched(cancelled("the run was stopped"));
        const MessageId id{device.index, message.key.peer.index, message.key.tag, message.key.microBatch};
        const auto found = m_messages.find(id);
        if (found == m_messages.end()) {
            m_receivers[id].push_back({message, {&queue, std::move(launched)}});
            return;
        }
        const Aside aside = found->second.front();
        found->second.pop_front();
        if (found->second.empty())
            m_messages.erase(found);
        launched(deliver(aside, message, queue));
    }

    void cancelWaiting()
    {
        const auto meetings = std::exchange(m_meetings, {});
        const auto receivers = std::exchange(m_receivers, {});
        for (const auto &[key, meeting] : meetings)
            for (const Waiting &each : meeting.members)
                if (each.launched)
                    each.launched(cancelled("the run was stopped"));
        for (const auto &[id, waiting] : receivers)
            for (const Receiver &receiver : waiting)
                receiver.waiting.launched(cancelled("the run was stopped"));
    }

    /// A device has nothing left in its streams; once that is so of all of them, what was put aside is free.
    void stepDone()
    {
        if (++m_done < m_devices)
            return;
        m_done = 0;
        endStep();
    }

    std::string whyNotCaptured() const
    {
        return m_messages.empty() ? std::string{} : "a later step receives what one has sent";
    }
    void captureFailed()
    {
        cancelWaiting();
        m_messages.clear(); // there were none when it began
    }

    void abort() { m_aborted = true; }
    bool isAborted() const { return m_aborted; }

private:
    struct Waiting {
        CudaQueue *queue = nullptr;
        Launched launched{};
    };
    /// Where the members of a group gather for one collective.
    struct Meeting {
        explicit Meeting(std::size_t size)
            : calls(size)
            , members(size)
        {
        }
        std::vector<CollectiveCall> calls;
        std::vector<Waiting> members;
        std::size_t arrived = 0;
    };
    struct Receiver {
        MessageCall message{};
        Waiting waiting{};
    };
    /// A message that came before it was asked for.
    struct Aside {
        std::byte *data = nullptr;
        std::size_t bytes = 0;
        CudaEvent ready = nullptr;
    };

    /// An event of this step.
    Result<CudaEvent> takeEvent()
    {
        CudaEvent event = nullptr;
        if (m_freeEvents.empty()) {
            CUDA_TRY(m_cuda, "cudaEventCreate", m_cuda.createEvent(&event));
        } else {
            event = m_freeEvents.back();
            m_freeEvents.pop_back();
        }
        m_usedEvents.push_back(event);
        return event;
    }

    /// What comes later in `second` comes after what is in `first` now.
    Result<void> order(CudaStream first, CudaStream second)
    {
        if (first == second)
            return {};
        TRY(const CudaEvent event, takeEvent());
        CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(event, first));
        CUDA_TRY(m_cuda, "cudaStreamWaitEvent", m_cuda.wait(second, event));
        return {};
    }

    /// The first member's stream waits for all, does it all, and all wait for it.
    Result<void> meet(const Meeting &meeting)
    {
        CudaQueue &lead = *meeting.members.front().queue;
        for (const Waiting &each : meeting.members)
            TRY_VOID(order(each.queue->stream(), lead.stream()));
        TRY_VOID(carryOut(lead, meeting.calls));
        for (const Waiting &each : meeting.members)
            TRY_VOID(order(lead.stream(), each.queue->stream()));
        return {};
    }

    Result<void> handOver(
        CudaQueue &sender, const MessageCall &sent, CudaQueue &receiver, const MessageCall &asked)
    {
        TRY_VOID(checkLength(sent.bytes, asked));
        TRY_VOID(order(sender.stream(), receiver.stream()));
        receiver.copy(asked.data, sent.data, sent.bytes);
        TRY_VOID(receiver.outcome());
        return order(receiver.stream(), sender.stream()); // which may then overwrite it
    }

    Result<void> putAside(const MessageId &id, const MessageCall &message, CudaQueue &queue)
    {
        TRY(std::byte *const block, m_shared.device.take(message.bytes));
        if (m_shared.graphs.isCapturing())
            m_shared.graphs.keep(block);
        else
            m_blocks.push_back(block);
        queue.copy(block, message.data, message.bytes);
        TRY(const CudaEvent ready, takeEvent());
        CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(ready, queue.stream()));
        m_messages[id].push_back({block, message.bytes, ready});
        return queue.outcome();
    }

    Result<void> deliver(const Aside &aside, const MessageCall &message, CudaQueue &queue)
    {
        TRY_VOID(checkLength(aside.bytes, message));
        CUDA_TRY(m_cuda, "cudaStreamWaitEvent", m_cuda.wait(queue.stream(), aside.ready));
        queue.copy(message.data, aside.data, aside.bytes);
        return queue.outcome();
    }

    void endStep()
    {
        if (!m_messages.empty()) // a later step asks for them
            return;
        for (std::byte *const block : m_blocks)
            m_shared.device.giveBack(block);
        m_blocks.clear();
        m_freeEvents.insert(m_freeEvents.end(), m_usedEvents.begin(), m_usedEvents.end());
        m_usedEvents.clear();
    }

    CudaShared &m_shared;
    CudaFunctions &m_cuda;
    std::int32_t m_devices;
    std::vector<std::vector<DeviceId>> m_groups;
    std::map<std::pair<std::int32_t, std::int64_t>, Meeting> m_meetings{}; ///< By group and sequence.
    std::map<MessageId, std::deque<Aside>> m_messages{};
    std::map<MessageId, std::deque<Receiver>> m_receivers{};
    std::vector<std::byte *> m_blocks{}; ///< Of messages of this step that were put aside.
    std::vector<CudaEvent> m_usedEvents{};
    std::vector<CudaEvent> m_freeEvents{};
    std::int32_t m_done = 0; ///< Devices that have ended the step.
    std::atomic<bool> m_aborted{false};
};

namespace {

class EmulatedCommunicator final : public CudaCommunicator
{
public:
    EmulatedCommunicator(EmulatedWorld::Impl &world, DeviceId device)
        : m_world(world)
        , m_device(device)
    {
    }

    DeviceId device() const override { return m_device; }
    void join(const CollectiveCall &call, CudaQueue &queue, Launched launched) override
    {
        m_world.join(m_device, call, queue, std::move(launched));
    }
    void send(const MessageCall &message, CudaQueue &queue, Launched launched) override
    {
        m_world.send(m_device, message, queue, launched);
    }
    void receive(const MessageCall &message, CudaQueue &queue, Launched launched) override
    {
        m_world.receive(m_device, message, queue, std::move(launched));
    }
    std::string whyNotCaptured() const override { return m_world.whyNotCaptured(); }
    void captureFailed() override { m_world.captureFailed(); }
    Result<void> poll() override { return {}; }
    void cancelWaiting() override { m_world.cancelWaiting(); }
    void stepDone() override { m_world.stepDone(); }
    void abort() override { m_world.abort(); }
    bool isAborted() const override { return m_world.isAborted(); }

private:
    EmulatedWorld::Impl &m_world;
    DeviceId m_device;
};

} // namespace

EmulatedWorld::EmulatedWorld(
    CudaShared &shared, std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups)
    : m_impl(std::make_unique<Impl>(shared, deviceCount, std::move(groups)))
{
}

EmulatedWorld::~EmulatedWorld() = default;

std::unique_ptr<CudaCommunicator> EmulatedWorld::communicator(DeviceId device)
{
    return std::make_unique<EmulatedCommunicator>(*m_impl, device);
}

void EmulatedWorld::abort()
{
    m_impl->abort();
}

} // namespace planloom
