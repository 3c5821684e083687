#include "engine/cuda/backend/step_graphs.h"

#include "engine/cuda/backend/cuda_error.h"
#include "engine/cuda/backend/cuda_memory.h"

#include <algorithm>

namespace planloom {

void StepGraphs::leave(StepMember &member)
{
    clear();
    m_members.erase(std::remove(m_members.begin(), m_members.end(), &member), m_members.end());
}

void StepGraphs::clear()
{
    for (const auto &[kind, graph] : m_graphs)
        if (graph.graph != nullptr)
            (void)m_cuda.destroyGraph(graph.graph);
    m_graphs.clear();
    for (const CudaEvent event : m_events)
        (void)m_cuda.destroyEvent(event);
    m_events.clear();
    for (std::byte *const block : m_blocks)
        m_memory.giveBack(block);
    m_blocks.clear();
}

StepMode StepGraphs::modeOf(const StepKind &kind) const
{
    const auto found = m_graphs.find(keyOf(kind));
    if (kind.number < 0 || found == m_graphs.end())
        return StepMode::Issue;
    if (found->second.graph != nullptr) // other processes launch theirs
        return StepMode::Replay;
    return found->second.warm && m_why.empty() ? StepMode::Capture : StepMode::Issue;
}

Result<void> StepGraphs::settle(const StepKind &kind)
{
    const auto found = m_graphs.find(keyOf(kind));
    const bool isDue =
        kind.number >= 0 && found != m_graphs.end() && found->second.warm && found->second.graph == nullptr;
    return isDue && !m_why.empty() ? agree(false) : Result<void>{};
}

Result<void> StepGraphs::agree(bool mine)
{
    if (m_settled)
        return {};
    bool all = mine;
    for (StepMember *const member : m_members) {
        TRY(all, member->agree(all));
    }
    if (all)
        return {};
    m_settled = true;
    refuse("another process of the run does not capture its steps");
    return {};
}

void StepGraphs::abandon()
{
    for (auto &[key, graph] : m_graphs)
        if (CudaGraph const gone = std::exchange(graph.graph, nullptr); gone != nullptr)
            (void)m_cuda.destroyGraph(gone);
    m_settled = true;
    refuse("the run was stopped");
}

void StepGraphs::refuse(const std::string &why)
{
    if (m_why.empty())
        m_why = why;
}

Result<CudaEvent> StepGraphs::event(std::size_t index)
{
    while (m_events.size() <= index) {
        CudaEvent made = nullptr;
        CUDA_TRY(m_cuda, "cudaEventCreate", m_cuda.createEvent(&made));
        m_events.push_back(made);
    }
    return m_events[index];
}

void StepGraphs::start(const StepKind &kind)
{
    if (m_started)
        return;
    m_started = true;
    m_done = false;
    Graph &graph = m_graphs[keyOf(kind)];
    if (graph.graph != nullptr) {
        Result<void> outcome;
        for (StepMember *const member : m_members)
            if (outcome)
                outcome = member->refresh();
        if (outcome)
            outcome = launch(graph);
        for (StepMember *const member : m_members)
            member->replaying(outcome);
        return;
    }
    auto outcome = capture(graph);
    if (!outcome)
        refuse(outcome.error().message);
    if (auto agreed = agree(m_why.empty()); outcome && !agreed)
        outcome = std::move(agreed);
    if (outcome && !m_why.empty())
        outcome = Error{ErrorCode::NotSupported, m_why, {}, {}};
    if (outcome)
        outcome = launch(graph);
    if (!outcome) {
        if (graph.graph != nullptr)
            (void)m_cuda.destroyGraph(graph.graph);
        graph.graph = nullptr;
        refuse(outcome.error().message);
    }
    for (StepMember *const member : m_members)
        member->captured(static_cast<bool>(outcome));
}

Result<void> StepGraphs::capture(Graph &graph)
{
    std::vector<CudaStream> streams;
    for (const StepMember *const member : m_members)
        for (const CudaStream stream : member->streams())
            streams.push_back(stream);
    CUDA_TRY(m_cuda, "cudaStreamBeginCapture", m_cuda.beginCapture(streams.front()));
    m_capturing = true;
    auto put = putAll(streams);
    m_capturing = false;
    const CudaStatus status = m_cuda.endCapture(streams.front(), &graph.graph); // also of one that failed
    TRY_VOID(std::move(put));
    CUDA_TRY(m_cuda, "cudaStreamEndCapture", status);
    return {};
}

Result<void> StepGraphs::putAll(const std::vector<CudaStream> &streams)
{
    const CudaStream origin = streams.front();
    TRY(const CudaEvent fork, event(1));
    CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(fork, origin));
    for (std::size_t s = 1; s < streams.size(); ++s)
        CUDA_TRY(m_cuda, "cudaStreamWaitEvent", m_cuda.wait(streams[s], fork));
    const auto putMore = [](StepMember *member) { return member->putMore(); };
    while (std::count_if(m_members.begin(), m_members.end(), putMore) > 0) { }
    for (const StepMember *const member : m_members)
        TRY_VOID(member->allPut());
    for (std::size_t s = 1; s < streams.size(); ++s) {
        TRY(const CudaEvent joined, event(1 + s));
        CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(joined, streams[s]));
        CUDA_TRY(m_cuda, "cudaStreamWaitEvent", m_cuda.wait(origin, joined));
    }
    return {};
}

Result<void> StepGraphs::launch(const Graph &graph)
{
    const CudaStream origin = m_members.front()->streams().front();
    TRY(const CudaEvent end, event(0));
    CUDA_TRY(m_cuda, "cudaGraphLaunch", m_cuda.launchGraph(graph.graph, origin));
    CUDA_TRY(m_cuda, "cudaEventRecord", m_cuda.record(end, origin));
    return {};
}

CudaStatus StepGraphs::query()
{
    if (m_done)
        return kCudaSuccess;
    const CudaStatus status = m_cuda.query(m_events.front());
    m_done = status == kCudaSuccess;
    return status;
}

} // namespace planloom
