#pragma once

#include "engine/cuda/backend/cuda_step.h"
#include "engine/cuda/backend/step_graphs.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace planloom {

class CudaCommunicator;

/// The CUDA events of a device's steps: they order its tasks among its streams, and tell when each of them
/// ran. What orders the tasks of a graph tells no times: other events do.
class StepEvents
{
public:
    using Clock = std::chrono::steady_clock;

    explicit StepEvents(CudaFunctions &cuda)
        : m_cuda(cuda)
    {
    }
    StepEvents(const StepEvents &) = delete;
    StepEvents &operator=(const StepEvents &) = delete;
    ~StepEvents();

    /// A step begins. @param timed  somebody asks when each of its tasks ran
    void begin(StepMode mode, bool timed)
    {
        m_mode = mode;
        m_isTimed = timed;
    }
    /// Makes what there is not yet of what a step of so many tasks needs.
    Result<void> make(std::size_t tasks);
    StepMode mode() const { return m_mode; }
    void issueAnew() { m_mode = StepMode::Issue; } ///< The step did not become a graph.
    /// Ties the events' times to the clock of the host: once, with nothing in the stream.
    /// @return false if the stream does not get there within `deadline`
    Result<bool> anchor(CudaStream stream, Clock::duration deadline);

    /// What comes into the stream comes behind the task.
    CudaStatus wait(CudaStream stream, const CudaTask &task) { return m_cuda.wait(stream, endOf(task)); }
    Result<void> recordStart(const CudaTask &task, CudaStream stream);
    CudaStatus recordEnd(const CudaTask &task, CudaStream stream);
    /// Of a task that is no part of a graph: whether it has ended.
    CudaStatus query(const CudaTask &task) { return m_cuda.query(endOf(task)); }

    /// Tasks have times of their own.
    bool recordsTimes() const { return m_mode == StepMode::Issue || m_isTimed; }
    /// When a task that has ended ran; left as they are where CUDA does not tell.
    void timesOf(const CudaTask &task, Clock::time_point &start, Clock::time_point &end);

private:
    Result<void> makeUpTo(std::vector<CudaEvent> &events, std::size_t count);
    CudaEvent startOf(std::size_t event) const
    {
        return m_mode == StepMode::Issue ? m_events[1 + 2 * event] : m_times[2 * event];
    }
    CudaEvent endOf(const CudaTask &task) const { return m_events[2 + 2 * task.last()]; }
    CudaEvent timeOfEnd(const CudaTask &task) const
    {
        return m_mode == StepMode::Issue ? endOf(task) : m_times[1 + 2 * task.last()];
    }

    CudaFunctions &m_cuda;
    std::vector<CudaEvent> m_events{}; ///< The anchor, then start and end of each event of the longest step.
    std::vector<CudaEvent> m_times{}; ///< Start and end of each event of the longest step that is a graph.
    Clock::time_point m_anchored{}; ///< When the anchor was.
    StepMode m_mode = StepMode::Issue;
    bool m_isTimed = true;
};

/// A question that all processes of a run answer between two steps, each for itself.
class CudaVote
{
public:
    explicit CudaVote(CudaShared &shared)
        : m_shared(shared)
    {
    }
    CudaVote(const CudaVote &) = delete;
    CudaVote &operator=(const CudaVote &) = delete;
    ~CudaVote();

    /// Hands in this process' answer. @param stream  all of whose work may wait for it
    Result<void> cast(bool mine, CudaCommunicator &communicator, CudaScratch &scratch, CudaStream stream);
    /// Whether all have answered: kCudaNotReady until then.
    CudaStatus query() { return m_shared.cuda.query(m_event); }
    /// Then: all have said yes.
    bool isUnanimous(const CudaCommunicator &communicator);

private:
    CudaShared &m_shared;
    CudaEvent m_event = nullptr; ///< Null before the first time.
    std::optional<CudaTaskState> m_memory{}; ///< Of the vote that is taken.
    std::byte *m_onHost = nullptr;
};

} // namespace planloom
