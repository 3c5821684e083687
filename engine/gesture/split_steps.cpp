#include "engine/gesture/split_steps.h"

#include "engine/base/words.h"
#include "engine/plan/bind.h"
#include "engine/plan/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

std::size_t meshPosition(const std::vector<MeshAxis> &mesh, const std::string &axis)
{
    for (std::size_t i = 0; i < mesh.size(); ++i) {
        if (mesh[i].name == axis)
            return i;
    }
    return mesh.size();
}

/// "cross-entropy" for sentences.
std::string kindWords(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Softmax:
    case OperatorKind::LogSoftmax:
        return "softmax";
    case OperatorKind::CrossEntropy:
        return "cross-entropy";
    case OperatorKind::LayerNorm:
        return "layer norm";
    case OperatorKind::RmsNorm:
        return "RMS norm";
    default:
        return nameOf(kind);
    }
}

} // namespace

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
    const std::string kind = kindWords(op.kind);
    switch (op.kind) {
    case OperatorKind::Softmax:
    case OperatorKind::LogSoftmax:
    case OperatorKind::ReduceMax:
    case OperatorKind::ReduceMin:
    case OperatorKind::ReduceProd:
    case OperatorKind::ReduceL1:
    case OperatorKind::ReduceL2:
    case OperatorKind::ReduceLogSum:
    case OperatorKind::ReduceLogSumExp:
    case OperatorKind::ReduceSumSquare:
    case OperatorKind::ArgMax:
    case OperatorKind::ArgMin:
    case OperatorKind::LpNormalize:
        return kind + " reduces over this dimension";
    case OperatorKind::LayerNorm:
    case OperatorKind::RmsNorm:
    case OperatorKind::InstanceNorm:
    case OperatorKind::LocalResponseNorm:
        return kind + " takes its statistics over this dimension";
    case OperatorKind::CrossEntropy:
    case OperatorKind::NegativeLogLikelihood:
        return kind + " compares all classes with one another";
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
    case OperatorKind::MaxPool:
    case OperatorKind::AveragePool:
    case OperatorKind::LpPool:
    case OperatorKind::Resize:
        return kind + " reads over the borders of parts here";
    case OperatorKind::Lstm:
    case OperatorKind::Gru:
    case OperatorKind::Rnn:
    case OperatorKind::CumSum:
        return "each step along this dimension needs the one before";
    case OperatorKind::Reshape:
        return "Reshape mixes this dimension with others";
    case OperatorKind::Concat:
    case OperatorKind::Split:
    case OperatorKind::Slice:
    case OperatorKind::Pad:
    case OperatorKind::TopK:
        return kind + " works along this dimension";
    case OperatorKind::Gather:
    case OperatorKind::Embedding:
        return kind + " looks up anywhere along this dimension";
    default:
        return kind + " needs this dimension whole";
    }
}

Result<std::optional<Split>> bindStep(const GestureContext &context, OperatorId op, const SplitStep &step)
{
    Split split{.kind = step.kind, .parts = step.parts, .sizes = step.sizes, .axis = step.axis};
    if (!step.sizes.empty())
        split.parts = static_cast<std::int32_t>(step.sizes.size());
    if (!step.axis.empty()) {
        const std::size_t at = meshPosition(context.mesh, step.axis);
        if (at == context.mesh.size()) {
            return refusalOf("there is no mesh axis " + step.axis, "mesh",
                "add it with a row such as: mesh " + step.axis + "=2");
        }
        const std::int32_t size = context.mesh[at].size;
        if (split.parts != 0 && split.parts != size) {
            return refusalOf(std::to_string(split.parts) + " parts don't fit mesh axis " + step.axis
                    + ", which has " + counted(size, "device"),
                "mesh", "leave the number of parts out");
        }
        split.parts = size;
    }
    if (step.kind == SplitKind::Dimension) {
        auto dimension = resolveDimension(context.graph(), context.batch, op, step.dimension);
        if (!dimension) {
            return refusalOf(context.graph().at(op).name + " can't be split at " + print(step.dimension)
                    + ": it needs that dimension whole",
                placeOf(context.graph(), op), dimension.error().message);
        }
        if (*dimension < 0)
            return std::optional<Split>{};
        split.dimension = *dimension;
    }
    if (split.parts <= 1)
        return std::optional<Split>{};
    return std::optional(std::move(split));
}

std::vector<std::vector<BoundStep>> boundSteps(const GestureContext &context, const Subset &subset)
{
    std::vector<std::vector<BoundStep>> steps(subset.operators().size());
    forEachRule<OpTransRule>(context, [&](std::int32_t line, const Row &row, const OpTransRule &rule) {
        for (const OperatorId op : subset.selected(row.selector)) {
            for (const SplitStep &step : rule.steps) {
                auto split = bindStep(context, op, step);
                if (split && *split)
                    steps[static_cast<std::size_t>(subset.positionOf(op))].push_back(
                        {line, step, **std::move(split)});
            }
        }
    });
    return steps;
}

void sortSteps(const GestureContext &context, std::vector<BoundStep> &steps)
{
    std::stable_sort(steps.begin(), steps.end(), [&](const BoundStep &a, const BoundStep &b) {
        return meshPosition(context.mesh, a.split.axis) < meshPosition(context.mesh, b.split.axis);
    });
    steps.erase(std::unique(steps.begin(), steps.end(),
                    [](const BoundStep &a, const BoundStep &b) {
                        return !a.split.axis.empty() && a.split.axis == b.split.axis;
                    }),
        steps.end());
}

std::vector<Split> coshardSteps(const GestureContext &context, const Subset &subset)
{
    std::vector<Split> steps(subset.operators().size());
    forEachRule<CoshardRule>(context, [&](std::int32_t, const Row &row, const CoshardRule &rule) {
        for (const OperatorId op : subset.selected(row.selector)) {
            const auto dimension = resolveDimension(context.graph(), context.batch, op, rule.dimension);
            if (dimension && *dimension >= 0) {
                steps[static_cast<std::size_t>(subset.positionOf(op))] = {
                    .kind = SplitKind::Dimension, .dimension = *dimension, .parts = rule.parts};
            }
        }
    });
    return steps;
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
    const std::int32_t batch = context.batch.operatorDimension[static_cast<std::size_t>(id.index)];
    const bool micro = context.plan && context.plan->microBatches > 1 && !context.plan->wholeBatches
        && !context.batch.oncePerStep[static_cast<std::size_t>(id.index)];
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
    if (parts % devices == 0 || devices % parts == 0)
        return std::nullopt;
    return refusalOf(std::to_string(parts) + " parts of " + context.graph().at(op).name
            + " can't be dealt out to " + std::to_string(devices)
            + " devices: neither number divides the other",
        placeOf(context.graph(), op), "choose another number of parts, or place it on other devices first");
}

bool spans(const Domain &domain, const std::vector<BoundStep> &steps)
{
    return !domain.onMesh || std::all_of(steps.begin(), steps.end(), [&](const BoundStep &step) {
        return step.split.axis.empty()
            || std::any_of(domain.axes.begin(), domain.axes.end(),
                [&](const MeshAxis &axis) { return axis.name == step.split.axis; });
    });
}

void StepWriter::add(OperatorId op, const std::vector<BoundStep> &steps)
{
    if (steps.empty())
        return;
    std::vector<SplitStep> written;
    for (const BoundStep &step : steps)
        written.push_back(step.step);
    for (auto &[known, operators] : m_groups) {
        if (known == written) {
            operators.push_back(op);
            return;
        }
    }
    m_groups.push_back({std::move(written), {op}});
}

void StepWriter::finish(RowEdits &edits)
{
    for (auto &[steps, operators] : m_groups)
        edits.append(gestureRow(edits.selectorOf(operators), OpTransRule{steps}));
    m_groups.clear();
}

} // namespace planloom
