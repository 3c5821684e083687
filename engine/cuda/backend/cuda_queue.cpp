#include "engine/cuda/backend/cuda_queue.h"

#include "engine/cuda/kernels/nests.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <new>

namespace planloom {

namespace {

bool isFloatOnDevice(DataType type)
{
    return isFloating(type) && isLoadable(type);
}

/// Runs `work` on a thread of the pool, whose others then help with its pieces.
void runOn(WorkPool &pool, const std::function<void()> &work)
{
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    pool.submit([&] {
        work();
        const std::lock_guard lock{mutex};
        done = true;
        ended.notify_one();
    });
    std::unique_lock lock{mutex};
    ended.wait(lock, [&] { return done; });
}

Result<void> runHostKernel(WorkPool &pool, const KernelCall &call, const KernelRounding *rounding)
{
    Result<void> outcome;
    runOn(pool, [&] {
        try {
            outcome = rounding == nullptr ? runKernel(call) : runRounded(call, *rounding);
        } catch (const std::bad_alloc &) {
            outcome = Error{ErrorCode::ResourceLimit, "the host's memory is exhausted",
                "use a smaller batch or recomputation", {}};
        } catch (const std::exception &failure) { // of libraries behind the kernels
            outcome = Error{ErrorCode::Internal, failure.what(), {}, {}};
        }
    });
    return outcome;
}

} // namespace

CudaTaskState::~CudaTaskState()
{
    for (std::byte *const block : m_pinned)
        m_shared.pinned.giveBack(block);
    for (const Fresh &fresh : m_fresh)
        m_shared.device.giveBack(fresh.onDevice);
}

Result<std::byte *> CudaTaskState::pinned(std::size_t bytes)
{
    TRY(std::byte *const block, m_shared.pinned.take(bytes));
    m_pinned.push_back(block);
    return block;
}

Result<CudaTaskState::Fresh> CudaTaskState::makeFresh(std::size_t bytes)
{
    Fresh made;
    TRY(made.onHost, pinned(bytes));
    TRY(made.onDevice, m_shared.device.take(bytes));
    m_fresh.push_back(made);
    return made;
}

void CudaTaskState::again()
{
    const std::lock_guard lock{m_mutex};
    m_error.reset();
    for (const auto &[problem, describe] : m_problems)
        *problem = {};
}

Result<Problem *> CudaTaskState::problem(std::function<Error(const Problem &)> describe)
{
    TRY(std::byte *const block, pinned(sizeof(Problem)));
    auto *const made = new (block) Problem;
    m_problems.emplace_back(made, std::move(describe));
    return made;
}

Result<void> CudaTaskState::onHost(CudaStream stream, std::function<Result<void>()> work)
{
    m_calls.push_back(std::make_unique<Call>(Call{this, std::move(work)}));
    CUDA_TRY(m_shared.cuda, "cudaLaunchHostFunc",
        m_shared.cuda.hostFunction(
            stream,
            [](void *data) {
                const Call &call = *static_cast<Call *>(data);
                {
                    const std::lock_guard lock{call.task->m_mutex};
                    if (call.task->m_error)
                        return;
                }
                if (auto outcome = call.work(); !outcome)
                    call.task->keep(std::move(outcome).error());
            },
            m_calls.back().get()));
    return {};
}

void CudaTaskState::keep(Error error)
{
    const std::lock_guard lock{m_mutex};
    if (!m_error)
        m_error = std::move(error);
}

Result<void> CudaTaskState::outcome() const
{
    const std::lock_guard lock{m_mutex};
    for (const auto &[problem, describe] : m_problems)
        if (problem->found != 0)
            return describe(*problem);
    return m_error ? Result<void>{*m_error} : Result<void>{};
}

void CudaQueue::keep(Result<void> outcome)
{
    if (!outcome && !m_error)
        m_error = std::move(outcome).error();
}

void CudaQueue::sayOnHost(const KernelCall &call)
{
    const std::string name =
        typeNameOf(*call.op) + (call.op->direction == Direction::Backward ? " (backward)" : "");
    m_shared.graphs.refuse("the host computes its operators of type " + name);
    if (m_shared.saidOnHost.insert(name).second && m_shared.warning)
        m_shared.warning("operators of type " + name + ", such as '" + call.op->name
            + "', have no CUDA kernel for these values: the host computes them, which is right but slow");
}

Result<std::int32_t> CudaQueue::codeArchitecture()
{
    if (!m_shared.codeArchitecture) {
        std::int32_t architecture = 0;
        CUDA_TRY(m_shared.cuda, "cudaFuncGetAttributes", m_shared.cuda.codeArchitecture(architecture));
        m_shared.codeArchitecture = architecture;
    }
    return *m_shared.codeArchitecture;
}

Result<void> CudaQueue::kernel(const KernelCall &call, const KernelRounding *rounding)
{
    m_scratch.begin();
    TRY(const bool launched, launchOwnKernel(*this, call, rounding));
    if (launched)
        return {};
    sayOnHost(call);
    return onHost(call, rounding);
}

Result<void> CudaQueue::onHost(const KernelCall &call, const KernelRounding *rounding)
{
    m_task.setOnHost();
    struct Prepared {
        KernelCall call{};
        std::optional<KernelRounding> rounding{};
    };
    auto prepared = std::make_shared<Prepared>();
    prepared->call = call;
    if (rounding != nullptr)
        prepared->rounding = *rounding;
    const auto bytesOf = [&](const Buffer &buffer, std::size_t slot, bool input) {
        const DataType type = rounding == nullptr ? buffer.dataType
            : input                               ? rounding->inputs[slot]
                                                  : rounding->outputs[slot];
        return static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(type));
    };
    std::map<const std::byte *, std::byte *> onHost; // an optimizer's new state lies where the old one does
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        const Buffer &buffer = call.inputs[i];
        if (buffer.data == nullptr)
            continue;
        std::byte *&here = onHost[buffer.data];
        if (here == nullptr) {
            const std::size_t bytes = bytesOf(buffer, i, true);
            TRY(here, m_task.pinned(bytes));
            copy(here, buffer.data, bytes);
        }
        prepared->call.inputs[i].data = here;
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        const Buffer &buffer = call.outputs[i];
        if (buffer.data == nullptr)
            continue;
        std::byte *&here = onHost[buffer.data];
        if (here == nullptr) {
            TRY(here, m_task.pinned(bytesOf(buffer, i, false)));
        }
        prepared->call.outputs[i].data = here;
    }
    TRY_VOID(m_task.onHost(stream(), [prepared, &pool = m_shared.workers] {
        return runHostKernel(pool, prepared->call, prepared->rounding ? &*prepared->rounding : nullptr);
    }));
    for (std::size_t i = 0; i < call.outputs.size(); ++i)
        if (call.outputs[i].data != nullptr)
            copy(call.outputs[i].data, prepared->call.outputs[i].data, bytesOf(call.outputs[i], i, false));
    return outcome();
}

bool CudaQueue::throughHost(std::vector<std::pair<const std::byte *, std::size_t>> from,
    std::vector<std::pair<std::byte *, std::size_t>> to,
    std::function<bool(const std::vector<std::byte *> &, const std::vector<std::byte *> &)> work)
{
    m_shared.graphs.refuse("the host combines values of some of its types");
    m_task.setOnHost();
    const auto run = [&]() -> Result<void> {
        std::vector<std::byte *> ins;
        std::vector<std::byte *> outs;
        for (const auto &[data, bytes] : from) {
            TRY(std::byte *const here, m_task.pinned(bytes));
            copy(here, data, bytes);
            ins.push_back(here);
        }
        for (const auto &[data, bytes] : to) {
            TRY(std::byte *const here, m_task.pinned(bytes));
            outs.push_back(here);
        }
        TRY_VOID(m_task.onHost(stream(), [ins, outs, work = std::move(work)]() -> Result<void> {
            if (!work(ins, outs))
                return Error{ErrorCode::NotSupported, "values of this type cannot be combined", {}, {}};
            return {};
        }));
        for (std::size_t i = 0; i < to.size(); ++i)
            copy(to[i].first, outs[i], to[i].second);
        return {};
    };
    keep(run());
    return true;
}

void CudaQueue::fill(std::byte *to, std::uint8_t value, std::size_t bytes)
{
    if (bytes == 0 || m_mode == StepMode::Replay)
        return;
    if (const CudaStatus status = m_shared.cuda.fill(to, value, bytes, stream()); status != kCudaSuccess)
        keep(cudaError(m_shared.cuda, status, "cudaMemsetAsync"));
}

void CudaQueue::copy(std::byte *to, const std::byte *from, std::size_t bytes)
{
    if (bytes == 0 || m_mode == StepMode::Replay)
        return;
    if (const CudaStatus status = m_shared.cuda.copy(to, from, bytes, stream()); status != kCudaSuccess)
        keep(cudaError(m_shared.cuda, status, "cudaMemcpyAsync"));
}

void CudaQueue::copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to,
    const IndexMask &toBox, const IndexMask &region, std::int64_t elementSize)
{
    keep(launchMove(*this, boxMove(from, fromBox, to, toBox, region, elementSize)));
}

bool CudaQueue::combine(std::byte *to, std::span<const std::byte *const> from, std::size_t count,
    DataType type, Combination combination)
{
    return combineRuns(to, from, count, type, combination,
        static_cast<std::int64_t>(std::max<std::size_t>(count, 1)),
        static_cast<std::int64_t>(std::max<std::size_t>(count, 1)));
}

bool CudaQueue::combineRuns(std::byte *to, std::span<const std::byte *const> from, std::size_t count,
    DataType type, Combination combination, std::int64_t run, std::int64_t step)
{
    if (!canCombine(type, combination))
        return false;
    const bool logarithms = combination == Combination::LogSumExp;
    if (from.size() > kMostSources || !isLoadable(type)
        || (logarithms && !isFloatOnDevice(type))) { // floats of 8 bits, or more members than anyone has
        const auto size = static_cast<std::size_t>(sizeOf(type));
        std::vector<std::pair<const std::byte *, std::size_t>> sources;
        const auto runs =
            static_cast<std::size_t>(static_cast<std::int64_t>(count) / std::max<std::int64_t>(run, 1));
        for (std::size_t r = 0; r < std::max<std::size_t>(runs, 1); ++r)
            for (const std::byte *const each : from)
                sources.emplace_back(
                    each + r * static_cast<std::size_t>(step) * size, static_cast<std::size_t>(run) * size);
        return throughHost(std::move(sources), {{to, count * size}},
            [=, members = from.size()](const auto &ins, const auto &outs) {
                bool ok = true;
                for (std::size_t r = 0; r * members < ins.size(); ++r) {
                    const std::vector<const std::byte *> row(
                        ins.begin() + static_cast<std::ptrdiff_t>(r * members),
                        ins.begin() + static_cast<std::ptrdiff_t>((r + 1) * members));
                    ok = combineInto(outs[0] + r * static_cast<std::size_t>(run) * size, row,
                             static_cast<std::size_t>(run), type, combination)
                        && ok;
                }
                return ok;
            });
    }
    CombineKernel kernel;
    kernel.to = to;
    std::copy(from.begin(), from.end(), kernel.from);
    kernel.sources = static_cast<std::int32_t>(from.size());
    kernel.type = type;
    kernel.combination = combination;
    kernel.run = run;
    kernel.step = step;
    keep(launch(kernel, static_cast<std::int64_t>(count)));
    return true;
}

bool CudaQueue::add(
    std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count)
{
    if (!canAdd(toType) || (toType != fromType && (!isFloating(toType) || !isFloating(fromType))))
        return false;
    if (!isLoadable(toType) || !isLoadable(fromType)) {
        const std::size_t toBytes = count * static_cast<std::size_t>(sizeOf(toType));
        return throughHost({{to, toBytes}, {from, count * static_cast<std::size_t>(sizeOf(fromType))}},
            {{to, toBytes}}, [=](const auto &ins, const auto &outs) {
                std::copy_n(ins[0], toBytes, outs[0]);
                return toType == fromType ? addInto(outs[0], ins[1], count, toType)
                                          : addConverted(outs[0], toType, ins[1], fromType, count);
            });
    }
    keep(launch(AddKernel{{to, toType}, {const_cast<std::byte *>(from), fromType}},
        static_cast<std::int64_t>(count)));
    return true;
}

bool CudaQueue::weigh(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
    const std::byte *all, DataType weightType, std::size_t rows, std::size_t width)
{
    const auto seen = [](const std::byte *data, DataType of) {
        return Elements{const_cast<std::byte *>(data), of};
    };
    if (!isFloatOnDevice(type) || !isFloatOnDevice(weightType) || type == DataType::Float64)
        return false;
    keep(launch(WeighKernel{{to, type}, seen(from, type), seen(own, weightType), seen(all, weightType),
                    static_cast<std::int64_t>(std::max<std::size_t>(width, 1))},
        static_cast<std::int64_t>(rows * width)));
    return true;
}

bool CudaQueue::merge(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
    const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
    std::size_t width)
{
    const auto seen = [](const std::byte *data, DataType of) {
        return Elements{const_cast<std::byte *>(data), of};
    };
    if (!isFloatOnDevice(type) || !isFloatOnDevice(weightType)
        || !combine(logarithms, own, rows, weightType, Combination::LogSumExp))
        return false;
    keep(launch(MergeKernel{{to, type}, {seen(from[0], type), seen(from[1], type)},
                    {seen(own[0], weightType), seen(own[1], weightType)}, {logarithms, weightType},
                    static_cast<std::int64_t>(std::max<std::size_t>(width, 1))},
        static_cast<std::int64_t>(rows * width)));
    return true;
}

bool CudaQueue::convert(
    const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count)
{
    if (fromType == toType) {
        copy(to, from, count * static_cast<std::size_t>(sizeOf(toType)));
        return true;
    }
    if (!isFloating(fromType) || !isFloating(toType))
        return false;
    if (!isLoadable(fromType) || !isLoadable(toType))
        return throughHost({{from, count * static_cast<std::size_t>(sizeOf(fromType))}},
            {{to, count * static_cast<std::size_t>(sizeOf(toType))}}, [=](const auto &ins, const auto &outs) {
                return convertFloats(ins[0], fromType, outs[0], toType, count);
            });
    keep(launch(ConvertKernel{{const_cast<std::byte *>(from), fromType}, {to, toType}},
        static_cast<std::int64_t>(count)));
    return true;
}

Result<void> CudaQueue::upload(
    std::byte *to, std::size_t bytes, const std::function<Result<void>(std::byte *)> &make)
{
    TRY(std::byte *const here, m_task.pinned(bytes));
    TRY_VOID(m_task.onHost(stream(), [here, make] { return make(here); }));
    copy(to, here, bytes);
    return outcome();
}

Result<void> CudaQueue::download(
    const std::byte *from, std::size_t bytes, const std::function<Result<void>(const std::byte *)> &read)
{
    TRY(std::byte *const here, m_task.pinned(bytes));
    copy(here, from, bytes);
    TRY_VOID(outcome());
    return m_task.onHost(stream(), [here, read] { return read(here); });
}

} // namespace planloom
