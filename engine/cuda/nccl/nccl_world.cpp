#include "engine/cuda/nccl/nccl_world.h"

#include "engine/cuda/nccl/nccl_collectives.h"
#include "engine/runtime/communication/collective_work.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

namespace planloom {

Result<void> checkNccl(NcclFunctions &nccl)
{
    const auto text = [](std::int32_t version) {
        return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
    };
    std::int32_t version = 0;
    if (const NcclStatus status = nccl.version(version); status != kNcclSuccess)
        return Error{ErrorCode::NotSupported,
            "ncclGetVersion failed with " + std::to_string(status) + ": " + nccl.errorText(status), {}, {}};
    if (version < kOldestNccl)
        return Error{ErrorCode::NotSupported,
            "NCCL is of version " + text(version) + ", and several GPUs need " + text(kOldestNccl)
                + " or later",
            "install a newer NCCL (Python's package nvidia-nccl has one), or run with --backend "
            "cuda-emulated",
            {}};
    return {};
}

class NcclWorld::Impl
{
public:
    using Launched = CudaCommunicator::Launched;
    using Clock = std::chrono::steady_clock;

    Impl(NcclFunctions *nccl, NcclWorldOptions options)
        : m_nccl(nccl)
        , m_options(std::move(options))
        , m_groups(m_options.groups.size())
    {
        m_world.name = "all devices";
        m_world.rank = m_options.device.index;
        m_world.ranks = m_options.devices;
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            const std::vector<DeviceId> &members = m_options.groups[g];
            const auto found = std::find(members.begin(), members.end(), m_options.device);
            Communicator &group = m_groups[g];
            group.name = "group " + std::to_string(g);
            group.rank = found == members.end() ? -1 : static_cast<std::int32_t>(found - members.begin());
            group.ranks = static_cast<std::int32_t>(members.size());
        }
        for (const QueueKind queue : m_options.order.messageQueues)
            if (queue != *m_options.order.messageQueues.begin()) // that has the world's own
                m_ofQueue[queue] = {.rank = m_world.rank,
                    .ranks = m_world.ranks,
                    .name = std::string{"all devices, "} + nameOf(queue) + " queue"};
    }

    ~Impl()
    {
        if (!m_aborted)
            (void)end();
        abortAll(); // those that did not end
        for (const OwnMemory &memory : m_memory)
            (void)m_nccl->release(memory.data);
    }

    Result<void> connect(const NcclId &id)
    {
        constexpr int kPatience = 4;
        TRY_VOID(through(m_world, "ncclCommInitRankConfig",
            m_nccl->initRank(&m_world.comm, m_world.ranks, id, m_world.rank),
            kPatience * m_options.deadline));
        // In the order of the plan, as all devices do, whether or not they are in the group.
        for (Communicator &group : m_groups) {
            if (group.ranks < 2)
                continue;
            TRY_VOID(through(m_world, "ncclCommSplit for " + group.name,
                m_nccl->split(m_world.comm, group.rank < 0 ? kNcclNoColor : 0, group.rank, &group.comm),
                m_options.deadline));
            if (group.comm != nullptr)
                TRY_VOID(through(group, "ncclCommSplit", kNcclInProgress, m_options.deadline));
        }
        for (auto &[queue, own] : m_ofQueue) {
            TRY_VOID(through(m_world, "ncclCommSplit for " + own.name,
                m_nccl->split(m_world.comm, 0, own.rank, &own.comm), m_options.deadline));
            TRY_VOID(through(own, "ncclCommSplit", kNcclInProgress, m_options.deadline));
        }
        return {};
    }

    void join(const CollectiveCall &call, CudaQueue &queue, const Launched &launched)
    {
        const auto g = static_cast<std::size_t>(call.group);
        if (call.group < 0 || g >= m_groups.size() || m_groups[g].rank < 0
            || m_options.order.groups[g].empty())
            return launched(damagedPlan("device " + std::to_string(m_options.device.index) + " has no "
                + nameOf(call.kind) + " in group " + std::to_string(call.group)));
        if (m_aborted)
            return launched(cancelled("the run was stopped"));
        Communicator &group = m_groups[g];
        group.last = std::string{nameOf(call.kind)} + " number " + std::to_string(call.sequence + 1);
        const NcclMember member{m_nccl, group.comm, group.rank, group.ranks,
            [this, &group](const char *function, NcclStatus status) {
                return through(group, function, status, m_options.deadline);
            }};
        launched(launchCollective(member, call, m_options.order.of(call), queue));
    }

    void message(bool sends, const MessageCall &message, CudaQueue &queue, const Launched &launched)
    {
        const std::int32_t peer = message.key.peer.index;
        if (peer < 0 || peer >= m_world.ranks || peer == m_world.rank)
            return launched(noSuchDevice(message.key.peer));
        if (m_aborted)
            return launched(cancelled("the run was stopped"));
        if (message.bytes == 0)
            return launched({});
        const auto found = m_ofQueue.find(message.queue);
        Communicator &all = found == m_ofQueue.end() ? m_world : found->second;
        all.last = (sends ? "send to device " : "receive from device ") + std::to_string(peer);
        const NcclStatus status = sends
            ? m_nccl->send(message.data, message.bytes, NcclType::Int8, peer, all.comm, queue.stream())
            : m_nccl->receive(message.data, message.bytes, NcclType::Int8, peer, all.comm, queue.stream());
        launched(through(all, sends ? "ncclSend" : "ncclRecv", status, m_options.deadline));
    }

    Result<void> sumOverAll(float *number, CudaStream stream)
    {
        if (m_aborted)
            return cancelled("the run was stopped");
        m_world.last = "agreement on a graph";
        return through(m_world, "ncclAllReduce",
            m_nccl->allReduce(number, number, 1, NcclType::Float32, NcclReduction::Sum, m_world.comm, stream),
            m_options.deadline);
    }
    bool hasOthers() const { return m_nccl != nullptr; }
    std::int32_t ranks() const { return hasOthers() ? m_world.ranks : 1; }

    DeviceId device() const { return m_options.device; }

    std::byte *allocate(std::size_t bytes)
    {
        if (m_nccl == nullptr || m_aborted || !m_nccl->hasOwnMemory())
            return nullptr;
        OwnMemory memory;
        if (m_nccl->allocate(&memory.data, bytes) != kNcclSuccess)
            return nullptr;
        for (Communicator *each : all())
            // One that cannot be registered is communicated from all the same, more slowly.
            if (void *handle = nullptr;
                m_nccl->registerMemory(each->comm, memory.data, bytes, &handle) == kNcclSuccess)
                memory.handles.emplace_back(each, handle);
        m_memory.push_back(std::move(memory));
        return static_cast<std::byte *>(m_memory.back().data);
    }

    Result<void> poll()
    {
        for (Communicator *each : all()) {
            NcclStatus state = kNcclSuccess;
            const NcclStatus asked = m_nccl->asyncError(each->comm, state);
            if (const NcclStatus status = asked == kNcclSuccess ? state : asked;
                status != kNcclSuccess && status != kNcclInProgress) {
                m_aborted = true;
                return failed(*each, "asynchronously", status);
            }
        }
        return {};
    }

    std::string log() const
    {
        const std::string warnings = m_options.log ? m_options.log() : std::string{};
        return warnings.empty() ? std::string{} : "; NCCL warns: " + warnings;
    }

    void abort() { m_aborted = true; }
    bool isAborted() const { return m_aborted; }

    /// On the thread that issues.
    void abortAll()
    {
        for (Communicator *each : all())
            abort(*each);
    }

private:
    struct Communicator {
        NcclComm comm = nullptr; ///< Null where there is none: outside of the group, or alone in it.
        std::int32_t rank = -1; ///< Of this device; -1 outside.
        std::int32_t ranks = 0;
        std::string name{};
        std::string last{}; ///< What was issued last.
    };

    /// A block that NCCL has given, and what it is known as to communicators.
    struct OwnMemory {
        void *data = nullptr;
        std::vector<std::pair<Communicator *, void *>> handles{};
    };

    /// Those that there are; the world's last: it is the others' parent.
    std::vector<Communicator *> all()
    {
        std::vector<Communicator *> all;
        for (Communicator &group : m_groups)
            if (group.comm != nullptr)
                all.push_back(&group);
        for (auto &[queue, own] : m_ofQueue)
            if (own.comm != nullptr)
                all.push_back(&own);
        if (m_world.comm != nullptr)
            all.push_back(&m_world);
        return all;
    }

    void abort(Communicator &each)
    {
        if (const NcclComm comm = std::exchange(each.comm, nullptr); comm != nullptr)
            (void)m_nccl->abort(comm); // whatever it says, there is no more to do
    }

    /// All is done everywhere: gives the communicators back.
    Result<void> end()
    {
        for (OwnMemory &memory : m_memory)
            for (const auto &[of, handle] : std::exchange(memory.handles, {}))
                TRY_VOID(through(
                    *of, "ncclCommDeregister", m_nccl->deregister(of->comm, handle), m_options.deadline));
        for (Communicator *each : all())
            TRY_VOID(through(*each, "ncclCommFinalize", m_nccl->finalize(each->comm), m_options.deadline));
        for (Communicator *each : all())
            (void)m_nccl->destroy(std::exchange(each->comm, nullptr));
        return {};
    }

    /// Waits for a call that goes on beside this thread.
    Result<void> through(const Communicator &of, const std::string &function, NcclStatus status,
        std::chrono::milliseconds deadline)
    {
        const auto begun = Clock::now();
        while (status == kNcclInProgress) {
            if (m_aborted)
                return cancelled("the run was stopped");
            if (Clock::now() - begun > deadline) {
                m_aborted = true;
                return Error{ErrorCode::Internal,
                    function + " (" + textOf(of) + ") was still not done after "
                        + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(deadline).count())
                        + " s" + log(),
                    "look whether another rank has failed, and at dmesg (\"Xid\") and nvidia-smi", {}};
            }
            std::this_thread::sleep_for(std::chrono::microseconds{20});
            if (of.comm == nullptr)
                continue;
            NcclStatus state = kNcclSuccess;
            const NcclStatus asked = m_nccl->asyncError(of.comm, state);
            status = asked == kNcclSuccess ? state : asked;
        }
        if (status == kNcclSuccess)
            return {};
        m_aborted = true;
        return failed(of, function, status);
    }

    std::string textOf(const Communicator &of) const
    {
        return of.name + (of.last.empty() ? std::string{} : ", " + of.last);
    }

    Error failed(const Communicator &of, const std::string &how, NcclStatus status) const
    {
        const std::string said = m_nccl->lastError(of.comm);
        return {ErrorCode::Internal,
            (how == "asynchronously" ? "NCCL failed asynchronously" : how + " failed") + " on device "
                + std::to_string(m_options.device.index) + " (" + textOf(of) + ") with "
                + std::to_string(status) + ": " + m_nccl->errorText(status)
                + (said.empty() ? std::string{} : ", " + said) + log(),
            "look whether another rank has failed; run again with NCCL_DEBUG=INFO for more", {}};
    }

    NcclFunctions *m_nccl;
    NcclWorldOptions m_options;
    Communicator m_world{};
    std::vector<Communicator> m_groups; ///< As the plan's; they stay where they are, for `split`.
    std::map<QueueKind, Communicator>
        m_ofQueue{}; ///< For messages of queues but the first, which has m_world.
    std::vector<OwnMemory> m_memory{};
    std::atomic<bool> m_aborted{false};
};

namespace {

class NcclCommunicator final : public CudaCommunicator
{
public:
    explicit NcclCommunicator(NcclWorld::Impl &world)
        : m_world(world)
    {
    }

    DeviceId device() const override { return m_world.device(); }
    std::byte *allocate(std::size_t bytes) override { return m_world.allocate(bytes); }
    void join(const CollectiveCall &call, CudaQueue &queue, Launched launched) override
    {
        m_world.join(call, queue, launched);
    }
    void send(const MessageCall &message, CudaQueue &queue, Launched launched) override
    {
        m_world.message(true, message, queue, launched);
    }
    void receive(const MessageCall &message, CudaQueue &queue, Launched launched) override
    {
        m_world.message(false, message, queue, launched);
    }
    /// NCCL's calls are captured as the streams are; from 2.18 on also with communicators that do not block.
    std::string whyNotCaptured() const override { return {}; }
    void captureFailed() override { } // nothing has begun
    bool waitsInStreams() const override { return m_world.hasOthers(); }
    Result<void> sumOverAll(float *number, CudaStream stream) override
    {
        return m_world.hasOthers() ? m_world.sumOverAll(number, stream) : Result<void>{};
    }
    std::int32_t processes() const override { return m_world.ranks(); }
    Result<void> poll() override { return m_world.poll(); }
    std::string log() const override { return m_world.log(); }
    /// Nothing waits to be launched; what waits in a stream ends so.
    void cancelWaiting() override { m_world.abortAll(); }
    void stepDone() override { }
    void abort() override { m_world.abort(); }
    bool isAborted() const override { return m_world.isAborted(); }

private:
    NcclWorld::Impl &m_world;
};

} // namespace

NcclWorld::NcclWorld(NcclFunctions *nccl, NcclWorldOptions options)
    : m_impl(std::make_unique<Impl>(nccl, std::move(options)))
{
}

NcclWorld::~NcclWorld() = default;

Result<void> NcclWorld::connect(const NcclId &id)
{
    return m_impl->connect(id);
}

std::unique_ptr<CudaCommunicator> NcclWorld::communicator()
{
    return std::make_unique<NcclCommunicator>(*m_impl);
}

void NcclWorld::abort()
{
    m_impl->abort();
}

} // namespace planloom
