// Element-wise operators and optimizers on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/unary_parameters.h"
#include "engine/kernels/optimizers/optimizer_parameters.h"

namespace planloom {

namespace {

/// UnaryFunction::Dropped for kinds that are no function of one operand.
UnaryFunction functionOfOne(const Operator &op)
{
    switch (op.kind) {
#define PLANLOOM_KIND_OF_FUNCTION(Name)                                                                      \
    case OperatorKind::Name:                                                                                 \
        return UnaryFunction::Name;
        PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_KIND_OF_FUNCTION)
        PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_KIND_OF_FUNCTION)
    case OperatorKind::Gelu:
        return op.attributes.text("approximate", "none") == "tanh" ? UnaryFunction::GeluTanh
                                                                   : UnaryFunction::GeluErf;
    default:
        return UnaryFunction::Dropped;
    }
}

bool hasSlopeOfValue(UnaryFunction function)
{
    switch (function) {
#define PLANLOOM_SLOPE_OF_VALUE(Name)                                                                        \
    case UnaryFunction::Name:                                                                                \
        return unary::Name::kFromValue;
        PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_SLOPE_OF_VALUE)
        PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_SLOPE_OF_VALUE)
    default:
        return false;
    }
}

std::optional<BinaryFunction> functionOfTwo(const Operator &op)
{
    switch (op.kind) {
    case OperatorKind::Add:
        return BinaryFunction::Add;
    case OperatorKind::Sub:
        return BinaryFunction::Sub;
    case OperatorKind::Mul:
        return BinaryFunction::Mul;
    case OperatorKind::Div:
        return BinaryFunction::Div;
    case OperatorKind::Pow:
        return BinaryFunction::Pow;
    case OperatorKind::Min:
        return BinaryFunction::Min;
    case OperatorKind::Max:
        return BinaryFunction::Max;
    case OperatorKind::PRelu:
        return BinaryFunction::PRelu;
    case OperatorKind::Mod:
        if (op.direction == Direction::Backward)
            return op.attributes.integer("fmod") != 0 ? BinaryFunction::TruncatedMod
                                                      : BinaryFunction::FloorMod;
        return std::nullopt; // with those of integers
    default:
        return std::nullopt;
    }
}

Result<bool> launchUnary(const DeviceCall &device, UnaryFunction function)
{
    UnaryKernel kernel;
    kernel.function = function;
    kernel.parameters = unary::parametersOf<float>(*device.call.op);
    kernel.made = device.output(0);
    if (kernel.made.data == nullptr)
        return true;
    if (!isFloating(kernel.made.type))
        return false;
    if (device.call.op->direction == Direction::Forward) {
        kernel.x = device.input(0);
    } else {
        const BackwardCall back(device.call);
        kernel.dy = device.of(back.gradient());
        kernel.x = device.of(back.input(0));
        if (kernel.x.data == nullptr && hasSlopeOfValue(function)) {
            kernel.x = device.of(back.output(0));
            kernel.fromValue = true;
        }
        if (kernel.x.data == nullptr && function == UnaryFunction::Neg)
            kernel.x = kernel.dy; // the one slope that depends on neither
        if (kernel.dy.data == nullptr)
            return false;
    }
    if (kernel.x.data == nullptr)
        return false;
    TRY_VOID(device.queue.launch(kernel, elementCount(device.call.outputs[0].shape)));
    return true;
}

Result<bool> launchBinaryForward(const DeviceCall &device, BinaryFunction function)
{
    BinaryKernel kernel;
    kernel.function = function;
    kernel.a = device.input(0);
    kernel.b = device.input(1);
    kernel.made = device.output(0);
    if (kernel.made.data == nullptr)
        return true;
    const Buffer &y = device.call.outputs[0];
    if (kernel.a.data == nullptr || kernel.b.data == nullptr || !isFloating(kernel.made.type))
        return false;
    const auto nest = nestOf<2>(y.shape,
        {broadcastStrides(device.call.inputs[0].shape, y.shape),
            broadcastStrides(device.call.inputs[1].shape, y.shape)});
    if (!nest)
        return false;
    kernel.nest = *nest;
    TRY_VOID(device.queue.launch(kernel, elementCount(y.shape)));
    return true;
}

/// The gradient of operand `side`; where it was broadcast, a sum.
Result<bool> launchBinarySlope(const DeviceCall &device, BinaryFunction function, std::int32_t side, bool dry)
{
    const BackwardCall back(device.call);
    const Buffer *const target = back.wanted(static_cast<std::size_t>(side));
    if (target == nullptr)
        return true;
    const Buffer *const dy = back.gradient();
    const Buffer *const a = back.input(0);
    const Buffer *const b = back.input(1);
    if (dy == nullptr)
        return false;
    const bool isSum = function == BinaryFunction::Add || function == BinaryFunction::Sub;
    const bool needsA =
        !isSum && !(side == 0 && (function == BinaryFunction::Mul || function == BinaryFunction::Div));
    const bool needsB =
        !isSum && !(side == 1 && (function == BinaryFunction::Mul || function == BinaryFunction::PRelu));
    if ((needsA && a == nullptr) || (needsB && b == nullptr))
        return false;
    const Shape still(dy->shape.size(), 0);
    const Shape stridesA = needsA ? broadcastStrides(a->shape, dy->shape) : still;
    const Shape stridesB = needsB ? broadcastStrides(b->shape, dy->shape) : still;
    const Elements seenA = needsA ? device.of(a) : Elements{};
    const Elements seenB = needsB ? device.of(b) : Elements{};
    if (target->shape == dy->shape) {
        const auto nest = nestOf<2>(dy->shape, {stridesA, stridesB});
        if (!nest || dry)
            return static_cast<bool>(nest);
        TRY_VOID(device.queue.launch(
            BinaryKernel{seenA, seenB, device.of(dy), device.of(target), function, side, *nest},
            elementCount(dy->shape)));
        return true;
    }
    const auto nests = reducedNests(
        dy->shape, {denseStrides(dy->shape), stridesA, stridesB}, broadcastStrides(target->shape, dy->shape));
    if (!nests || nests->outputs != elementCount(target->shape) || dry)
        return nests && nests->outputs == elementCount(target->shape);
    ReduceKernel kernel;
    kernel.x = device.of(dy);
    kernel.a = seenA;
    kernel.b = seenB;
    kernel.made = device.of(target);
    kernel.function = function;
    kernel.slope = side;
    kernel.count = nests->count;
    kernel.outer = nests->outer;
    kernel.inner = nests->inner;
    TRY_VOID(device.queue.launch(kernel, nests->outputs));
    return true;
}

Result<bool> launchBinary(const DeviceCall &device, BinaryFunction function)
{
    if (device.call.op->direction == Direction::Forward)
        return launchBinaryForward(device, function);
    for (const bool dry : {true, false}) // both gradients, or none
        for (const std::int32_t side : {0, 1}) {
            TRY(const bool launched, launchBinarySlope(device, function, side, dry));
            if (!launched)
                return false;
        }
    return true;
}

Result<bool> launchWhere(const DeviceCall &device)
{
    const Elements condition = device.input(0);
    const Elements a = device.input(1);
    const Elements b = device.input(2);
    const Elements y = device.output(0);
    if (y.data == nullptr)
        return true;
    if (condition.data == nullptr || sizeOf(condition.type) != 1 || a.data == nullptr || b.data == nullptr
        || a.type != y.type || b.type != y.type)
        return false;
    const Shape &shape = device.call.outputs[0].shape;
    const auto nest = nestOf<3>(shape,
        {broadcastStrides(device.call.inputs[0].shape, shape),
            broadcastStrides(device.call.inputs[1].shape, shape),
            broadcastStrides(device.call.inputs[2].shape, shape)});
    if (!nest)
        return false;
    TRY_VOID(device.queue.launch(WhereKernel{static_cast<const std::uint8_t *>(condition.data), a.data,
                                     b.data, y.data, static_cast<std::int32_t>(sizeOf(y.type)), *nest},
        elementCount(shape)));
    return true;
}

Result<bool> launchDropout(const DeviceCall &device)
{
    // Forward and backward alike: where its output, or its gradient, lies in the whole.
    const bool forward = device.call.op->direction == Direction::Forward;
    const Elements from = device.input(0);
    const Elements to = device.output(0);
    if (to.data == nullptr)
        return true;
    const Buffer &place = forward ? device.call.outputs[0] : device.call.inputs[0];
    const double ratio = device.call.op->attributes.real("ratio", 0.5);
    if (from.data == nullptr || ratio <= 0)
        return false;
    Shape whole;
    for (std::size_t d = 0; d < place.shape.size(); ++d)
        whole.push_back(wholeExtent(place, d));
    const Shape strides = denseStrides(whole);
    const auto nest = nestOf<1>(place.shape, {strides});
    if (!nest)
        return false;
    const DropoutDraw draw(device.call.seed, device.call.op->attributes.integer("seed"), ratio);
    DropoutKernel kernel{
        from, to, draw.key, draw.bound, 0, ratio >= 1 ? 0.0f : static_cast<float>(1 / (1 - ratio)), *nest};
    for (std::size_t d = 0; d < place.shape.size(); ++d)
        kernel.first += static_cast<std::uint64_t>(firstOf(place, d) * strides[d]);
    TRY_VOID(device.queue.launch(kernel, elementCount(place.shape)));
    return true;
}

Result<bool> launchOptimizer(const DeviceCall &device)
{
    const Operator &op = *device.call.op;
    if (op.kind == OperatorKind::SquareSum || op.kind == OperatorKind::ClipFactor)
        return launchClipping(device);
    const std::int64_t count = device.call.outputs.empty() ? 0 : elementCount(device.call.outputs[0].shape);
    if (op.kind == OperatorKind::AdamWStep) {
        for (std::size_t slot = 0; slot < 4; ++slot)
            if (device.input(slot).data == nullptr || (slot < 3 && device.output(slot).data == nullptr))
                return false;
        AdamWKernel kernel{device.input(0), device.input(1), device.input(2), device.input(3),
            device.output(0), device.output(1), device.output(2), device.gradientFactor(),
            adamWOf<float>(device.call), nullptr, device.input(factorSlotOf(op.kind))};
        TRY(kernel.fresh, device.queue.fresh(kernel.own));
        TRY_VOID(device.queue.launch(kernel, count));
        return true;
    }
    if (op.kind != OperatorKind::SgdStep || device.input(0).data == nullptr || device.input(1).data == nullptr
        || device.output(0).data == nullptr)
        return false;
    const Attributes &a = op.attributes;
    SgdKernel kernel{device.input(0), device.input(1), device.input(2), device.output(0), device.output(1),
        device.gradientFactor(), static_cast<float>(a.real("weight_decay", 0)),
        static_cast<float>(a.real("momentum", 0)), static_cast<float>(learningRateOf(device.call)), nullptr,
        device.input(factorSlotOf(op.kind))};
    TRY(kernel.freshRate, device.queue.fresh(kernel.ownRate));
    TRY_VOID(device.queue.launch(kernel, count));
    return true;
}

} // namespace

Result<bool> launchElementWise(const DeviceCall &device)
{
    const Operator &op = *device.call.op;
    if (op.direction == Direction::Optimizer)
        return launchOptimizer(device);
    if (const UnaryFunction function = functionOfOne(op); function != UnaryFunction::Dropped)
        return launchUnary(device, function);
    if (const auto function = functionOfTwo(op)) {
        TRY(const bool launched, launchBinary(device, *function));
        if (launched)
            return true;
    }
    if (op.kind == OperatorKind::Where && op.direction == Direction::Forward)
        return launchWhere(device);
    if (op.kind == OperatorKind::Dropout)
        return launchDropout(device);
    return false;
}

} // namespace planloom
