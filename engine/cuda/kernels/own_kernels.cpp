#include "engine/cuda/kernels/own_kernels.h"

#include "engine/cuda/kernels/nests.h"

#include <algorithm>

namespace planloom {

namespace {

/// Moves what kernels of the CPU plan to move, on the device.
class QueueMover final : public ElementMover
{
public:
    explicit QueueMover(CudaQueue &queue)
        : m_queue(queue)
    {
    }
    void move(std::int64_t elementSize, const Shape &extents, const void *from, const Shape &fromStrides,
        void *to, const Shape &toStrides) override
    {
        if (outcome)
            outcome = launchMove(m_queue, {from, to, elementSize, extents, fromStrides, toStrides});
    }
    void clear(void *to, std::size_t bytes) override { m_queue.fill(static_cast<std::byte *>(to), 0, bytes); }

    Result<void> outcome{};

private:
    CudaQueue &m_queue;
};

/// Of operators that only move elements, all of one size: the CPU's kernel says what goes where.
Result<bool> launchMoves(const DeviceCall &device)
{
    KernelCall call = device.call;
    std::int64_t size = 0;
    const auto typed = [&](std::vector<Buffer> &buffers, std::size_t count, auto elementsOf) {
        for (std::size_t slot = 0; slot < std::min(count, buffers.size()); ++slot) {
            const Elements elements = elementsOf(slot);
            if (elements.data == nullptr)
                continue;
            const std::int64_t own = sizeOf(elements.type);
            if (size != 0 && own != size)
                return false;
            size = own;
            // Bits are moved, whatever they mean: as integers, nobody asks for a conversion.
            buffers[slot].dataType = size == 8 ? DataType::Int64
                : size == 4                    ? DataType::Int32
                : size == 2                    ? DataType::Int16
                                               : DataType::Int8;
        }
        return true;
    };
    // What else some have among their inputs says where to, as their attributes do.
    const std::size_t moved = call.op->direction == Direction::Backward ? BackwardCall(call).forwardOutputs()
        : call.op->kind == OperatorKind::Concat                         ? call.inputs.size()
                                                                        : 1;
    if (!typed(call.inputs, moved, [&](std::size_t slot) { return device.input(slot); })
        || !typed(call.outputs, call.outputs.size(), [&](std::size_t slot) { return device.output(slot); }))
        return false;
    QueueMover mover(device.queue);
    call.mover = &mover;
    TRY_VOID(runKernel(call));
    TRY_VOID(std::move(mover.outcome));
    TRY_VOID(device.queue.outcome());
    return true;
}

Result<bool> launchCast(const DeviceCall &device)
{
    const Elements x = device.input(0); // the gradient, backward
    const Elements y = device.output(0);
    if (y.data == nullptr)
        return true;
    if (x.data == nullptr || !isLoadable(x.type) || !isLoadable(y.type))
        return false;
    const Buffer &made = device.call.outputs[0];
    if (x.type == y.type) {
        if (x.data != y.data)
            device.queue.copy(static_cast<std::byte *>(y.data), static_cast<const std::byte *>(x.data),
                static_cast<std::size_t>(elementCount(made.shape) * sizeOf(y.type)));
        TRY_VOID(device.queue.outcome());
        return true;
    }
    return launched(device.queue.launch(ConvertKernel{x, y}, elementCount(made.shape)));
}

} // namespace

bool DeviceCall::isFloat32OrNarrower() const
{
    const auto fits = [](const Elements &elements) {
        return elements.data == nullptr || (isLoadable(elements.type) && elements.type != DataType::Float64);
    };
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot)
        if (!fits(input(slot)))
            return false;
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot)
        if (!fits(output(slot)))
            return false;
    return true;
}

Result<Problem *> DeviceCall::problem(const char *what, bool mayBeNegative) const
{
    return queue.task().problem([what = std::string{what}, mayBeNegative, name = call.op->name](
                                    const Problem &found) {
        const std::string bound = std::to_string(found.bound);
        return Error{ErrorCode::InvalidInput,
            "operator " + name + " got " + what + " " + std::to_string(found.value) + ", expected one in ["
                + (mayBeNegative ? "-" + bound : std::string{"0"}) + ", " + bound + ")",
            "check the values fed to the model's inputs", "operator:" + name};
    });
}

std::optional<ReducedNests> reducedNests(
    const Shape &shape, const std::array<Shape, 3> &operands, const Shape &made, std::int64_t count)
{
    ReducedNests nests;
    std::array<Shape, 2> extents; // kept, reduced
    std::array<std::array<Shape, 3>, 2> strides;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::size_t which = made[d] == 0 ? 1 : 0;
        (which == 1 ? nests.count : nests.outputs) *= shape[d];
        extents[which].push_back(shape[d]);
        for (std::size_t n = 0; n < operands.size(); ++n)
            strides[which][n].push_back(operands[n][d]);
    }
    const auto outer = nestOf<3>(extents[0], strides[0]);
    const auto inner = nestOf<3>(extents[1], strides[1]);
    if (!outer || !inner || nests.outputs != count)
        return std::nullopt;
    nests.outer = *outer;
    nests.inner = *inner;
    return nests;
}

Result<bool> launchOwnKernel(CudaQueue &queue, const KernelCall &call, const KernelRounding *rounding)
{
    const DeviceCall device(queue, call, rounding);
    const Operator &op = *call.op;
    const bool isEmpty = std::any_of(call.inputs.begin(), call.inputs.end(),
        [](const Buffer &buffer) { return buffer.data != nullptr && elementCount(buffer.shape) == 0; });
    if (isEmpty) // what a sum over nothing leaves, the CPU's kernels know
        return false;
    if (onlyMoves(op))
        return launchMoves(device);
    if (op.kind == OperatorKind::Cast || op.kind == OperatorKind::Identity)
        return launchCast(device);
    if (!device.isFloat32OrNarrower())
        return false;
    for (const auto family : {launchElementWise, launchProduct, launchRows, launchLoss, launchEmbedding,
             launchAttention, launchWindows, launchChannels, launchPicks}) {
        TRY(const bool launched, family(device));
        if (launched)
            return true;
    }
    return false;
}

} // namespace planloom
