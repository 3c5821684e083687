// Losses, embeddings and rotary positions on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"

namespace planloom {

namespace {

/// Logits are [n c ..], or [c] with a single label.
std::size_t classAxis(const Buffer &logits)
{
    return logits.shape.size() == 1 ? 0 : 1;
}

AxisView classView(const Buffer &logits)
{
    return axisView(logits.shape, static_cast<std::int64_t>(classAxis(logits)));
}

Result<LabelRules> rulesOf(
    const DeviceCall &device, const Buffer &labels, const Buffer *weights, std::int64_t classes)
{
    LabelRules rules;
    rules.labels = device.of(&labels);
    rules.weights = device.of(weights);
    rules.ignores = device.call.op->attributes.has("ignore_index");
    if (rules.ignores)
        rules.ignored = device.call.op->attributes.integer("ignore_index");
    rules.classes = classes;
    TRY(rules.problem, device.problem("label", false));
    return rules;
}

Result<bool> launchLossForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *labels = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr || labels == nullptr || isFloating(device.of(labels).type))
        return false;
    const AxisView view = classView(*x);
    const std::int64_t items = view.outer * view.inner;
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    CrossEntropyKernel kernel;
    kernel.x = device.of(x);
    TRY(kernel.rules, rulesOf(device, *labels, findInput(call, 2), view.extent));
    kernel.place = {view.extent, view.inner};
    kernel.logits = call.op->kind == OperatorKind::CrossEntropy;
    if (sum) {
        TRY(kernel.losses, device.scratch<double>(items));
    } else {
        kernel.made = device.of(y);
    }
    TRY_VOID(device.queue.launch(kernel, items));
    if (sum)
        TRY_VOID(device.queue.launch(SumKernel{kernel.losses, device.of(y), items}, 1));
    return true;
}

Result<bool> launchLossBackward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *labels = back.input(1);
    if (dx == nullptr)
        return true;
    const bool logits = call.op->kind == OperatorKind::CrossEntropy;
    if (dy == nullptr || labels == nullptr || (logits && x == nullptr) || isFloating(device.of(labels).type))
        return false;
    const AxisView view = classView(*dx);
    CrossEntropySlopeKernel kernel;
    kernel.x = device.of(x);
    kernel.dy = device.of(dy);
    kernel.made = device.of(dx);
    TRY(kernel.rules, rulesOf(device, *labels, back.input(2), view.extent));
    kernel.place = {view.extent, view.inner};
    kernel.logits = logits;
    kernel.oneGradient = call.op->attributes.text("reduction", "sum") == "sum";
    TRY_VOID(device.queue.launch(kernel, view.outer * view.inner));
    return true;
}

/// Without the number of classes, labels are only known not to be negative.
std::int64_t classesKnown(const Buffer *weights)
{
    return weights == nullptr ? std::numeric_limits<std::int64_t>::max() : elementCount(*weights);
}

Result<bool> launchCountValid(const DeviceCall &device)
{
    const Buffer *labels = findInput(device.call, 0);
    const Buffer *weights = findInput(device.call, 1);
    const Buffer *y = findOutput(device.call, 0);
    if (y == nullptr)
        return true;
    if (labels == nullptr || isFloating(device.of(labels).type) || !isFloating(device.of(y).type))
        return false;
    TRY(const LabelRules rules, rulesOf(device, *labels, weights, classesKnown(weights)));
    TRY_VOID(device.queue.launch(CountValidKernel{rules, device.of(y), elementCount(*labels)}, 1));
    return true;
}

Result<bool> launchClassLossForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *labels = findInput(call, 2);
    const Buffer *weights = findInput(call, 3);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (findInput(call, 0) == nullptr || findInput(call, 1) == nullptr || labels == nullptr
        || isFloating(device.of(labels).type))
        return false;
    const std::int64_t items = elementCount(*labels);
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    ClassLossKernel kernel;
    kernel.sums = device.input(0);
    kernel.picked = device.input(1);
    TRY(kernel.rules, rulesOf(device, *labels, weights, classesKnown(weights)));
    kernel.made = device.of(y);
    if (sum) {
        TRY(kernel.losses, device.scratch<double>(items));
    }
    TRY_VOID(device.queue.launch(kernel, items));
    if (sum)
        TRY_VOID(device.queue.launch(SumKernel{kernel.losses, device.of(y), items}, 1));
    return true;
}

Result<bool> launchClassLossBackward(const DeviceCall &device)
{
    const BackwardCall back(device.call);
    const Buffer *dy = back.gradient();
    const Buffer *labels = back.input(2);
    const Buffer *weights = back.input(3);
    if (back.wanted(0) == nullptr && back.wanted(1) == nullptr)
        return true;
    if (dy == nullptr || labels == nullptr || isFloating(device.of(labels).type))
        return false;
    ClassLossKernel kernel;
    kernel.sums = device.of(back.wanted(0));
    kernel.picked = device.of(back.wanted(1));
    kernel.dy = device.of(dy);
    TRY(kernel.rules, rulesOf(device, *labels, weights, classesKnown(weights)));
    kernel.oneGradient = device.call.op->attributes.text("reduction", "sum") == "sum";
    TRY_VOID(device.queue.launch(kernel, elementCount(*labels)));
    return true;
}

Result<bool> launchStatisticsForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *labels = findInput(call, 1);
    if (x == nullptr || labels == nullptr || isFloating(device.of(labels).type))
        return false;
    const AxisView view = classView(*x);
    ClassStatisticsKernel kernel;
    kernel.x = device.of(x);
    kernel.sums = device.output(0);
    kernel.picked = device.output(1);
    TRY(kernel.rules, rulesOf(device, *labels, nullptr, wholeExtent(*x, classAxis(*x))));
    kernel.place = {view.extent, view.inner};
    kernel.first = firstOf(*x, classAxis(*x));
    TRY_VOID(device.queue.launch(kernel, view.outer * view.inner));
    return true;
}

Result<bool> launchStatisticsBackward(const DeviceCall &device)
{
    const BackwardCall back(device.call);
    const Buffer *dx = back.wanted(0);
    const Buffer *labels = back.input(1);
    if (dx == nullptr)
        return true;
    if (labels == nullptr || back.input(0) == nullptr
        || (back.gradient(0) != nullptr && back.output(0) == nullptr) || isFloating(device.of(labels).type))
        return false;
    const AxisView view = classView(*dx);
    ClassStatisticsSlopeKernel kernel;
    kernel.x = device.of(back.input(0));
    kernel.sums = device.of(back.output(0));
    kernel.dSums = device.of(back.gradient(0));
    kernel.dPicked = device.of(back.gradient(1));
    kernel.made = device.of(dx);
    TRY(kernel.rules, rulesOf(device, *labels, nullptr, wholeExtent(*dx, classAxis(*dx))));
    kernel.place = {view.extent, view.inner};
    kernel.first = firstOf(*dx, classAxis(*dx));
    TRY_VOID(device.queue.launch(kernel, view.outer * view.inner));
    return true;
}

Result<bool> launchEmbeddingForward(const DeviceCall &device)
{
    const Buffer *table = findInput(device.call, 0);
    const Buffer *indices = findInput(device.call, 1);
    const Buffer *y = findOutput(device.call, 0);
    if (y == nullptr)
        return true;
    if (table == nullptr || indices == nullptr || isFloating(device.of(indices).type)
        || device.of(table).type != device.of(y).type || sizeOf(device.of(y).type) == 1)
        return false;
    EmbedKernel kernel;
    kernel.table = table->data;
    kernel.indices = device.of(indices);
    kernel.made = y->data;
    kernel.size = static_cast<std::int32_t>(sizeOf(device.of(y).type));
    kernel.width = table->shape[1];
    kernel.first = firstOf(*table, 0);
    kernel.rows = table->shape[0];
    kernel.allRows = wholeExtent(*table, 0);
    TRY(kernel.problem, device.problem("index", true));
    TRY_VOID(device.queue.launch(kernel, elementCount(*y)));
    return true;
}

Result<bool> launchEmbeddingBackward(const DeviceCall &device)
{
    const BackwardCall back(device.call);
    const Buffer *dy = back.gradient();
    const Buffer *indices = back.input(1);
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return true;
    if (dy == nullptr || indices == nullptr || isFloating(device.of(indices).type))
        return false;
    EmbedChainKernel chain;
    chain.indices = device.of(indices);
    chain.count = elementCount(*indices);
    chain.first = firstOf(*dx, 0);
    chain.rows = dx->shape[0];
    chain.allRows = wholeExtent(*dx, 0);
    chain.padding = device.call.op->attributes.integer("padding_index", -1);
    TRY(chain.next, device.scratch<std::int64_t>(chain.count));
    TRY(chain.row, device.scratch<std::int64_t>(chain.count));
    TRY(chain.problem, device.problem("index", true));
    device.queue.fill(dx->data, 0, static_cast<std::size_t>(elementCount(*dx) * sizeOf(device.of(dx).type)));
    TRY_VOID(device.queue.outcome());
    TRY_VOID(device.queue.launch(chain, chain.count));
    TRY_VOID(
        device.queue.launch(EmbedSumKernel{device.of(dy), device.of(dx), chain.next, chain.row, dx->shape[1]},
            elementCount(*dy)));
    return true;
}

Result<bool> launchRotary(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const bool inverse = call.op->direction == Direction::Backward;
    const BackwardCall back(call);
    const Buffer *x = inverse ? back.gradient() : findInput(call, 0);
    const Buffer *cosine = inverse ? back.input(1) : findInput(call, 1);
    const Buffer *sine = inverse ? back.input(2) : findInput(call, 2);
    const Buffer *made = inverse ? back.wanted(0) : findOutput(call, 0);
    if (inverse && (back.wanted(1) != nullptr || back.wanted(2) != nullptr))
        return false;
    if (made == nullptr)
        return true;
    if (x == nullptr || cosine == nullptr || sine == nullptr || x->shape.empty() || x->shape.back() % 2 != 0)
        return false;
    const auto nest = nestOf<2>(
        x->shape, {broadcastStrides(cosine->shape, x->shape), broadcastStrides(sine->shape, x->shape)});
    if (!nest)
        return false;
    TRY_VOID(device.queue.launch(
        RotaryKernel{device.of(x), device.of(cosine), device.of(sine), device.of(made), x->shape.back(),
            call.op->attributes.integer("interleaved") != 0, inverse, *nest},
        elementCount(*x)));
    return true;
}

} // namespace

Result<bool> launchLoss(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::CrossEntropy:
    case OperatorKind::NegativeLogLikelihood:
        return forward ? launchLossForward(device) : launchLossBackward(device);
    case OperatorKind::ClassLoss:
        return forward ? launchClassLossForward(device) : launchClassLossBackward(device);
    case OperatorKind::CountValid:
        return forward ? launchCountValid(device) : Result<bool>{false};
    case OperatorKind::ClassStatistics:
        return forward ? launchStatisticsForward(device) : launchStatisticsBackward(device);
    default:
        return false;
    }
}

Result<bool> launchEmbedding(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::Embedding:
        return forward ? launchEmbeddingForward(device) : launchEmbeddingBackward(device);
    case OperatorKind::Rotary:
        return launchRotary(device);
    default:
        return false;
    }
}

} // namespace planloom
