#include "engine/cuda/cuda_backend.h"

#include "engine/cuda/cuda_products.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Clock = TaskListener::Clock;
constexpr int kKernelsPatience = 8; ///< Times the deadline.

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
        for (const std::vector<CudaEvent> &events : {m_events, m_times})
            for (const CudaEvent event : events)
                (void)m_cuda.destroyEvent(event);
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
        TRY(m_anchor, newEvent(m_events));
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
        const CudaStatus status =
            host ? m_cuda.allocateHost(&memory, bytes) : m_cuda.allocate(&memory, bytes);
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
        m_mode = modeOfStep();
        m_listener = &listener;
        m_left = events;
        m_toIssue = events;
        m_tasks.clear();
        m_tasks.resize(static_cast<std::size_t>(events));
        for (Queue &queue : m_queues) {
            queue.order.clear();
            queue.launched = queue.ended = 0;
            dropWaiting(queue);
        }
        sayNotFused();
        m_broken.reset();
        note(prepare(events));
        m_lastEnd = Clock::now();
    }

    void issue(DeviceTask task) override
    {
        Queue &queue = m_queues[static_cast<std::size_t>(task.queue)];
        const auto event = static_cast<std::size_t>(task.event);
        queue.order.push_back(event);
        --m_toIssue;
        m_tasks[event] = std::make_unique<Task>(std::move(task), std::make_shared<CudaTaskState>(m_shared));
        if (m_mode == StepMode::Replay) {
            const Captured &known = m_captured[StepGraphs::keyOf(m_running)][event];
            m_tasks[event]->state = known.state;
            m_tasks[event]->share = known.share;
        }
        for (const EventId wait : m_tasks[event]->task.waits)
            if (const auto &awaited = m_tasks[static_cast<std::size_t>(wait)])
                awaited->firstWaiter = std::min(awaited->firstWaiter, m_tasks[event]->task.event);
        if (m_mode == StepMode::Issue)
            pump();
    }

    void finish() override
    {
        (void)m_cuda.setDevice(m_options.gpu);
        if (m_mode != StepMode::Issue) {
            m_shared.graphs.start(m_running);
            m_lastEnd = Clock::now(); // capturing takes its time
        }
        auto pause = std::chrono::microseconds{5};
        while (m_left > 0) {
            if (m_communicator->isAborted())
                m_communicator->cancelWaiting();
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
            checkDeadline();
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds{500});
        }
        m_communicator->stepDone();
        m_shared.graphs.ended(m_running);
        if (m_broken) // what hangs may still use what its task has
            std::move(m_tasks.begin(), m_tasks.end(), std::back_inserter(m_hung));
        m_tasks.clear();
    }

private:
    enum class Stage {
        Held, ///< What it waits for is not in its stream yet.
        Waiting, ///< Its kernels wait to become one with those of the next tasks.
        Meeting, ///< Its communication waits for other devices of this process.
        Launched,
        Ended,
    };

    /// What a task has of a chain's one kernel: it starts with an event, ends with one, and the task's time
    /// is a share of that.
    struct Share {
        EventId start = -1; ///< At whose start the kernel begins; -1: the task has no others beside it.
        EventId last = -1; ///< With whose end it does.
        double from = 0; ///< Of what the kernel moves.
        double to = 1;
        bool isFirst = false; ///< It may have begun before the kernel.
    };

    static constexpr EventId kNobody = std::numeric_limits<EventId>::max();
    struct Task {
        Task(DeviceTask given, std::shared_ptr<CudaTaskState> itsState)
            : task(std::move(given))
            , state(std::move(itsState))
        {
        }
        DeviceTask task;
        std::shared_ptr<CudaTaskState> state; ///< Of a graph's task, the same in all runs.
        std::unique_ptr<CudaQueue> queue{};
        Result<void> outcome{};
        Clock::time_point cancelled{}; ///< Where it has no times of its own.
        Share share{};
        EventId firstWaiter = kNobody; ///< Of other queues.
        Stage stage = Stage::Held;
        bool recorded = false;
    };
    /// Of a task that is part of a graph.
    struct Captured {
        std::shared_ptr<CudaTaskState> state{};
        Share share{};
    };
    struct Queue {
        CudaStream stream = nullptr;
        std::unique_ptr<CudaScratch> scratch{};
        std::unique_ptr<CudaChain> chain{}; ///< Null where kernels are not fused.
        /// Tasks with kernels in it, or with none, and the bytes that are moved up to the end of each.
        std::vector<std::pair<std::size_t, std::int64_t>> waiting{};
        std::vector<std::size_t> order{}; ///< Its tasks.
        std::size_t launched = 0; ///< So many are in the stream.
        std::size_t ended = 0;
    };

    Result<CudaEvent> newEvent(std::vector<CudaEvent> &among)
    {
        CudaEvent event = nullptr;
        CUDA_TRY(m_cuda, "cudaEventCreate", m_cuda.createEvent(&event));
        among.push_back(event);
        return event;
    }
    // The anchor is first. What orders the tasks of a graph tells no times: others do.
    CudaEvent startOf(std::size_t event) const
    {
        return m_mode == StepMode::Issue ? m_events[1 + 2 * event] : m_times[2 * event];
    }
    /// Of its kernel, where that is one of several tasks.
    std::size_t lastOf(std::size_t event) const
    {
        const EventId last = m_tasks[event]->share.last;
        return last < 0 ? event : static_cast<std::size_t>(last);
    }
    CudaEvent endOf(std::size_t event) const { return m_events[2 + 2 * lastOf(event)]; }
    CudaEvent timeOfEnd(std::size_t event) const
    {
        return m_mode == StepMode::Issue ? endOf(event) : m_times[1 + 2 * lastOf(event)];
    }
    bool recordsTimes() const { return m_mode == StepMode::Issue || m_running.timed; }

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
        for (const auto &task : m_tasks)
            if (task && !task->outcome)
                return task->outcome;
        for (const Queue &queue : m_queues)
            if (queue.launched < queue.order.size())
                return Error{ErrorCode::Internal, "a task waits for what no stream has", {}, {}};
        if (const std::string why = m_communicator->whyNotCaptured(); !why.empty())
            return Error{ErrorCode::NotSupported, why, {}, {}};
        return {};
    }
    void captured(bool made) override
    {
        if (made) {
            auto &states = m_captured[StepGraphs::keyOf(m_running)];
            for (const auto &task : m_tasks)
                states.push_back(task ? Captured{task->state, task->share} : Captured{});
            m_launchedAt = Clock::now();
            return;
        }
        m_communicator->captureFailed();
        m_mode = StepMode::Issue;
        for (const auto &task : m_tasks)
            if (task) {
                task->state = std::make_shared<CudaTaskState>(m_shared);
                task->queue.reset();
                task->share = {};
                task->outcome = {};
                task->stage = Stage::Held;
                task->recorded = false;
            }
        for (Queue &queue : m_queues) {
            queue.launched = 0;
            dropWaiting(queue);
        }
    }
    Result<void> refresh() override
    {
        for (const auto &task : m_tasks) {
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
    void replaying(const Result<void> &outcome) override
    {
        m_launchedAt = Clock::now();
        for (const auto &task : m_tasks) {
            task->outcome = outcome;
            task->recorded = static_cast<bool>(outcome);
            task->cancelled = m_launchedAt;
            task->stage = Stage::Launched;
        }
        for (Queue &queue : m_queues)
            queue.launched = queue.order.size();
    }

    /// Events for a step, and the anchor of its times.
    Result<void> prepare(std::int32_t events)
    {
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        while (m_events.size() < 1 + 2 * static_cast<std::size_t>(events))
            TRY_VOID(newEvent(m_events));
        while (m_mode != StepMode::Issue && m_times.size() < 2 * static_cast<std::size_t>(events))
            TRY_VOID(newEvent(m_times));
        CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(m_anchor, m_queues[0].stream));
        CudaStatus status = kCudaNotReady;
        const auto begun = Clock::now();
        while ((status = m_cuda.query(m_anchor)) == kCudaNotReady)
            if (Clock::now() - begun > m_options.deadline)
                return hung("nothing, between two steps, has ended for ", Clock::now() - begun);
        m_anchored = Clock::now();
        CUDA_TRY(m_cuda, "cudaEventQuery", status);
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
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t at = 0; at < m_queues.size(); ++at) {
                while (mayLaunch(at)) {
                    launch(at);
                    any = moved = true;
                }
                if (endsChain(at)) {
                    sendWaiting(at);
                    any = moved = true;
                }
            }
        }
        return any;
    }

    bool mayLaunch(std::size_t at) const
    {
        const Queue &queue = m_queues[at];
        if (nextOf(queue) >= queue.order.size())
            return false;
        const Task &next = *m_tasks[queue.order[nextOf(queue)]];
        return next.stage == Stage::Held
            && std::all_of(next.task.waits.begin(), next.task.waits.end(), [this](EventId event) {
                   const auto &task = m_tasks[static_cast<std::size_t>(event)];
                   return task && (task->stage == Stage::Launched || task->stage == Stage::Ended);
               });
    }

    static std::size_t nextOf(const Queue &queue) { return queue.launched + queue.waiting.size(); }

    /// The next task of a queue joins those that wait. What waits for another queue does not: what is before
    /// it would wait, too. Nor does what comes behind a task of another queue that waits for them: that is
    /// launched when it comes, since devices communicate in the order of the plan. So it does not matter to
    /// what becomes one when tasks are issued.
    bool joins(const Queue &queue, const Task &next) const
    {
        return next.task.waits.empty() && std::holds_alternative<std::monostate>(next.task.communication)
            && next.task.event < firstWaiterFor(queue) && !m_broken;
    }
    EventId firstWaiterFor(const Queue &queue) const
    {
        EventId first = kNobody;
        for (const auto &[event, bytes] : queue.waiting)
            first = std::min(first, m_tasks[event]->firstWaiter);
        return first;
    }

    /// Nothing comes that might join the tasks that wait.
    bool endsChain(std::size_t at) const
    {
        const Queue &queue = m_queues[at];
        if (queue.waiting.empty())
            return false;
        return nextOf(queue) < queue.order.size() ? !mayLaunch(at)
                                                  : m_toIssue == 0 || firstWaiterFor(queue) != kNobody;
    }

    void dropWaiting(Queue &queue)
    {
        queue.waiting.clear();
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
        Task &task = *m_tasks[queue.order[nextOf(queue)]];
        if (!queue.waiting.empty() && !joins(queue, task))
            sendWaiting(at);
        const bool communicates = !std::holds_alternative<std::monostate>(task.task.communication);
        task.queue = std::make_unique<CudaQueue>(m_shared, m_products, *queue.scratch, queue.stream,
            *task.state, m_mode, communicates ? nullptr : queue.chain.get());
        if (m_broken)
            return launched(at, task, *m_broken);
        auto begun = beginTask(at, task);
        if (begun && queue.chain && !queue.chain->isEmpty()) {
            for (const std::span<const std::byte> &memory : task.task.ends)
                queue.chain->ends(memory);
            queue.waiting.emplace_back(static_cast<std::size_t>(task.task.event), queue.chain->bytes());
            task.stage = Stage::Waiting;
            return;
        }
        if (queue.chain && !queue.chain->isEmpty())
            sendWaiting(at); // with what the task has put there before it failed
        if (!begun)
            return launched(at, task, std::move(begun));
        const auto &communication = task.task.communication;
        if (std::holds_alternative<std::monostate>(communication))
            return launched(at, task, {});
        task.stage = Stage::Meeting;
        auto told = [this, at, &task](Result<void> outcome) { launched(at, task, std::move(outcome)); };
        if (const auto *const call = std::get_if<CollectiveCall>(&communication))
            m_communicator->join(*call, *task.queue, std::move(told));
        else if (const auto *const send = std::get_if<SendCall>(&communication))
            m_communicator->send(send->message, *task.queue, std::move(told));
        else
            m_communicator->receive(
                std::get<ReceiveCall>(communication).message, *task.queue, std::move(told));
    }

    Result<void> beginTask(std::size_t at, Task &task)
    {
        Queue &queue = m_queues[at];
        CUDA_TRY(m_cuda, "cudaSetDevice", m_cuda.setDevice(m_options.gpu));
        for (const EventId event : task.task.waits)
            CUDA_TRY(m_cuda, "cudaStreamWaitEvent",
                m_cuda.wait(queue.stream, endOf(static_cast<std::size_t>(event))));
        // Where others wait, the task starts with them, unless it turns out not to join them.
        if (queue.waiting.empty())
            TRY_VOID(recordStart(queue, task));
        if (queue.chain)
            queue.chain->begin(queue.waiting.empty() ? std::function<Result<void>()>{} : [this, at, &task] {
                sendWaiting(at);
                return recordStart(m_queues[at], task);
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

    Result<void> recordStart(const Queue &queue, const Task &task)
    {
        if (recordsTimes())
            CUDA_TRY(m_cuda, "cudaEventRecord",
                m_cuda.recordTime(startOf(static_cast<std::size_t>(task.task.event)), queue.stream));
        return {};
    }

    /// Puts the kernels that wait into the stream, and the end of all their tasks.
    void sendWaiting(std::size_t at)
    {
        Queue &queue = m_queues[at];
        const auto waiting = std::exchange(queue.waiting, {});
        (void)m_cuda.setDevice(m_options.gpu);
        Result<void> outcome;
        if (waiting.size() > 1) {
            const auto start = static_cast<EventId>(waiting[1].first);
            const auto last = static_cast<EventId>(waiting.back().first);
            const double all = std::max(static_cast<double>(waiting.back().second), 1.0);
            for (std::size_t i = 0; i < waiting.size(); ++i)
                m_tasks[waiting[i].first]->share = {start, last,
                    i == 0 ? 0 : static_cast<double>(waiting[i - 1].second) / all,
                    static_cast<double>(waiting[i].second) / all, i == 0};
            if (!m_broken)
                outcome = recordStart(queue, *m_tasks[waiting[1].first]);
        }
        if (m_broken)
            queue.chain->forget();
        else if (outcome)
            outcome = queue.chain->launch();
        if (waiting.empty())
            return;
        std::vector<Task *> tasks;
        for (const auto &[event, bytes] : waiting)
            tasks.push_back(m_tasks[event].get());
        launched(at, tasks, std::move(outcome));
    }

    /// A task is in its stream with all that it does, or ends without.
    void launched(std::size_t at, Task &task, Result<void> outcome)
    {
        launched(at, std::vector<Task *>{&task}, std::move(outcome));
    }
    /// Several whose kernels are one.
    void launched(std::size_t at, const std::vector<Task *> &tasks, Result<void> outcome)
    {
        Queue &queue = m_queues[at];
        (void)m_cuda.setDevice(m_options.gpu);
        const auto event = static_cast<std::size_t>(tasks.back()->task.event);
        CudaStatus status = m_broken ? kCudaNotReady : m_cuda.record(endOf(event), queue.stream);
        if (status == kCudaSuccess && m_mode == StepMode::Capture && m_running.timed)
            status = m_cuda.recordTime(timeOfEnd(event), queue.stream);
        for (Task *const task : tasks) {
            task->recorded = status == kCudaSuccess;
            Result<void> own = outcome;
            if (own)
                own = task->queue->outcome();
            // Without what others should have sent, what comes later makes nothing but errors of its own.
            else if (own.error().code != ErrorCode::Cancelled && m_communicator->isAborted())
                note(own.error());
            if (own && m_broken)
                own = *m_broken;
            else if (own && !task->recorded)
                own = cudaError(m_cuda, status, "cudaEventRecord");
            task->outcome = std::move(own);
            task->cancelled = Clock::now();
            task->stage = Stage::Launched;
            ++queue.launched;
        }
    }

    /// Tells of tasks that have ended since. @return true if there were some
    bool harvest()
    {
        bool any = false;
        if (m_broken) // what others wait for is what has failed, so its error comes first
            for (Queue &queue : m_queues)
                if (communicatesNow(queue) && hasEnded(*m_tasks[queue.order[queue.ended]])) {
                    ++queue.ended;
                    any = true;
                }
        for (Queue &queue : m_queues)
            while (queue.ended < queue.launched && hasEnded(*m_tasks[queue.order[queue.ended]])) {
                ++queue.ended;
                any = true;
            }
        return any;
    }

    bool hasEnded(Task &task)
    {
        const auto event = static_cast<std::size_t>(task.task.event);
        Clock::time_point start = task.cancelled;
        Clock::time_point end = task.cancelled;
        if (task.recorded && !m_broken) {
            const CudaStatus status =
                m_mode == StepMode::Issue ? m_cuda.query(endOf(event)) : m_shared.graphs.query();
            if (status == kCudaNotReady)
                return false;
            if (status != kCudaSuccess)
                note(cudaError(m_cuda, status, "cudaEventQuery"));
            else if (task.outcome)
                timesOf(event, start, end);
        }
        Result<void> outcome = task.outcome;
        if (outcome && m_broken)
            outcome = *m_broken;
        if (outcome)
            outcome = task.state->outcome();
        task.stage = Stage::Ended;
        --m_left;
        m_listener->finished(task.task.event, outcome, start, end);
        return true;
    }

    void timesOf(std::size_t event, Clock::time_point &start, Clock::time_point &end)
    {
        if (!recordsTimes()) {
            start = m_launchedAt;
            end = Clock::now();
            return;
        }
        const Share &share = m_tasks[event]->share;
        float from = 0;
        float to = 0;
        if (m_cuda.milliseconds(
                from, m_anchor, startOf(share.start < 0 ? event : static_cast<std::size_t>(share.start)))
                != kCudaSuccess
            || m_cuda.milliseconds(to, m_anchor, timeOfEnd(event)) != kCudaSuccess)
            return;
        const auto since = [this](double milliseconds) {
            return m_anchored + std::chrono::nanoseconds{std::llround(milliseconds * 1e6)};
        };
        // Of a kernel that several tasks have, each has its share, in their order.
        const double begun = static_cast<double>(from);
        const double passed = static_cast<double>(std::max(to - from, 0.0F));
        start = since(begun + share.from * passed);
        end = since(begun + share.to * passed);
        if (share.isFirst && m_cuda.milliseconds(from, m_anchor, startOf(event)) == kCudaSuccess)
            start = std::min(start, since(static_cast<double>(from)));
    }

    /// Gives up a step in which nothing goes on: what waits for others soon, kernels (which may be the
    /// host's) late.
    void checkDeadline()
    {
        const auto passed = Clock::now() - m_lastEnd;
        if (m_broken || passed < m_options.deadline)
            return;
        std::string communication;
        for (const Queue &queue : m_queues)
            if (communicatesNow(queue))
                communication += (communication.empty() ? "" : " and ")
                    + textOf(m_tasks[queue.order[queue.ended]]->task.communication);
        if (communication.empty() && passed < kKernelsPatience * m_options.deadline)
            return;
        m_communicator->abort();
        note(hung(communication.empty()
                ? "no kernel has ended for "
                : "neither " + communication + " nor anything beside it has ended for ",
            passed, m_communicator->log()));
    }

    /// The queue's first task that has not ended communicates.
    bool communicatesNow(const Queue &queue) const
    {
        return m_mode == StepMode::Issue && queue.ended < queue.launched
            && !std::holds_alternative<std::monostate>(m_tasks[queue.order[queue.ended]]->task.communication);
    }

    static std::string textOf(const decltype(DeviceTask::communication) &communication)
    {
        if (const auto *const call = std::get_if<CollectiveCall>(&communication))
            return std::string{nameOf(call->kind)} + " number " + std::to_string(call->sequence + 1)
                + " of group " + std::to_string(call->group);
        if (const auto *const send = std::get_if<SendCall>(&communication))
            return "the send to device " + std::to_string(send->message.key.peer.index);
        return "the receive from device "
            + std::to_string(std::get<ReceiveCall>(communication).message.key.peer.index);
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
    std::vector<CudaEvent> m_events{}; ///< The anchor, then start and end of each event of the longest step.
    CudaEvent m_anchor = nullptr;
    Clock::time_point m_anchored{}; ///< When the anchor was.

    std::vector<CudaEvent> m_times{}; ///< Start and end of each event of the longest step that is a graph.
    StepKind m_kind{}; ///< Of the step that begins next.
    std::map<StepGraphs::Key, std::vector<Captured>> m_captured{}; ///< By event.

    // Of the step that runs.
    TaskListener *m_listener = nullptr;
    StepKind m_running{};
    StepMode m_mode = StepMode::Issue;
    Clock::time_point m_launchedAt{}; ///< Of a graph.
    std::vector<std::unique_ptr<Task>> m_tasks{}; ///< By event.
    std::vector<std::unique_ptr<Task>> m_hung{};
    std::int32_t m_left = 0;
    std::int32_t m_toIssue = 0;
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
