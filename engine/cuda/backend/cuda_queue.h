#pragma once

#include "engine/base/work_pool.h"
#include "engine/cuda/backend/cuda_chain.h"
#include "engine/cuda/backend/cuda_memory.h"
#include "engine/cuda/backend/step_graphs.h"
#include "engine/runtime/devices/device_backend.h"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// What devices of one GPU, or of one process, share. Outlives them.
struct CudaShared {
    CudaFunctions &cuda;
    CudaPool device; ///< Memory beside the arenas: scratch, messages put aside.
    CudaPool pinned;
    StepGraphs graphs;
    CompiledKernels kernels;
    WorkPool workers; ///< Of kernels that run on the host.
    std::function<void(const std::string &)> warning{};
    std::set<std::string> saidOnHost{}; ///< Operator types that the run was told of.
    bool saidNotCaptured = false;
    bool saidNotFused = false;
    std::int32_t tasksOnHost = 0; ///< In streams, and not ended: others may wait for them.
    std::optional<Error> hung{}; ///< Nothing that one of them waited for ended: none waits any more.
    std::optional<std::int32_t> codeArchitecture{}; ///< Once somebody has asked.
    /// By backend: puts into its streams what may be put there by now, and tells of what has ended; true if
    /// something had. Whoever waits for one device keeps all going: it may wait for what another one has to
    /// say.
    std::map<const void *, std::function<bool()>> pumps{};

    CudaShared(CudaFunctions &functions, std::int32_t threads)
        : cuda(functions)
        , device(functions, CudaPool::Kind::Device)
        , pinned(functions, CudaPool::Kind::PinnedHost)
        , graphs(functions, device)
        , kernels(functions)
        , workers(threads)
    {
    }
};

/// What a task leaves behind until it has finished: memory that its copies go through, and what went wrong on
/// the way.
class CudaTaskState
{
public:
    explicit CudaTaskState(CudaShared &shared)
        : m_shared(shared)
    {
    }
    CudaTaskState(const CudaTaskState &) = delete;
    CudaTaskState &operator=(const CudaTaskState &) = delete;
    ~CudaTaskState();

    Result<std::byte *> pinned(std::size_t bytes);
    /// Where kernels tell of values that they cannot take. @param describe  makes an error of one
    Result<Problem *> problem(std::function<Error(const Problem &)> describe);
    /// Puts `work` into a stream; its error becomes the task's, and after one no more is done.
    Result<void> onHost(CudaStream stream, std::function<Result<void>()> work);

    /// Values that are other ones in the next run of a graph: on the device, and on the host, from where a
    /// graph copies them there.
    struct Fresh {
        std::byte *onDevice = nullptr;
        std::byte *onHost = nullptr;
    };
    Result<Fresh> makeFresh(std::size_t bytes);
    const std::vector<Fresh> &fresh() const { return m_fresh; }

    /// A graph runs the task once more: what went wrong before is forgotten.
    void again();

    /// Kernels of the host compute for it, which may take their time.
    void setOnHost() { m_isOnHost = true; }
    bool isOnHost() const { return m_isOnHost; }
    /// Of what ran later than it was issued. Once the task has ended.
    Result<void> outcome() const;

private:
    struct Call {
        CudaTaskState *task = nullptr;
        std::function<Result<void>()> work{};
    };
    void keep(Error error);

    CudaShared &m_shared;
    std::vector<std::byte *> m_pinned{};
    std::vector<Fresh> m_fresh{};
    std::vector<std::unique_ptr<Call>> m_calls{};
    bool m_isOnHost = false;
    std::vector<std::pair<Problem *, std::function<Error(const Problem &)>>> m_problems{};
    mutable std::mutex m_mutex{};
    std::optional<Error> m_error{};
};

class CudaProducts;

/// One task's view of its stream: puts kernels and copies into it, and never waits. What the device has no
/// kernel for goes through the CPU's: its operands are copied to the host, and the results back, all of it in
/// the stream.
class CudaQueue final : public DeviceQueue
{
public:
    /// @param mode  Capture: the stream is captured. Replay: nothing is put into it; values that a graph
    /// reads anew are renewed
    /// @param chain  where element-wise kernels wait for others; null: they do not
    CudaQueue(CudaShared &shared, CudaProducts &products, CudaScratch &scratch, CudaStream stream,
        CudaTaskState &task, StepMode mode = StepMode::Issue, CudaChain *chain = nullptr)
        : m_shared(shared)
        , m_products(products)
        , m_scratch(scratch)
        , m_stream(stream)
        , m_task(task)
        , m_mode(mode)
        , m_chain(chain)
    {
    }

    Result<void> kernel(const KernelCall &call, const KernelRounding *rounding) override;
    void fill(std::byte *to, std::uint8_t value, std::size_t bytes) override;
    void copy(std::byte *to, const std::byte *from, std::size_t bytes) override;
    void copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
        const IndexMask &region, std::int64_t elementSize) override;
    bool combine(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
        Combination combination) override;
    bool add(
        std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count) override;
    bool weigh(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
        const std::byte *all, DataType weightType, std::size_t rows, std::size_t width) override;
    bool merge(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
        const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
        std::size_t width) override;
    bool convert(
        const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count) override;
    Result<void> upload(
        std::byte *to, std::size_t bytes, const std::function<Result<void>(std::byte *)> &make) override;
    Result<void> download(const std::byte *from, std::size_t bytes,
        const std::function<Result<void>(const std::byte *)> &read) override;

    /// As `combine`, where each `run` elements of `to` are next to each other, and `step` apart in the
    /// sources.
    bool combineRuns(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
        Combination combination, std::int64_t run, std::int64_t step);

    // For the kernels of the device.
    template<typename T> Result<void> launch(const T &arguments, std::int64_t items)
    {
        if (items <= 0 || m_mode == StepMode::Replay)
            return {};
        if constexpr (kCanChain<T>)
            if (m_chain != nullptr) {
                TRY(const bool held, m_chain->hold(arguments, items));
                if (held)
                    return {};
            }
        const CudaStream to = stream();
        TRY_VOID(outcome());
        CUDA_TRY(m_shared.cuda, "cudaLaunchKernel",
            m_shared.cuda.launch(KernelOf<T>::kKernel, &arguments, items, to));
        return {};
    }
    /// Where a kernel of a graph finds `value`, which the next run may have another one of; null where the
    /// kernel is launched once, with its value.
    template<typename T> Result<const T *> fresh(const T &value)
    {
        if (m_mode == StepMode::Issue)
            return static_cast<const T *>(nullptr);
        if (m_mode == StepMode::Capture)
            TRY_VOID(m_task.makeFresh(sizeof value));
        const CudaTaskState::Fresh &place =
            m_task.fresh().at(m_mode == StepMode::Capture ? m_task.fresh().size() - 1 : m_renewed++);
        std::memcpy(place.onHost, &value, sizeof value);
        copy(place.onDevice, place.onHost, sizeof value);
        TRY_VOID(outcome());
        return reinterpret_cast<const T *>(place.onDevice);
    }
    CudaFunctions &cuda() { return m_shared.cuda; }
    CudaChain *chain() { return m_chain; } ///< Null: nothing waits.
    CudaProducts &products() { return m_products; }
    CudaScratch &scratch() { return m_scratch; }
    /// For something to be put there now: what waits goes first.
    CudaStream stream()
    {
        if (m_chain != nullptr)
            keep(m_chain->settle());
        return m_stream;
    }
    Result<std::int32_t> codeArchitecture(); ///< As CudaFunctions'.
    CudaTaskState &task() { return m_task; }

    /// The first error of a call that cannot return one.
    Result<void> outcome() const { return m_error ? Result<void>{*m_error} : Result<void>{}; }

private:
    Result<void> onHost(const KernelCall &call, const KernelRounding *rounding);
    void keep(Result<void> outcome);
    void sayOnHost(const KernelCall &call);
    /// Runs `work` on the host with copies of what lies at `from`, and copies what it made to `to`.
    bool throughHost(std::vector<std::pair<const std::byte *, std::size_t>> from,
        std::vector<std::pair<std::byte *, std::size_t>> to,
        std::function<bool(const std::vector<std::byte *> &from, const std::vector<std::byte *> &to)> work);

    CudaShared &m_shared;
    CudaProducts &m_products;
    CudaScratch &m_scratch;
    CudaStream m_stream;
    CudaTaskState &m_task;
    StepMode m_mode;
    CudaChain *m_chain;
    std::size_t m_renewed = 0; ///< Values.
    std::optional<Error> m_error{};
};

/// Launches the device's own kernel for a call. False if it has none for it; nothing was launched then.
Result<bool> launchOwnKernel(CudaQueue &queue, const KernelCall &call, const KernelRounding *rounding);

} // namespace planloom
