#include "engine/gallery/gallery_tensor_parallel.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr int kMostRounds = 4;

/// A position that names the identifier: of the output if it has it, else of an input; the last dimension is
/// -1.
DimensionRef positionOf(const Operator &op, std::int32_t identifier)
{
    const auto find = [&](const std::vector<TensorTerms> &tensors, DimensionRef &ref) {
        for (std::size_t s = 0; s < tensors.size(); ++s) {
            const auto &terms = tensors[s].terms;
            for (std::size_t t = 0; t < terms.size(); ++t) {
                if (splittableFactor(op.annotation, terms[t]) != identifier)
                    continue;
                ref.slot = static_cast<std::int32_t>(s);
                ref.dimension = t + 1 == terms.size() ? -1 : static_cast<std::int32_t>(t);
                return true;
            }
        }
        return false;
    };
    DimensionRef ref{.kind = DimensionRef::Kind::Output, .name = {}};
    if (find(op.annotation.outputs, ref))
        return ref;
    ref.kind = DimensionRef::Kind::Input;
    if (find(op.annotation.inputs, ref))
        return ref;
    return {.kind = DimensionRef::Kind::Identifier,
        .name = op.annotation.dimensions[static_cast<std::size_t>(identifier)].name};
}

void appendRows(const SelectorIndex &index, const std::vector<OperatorId> &operators,
    const TensorParallelCut &cut, const std::string &axis, ConstraintTable &table)
{
    std::map<std::string, std::vector<OperatorId>> groups; // by the words of the split
    std::vector<SplitStep> order;
    for (const OperatorId op : operators) {
        const auto i = static_cast<std::size_t>(op.index);
        SplitStep step{.kind = SplitKind::Dimension,
            .dimension = positionOf(index.graph().at(op), cut.identifier[i]),
            .parts = 0,
            .sizes = cut.sizes[i],
            .axis = axis};
        auto &group = groups[print(Rule{OpTransRule{{step}}})];
        if (group.empty())
            order.push_back(std::move(step));
        group.push_back(op);
    }
    for (SplitStep &step : order) {
        const OpTransRule rule{{std::move(step)}};
        for (Selector &selector : selectorsByName(index, groups[print(Rule{rule})]))
            table.rows.push_back(templateRow(std::move(selector), rule));
    }
}

bool readsAny(const SelectorIndex &index, const Operator &op, const std::vector<bool> &marked)
{
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
        if (!input.valid())
            return false;
        const auto &makers = index.uses().producers[static_cast<std::size_t>(input.index)];
        return std::any_of(makers.begin(), makers.end(), [&](OperatorId maker) {
            return static_cast<bool>(marked[static_cast<std::size_t>(maker.index)]);
        });
    });
}

/// What `step` may split of the operators that `isAsked`: forward ones.
template<typename IsAsked>
std::vector<OperatorId> splittableBy(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const SplitStep &step, IsAsked isAsked)
{
    const Graph &graph = *model.graph;
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    std::vector<OperatorId> found;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction != Direction::Forward || !isAsked(i))
            continue;
        const auto split = splitOf(setting, op, step);
        if (split && split->parts > 1 && checkPartition(graph.operators[i], {{*split}}))
            found.push_back(op);
    }
    return found;
}

/// Rows that cut the hidden dimension of recurrences that are unrolled: each step gathers the state. What
/// they have is left out of `cut`.
void appendRecurrences(const Model &model, std::int32_t deviceCount, const std::string &axis,
    TensorParallelCut &cut, ConstraintTable &table)
{
    const Graph &graph = *model.graph;
    const SplitStep step{.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Hidden},
        .parts = 0,
        .sizes = {},
        .axis = axis};
    const auto isStep = [&](std::size_t i) {
        const std::string &name = graph.operators[i].name;
        return std::any_of(graph.recurrences.begin(), graph.recurrences.end(), [&](const auto &each) {
            return each.second.isUnrolled && (name == each.first || name.starts_with(each.first + "_"));
        });
    };
    const std::vector<OperatorId> steps = splittableBy(model, deviceCount, table, step, isStep);
    for (Selector &selector : selectorsByName(*model.index, steps))
        table.rows.push_back(templateRow(std::move(selector), OpTransRule{{step}}));
    for (const OperatorId op : steps)
        cut.identifier[static_cast<std::size_t>(op.index)] = -1;
    cut.regions += steps.empty() ? 0 : 1;
}

} // namespace

Result<void> appendSequenceParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, ConstraintTable &table, UnevenParts uneven)
{
    const SelectorIndex &index = *model.index;
    const TensorParallelCut cut = findTensorParallel(index, parts, uneven);
    const SplitStep step{.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
        .parts = 0,
        .sizes = {},
        .axis = axis};
    const std::vector<OperatorId> between =
        splittableBy(model, deviceCount, table, step, [&](std::size_t i) { return cut.identifier[i] < 0; });
    if (between.empty())
        return Error{ErrorCode::InvalidInput,
            "no operator outside the tensor-parallel regions has a sequence that " + std::to_string(parts)
                + " divides",
            "leave sequence out", "gallery/sequence"};
    for (Selector &selector : selectorsByName(index, between))
        table.rows.push_back(templateRow(std::move(selector), OpTransRule{{step}}));
    return {};
}

Result<void> appendTensorParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, ConstraintTable &table, UnevenParts uneven)
{
    const SelectorIndex &index = *model.index;
    const Graph &graph = *model.graph;
    TensorParallelCut cut = findTensorParallel(index, parts, uneven);
    appendRecurrences(model, deviceCount, axis, cut, table);
    if (cut.regions == 0) {
        return Error{ErrorCode::InvalidInput,
            "no pair of operators can be split " + std::to_string(parts) + " ways for tensor parallelism"
                + (cut.obstacle.empty() ? "" : ": " + cut.obstacle),
            "use another number of devices, or another gallery plan", "gallery/tensor-parallel"};
    }
    std::vector<OperatorId> products;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const bool weights = std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id.valid() && graph.at(id).role == TensorRole::Weight; });
        if (cut.identifier[i] >= 0 && weights)
            products.push_back({static_cast<std::int32_t>(i)});
    }
    appendRows(index, products, cut, axis, table);

    // Most other operators follow by default. Rows for those that do not: first where a region begins (with
    // slices of whole values), since what comes behind may follow then.
    for (int round = 0; round < kMostRounds; ++round) {
        TRY(const Completion completion, completePlan(model, deviceCount, table));
        if (!completion.plan.graph) {
            Error error = firstError(completion).value();
            error.message = "tensor parallelism: " + error.message;
            return error;
        }
        std::vector<OperatorId> missed;
        std::vector<bool> isMissed(graph.operators.size(), false);
        std::vector<OperatorId> firsts;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (cut.identifier[i] < 0)
                continue;
            const auto &splits = completion.plan.decisions[i].partition.splits;
            isMissed[i] = std::none_of(splits.begin(), splits.end(), [&](const Split &split) {
                return split.axis == axis && split.kind == SplitKind::Dimension
                    && split.dimension == cut.identifier[i] && split.sizes == cut.sizes[i];
            });
            if (!isMissed[i])
                continue;
            missed.push_back({static_cast<std::int32_t>(i)});
            if (!readsAny(index, graph.operators[i], isMissed))
                firsts.push_back(missed.back());
        }
        if (missed.empty())
            break;
        appendRows(index, round + 1 < kMostRounds ? firsts : missed, cut, axis, table);
    }
    return {};
}

} // namespace planloom
