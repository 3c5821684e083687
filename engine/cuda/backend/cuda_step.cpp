#include "engine/cuda/backend/cuda_step.h"

#include <algorithm>

namespace planloom {

std::string textOf(const decltype(DeviceTask::communication) &communication)
{
    if (const auto *const call = std::get_if<CollectiveCall>(&communication))
        return std::string{nameOf(call->kind)} + " number " + std::to_string(call->sequence + 1)
            + " of group " + std::to_string(call->group);
    if (const auto *const send = std::get_if<SendCall>(&communication))
        return "the send to device " + std::to_string(send->message.key.peer.index);
    return "the receive from device "
        + std::to_string(std::get<ReceiveCall>(communication).message.key.peer.index);
}

void CudaStep::begin(std::int32_t events)
{
    m_tasks.clear();
    m_tasks.resize(static_cast<std::size_t>(events));
    m_issued.clear();
    rewind();
}

CudaTask &CudaStep::add(DeviceTask task, std::shared_ptr<CudaTaskState> state)
{
    const auto event = static_cast<std::size_t>(task.event);
    m_issued.push_back(event);
    m_tasks[event] = std::make_unique<CudaTask>(std::move(task), std::move(state));
    return *m_tasks[event];
}

void CudaStep::rewind()
{
    m_queues = {};
    m_taken = 0;
}

void CudaStep::launchAll()
{
    while (takeNext()) { }
    for (Queue &queue : m_queues)
        queue.launched = queue.order.size();
}

bool CudaStep::takeNext()
{
    if (m_taken == m_issued.size())
        return false;
    const CudaTask &task = *m_tasks[m_issued[m_taken++]];
    m_queues[static_cast<std::size_t>(task.task.queue)].order.push_back(task.event());
    for (const EventId wait : task.task.waits)
        if (const auto &awaited = m_tasks[static_cast<std::size_t>(wait)])
            awaited->firstWaiter = std::min(awaited->firstWaiter, task.task.event);
    return true;
}

bool CudaStep::mayLaunch(std::size_t at) const
{
    const Queue &queue = m_queues[at];
    if (nextOf(queue) >= queue.order.size())
        return false;
    const CudaTask &next = *m_tasks[queue.order[nextOf(queue)]];
    return next.stage == CudaTask::Stage::Held
        && std::all_of(next.task.waits.begin(), next.task.waits.end(), [this](EventId event) {
               const auto &task = m_tasks[static_cast<std::size_t>(event)];
               return task
                   && (task->stage == CudaTask::Stage::Launched || task->stage == CudaTask::Stage::Ended);
           });
}

bool CudaStep::mayJoin(std::size_t at) const
{
    const Queue &queue = m_queues[at];
    const CudaTask &next = *m_tasks[queue.order[nextOf(queue)]];
    return next.task.waits.empty() && !next.communicates() && next.task.event < firstWaiterFor(queue);
}

EventId CudaStep::firstWaiterFor(const Queue &queue) const
{
    EventId first = CudaTask::kNobody;
    for (const auto &[event, bytes] : queue.waiting)
        first = std::min(first, m_tasks[event]->firstWaiter);
    return first;
}

void CudaStep::wait(std::size_t at, std::int64_t bytes)
{
    CudaTask &task = next(at);
    task.stage = CudaTask::Stage::Waiting;
    m_queues[at].waiting.emplace_back(task.event(), bytes);
}

bool CudaStep::endsWaiting(std::size_t at) const
{
    const Queue &queue = m_queues[at];
    if (queue.waiting.empty())
        return false;
    if (nextOf(queue) < queue.order.size())
        return !mayLaunch(at);
    return m_taken == m_tasks.size() || firstWaiterFor(queue) != CudaTask::kNobody;
}

std::vector<CudaTask *> CudaStep::takeWaiting(std::size_t at)
{
    const auto waiting = std::exchange(m_queues[at].waiting, {});
    std::vector<CudaTask *> tasks;
    for (const auto &[event, bytes] : waiting)
        tasks.push_back(m_tasks[event].get());
    if (waiting.size() < 2)
        return tasks;
    const EventId start = tasks[1]->task.event;
    const EventId last = tasks.back()->task.event;
    const double all = std::max(static_cast<double>(waiting.back().second), 1.0);
    for (std::size_t i = 0; i < waiting.size(); ++i)
        tasks[i]->share = {start, last, i == 0 ? 0 : static_cast<double>(waiting[i - 1].second) / all,
            static_cast<double>(waiting[i].second) / all, i == 0};
    return tasks;
}

void CudaStep::launched(std::size_t at, const std::vector<CudaTask *> &tasks)
{
    for (CudaTask *const task : tasks)
        task->stage = CudaTask::Stage::Launched;
    m_queues[at].launched += tasks.size();
}

CudaTask *CudaStep::running(std::size_t at)
{
    const Queue &queue = m_queues[at];
    return queue.ended < queue.launched ? m_tasks[queue.order[queue.ended]].get() : nullptr;
}

bool CudaStep::allLaunched() const
{
    return m_taken == m_issued.size()
        && std::all_of(m_queues.begin(), m_queues.end(),
            [](const Queue &queue) { return queue.launched == queue.order.size(); });
}

std::vector<std::unique_ptr<CudaTask>> CudaStep::release()
{
    m_issued.clear();
    rewind();
    return std::exchange(m_tasks, {});
}

} // namespace planloom
