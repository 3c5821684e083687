#pragma once

#include "engine/cuda/backend/cuda_queue.h"
#include "engine/runtime/devices/device_backend.h"

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// One task of a step, and how far it is.
struct CudaTask {
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

    CudaTask(DeviceTask given, std::shared_ptr<CudaTaskState> itsState)
        : task(std::move(given))
        , state(std::move(itsState))
    {
    }
    std::size_t event() const { return static_cast<std::size_t>(task.event); }
    bool communicates() const { return !std::holds_alternative<std::monostate>(task.communication); }
    /// Of its kernel, where that is one of several tasks.
    std::size_t last() const { return share.last < 0 ? event() : static_cast<std::size_t>(share.last); }

    DeviceTask task;
    std::shared_ptr<CudaTaskState> state; ///< Of a graph's task, the same in all runs.
    std::unique_ptr<CudaQueue> queue{};
    Result<void> outcome{};
    TaskListener::Clock::time_point cancelled{}; ///< Where it has no times of its own.
    Share share{};
    EventId firstWaiter = kNobody; ///< Of other queues.
    Stage stage = Stage::Held;
    bool recorded = false;
};

/// "all-reduce number 3 of group 1", "the send to device 2".
std::string textOf(const decltype(DeviceTask::communication) &communication);

/// The tasks of one device's step: which is next, which of them wait to become one kernel, which have ended.
/// Tasks get into their queues in the order in which they were issued, also where a step is captured once all
/// of it is known: devices of other processes communicate in that order.
class CudaStep
{
public:
    /// Forgets the tasks of the step before. @param events  so many will come
    void begin(std::int32_t events);
    CudaTask &add(DeviceTask task, std::shared_ptr<CudaTaskState> state);

    /// Nothing is in a queue yet, as after `add`: of the tasks that have come, all are launched anew.
    /// @param state  makes each one's
    template<typename MakeState> void restart(MakeState state)
    {
        for (auto &task : m_tasks)
            if (task)
                task = std::make_unique<CudaTask>(std::move(task->task), state());
        rewind();
    }
    /// All are in their streams.
    void launchAll();

    /// The next task that was issued comes into its queue. @return false if there is none
    bool takeNext();
    /// The next one of a queue may go into its stream.
    bool mayLaunch(std::size_t queue) const;
    CudaTask &next(std::size_t queue) { return *m_tasks[m_queues[queue].order[nextOf(m_queues[queue])]]; }

    /// The next task may join those that wait. What waits for another queue does not: what is before it would
    /// wait, too. Nor does what comes behind a task of another queue that waits for them: that is launched
    /// when it comes, since devices communicate in the order of the plan. So it does not matter to what
    /// becomes one when tasks are issued.
    bool mayJoin(std::size_t queue) const;
    /// The next task waits with its kernels. @param bytes  what those that wait move in all
    void wait(std::size_t queue, std::int64_t bytes);
    bool hasWaiting(std::size_t queue) const { return !m_queues[queue].waiting.empty(); }
    /// Nothing comes that might join those that wait.
    bool endsWaiting(std::size_t queue) const;
    /// Those that wait are to be launched, as one kernel where they are several: they know their share of it.
    std::vector<CudaTask *> takeWaiting(std::size_t queue);
    /// Tasks are in the stream, the next ones of their queue.
    void launched(std::size_t queue, const std::vector<CudaTask *> &tasks);

    /// The first one in the stream of which nobody was told that it has ended; null if there is none.
    CudaTask *running(std::size_t queue);
    const CudaTask *running(std::size_t queue) const { return const_cast<CudaStep *>(this)->running(queue); }
    void ended(std::size_t queue) { ++m_queues[queue].ended; }

    const std::vector<std::unique_ptr<CudaTask>> &tasks() const { return m_tasks; } ///< By event.
    const CudaTask &task(std::size_t event) const { return *m_tasks[event]; }
    bool allLaunched() const; ///< Of those that were issued.
    /// All tasks, which the step has no longer.
    std::vector<std::unique_ptr<CudaTask>> release();

private:
    struct Queue {
        /// Tasks with kernels that wait, or with none, and the bytes that are moved up to the end of each.
        std::vector<std::pair<std::size_t, std::int64_t>> waiting{};
        std::vector<std::size_t> order{}; ///< Its tasks.
        std::size_t launched = 0; ///< So many are in the stream.
        std::size_t ended = 0;
    };

    void rewind();
    static std::size_t nextOf(const Queue &queue) { return queue.launched + queue.waiting.size(); }
    /// Of those that wait in a queue: the first task of another one that waits for one of them.
    EventId firstWaiterFor(const Queue &queue) const;

    std::vector<std::unique_ptr<CudaTask>> m_tasks{};
    std::vector<std::size_t> m_issued{}; ///< Events, in the order in which their tasks came.
    std::size_t m_taken = 0; ///< So many of those are in their queues.
    std::array<Queue, kQueueCount> m_queues{};
};

} // namespace planloom
