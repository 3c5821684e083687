// Element-wise operators and optimizers on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/element_plans.h"
#include "engine/kernels/elements/unary_parameters.h"
#include "engine/kernels/movement/pick_plans.h"
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
    return launchPlanned(device, planUnary(device.call, hasSlopeOfValue(function)),
        [function](const DeviceCall &to, const UnaryPlan &plan) -> Result<bool> {
            if (!isFloating(to.of(plan.made).type))
                return false;
            return launched(
                to.queue.launch(UnaryKernel{to.of(plan.x), to.of(plan.dy), to.of(plan.made), function,
                                    plan.fromValue, unary::parametersOf<float>(*to.call.op)},
                    elementCount(*plan.made)));
        });
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

int needsOf(BinaryFunction function, std::size_t side)
{
    using namespace binary;
    static constexpr const int *kNeeds[] = {Add::kSlopeNeeds, Sub::kSlopeNeeds, Mul::kSlopeNeeds,
        Div::kSlopeNeeds, Pow::kSlopeNeeds, Min::kSlopeNeeds, Max::kSlopeNeeds, PRelu::kSlopeNeeds,
        FloorMod::kSlopeNeeds, TruncatedMod::kSlopeNeeds}; // as BinaryFunction has them
    return kNeeds[static_cast<std::size_t>(function)][side];
}

/// The gradient of operand `side`; where it was broadcast, a sum. @param dry  launches nothing
Result<bool> launchBinarySlope(const DeviceCall &device, BinaryFunction function, std::int32_t side, bool dry)
{
    const auto found = planBinarySlope(
        device.call, needsOf(function, static_cast<std::size_t>(side)), static_cast<std::size_t>(side));
    if (!found || !*found)
        return found.has_value();
    const BinarySlopePlan &plan = **found;
    const Buffer &dy = *plan.dy;
    if (!plan.isSum()) {
        const auto nest = nestOf<2>(dy.shape, {plan.stridesA, plan.stridesB});
        if (!nest || dry)
            return static_cast<bool>(nest);
        return launched(
            device.queue.launch(BinaryKernel{device.of(plan.a), device.of(plan.b), device.of(plan.dy),
                                    device.of(plan.made), function, side, *nest},
                elementCount(dy)));
    }
    const auto nests = reducedNests(dy.shape, {denseStrides(dy.shape), plan.stridesA, plan.stridesB},
        plan.stridesMade, elementCount(*plan.made));
    if (!nests || dry)
        return static_cast<bool>(nests);
    ReduceKernel kernel;
    kernel.x = device.of(plan.dy);
    kernel.a = device.of(plan.a);
    kernel.b = device.of(plan.b);
    kernel.made = device.of(plan.made);
    kernel.function = function;
    kernel.slope = side;
    kernel.count = nests->count;
    kernel.outer = nests->outer;
    kernel.inner = nests->inner;
    return launched(device.queue.launch(kernel, nests->outputs));
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

Result<bool> launchDropout(const DeviceCall &device, const DropoutPlan &plan)
{
    const auto nest = nestOf<1>(plan.made->shape, {plan.strides});
    if (!nest || plan.ratio <= 0)
        return false;
    return launched(device.queue.launch(
        DropoutKernel{device.of(plan.x), device.of(plan.made), plan.draw.key, plan.draw.bound,
            static_cast<std::uint64_t>(plan.first), static_cast<float>(plan.scale()), *nest},
        elementCount(*plan.made)));
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
        return launchPlanned(device, planDropout(device.call), launchDropout);
    return false;
}

} // namespace planloom
