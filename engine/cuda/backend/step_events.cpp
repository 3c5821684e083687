#include "engine/cuda/backend/step_events.h"

#include "engine/cuda/backend/cuda_communicator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace planloom {

StepEvents::~StepEvents()
{
    for (const std::vector<CudaEvent> &events : {m_events, m_times})
        for (const CudaEvent event : events)
            (void)m_cuda.destroyEvent(event);
}

Result<void> StepEvents::makeUpTo(std::vector<CudaEvent> &events, std::size_t count)
{
    while (events.size() < count) {
        CudaEvent event = nullptr;
        CUDA_TRY(m_cuda, "cudaEventCreate", m_cuda.createEvent(&event));
        events.push_back(event);
    }
    return {};
}

Result<void> StepEvents::make(std::size_t tasks)
{
    TRY_VOID(makeUpTo(m_events, 1 + 2 * tasks));
    return m_mode == StepMode::Issue ? Result<void>{} : makeUpTo(m_times, 2 * tasks);
}

Result<bool> StepEvents::anchor(CudaStream stream, Clock::duration deadline)
{
    CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(m_events.front(), stream));
    CudaStatus status = kCudaNotReady;
    const auto begun = Clock::now();
    while ((status = m_cuda.query(m_events.front())) == kCudaNotReady)
        if (Clock::now() - begun > deadline)
            return false;
    m_anchored = Clock::now();
    CUDA_TRY(m_cuda, "cudaEventQuery", status);
    return true;
}

Result<void> StepEvents::recordStart(const CudaTask &task, CudaStream stream)
{
    if (recordsTimes())
        CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.recordTime(startOf(task.event()), stream));
    return {};
}

CudaStatus StepEvents::recordEnd(const CudaTask &task, CudaStream stream)
{
    const CudaStatus status = m_cuda.record(endOf(task), stream);
    return status == kCudaSuccess && m_mode == StepMode::Capture && m_isTimed
        ? m_cuda.recordTime(timeOfEnd(task), stream)
        : status;
}

void StepEvents::timesOf(const CudaTask &task, Clock::time_point &start, Clock::time_point &end)
{
    const CudaTask::Share &share = task.share;
    const CudaEvent anchor = m_events.front();
    float from = 0;
    float to = 0;
    if (m_cuda.milliseconds(
            from, anchor, startOf(share.start < 0 ? task.event() : static_cast<std::size_t>(share.start)))
            != kCudaSuccess
        || m_cuda.milliseconds(to, anchor, timeOfEnd(task)) != kCudaSuccess)
        return;
    const auto since = [this](double milliseconds) {
        return m_anchored + std::chrono::nanoseconds{std::llround(milliseconds * 1e6)};
    };
    // Of a kernel that several tasks have, each has its share, in their order.
    const double begun = static_cast<double>(from);
    const double passed = static_cast<double>(std::max(to - from, 0.0F));
    start = since(begun + share.from * passed);
    end = since(begun + share.to * passed);
    if (share.isFirst && m_cuda.milliseconds(from, anchor, startOf(task.event())) == kCudaSuccess)
        start = std::min(start, since(static_cast<double>(from)));
}

CudaVote::~CudaVote()
{
    if (m_event != nullptr)
        (void)m_shared.cuda.destroyEvent(m_event);
}

Result<void> CudaVote::cast(
    bool mine, CudaCommunicator &communicator, CudaScratch &scratch, CudaStream stream)
{
    CudaFunctions &cuda = m_shared.cuda;
    if (m_event == nullptr)
        CUDA_TRY(cuda, "cudaEventCreate", cuda.createEvent(&m_event));
    m_memory.emplace(m_shared);
    TRY(m_onHost, m_memory->pinned(sizeof(float)));
    scratch.begin();
    TRY(std::byte *const onDevice, scratch.take(sizeof(float)));
    const float own = mine ? 1 : 0;
    std::memcpy(m_onHost, &own, sizeof own);
    CUDA_TRY(cuda, "cudaMemcpyAsync", cuda.copy(onDevice, m_onHost, sizeof own, stream));
    TRY_VOID(communicator.sumOverAll(reinterpret_cast<float *>(onDevice), stream));
    CUDA_TRY(cuda, "cudaMemcpyAsync", cuda.copy(m_onHost, onDevice, sizeof own, stream));
    CUDA_TRY(cuda, "cudaEventRecord", cuda.record(m_event, stream));
    return {};
}

bool CudaVote::isUnanimous(const CudaCommunicator &communicator)
{
    float sum = 0;
    std::memcpy(&sum, m_onHost, sizeof sum);
    m_memory.reset();
    return sum == static_cast<float>(communicator.processes());
}

} // namespace planloom
