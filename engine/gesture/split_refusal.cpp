#include "engine/gesture/split_refusal.h"

#include "engine/base/words.h"

#include <algorithm>

namespace planloom {

std::string labelOf(const Annotation &annotation, std::int32_t dimension)
{
    const Dimension &d = annotation.dimensions[static_cast<std::size_t>(dimension)];
    const bool literal = !d.name.empty() && d.name.front() >= '0' && d.name.front() <= '9';
    return d.name
        + (d.mark == DimensionMark::Reduce                    ? "+"
                : d.mark == DimensionMark::Frozen && !literal ? "^"
                                                              : "");
}

std::string lockOf(const Operator &op, std::int32_t dimension)
{
    const Dimension &d = op.annotation.dimensions[static_cast<std::size_t>(dimension)];
    if (d.size == 1)
        return "it has size 1";
    if (d.mark != DimensionMark::Frozen)
        return {};
    if (!op.annotationProblem.empty())
        return op.annotationProblem;
    return sentenceOf(d.lock, wordsOf(op.kind));
}

std::optional<Error> checkSteps(
    const GestureContext &context, OperatorId id, const std::vector<BoundStep> &steps, const Split &coshard)
{
    const Graph &graph = context.graph();
    const Operator &op = graph.at(id);
    Partition partition;
    std::int64_t count = 1;
    for (const BoundStep &step : steps) {
        partition.splits.push_back(step.split);
        count *= step.split.parts;
    }
    if (coshard.dimension >= 0)
        partition.splits.push_back(coshard);
    const std::int32_t batch = context.batch().operatorDimension[static_cast<std::size_t>(id.index)];
    const bool micro = context.plan && context.plan->microBatches > 1 && !context.plan->wholeBatches
        && !context.batch().oncePerStep[static_cast<std::size_t>(id.index)];
    std::int64_t batchParts = 1;
    // Step by step, to say which one it is and why.
    Partition sofar;
    for (const Split &split : partition.splits) {
        sofar.splits.push_back(split);
        if (split.kind == SplitKind::Dimension && split.dimension == batch)
            batchParts = split.sizes.empty() ? batchParts * split.parts : -1;
        const auto legal = checkPartition(op, sofar);
        if (legal)
            continue;
        if (split.kind == SplitKind::Value) {
            return refusalOf("the value of " + op.name + " can't be split: no input enters it linearly",
                placeOf(graph, id), "cut a dimension or replicate it instead");
        }
        if (split.kind != SplitKind::Dimension || split.dimension < 0
            || split.dimension >= static_cast<std::int32_t>(op.annotation.dimensions.size()))
            return refusalOf(legal.error().message, placeOf(graph, id), legal.error().advice);
        const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(split.dimension)];
        const std::string where = placeOf(graph, id, dimension.name);
        if (const std::string lock = lockOf(op, split.dimension); !lock.empty())
            return refusalOf(lock + ": " + dimension.name + " of " + op.name + " can't be split", where);
        if (!split.sizes.empty())
            return refusalOf(legal.error().message, where, legal.error().advice);
        std::int64_t before = 1;
        for (std::size_t i = 0; i + 1 < sofar.splits.size(); ++i) {
            if (sofar.splits[i].kind == SplitKind::Dimension && sofar.splits[i].dimension == split.dimension)
                before *= sofar.splits[i].parts;
        }
        return refusalOf(dimension.name + " can't be split by " + std::to_string(split.parts) + ": "
                + (before > 1 ? "it is in " + std::to_string(before) + " parts of "
                              : std::string("its size is "))
                + (split.dimension == batch ? counted(dimension.size / before, "sample")
                                            : std::to_string(dimension.size / before))
                + " in " + op.name,
            where, "choose a number that divides it");
    }
    if (micro && batch >= 0 && batchParts != 1) {
        const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(batch)].size;
        if (batchParts < 1 || size % (batchParts * context.plan->microBatches) != 0) {
            return refusalOf("the batch of " + op.name + " can't be cut so: " + std::to_string(size)
                    + " samples in " + std::to_string(context.plan->microBatches) + " micro-batches"
                    + (batchParts < 1 ? " need equal parts"
                                      : " don't divide into " + std::to_string(batchParts)),
                placeOf(graph, id, op.annotation.dimensions[static_cast<std::size_t>(batch)].name),
                "use fewer parts or fewer micro-batches");
        }
    }
    return std::nullopt;
}

std::optional<Error> checkDealing(
    const GestureContext &context, OperatorId op, const std::vector<BoundStep> &steps, const Domain &domain)
{
    const bool overAxes =
        std::any_of(steps.begin(), steps.end(), [](const BoundStep &s) { return !s.split.axis.empty(); });
    if (steps.empty() || (domain.onMesh && overAxes))
        return std::nullopt;
    std::int64_t parts = 1;
    for (const BoundStep &step : steps)
        parts *= step.split.parts;
    const auto devices = static_cast<std::int64_t>(domain.devices.size());
    if (canDealOut(parts, devices))
        return std::nullopt;
    return refusalOf(std::to_string(parts) + " parts of " + context.graph().at(op).name
            + " can't be dealt out to " + std::to_string(devices)
            + " devices: neither number divides the other",
        placeOf(context.graph(), op), "choose another number of parts, or place it on other devices first");
}

} // namespace planloom
