#include "engine/cuda/backend/cuda_backend.h"

#include "engine/cuda/backend/cuda_products.h"
#include "engine/cuda/backend/cuda_step.h"
#include "engine/cuda/backend/step_events.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Clock = TaskListener::Clock;
constexpr int kHostsPatience = 8; ///< Times the deadline: its kernels are slow.

class CudaBackend final : public DeviceBackend, private StepMember
{
public:
    CudaBackend(
        CudaShared &shared, std::unique_ptr<CudaCommunicator> communicator, const CudaBackendOptions &options)
        : m_shared(shared)
        , m_cuda(shared.cuda)
        , m_communicator(std::move(communicator))
        , m_options(options)
        , m_products(shared.cuda)
        , m_events(shared.cuda)
        , m_vote(shared)
    {
    }

    ~CudaBackend() override
    {
        m_shared.pumps.erase(this);
        (void)m_cuda.setDevice(m_options.gpu);
        m_shared.graphs.leave(*this);
        for (Queue &queue : m_queues) {
            queue.chain.reset();
            queue.scratch.reset();
            if (queue.stream != nullptr)
                (void)m_cuda.destroyStream(queue.stream);
        }
        for (const auto &[memory, place] : m_arenas)
            (void)(place == MemoryPlace::Host ? m_cuda.releaseHost(memory) : m_cuda.release(memory));
    }

    Result<void> open()
    {
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        for (std::size_t at = 0; at < m_queues.size(); ++at) {
            // What others wait for goes first.
            const bool urgent = static_cast<QueueKind>(at) != QueueKind::Compute;
            CUDA_TRY(m_cuda, "cudaStreamCreate", m_cuda.createStream(&m_queues[at].stream, urgent));
            m_queues[at].scratch = std::make_unique<CudaScratch>(m_shared.device);
        }
        if (m_options.fuses)
            m_shared.kernels.open(m_options.gpu, m_options.kernelFolder);
        if (m_options.fuses && (m_shared.kernels.whyNot().empty() || m_cuda.whyNoProducts().empty()))
            for (Queue &queue : m_queues)
                queue.chain =
                    std::make_unique<CudaChain>(m_cuda, m_shared.kernels, m_shared.warning, queue.stream);
        TRY_VOID(m_events.make(0));
        m_shared.graphs.join(*this);
        m_shared.pumps.emplace(this, [this] {
            pump();
            return harvest();
        });
        return {};
    }

    Result<std::byte *> reserve(MemoryPlace place, std::size_t bytes) override
    {
        if (bytes == 0)
            return static_cast<std::byte *>(nullptr);
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        const bool host = place == MemoryPlace::Host;
        if (std::byte *const own = host ? nullptr : m_communicator->allocate(bytes))
            return own;
        void *memory = nullptr;
        const auto status = host ? m_cuda.allocateHost(&memory, bytes) : m_cuda.allocate(&memory, bytes);
        if (status != kCudaSuccess) {
            Error error = cudaError(m_cuda, status, host ? "cudaHostAlloc" : "cudaMalloc");
            error.message = std::string{host ? "the host of " : ""} + "device "
                + std::to_string(m_communicator->device().index) + " found no memory for "
                + std::to_string(bytes) + " bytes: " + error.message;
            return error;
        }
        m_arenas.emplace_back(memory, place);
        return static_cast<std::byte *>(memory);
    }
    std::int64_t alignment() const override { return 256; }
    bool asksWhatEnds() const override { return m_options.fuses; }

    void announce(const StepKind &kind) override
    {
        if (m_options.captures)
            m_kind = kind;
    }

    void begin(std::int32_t events, TaskListener &listener) override
    {
        assert(m_left == 0);
        m_running = std::exchange(m_kind, {});
        m_shared.graphs.begin();
        m_events.begin(modeOfStep(), m_running.timed);
        m_listener = &listener;
        m_left = events;
        m_step.begin(events);
        forgetChains();
        sayNotFused();
        m_broken.reset();
        note(prepare(events));
        note(m_shared.graphs.settle(m_running));
        m_lastEnd = Clock::now();
    }

    void issue(DeviceTask task) override
    {
        CudaTask &added = m_step.add(std::move(task), std::make_shared<CudaTaskState>(m_shared));
        if (mode() == StepMode::Replay) {
            const Captured &known = m_captured[StepGraphs::keyOf(m_running)][added.event()];
            added.state = known.state;
            added.share = known.share;
        }
        if (mode() == StepMode::Issue)
            pump();
    }

    void finish() override
    {
        (void)m_cuda.setDevice(m_options.gpu);
        if (mode() != StepMode::Issue)
            m_shared.graphs.start(m_running);
        m_lastEnd = Clock::now(); // capturing takes its time, as does what CUDA loads at the first launch
        auto pause = std::chrono::microseconds{5};
        while (m_left > 0) {
            if (m_communicator->isAborted()) {
                m_shared.graphs.abandon();
                m_communicator->cancelWaiting();
            }
            bool moved = false;
            for (const auto &[backend, goOn] : m_shared.pumps)
                moved = goOn() || moved;
            if (moved) {
                pause = std::chrono::microseconds{5};
                m_lastEnd = Clock::now();
                continue;
            }
            if (m_left == 0)
                break;
            note(m_communicator->poll());
            if (m_shared.hung)
                note(*m_shared.hung);
            checkDeadline();
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds{500});
        }
        m_communicator->stepDone();
        m_shared.graphs.ended(m_running);
        if (m_broken) // what hangs may still use what its task has
            for (auto &task : m_step.release())
                m_hung.push_back(std::move(task));
        else
            (void)m_step.release();
    }

private:
    /// Of a task that is part of a graph.
    struct Captured {
        std::shared_ptr<CudaTaskState> state{};
        CudaTask::Share share{};
    };
    struct Queue {
        CudaStream stream = nullptr;
        std::unique_ptr<CudaScratch> scratch{};
        std::unique_ptr<CudaChain> chain{}; ///< Null where kernels are not fused.
    };

    StepMode mode() const { return m_events.mode(); }

    StepMode modeOfStep()
    {
        if (m_running.number < 0)
            return StepMode::Issue;
        if (const std::string why = m_communicator->whyNotCaptured();
            !why.empty() && m_shared.graphs.modeOf(m_running) == StepMode::Capture)
            m_shared.graphs.refuse(why);
        if (const std::string &why = m_shared.graphs.whyNot();
            !why.empty() && !std::exchange(m_shared.saidNotCaptured, true) && m_shared.warning)
            m_shared.warning(
                "steps are not run as CUDA graphs, and each kernel is launched by itself: " + why);
        return m_shared.graphs.modeOf(m_running);
    }

    // Of StepGraphs:
    std::vector<CudaStream> streams() const override
    {
        std::vector<CudaStream> streams;
        for (const Queue &queue : m_queues)
            streams.push_back(queue.stream);
        return streams;
    }
    bool putMore() override { return pump(); }
    Result<void> allPut() const override
    {
        for (const auto &task : m_step.tasks())
            if (task && !task->outcome)
                return task->outcome;
        if (!m_step.allLaunched())
            return Error{ErrorCode::Internal, "a task waits for what no stream has", {}, {}};
        if (const std::string why = m_communicator->whyNotCaptured(); !why.empty())
            return Error{ErrorCode::NotSupported, why, {}, {}};
        return {};
    }
    void captured(bool made) override
    {
        if (made) {
            auto &states = m_captured[StepGraphs::keyOf(m_running)];
            for (const auto &task : m_step.tasks())
                states.push_back(task ? Captured{task->state, task->share} : Captured{});
            m_launchedAt = Clock::now();
            return;
        }
        m_communicator->captureFailed();
        m_events.issueAnew();
        m_step.restart([this] { return std::make_shared<CudaTaskState>(m_shared); });
        forgetChains();
    }
    Result<void> refresh() override
    {
        for (const auto &task : m_step.tasks()) {
            if (!task)
                continue;
            task->state->again();
            if (!task->task.varies || !task->task.work)
                continue;
            Queue &queue = m_queues[static_cast<std::size_t>(task->task.queue)];
            CudaQueue renewing(
                m_shared, m_products, *queue.scratch, queue.stream, *task->state, StepMode::Replay);
            TRY_VOID(task->task.work(renewing));
        }
        return {};
    }
    Result<bool> agree(bool mine) override
    {
        if (!m_communicator->waitsInStreams())
            return mine;
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        TRY_VOID(m_vote.cast(mine, *m_communicator, *m_queues[0].scratch, m_queues[0].stream));
        const auto begun = Clock::now();
        CudaStatus status = kCudaNotReady;
        while ((status = m_vote.query()) == kCudaNotReady) {
            TRY_VOID(m_communicator->poll());
            if (Clock::now() - begun > m_options.deadline)
                m_communicator->abort();
            if (m_communicator->isAborted()) {
                m_communicator->cancelWaiting();
                note(*(m_shared.hung = hung("other processes have not agreed on a graph for ",
                           Clock::now() - begun, m_communicator->log())));
                return *m_shared.hung;
            }
            std::this_thread::sleep_for(std::chrono::microseconds{20});
        }
        CUDA_TRY(m_cuda, "cudaEventQuery", status);
        return m_vote.isUnanimous(*m_communicator);
    }
    void replaying(const Result<void> &outcome) override
    {
        m_launchedAt = Clock::now();
        for (const auto &task : m_step.tasks()) {
            task->outcome = outcome;
            task->recorded = static_cast<bool>(outcome);
            task->cancelled = m_launchedAt;
            task->stage = CudaTask::Stage::Launched;
        }
        m_step.launchAll();
    }

    /// Events for a step, and the anchor of its times.
    Result<void> prepare(std::int32_t events)
    {
        if (m_shared.hung)
            return *m_shared.hung;
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        TRY_VOID(m_events.make(static_cast<std::size_t>(events)));
        const auto begun = Clock::now();
        TRY(const bool isAnchored, m_events.anchor(m_queues[0].stream, m_options.deadline));
        if (!isAnchored)
            return *(
                m_shared.hung = hung("nothing, between two steps, has ended for ", Clock::now() - begun));
        return {};
    }

    /// An error after which the GPU takes no more work: what is left ends with it.
    void note(Result<void> outcome)
    {
        if (!outcome && !m_broken)
            m_broken = std::move(outcome).error();
    }

    /// Puts into the streams what may be put there. @return true if something was
    bool pump()
    {
        bool any = false;
        do {
            any = pumpQueues() || any;
        } while (m_step.takeNext());
        return any;
    }

    bool pumpQueues()
    {
        bool any = false;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t at = 0; at < m_queues.size(); ++at) {
                while (m_step.mayLaunch(at)) {
                    launch(at);
                    any = moved = true;
                }
                if (m_step.endsWaiting(at)) {
                    sendWaiting(at);
                    any = moved = true;
                }
            }
        }
        return any;
    }

    void forgetChains()
    {
        for (const Queue &queue : m_queues)
            if (queue.chain)
                queue.chain->forget();
    }

    void sayNotFused()
    {
        if (m_options.fuses && !m_shared.kernels.whyNot().empty() && m_shared.warning
            && !std::exchange(m_shared.saidNotFused, true))
            m_shared.warning("element-wise operators run one after another, and not several as one kernel: "
                + m_shared.kernels.whyNot());
    }

    void launch(std::size_t at)
    {
        Queue &queue = m_queues[at];
        CudaTask &task = m_step.next(at);
        if (m_step.hasWaiting(at) && (m_broken || !m_step.mayJoin(at)))
            sendWaiting(at);
        task.queue = std::make_unique<CudaQueue>(m_shared, m_products, *queue.scratch, queue.stream,
            *task.state, mode(), task.communicates() ? nullptr : queue.chain.get());
        if (m_broken)
            return launched(at, task, *m_broken);
        auto begun = beginTask(at, task);
        if (begun && queue.chain && !queue.chain->isEmpty()) {
            for (const std::span<const std::byte> &memory : task.task.ends)
                queue.chain->ends(memory);
            return m_step.wait(at, queue.chain->bytes());
        }
        if (queue.chain && !queue.chain->isEmpty())
            sendWaiting(at); // with what the task has put there before it failed
        if (!begun)
            return launched(at, task, std::move(begun));
        if (!task.communicates())
            return launched(at, task, {});
        const auto &communication = task.task.communication;
        task.stage = CudaTask::Stage::Meeting;
        auto told = [this, at, &task](Result<void> outcome) { launched(at, task, std::move(outcome)); };
        if (const auto *const call = std::get_if<CollectiveCall>(&communication))
            m_communicator->join(*call, *task.queue, std::move(told));
        else if (const auto *const send = std::get_if<SendCall>(&communication))
            m_communicator->send(send->message, *task.queue, std::move(told));
        else
            m_communicator->receive(
                std::get<ReceiveCall>(communication).message, *task.queue, std::move(told));
    }

    Result<void> beginTask(std::size_t at, CudaTask &task)
    {
        Queue &queue = m_queues[at];
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        for (const EventId event : task.task.waits)
            CUDA_TRY(m_cuda, "cudaStreamWaitEvent",
                m_events.wait(queue.stream, m_step.task(static_cast<std::size_t>(event))));
        // Where others wait, the task starts with them, unless it turns out not to join them.
        const bool starts = !m_step.hasWaiting(at);
        if (starts)
            TRY_VOID(m_events.recordStart(task, queue.stream));
        if (queue.chain)
            queue.chain->begin(starts ? std::function<Result<void>()>{} : [this, at, &task] {
                sendWaiting(at);
                return m_events.recordStart(task, m_queues[at].stream);
            });
        if (!task.task.work)
            return {};
        try {
            TRY_VOID(task.task.work(*task.queue));
        } catch (const std::bad_alloc &) {
            return Error{
                ErrorCode::ResourceLimit, "memory is exhausted", "use a smaller batch or recomputation", {}};
        } catch (const std::exception &failure) { // of libraries behind the kernels
            return Error{ErrorCode::Internal, failure.what(), {}, {}};
        }
        return task.queue->outcome();
    }

    /// Puts the kernels that wait into the stream, and the end of all their tasks.
    void sendWaiting(std::size_t at)
    {
        Queue &queue = m_queues[at];
        const std::vector<CudaTask *> tasks = m_step.takeWaiting(at);
        (void)m_cuda.setDevice(m_options.gpu);
        Result<void> outcome;
        if (tasks.size() > 1 && !m_broken)
            outcome = m_events.recordStart(*tasks[1], queue.stream);
        if (m_broken)
            queue.chain->forget();
        else if (outcome)
            outcome = queue.chain->launch();
        if (!tasks.empty())
            launched(at, tasks, std::move(outcome));
    }

    void launched(std::size_t at, CudaTask &task, Result<void> outcome)
    {
        launched(at, std::vector<CudaTask *>{&task}, std::move(outcome));
    }
    /// Tasks, several where their kernels are one, are in their stream with all that they do, or end without.
    void launched(std::size_t at, const std::vector<CudaTask *> &tasks, Result<void> outcome)
    {
        Queue &queue = m_queues[at];
        (void)m_cuda.setDevice(m_options.gpu);
        const CudaTask &last = *tasks.back();
        const CudaStatus status = m_broken ? kCudaNotReady : m_events.recordEnd(last, queue.stream);
        for (CudaTask *const task : tasks) {
            task->recorded = status == kCudaSuccess;
            Result<void> own = outcome;
            if (own)
                own = task->queue->outcome();
            // Without what others should have sent, what comes later makes nothing but errors of its own.
            else if (own.error().code != ErrorCode::Cancelled && m_communicator->isAborted())
                note(own.error());
            if (m_broken && (own || own.error().code == ErrorCode::Cancelled)) // it is why
                own = *m_broken;
            else if (own && !task->recorded)
                own = cudaError(m_cuda, status, "cudaEventRecord");
            task->outcome = std::move(own);
            task->cancelled = Clock::now();
            m_shared.tasksOnHost += mode() == StepMode::Issue && task->state->isOnHost() ? 1 : 0;
        }
        m_step.launched(at, tasks);
    }

    /// Tells of tasks that have ended since. @return true if there were some
    bool harvest()
    {
        bool any = false;
        if (m_broken) // what others wait for is what has failed, so its error comes first
            for (std::size_t at = 0; at < m_queues.size(); ++at)
                if (communicatesNow(at) && hasEnded(*m_step.running(at))) {
                    m_step.ended(at);
                    any = true;
                }
        for (std::size_t at = 0; at < m_queues.size(); ++at)
            for (CudaTask *task = m_step.running(at); task != nullptr && hasEnded(*task);
                 task = m_step.running(at)) {
                m_step.ended(at);
                any = true;
            }
        return any;
    }

    bool hasEnded(CudaTask &task)
    {
        Clock::time_point start = task.cancelled;
        Clock::time_point end = task.cancelled;
        if (task.recorded && !m_broken) {
            const CudaStatus status =
                mode() == StepMode::Issue ? m_events.query(task) : m_shared.graphs.query();
            if (status == kCudaNotReady)
                return false;
            if (status != kCudaSuccess)
                note(cudaError(m_cuda, status, "cudaEventQuery"));
            else if (task.outcome)
                timesOf(task, start, end);
        }
        Result<void> outcome = task.outcome;
        if (outcome && m_broken)
            outcome = *m_broken;
        if (outcome)
            outcome = task.state->outcome();
        task.stage = CudaTask::Stage::Ended;
        m_shared.tasksOnHost -= task.state->isOnHost() ? 1 : 0; // a graph has none
        --m_left;
        m_listener->finished(task.task.event, outcome, start, end);
        return true;
    }

    void timesOf(const CudaTask &task, Clock::time_point &start, Clock::time_point &end)
    {
        if (m_events.recordsTimes())
            return m_events.timesOf(task, start, end);
        start = m_launchedAt;
        end = Clock::now();
    }

    /// Gives up a step in which nothing goes on: later where the host computes for it.
    void checkDeadline()
    {
        const auto passed = Clock::now() - m_lastEnd;
        if (m_broken || passed < m_options.deadline)
            return;
        const std::string communication = whatCommunicates();
        if (communication.empty() && m_shared.tasksOnHost > 0 && passed < kHostsPatience * m_options.deadline)
            return;
        m_communicator->abort();
        m_shared.hung = hung(communication.empty()
                ? "no kernel has ended for "
                : "neither " + communication + " nor anything beside it has ended for ",
            passed, m_communicator->log());
        note(*m_shared.hung);
    }

    /// What may be waiting for other devices; empty: nothing.
    std::string whatCommunicates() const
    {
        std::string all;
        if (mode() == StepMode::Issue) {
            for (std::size_t at = 0; at < m_queues.size(); ++at)
                if (communicatesNow(at))
                    all += (all.empty() ? "" : " and ") + textOf(m_step.running(at)->task.communication);
            return all;
        }
        if (!m_communicator->waitsInStreams())
            return all;
        // Nobody is told what within a graph has ended.
        std::size_t count = 0;
        for (const auto &task : m_step.tasks())
            if (task && task->communicates() && count++ == 0)
                all = textOf(task->task.communication);
        return count == 0
            ? all
            : "the step's graph, in which device " + std::to_string(m_communicator->device().index)
                + " communicates " + std::to_string(count) + " times, first by " + all + ",";
    }

    /// The queue's first task that has not ended communicates.
    bool communicatesNow(std::size_t at) const
    {
        const CudaTask *const running = m_step.running(at);
        return mode() == StepMode::Issue && running != nullptr && running->communicates();
    }

    static Error hung(const std::string &what, Clock::duration passed, const std::string &log = {})
    {
        return Error{ErrorCode::Internal,
            what + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(passed).count()) + " s"
                + log,
            "look whether another device has failed, and at dmesg (\"Xid\") and nvidia-smi", {}};
    }

    CudaShared &m_shared;
    CudaFunctions &m_cuda;
    std::unique_ptr<CudaCommunicator> m_communicator;
    CudaBackendOptions m_options;
    CudaProducts m_products;
    std::vector<std::pair<void *, MemoryPlace>> m_arenas{};
    std::array<Queue, kQueueCount> m_queues{};
    StepEvents m_events;
    CudaVote m_vote;
    StepKind m_kind{}; ///< Of the step that begins next.
    std::map<StepGraphs::Key, std::vector<Captured>> m_captured{}; ///< By event.

    // Of the step that runs.
    TaskListener *m_listener = nullptr;
    StepKind m_running{};
    Clock::time_point m_launchedAt{}; ///< Of a graph.
    CudaStep m_step{};
    std::vector<std::unique_ptr<CudaTask>> m_hung{};
    std::int32_t m_left = 0;
    std::optional<Error> m_broken{};
    Clock::time_point m_lastEnd{};
};
} // namespace

Result<std::unique_ptr<DeviceBackend>> cudaBackend(
    CudaShared &shared, std::unique_ptr<CudaCommunicator> communicator, const CudaBackendOptions &options)
{
    auto made = std::make_unique<CudaBackend>(shared, std::move(communicator), options);
    TRY_VOID(made->open());
    return std::unique_ptr<DeviceBackend>{std::move(made)};
}

} // namespace planloom
