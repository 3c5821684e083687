#pragma once

#include "engine/cuda/backend/cuda_queue.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_plan.h"

#include <cstddef>

namespace planloom {

/// A call as kernels of the device see it: elements of the types that memory holds.
class DeviceCall
{
public:
    DeviceCall(CudaQueue &queue, const KernelCall &call, const KernelRounding *rounding)
        : queue(queue)
        , call(call)
        , m_rounding(rounding)
    {
    }

    Elements input(std::size_t slot) const
    {
        if (slot >= call.inputs.size() || call.inputs[slot].data == nullptr)
            return {};
        return {call.inputs[slot].data, m_rounding ? m_rounding->inputs[slot] : call.inputs[slot].dataType};
    }
    Elements output(std::size_t slot) const
    {
        if (slot >= call.outputs.size() || call.outputs[slot].data == nullptr)
            return {};
        return {
            call.outputs[slot].data, m_rounding ? m_rounding->outputs[slot] : call.outputs[slot].dataType};
    }
    /// The elements of one of the call's own buffers; none for null.
    Elements of(const Buffer *buffer) const
    {
        for (std::size_t slot = 0; slot < call.inputs.size(); ++slot)
            if (buffer == &call.inputs[slot])
                return input(slot);
        for (std::size_t slot = 0; slot < call.outputs.size(); ++slot)
            if (buffer == &call.outputs[slot])
                return output(slot);
        return {};
    }
    DataType compute() const { return m_rounding ? m_rounding->compute : DataType::Float32; }
    float gradientFactor() const { return m_rounding ? m_rounding->gradientFactor : 1.0f; }

    /// Every float is one that kernels load and compute with as Float32; indices and masks may be among them.
    bool isFloat32OrNarrower() const;
    /// Elements that one element of scratch memory of the queue stands for.
    template<typename T> Result<T *> scratch(std::int64_t count) const
    {
        TRY(std::byte *const made, queue.scratch().take(static_cast<std::size_t>(count) * sizeof(T)));
        return reinterpret_cast<T *>(made);
    }
    /// Fills a buffer of the call with zeros; says so at `CudaQueue::outcome`.
    void clear(const Buffer &buffer) const
    {
        queue.fill(buffer.data, 0, static_cast<std::size_t>(elementCount(buffer) * sizeOf(of(&buffer).type)));
    }
    /// Where a kernel tells of an index or a label that is out of range. @param what  "index"
    Result<Problem *> problem(const char *what, bool mayBeNegative) const;

    CudaQueue &queue;
    const KernelCall &call;

private:
    const KernelRounding *m_rounding;
};

/// True, or what went wrong.
inline Result<bool> launched(Result<void> outcome)
{
    TRY_VOID(std::move(outcome));
    return true;
}

/// What launch(device, plan) says; true where the call wants nothing. False where the plan is an error, too:
/// the CPU's kernel is then run, and says it.
template<typename Plan, typename Launch>
Result<bool> launchPlanned(const DeviceCall &device, const Planned<Plan> &plan, const Launch &launch)
{
    if (!plan)
        return false;
    return *plan ? launch(device, **plan) : Result<bool>{true};
}

// Families of kernels: false if theirs does not do what the call asks for; nothing was launched then. Slots
// are as the CPU's kernels have them, which say what each kind means.
Result<bool> launchElementWise(
    const DeviceCall &device); ///< Of one or two operands, Where, Dropout, optimizers.
Result<bool> launchProduct(const DeviceCall &device); ///< Linear, MatMul.
Result<bool> launchRows(const DeviceCall &device); ///< Softmax, norms, reductions.
Result<bool> launchClipping(
    const DeviceCall &device); ///< Sums of squares of gradients, and the factor of them.
Result<bool> launchLoss(const DeviceCall &device); ///< CrossEntropy, NegativeLogLikelihood, ClassStatistics.
Result<bool> launchEmbedding(const DeviceCall &device); ///< Embedding, Rotary.
Result<bool> launchAttention(const DeviceCall &device);
Result<bool> launchWindows(const DeviceCall &device); ///< Convolution, pooling.
Result<bool> launchChannels(const DeviceCall &device); ///< BatchMean, BatchVariance, BatchNormalize.
Result<bool> launchPicks(
    const DeviceCall &device); ///< Comparisons, logic, integers, Where's gradient, Gather.

/// The sum of x over all dimensions along which `strides`, those of what is made, are 0.
struct ReducedNests {
    Nest<3> outer{};
    Nest<3> inner{};
    std::int64_t outputs = 1;
    std::int64_t count = 1;
};
/// @param operands  strides, over `shape`, of what is read @param made  those of what is made
/// @param count  elements made: nothing if the nests make another number of them
std::optional<ReducedNests> reducedNests(
    const Shape &shape, const std::array<Shape, 3> &operands, const Shape &made, std::int64_t count);

} // namespace planloom
