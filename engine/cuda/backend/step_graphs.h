#pragma once

#include "engine/base/result.h"
#include "engine/cuda/backend/cuda_functions.h"
#include "engine/runtime/devices/device_backend.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

class CudaPool;

/// How the tasks of one step get into their streams.
enum class StepMode {
    Issue, ///< As they are issued.
    Capture, ///< Once all are issued, into a graph, which is then launched.
    Replay, ///< They are those of a graph.
};

/// One device's part in the steps of its process. All calls come from the one thread that issues work.
class StepMember
{
public:
    virtual ~StepMember() = default;

    virtual std::vector<CudaStream> streams() const = 0;
    /// Puts into the streams what may be put there by now. @return true if something was
    virtual bool putMore() = 0;
    /// Everything that was issued is in a stream; else the first error, or that something waits for ever.
    virtual Result<void> allPut() const = 0;
    /// The capture came to an end. @param made  there is a graph now, and it runs; else the step begins anew,
    /// and is issued
    virtual void captured(bool made) = 0;
    /// Gives the graph what this step's tasks do differently. @return the first error
    virtual Result<void> refresh() = 0;
    /// Whether this is said in all processes of the run, each of which is asked between the same steps.
    virtual Result<bool> agree(bool mine) = 0;
    /// The graph runs, or has failed to.
    virtual void replaying(const Result<void> &outcome) = 0;
};

/// Steps of a kind as CUDA graphs: the first step of a kind is issued, which loads what CUDA loads late and
/// shows what stands in the way, the second is captured, and later ones are launched with one call.
///
/// A capture begins in one stream; the others of all members are joined to it by events:
///
///     origin   fork --+--- tasks --------------+-- wait, wait -- end
///     others          +--- tasks, each event --+
///
/// Processes of a run whose devices communicate capture a step all of them or none: a process that cannot
/// says so before it issues the step, the others once they have captured it, and before they launch it.
///
/// What is captured is what the members' own code puts into the streams, so a graph does what an issued step
/// does. What changes from step to step is read from memory that a copy within the graph fills from the
/// host's
/// (`CudaQueue::fresh`).
class StepGraphs
{
public:
    StepGraphs(CudaFunctions &cuda, CudaPool &memory)
        : m_cuda(cuda)
        , m_memory(memory)
    {
    }
    StepGraphs(const StepGraphs &) = delete;
    StepGraphs &operator=(const StepGraphs &) = delete;
    ~StepGraphs() { clear(); }

    void join(StepMember &member) { m_members.push_back(&member); }
    /// Ends all graphs: they are of all members.
    void leave(StepMember &member);

    using Key = std::pair<std::int32_t, bool>;
    static Key keyOf(const StepKind &kind) { return {kind.number, kind.timed}; }

    /// A step begins for a member: for all of them before one waits for its end.
    void begin() { m_started = false; }
    /// Of the step that begins.
    StepMode modeOf(const StepKind &kind) const;
    /// A step of this kind is the next to be captured: where a reason is known against it, the other
    /// processes must hear of it. @return the first error
    Result<void> settle(const StepKind &kind);
    /// No further step is captured from now on. The first reason is kept.
    void refuse(const std::string &why);
    const std::string &whyNot() const { return m_why; } ///< Empty where nothing was refused.

    /// Before a member waits for its step's end: the first one that does lets the step go.
    void start(const StepKind &kind);
    /// No graph is launched any more: they are gone before the communicators that they hold are aborted. One
    /// that runs is freed once it has ended.
    void abandon();
    /// A member's step has ended.
    void ended(const StepKind &kind) { m_graphs[keyOf(kind)].warm = true; }

    bool isCapturing() const { return m_capturing; }
    /// Keeps memory of the pool that a graph uses until it is gone.
    void keep(std::byte *block) { m_blocks.push_back(block); }
    /// Whether the graph that was launched has ended.
    CudaStatus query();

private:
    struct Graph {
        bool warm = false; ///< A step of this kind was issued.
        CudaGraph graph = nullptr;
    };
    Result<void> capture(Graph &graph);
    Result<void> agree(bool mine);
    Result<void> putAll(const std::vector<CudaStream> &streams);
    Result<void> launch(const Graph &graph);
    Result<CudaEvent> event(std::size_t index);
    void clear();

    CudaFunctions &m_cuda;
    CudaPool &m_memory;
    std::vector<StepMember *> m_members{};
    std::map<Key, Graph> m_graphs{};
    std::vector<CudaEvent> m_events{}; ///< The first: a launched graph has ended; then fork, and joins.
    std::vector<std::byte *> m_blocks{};
    std::string m_why{};
    bool m_capturing = false;
    bool m_settled = false; ///< Some process captures no more, and all know it.
    bool m_started = false; ///< The step that runs.
    bool m_done = false;
};

} // namespace planloom
