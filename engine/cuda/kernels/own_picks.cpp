// Comparisons, logic, integers, Where's gradient and gathering on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/graph/operators/places.h"
#include "engine/kernels/elements/element_plans.h"
#include "engine/kernels/movement/pick_plans.h"
#include "engine/kernels/number_attribute.h"

namespace planloom {

namespace {

std::optional<PairFunction> pairOf(const Operator &op)
{
    switch (op.kind) {
#define PLANLOOM_PAIR(Name)                                                                                  \
    case OperatorKind::Name:                                                                                 \
        return PairFunction::Name;
        PLANLOOM_PAIR(Equal)
        PLANLOOM_PAIR(Greater)
        PLANLOOM_PAIR(GreaterOrEqual)
        PLANLOOM_PAIR(Less)
        PLANLOOM_PAIR(LessOrEqual)
        PLANLOOM_PAIR(And)
        PLANLOOM_PAIR(Or)
        PLANLOOM_PAIR(Xor)
        PLANLOOM_PAIR(BitwiseAnd)
        PLANLOOM_PAIR(BitwiseOr)
        PLANLOOM_PAIR(BitwiseXor)
        PLANLOOM_PAIR(Add)
        PLANLOOM_PAIR(Sub)
        PLANLOOM_PAIR(Mul)
        PLANLOOM_PAIR(Div)
        PLANLOOM_PAIR(Pow)
        PLANLOOM_PAIR(Min)
        PLANLOOM_PAIR(Max)
#undef PLANLOOM_PAIR
    case OperatorKind::Mod:
        return op.attributes.integer("fmod") != 0 ? PairFunction::TruncatedMod : PairFunction::FloorMod;
    case OperatorKind::BitShift:
        return op.attributes.text("direction") == "LEFT" ? PairFunction::ShiftLeft : PairFunction::ShiftRight;
    default:
        return std::nullopt;
    }
}

Result<bool> launchPair(const DeviceCall &device, PairFunction function)
{
    PairKernel kernel;
    kernel.a = device.input(0);
    kernel.b = device.input(1);
    kernel.made = device.output(0);
    kernel.function = function;
    if (kernel.made.data == nullptr)
        return true;
    if (kernel.a.data == nullptr || kernel.b.data == nullptr || kernel.a.type != kernel.b.type)
        return false;
    kernel.floats = isFloating(kernel.a.type);
    const bool compares = function <= PairFunction::Xor;
    if (kernel.floats ? function > PairFunction::TruncatedMod : isFloating(kernel.made.type))
        return false; // of binary_functions.h
    if (compares ? sizeOf(kernel.made.type) != 1 : kernel.made.type != kernel.a.type && !kernel.floats)
        return false;
    const Buffer &y = device.call.outputs[0];
    const auto nest = nestOf<2>(y.shape,
        {broadcastStrides(device.call.inputs[0].shape, y.shape),
            broadcastStrides(device.call.inputs[1].shape, y.shape)});
    if (!nest)
        return false;
    kernel.nest = *nest;
    if (!kernel.floats) {
        const bool rest = function != PairFunction::Div;
        TRY(kernel.problem, device.queue.task().problem([name = device.call.op->name, rest](const Problem &) {
            return Error{ErrorCode::InvalidInput,
                "operator " + name + (rest ? " takes a remainder by zero" : " divides integers by zero"), {},
                "operator:" + name};
        }));
    }
    TRY_VOID(device.queue.launch(kernel, elementCount(y.shape)));
    return true;
}

/// The gradient of one side of a Where. @param dry  launches nothing
Result<bool> launchWhereSlope(const DeviceCall &device, std::size_t side, bool dry)
{
    const auto found = planWhereSlope(device.call, side);
    if (!found || !*found)
        return found.has_value();
    const BinarySlopePlan &plan = **found;
    const Shape &shape = plan.dy->shape;
    if (!isFloating(device.of(plan.dy).type) || sizeOf(plan.a->dataType) != 1)
        return false;
    const auto *const chosen = static_cast<const std::uint8_t *>(device.of(plan.a).data);
    if (!plan.isSum()) {
        const auto nest = nestOf<1>(shape, {plan.stridesA});
        if (!nest || dry)
            return static_cast<bool>(nest);
        return launched(device.queue.launch(
            WhereSlopeKernel{chosen, device.of(plan.dy), device.of(plan.made), side == 1, *nest},
            elementCount(shape)));
    }
    const auto nests = reducedNests(shape, {denseStrides(shape), plan.stridesA, plan.stridesB},
        plan.stridesMade, elementCount(*plan.made));
    if (!nests || dry)
        return static_cast<bool>(nests);
    return launched(device.queue.launch(WhereSumKernel{chosen, device.of(plan.dy), device.of(plan.made),
                                            side == 1, nests->count, nests->outer, nests->inner},
        nests->outputs));
}

/// The gradients of both sides, or none.
Result<bool> launchWhereSlopes(const DeviceCall &device)
{
    for (const bool dry : {true, false})
        for (const std::size_t side : {1, 2}) {
            TRY(const bool isLaunched, launchWhereSlope(device, side, dry));
            if (!isLaunched)
                return false;
        }
    return true;
}

/// What kinds of gathering have in common: x as [outer, named by the indices, run].
struct Picking {
    IndexTuple tuple{};
    Shape shape{}; ///< Of y, as loops.
    Shape base{}; ///< Strides of what x begins at,
    Shape place{}; ///< and of the indices.
    // Backward:
    Shape ofX{}; ///< dx, as loops,
    Shape own{}; ///< with strides of the offset that indices give,
    Shape first{}; ///< of the indices,
    Shape firstY{}; ///< and of dy.
    std::int64_t count = 0;
    std::int64_t indexStep = 1;
    std::int64_t step = 1;
};

Picking pickAxis(const Shape &x, const Shape &indices, std::int64_t axis)
{
    const AxisView view = axisView(x, axis);
    Picking picking;
    picking.tuple.bounds[0] = view.extent;
    picking.tuple.strides[0] = view.inner;
    picking.count = elementCount(indices);
    picking.shape = {view.outer, picking.count, view.inner};
    picking.base = {view.extent * view.inner, 0, 1};
    picking.place = {0, 1, 0};
    picking.ofX = {view.outer, view.extent, view.inner};
    picking.own = {0, view.inner, 0};
    picking.first = {0, 0, 0};
    picking.firstY = {picking.count * view.inner, 0, 1};
    picking.step = view.inner;
    return picking;
}

/// Nothing where there are fewer indices than places beside the axis.
std::optional<Picking> pickElements(const Shape &x, const Shape &indices, std::size_t axis, bool backward)
{
    for (std::size_t d = 0; d < x.size(); ++d)
        if (backward && d != axis && x[d] != indices[d])
            return std::nullopt;
    const Shape strides = denseStrides(x);
    const Shape dense = denseStrides(indices);
    Picking picking;
    picking.tuple.bounds[0] = x[axis];
    picking.tuple.strides[0] = strides[axis];
    picking.shape = indices;
    picking.base = strides;
    picking.base[axis] = 0;
    picking.place = dense;
    picking.ofX = x;
    picking.own = Shape(x.size(), 0);
    picking.own[axis] = strides[axis];
    picking.first = dense;
    picking.first[axis] = 0;
    picking.firstY = picking.first;
    picking.count = indices[axis];
    picking.indexStep = picking.step = dense[axis];
    return picking;
}

std::optional<Picking> pickTuples(const Shape &x, const Shape &indices, std::int64_t batchDims)
{
    const std::int64_t width = indices.back();
    if (width > kMostIndices)
        return std::nullopt;
    const Shape dense = denseStrides(x);
    std::int64_t batches = 1;
    std::int64_t named = 1;
    std::int64_t run = 1;
    Picking picking;
    picking.tuple.width = static_cast<std::int32_t>(width);
    for (std::size_t d = 0; d < x.size(); ++d) {
        const auto q = static_cast<std::int64_t>(d) - batchDims;
        (q < 0 ? batches : q < width ? named : run) *= x[d];
        if (q < 0 || q >= width)
            continue;
        picking.tuple.bounds[q] = x[d];
        picking.tuple.strides[q] = dense[d];
    }
    const std::int64_t each = elementCount(indices) / std::max<std::int64_t>(width * batches, 1);
    picking.count = each;
    picking.shape = {batches, each, run};
    picking.base = {named * run, 0, 1};
    picking.place = {each * width, width, 0};
    picking.ofX = {batches, named, run};
    picking.own = {0, run, 0};
    picking.first = {each * width, 0, 0};
    picking.firstY = {each * run, 0, 1};
    picking.indexStep = width;
    picking.step = run;
    return picking;
}

Result<bool> launchPick(const DeviceCall &device, const PickPlan &plan)
{
    const Operator &op = *device.call.op;
    const Buffer *x = plan.x;
    const Shape &indices = plan.indices->shape;
    const Elements seen = device.of(x);
    const bool forward = op.direction == Direction::Forward;
    if (hasPlaces(op.attributes) || indices.size() + x->shape.size() == 0
        || (forward ? sizeOf(seen.type) != sizeOf(device.of(plan.y).type) : !isFloating(seen.type)))
        return false;
    const std::int64_t axis = op.attributes.integer("axis");
    auto picking = op.kind == OperatorKind::Gather ? pickAxis(x->shape, indices, axis)
        : op.kind == OperatorKind::GatherElements
        ? pickElements(x->shape, indices, static_cast<std::size_t>(axis), !forward)
        : pickTuples(x->shape, indices, op.attributes.integer("batch_dims"));
    if (!picking)
        return false;
    picking->tuple.indices = device.of(plan.indices);
    if (forward) {
        const auto nest = nestOf<2>(picking->shape, {picking->base, picking->place});
        if (!nest)
            return false;
        TRY(picking->tuple.problem, device.problem("index", true));
        return launched(
            device.queue.launch(PickKernel{x->data, plan.y->data,
                                    static_cast<std::int32_t>(sizeOf(seen.type)), picking->tuple, *nest},
                elementCount(*plan.y)));
    }
    const auto nest = nestOf<3>(picking->ofX, {picking->own, picking->first, picking->firstY});
    if (!nest)
        return false;
    TRY(picking->tuple.problem, device.problem("index", true));
    return launched(device.queue.launch(PickSumKernel{device.of(plan.y), seen, picking->tuple, picking->count,
                                            picking->indexStep, picking->step, *nest},
        elementCount(*x)));
}

/// Fill and Range.
Result<bool> launchNumbers(const DeviceCall &device)
{
    const Buffer *y = findOutput(device.call, 0);
    if (y == nullptr)
        return true;
    const Attributes &attributes = device.call.op->attributes;
    const bool isRange = device.call.op->kind == OperatorKind::Range;
    const char *const begin = isRange ? "start" : "value";
    const std::int64_t first = isRange && !y->shape.empty() ? firstOf(*y, 0) : 0;
    RangeKernel kernel;
    kernel.made = device.of(y);
    kernel.floats = isFloating(kernel.made.type);
    if (kernel.floats) {
        kernel.delta = isRange ? numberOf(attributes, "delta", 1.0) : 0.0;
        kernel.start = numberOf(attributes, begin, 0.0) + static_cast<double>(first) * kernel.delta;
    } else {
        kernel.wholeDelta = isRange ? numberOf<std::int64_t>(attributes, "delta", 1) : 0;
        kernel.wholeStart = numberOf<std::int64_t>(attributes, begin, 0) + first * kernel.wholeDelta;
    }
    TRY_VOID(device.queue.launch(kernel, elementCount(*y)));
    return true;
}

Result<bool> launchScan(const DeviceCall &device, const ScanPlan &plan)
{
    const AxisView &view = plan.view;
    return launched(device.queue.launch(ScanKernel{device.of(plan.x), device.of(plan.made), view.extent,
                                            view.inner, plan.fromBack, plan.exclusive},
        view.outer * view.inner));
}

} // namespace

Result<bool> launchPicks(const DeviceCall &device)
{
    const Operator &op = *device.call.op;
    const bool forward = op.direction == Direction::Forward;
    if (op.kind == OperatorKind::Gather || op.kind == OperatorKind::GatherElements
        || op.kind == OperatorKind::GatherND)
        return launchPlanned(device, planPick(device.call), launchPick);
    if ((op.kind == OperatorKind::Fill || op.kind == OperatorKind::Range) && forward)
        return launchNumbers(device);
    if (op.kind == OperatorKind::CumSum)
        return launchPlanned(device, planScan(device.call), launchScan);
    if (op.kind == OperatorKind::Where && !forward)
        return launchWhereSlopes(device);
    if (const auto function = pairOf(op); function && forward)
        return launchPair(device, *function);
    return false;
}

} // namespace planloom
