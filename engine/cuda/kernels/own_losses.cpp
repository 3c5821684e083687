// Losses, embeddings and rotary positions on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/movement/pick_plans.h"
#include "engine/kernels/reductions/loss_plans.h"

namespace planloom {

namespace {

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

/// Launches what makes a loss of each item: into `made`, or their sum there.
template<typename Kernel>
Result<bool> launchLosses(
    const DeviceCall &device, Kernel kernel, const Buffer *made, std::int64_t items, bool isSum)
{
    if (!isSum) {
        kernel.made = device.of(made);
        return launched(device.queue.launch(kernel, items));
    }
    TRY(kernel.losses, device.scratch<double>(items));
    TRY_VOID(device.queue.launch(kernel, items));
    return launched(device.queue.launch(SumKernel{kernel.losses, device.of(made), items}, 1));
}

Result<bool> launchEntropy(const DeviceCall &device, const LossPlan &plan)
{
    const RowElements place{plan.view.extent, plan.view.inner};
    const std::int64_t items = plan.view.outer * plan.view.inner;
    TRY(const LabelRules rules, rulesOf(device, *plan.labels, plan.weights, plan.view.extent));
    if (plan.dy != nullptr)
        return launched(device.queue.launch(CrossEntropySlopeKernel{device.of(plan.x), device.of(plan.dy),
                                                device.of(plan.made), rules, place, plan.logits, plan.isSum},
            items));
    return launchLosses(device, CrossEntropyKernel{device.of(plan.x), rules, nullptr, {}, place, plan.logits},
        plan.made, items, plan.isSum);
}

Result<bool> launchCountValid(const DeviceCall &device, const ClassLossPlan &plan)
{
    if (!isFloating(device.of(plan.made).type))
        return false;
    TRY(const LabelRules rules, rulesOf(device, *plan.labels, plan.weights, plan.classes));
    return launched(
        device.queue.launch(CountValidKernel{rules, device.of(plan.made), elementCount(*plan.labels)}, 1));
}

Result<bool> launchClassLoss(const DeviceCall &device, const ClassLossPlan &plan)
{
    TRY(const LabelRules rules, rulesOf(device, *plan.labels, plan.weights, plan.classes));
    const ClassLossKernel kernel{
        device.of(plan.sums), device.of(plan.picked), device.of(plan.dy), rules, nullptr, {}, plan.isSum};
    const std::int64_t items = elementCount(*plan.labels);
    if (plan.dy != nullptr)
        return launched(device.queue.launch(kernel, items));
    return launchLosses(device, kernel, plan.made, items, plan.isSum);
}

Result<bool> launchStatistics(const DeviceCall &device, const ClassStatisticsPlan &plan)
{
    const RowElements place{plan.view.extent, plan.view.inner};
    const std::int64_t items = plan.view.outer * plan.view.inner;
    TRY(const LabelRules rules, rulesOf(device, *plan.labels, nullptr, plan.classes));
    if (plan.dx == nullptr)
        return launched(device.queue.launch(ClassStatisticsKernel{device.of(plan.x), device.of(plan.sums),
                                                device.of(plan.picked), rules, place, plan.first},
            items));
    return launched(device.queue.launch(
        ClassStatisticsSlopeKernel{device.of(plan.x), device.of(plan.sums), device.of(plan.dSums),
            device.of(plan.dPicked), device.of(plan.dx), rules, place, plan.first},
        items));
}

Result<bool> launchEmbeddingForward(const DeviceCall &device, const EmbeddingPlan &plan)
{
    const DataType type = device.of(plan.y).type;
    if (device.of(plan.table).type != type || sizeOf(type) == 1)
        return false;
    TRY(Problem *const problem, device.problem("index", true));
    return launched(device.queue.launch(EmbedKernel{plan.table->data, device.of(plan.indices), plan.y->data,
                                            static_cast<std::int32_t>(sizeOf(type)), plan.width, plan.first,
                                            plan.rows, plan.allRows, problem},
        elementCount(*plan.y)));
}

Result<bool> launchEmbeddingBackward(const DeviceCall &device, const EmbeddingPlan &plan)
{
    EmbedChainKernel chain;
    chain.indices = device.of(plan.indices);
    chain.count = elementCount(*plan.indices);
    chain.first = plan.first;
    chain.rows = plan.rows;
    chain.allRows = plan.allRows;
    chain.padding = plan.padding;
    TRY(chain.next, device.scratch<std::int64_t>(chain.count));
    TRY(chain.row, device.scratch<std::int64_t>(chain.count));
    TRY(chain.problem, device.problem("index", true));
    device.clear(*plan.table);
    TRY_VOID(device.queue.outcome());
    TRY_VOID(device.queue.launch(chain, chain.count));
    return launched(device.queue.launch(
        EmbedSumKernel{device.of(plan.y), device.of(plan.table), chain.next, chain.row, plan.width},
        elementCount(*plan.y)));
}

Result<bool> launchRotary(const DeviceCall &device, const RotaryPlan &plan)
{
    const Shape &shape = plan.x->shape;
    if (plan.dcos != nullptr || plan.dsin != nullptr)
        return false;
    const auto nest = nestOf<2>(
        shape, {broadcastStrides(plan.cosine->shape, shape), broadcastStrides(plan.sine->shape, shape)});
    if (!nest)
        return false;
    return launched(
        device.queue.launch(RotaryKernel{device.of(plan.x), device.of(plan.cosine), device.of(plan.sine),
                                device.of(plan.made), shape.back(), plan.interleaved, plan.inverse, *nest},
            elementCount(*plan.x)));
}

} // namespace

Result<bool> launchLoss(const DeviceCall &device)
{
    switch (device.call.op->kind) {
    case OperatorKind::CrossEntropy:
    case OperatorKind::NegativeLogLikelihood:
        return launchPlanned(device, planLoss(device.call), launchEntropy);
    case OperatorKind::ClassLoss:
        return launchPlanned(device, planClassLoss(device.call), launchClassLoss);
    case OperatorKind::CountValid:
        return device.call.op->direction == Direction::Forward
            ? launchPlanned(device, planCountValid(device.call), launchCountValid)
            : Result<bool>{false};
    case OperatorKind::ClassStatistics:
        return launchPlanned(device, planClassStatistics(device.call), launchStatistics);
    default:
        return false;
    }
}

Result<bool> launchEmbedding(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::Embedding:
        return launchPlanned(
            device, planEmbedding(device.call), forward ? launchEmbeddingForward : launchEmbeddingBackward);
    case OperatorKind::Rotary:
        return launchPlanned(device, planRotary(device.call), launchRotary);
    default:
        return false;
    }
}

} // namespace planloom
