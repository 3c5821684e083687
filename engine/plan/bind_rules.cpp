#include "engine/plan/bind.h"

#include "engine/base/words.h"
#include "engine/plan/table_text.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace planloom {

namespace {

/// A step with its axis' size and parts filled in, but for the identifier. Fails the row where it can't be.
bool prepareStep(CompletionState &state, std::int32_t row, const SplitStep &step, Split &split)
{
    split.kind = step.kind;
    split.sizes = step.sizes;
    split.axis = step.axis;
    split.parts = step.sizes.empty() ? step.parts : static_cast<std::int32_t>(step.sizes.size());
    if (step.axis.empty()) {
        if (split.parts < 1)
            state.fail(row, "expected a number of parts or a mesh axis");
        return split.parts >= 1;
    }
    const auto axis = std::find_if(
        state.mesh.begin(), state.mesh.end(), [&](const MeshAxis &a) { return a.name == step.axis; });
    if (axis == state.mesh.end()) {
        state.fail(row,
            state.mesh.empty() ? "there is no mesh with an axis '" + step.axis + "'"
                               : "the mesh has no axis '" + step.axis + "'",
            "add it to the mesh row");
        return false;
    }
    if (split.parts == 0)
        split.parts = axis->size;
    if (split.parts != axis->size) {
        state.fail(row,
            counted(split.parts, "part") + " over mesh axis '" + step.axis + "', which has "
                + counted(axis->size, "device"),
            "leave the number of parts out");
        return false;
    }
    return true;
}

/// Position of an axis in the mesh; behind all of them for a step over none.
std::size_t meshPosition(const CompletionState &state, const std::string &axis)
{
    for (std::size_t i = 0; i < state.mesh.size(); ++i) {
        if (state.mesh[i].name == axis)
            return i;
    }
    return state.mesh.size();
}

bool isOverAxis(const OperatorBinding::Step &step)
{
    return !step.split.axis.empty();
}

/// Adds a row's steps to those of an operator; fails both rows where they do not compose.
bool compose(CompletionState &state, OperatorId op, std::vector<OperatorBinding::Step> added)
{
    OperatorBinding &binding = state.bindingOf(op);
    const std::int32_t row = added.front().row;
    const auto sameSplits = [](const auto &a, const auto &b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
            [](const auto &x, const auto &y) { return x.split == y.split; });
    };
    const bool addsInner = !std::all_of(added.begin(), added.end(), isOverAxis);
    for (const auto &step : binding.steps) {
        const bool clash = addsInner || !isOverAxis(step);
        const auto same = std::find_if(added.begin(), added.end(),
            [&](const auto &mine) { return isOverAxis(mine) && mine.split.axis == step.split.axis; });
        if (clash ? !sameSplits(binding.steps, added) : same != added.end() && same->split != step.split) {
            state.failBoth(row, step.row, state.graph().at(op), "split in different ways");
            return false;
        }
        if (clash)
            return true; // says the same again
    }
    for (auto &step : added) {
        const bool known = isOverAxis(step)
            && std::any_of(binding.steps.begin(), binding.steps.end(),
                [&](const auto &other) { return other.split.axis == step.split.axis; });
        if (!known)
            binding.steps.push_back(std::move(step));
    }
    std::stable_sort(binding.steps.begin(), binding.steps.end(), [&](const auto &a, const auto &b) {
        return meshPosition(state, a.split.axis) < meshPosition(state, b.split.axis);
    });
    return true;
}

/// The leading identifier at a position of one tensor; -1 if the tensor has no such dimension.
Result<std::int32_t> leadingAt(const Operator &op, const std::vector<TensorTerms> &tensors,
    const DimensionRef &ref, const std::vector<TensorId> &ids, const Graph &graph)
{
    if (ref.slot >= static_cast<std::int32_t>(tensors.size()))
        return -1;
    const auto slot = static_cast<std::size_t>(ref.slot);
    const TensorTerms &terms = tensors[slot];
    const auto rank = static_cast<std::int32_t>(terms.terms.size());
    const std::int32_t dimension = ref.dimension < 0 ? ref.dimension + rank : ref.dimension;
    if (terms.opaque || slot >= ids.size() || !ids[slot].valid() || dimension < 0 || dimension >= rank)
        return -1;
    const auto factor = splittableFactor(op.annotation, terms.terms[static_cast<std::size_t>(dimension)]);
    if (factor)
        return *factor;
    std::string reason = op.annotationProblem;
    if (reason.empty()) {
        reason = graph.at(ids[slot]).type.shape[static_cast<std::size_t>(dimension)] == 1
            ? "it has size 1"
            : "the operator needs it whole: " + toString(op.annotation);
    }
    return Error {ErrorCode::InvalidInput,
        "operator '" + op.name + "' cannot be split at " + print(ref) + ": " + reason, "",
        "operator:" + op.name};
}

} // namespace

Result<std::int32_t> resolveDimension(
    const Graph &graph, const BatchInfo &batch, OperatorId id, const DimensionRef &ref)
{
    const Operator &op = graph.at(id);
    switch (ref.kind) {
    case DimensionRef::Kind::Identifier:
        return findDimension(op.annotation, ref.name).value_or(-1);
    case DimensionRef::Kind::Batch:
        return batch.operatorDimension[static_cast<std::size_t>(id.index)];
    case DimensionRef::Kind::Input:
        return leadingAt(op, op.annotation.inputs, ref, op.inputs, graph);
    case DimensionRef::Kind::Output:
        return leadingAt(op, op.annotation.outputs, ref, op.outputs, graph);
    }
    return -1;
}

std::int32_t bindOpTrans(CompletionState &state, std::int32_t row, const OpTransRule &rule,
    const std::vector<OperatorId> &selected)
{
    std::vector<OperatorBinding::Step> prepared;
    std::set<std::string> axes;
    for (const SplitStep &step : rule.steps) {
        OperatorBinding::Step made;
        made.row = row;
        if (!prepareStep(state, row, step, made.split))
            return 0;
        if (!step.axis.empty() && !axes.insert(step.axis).second) {
            state.fail(
                row, "two steps run over mesh axis '" + step.axis + "'", "give each step an axis of its own");
            return 0;
        }
        if (step.dimension.kind == DimensionRef::Kind::Batch && step.kind == SplitKind::Dimension) {
            if (state.batch.size == 0) {
                state.fail(row, "the model has no batch dimension", state.batch.limitedBy);
                return 0;
            }
            if (!step.axis.empty())
                state.batchAxes.push_back(step.axis);
        }
        prepared.push_back(std::move(made));
    }
    std::int32_t bound = 0;
    const auto acted = actedOn(state.graph(), selected);
    if (acted.empty() && !selected.empty())
        state.fail(
            row, "backward operators are split as their forward operators", "select forward operators");
    for (const OperatorId op : acted) {
        std::vector<OperatorBinding::Step> steps;
        bool hasDimension = false;
        bool foundDimension = false;
        for (std::size_t i = 0; i < prepared.size(); ++i) {
            OperatorBinding::Step step = prepared[i];
            if (step.split.kind == SplitKind::Dimension) {
                hasDimension = true;
                const auto dimension =
                    resolveDimension(state.graph(), state.batch, op, rule.steps[i].dimension);
                if (!dimension) {
                    state.fail(row, dimension.error().message, dimension.error().advice);
                    return bound;
                }
                if (*dimension < 0)
                    continue;
                foundDimension = true;
                step.split.dimension = *dimension;
            }
            if (const auto legal = checkPartition(state.graph().at(op), {{step.split}}); !legal) {
                state.fail(row, legal.error().message, legal.error().advice);
                return bound;
            }
            if (step.split.parts > 1)
                steps.push_back(std::move(step));
        }
        if (hasDimension && !foundDimension)
            continue;
        ++bound;
        if (!steps.empty() && !compose(state, op, std::move(steps)))
            return bound;
    }
    return bound;
}

std::int32_t bindCoshard(CompletionState &state, std::int32_t row, const CoshardRule &rule,
    const std::vector<OperatorId> &selected)
{
    std::int32_t bound = 0;
    for (const OperatorId op : actedOn(state.graph(), selected)) {
        const Operator &itself = state.graph().at(op);
        if (itself.direction != Direction::Forward)
            continue;
        const auto dimension = resolveDimension(state.graph(), state.batch, op, rule.dimension);
        if (!dimension) {
            state.fail(row, dimension.error().message, dimension.error().advice);
            return bound;
        }
        if (*dimension < 0)
            continue;
        const Split split {.kind = SplitKind::Dimension, .dimension = *dimension, .parts = rule.parts};
        if (const auto legal = checkPartition(itself, {{split}}); !legal) {
            state.fail(row, legal.error().message, legal.error().advice);
            return bound;
        }
        OperatorBinding &binding = state.bindingOf(op);
        if (binding.coshardRow >= 0
            && (binding.coshardDimension != *dimension || binding.coshardParts != rule.parts)) {
            state.failBoth(row, binding.coshardRow, itself, "cut in different ways");
            return bound;
        }
        binding.coshardRow = row;
        binding.coshardDimension = *dimension;
        binding.coshardParts = rule.parts;
        ++bound;
    }
    return bound;
}

std::int32_t bindOpAssign(CompletionState &state, std::int32_t row, const OpAssignRule &rule,
    const std::vector<OperatorId> &selected)
{
    Domain domain;
    if (!rule.devices.empty()) {
        for (const DeviceId device : rule.devices) {
            if (device.index < 0 || device.index >= state.plan.deviceCount) {
                state.fail(row,
                    "there is no device " + std::to_string(device.index) + ": the plan has "
                        + counted(state.plan.deviceCount, "device") + ", numbered from 0");
                return 0;
            }
        }
        domain = domainOfList(rule.devices);
    } else {
        if (state.mesh.empty()) {
            state.fail(row, "there is no mesh to place on", "add a row such as: mesh dp=2");
            return 0;
        }
        std::set<std::string> seen;
        for (const AxisCoordinate &c : rule.coordinates) {
            const auto axis = std::find_if(
                state.mesh.begin(), state.mesh.end(), [&](const MeshAxis &a) { return a.name == c.axis; });
            if (axis == state.mesh.end() || c.index < 0 || c.index >= axis->size) {
                state.fail(row,
                    axis == state.mesh.end() ? "the mesh has no axis '" + c.axis + "'"
                                             : "mesh axis '" + c.axis + "' has " + counted(axis->size, "place")
                            + ", numbered from 0, not " + std::to_string(c.index));
                return 0;
            }
            if (!seen.insert(c.axis).second) {
                state.fail(row, "two places along mesh axis '" + c.axis + "'");
                return 0;
            }
        }
        domain = domainOnMesh(state.mesh, rule.coordinates);
    }
    const std::int32_t number = state.domainNumber(std::move(domain));
    const auto acted = actedOn(state.graph(), selected);
    if (acted.empty() && !selected.empty())
        state.fail(
            row, "backward operators run where their forward operators run", "select forward operators");
    for (const OperatorId op : acted) {
        OperatorBinding &binding = state.bindingOf(op);
        if (binding.placeRow >= 0 && binding.domain != number)
            state.failBoth(row, binding.placeRow, state.graph().at(op), "place in different ways");
        binding.placeRow = row;
        binding.domain = number;
    }
    return static_cast<std::int32_t>(acted.size());
}

std::int32_t bindOpOrder(CompletionState &state, std::int32_t row, const OpOrderRule &rule,
    const std::vector<OperatorId> &selected)
{
    if (const auto check = state.index.check(rule.second); !check) {
        state.fail(row, check.error().message, check.error().advice);
        return 0;
    }
    const auto oneDirection = [&](const std::vector<OperatorId> &operators) {
        for (const Direction direction : {Direction::Forward, Direction::Backward, Direction::Optimizer}) {
            std::vector<OperatorId> some;
            for (const OperatorId op : operators) {
                if (state.graph().at(op).direction == direction)
                    some.push_back(op);
            }
            if (!some.empty())
                return some;
        }
        return std::vector<OperatorId> {};
    };
    const auto firsts = oneDirection(selected);
    const auto seconds = oneDirection(state.index.select(rule.second));
    if (firsts.empty() || seconds.empty())
        return 0;
    const std::int32_t last = state.plan.microBatches - 1;
    if (rule.microBatch >= 0
        && (rule.microBatch > last || rule.microBatch + rule.microBatchOffset < 0
            || rule.microBatch + rule.microBatchOffset > last)) {
        const std::int32_t missing =
            rule.microBatch > last ? rule.microBatch : rule.microBatch + rule.microBatchOffset;
        state.fail(row,
            "there is no micro-batch " + std::to_string(missing) + ": the plan has "
                + std::to_string(last + 1) + ", numbered from 0");
        return 0;
    }
    const bool paired = firsts.size() == seconds.size();
    const auto add = [&](OperatorId first, OperatorId second) {
        state.plan.orders.push_back(
            {first, second, rule.microBatchOffset, RowId {row}, rule.microBatch, !paired});
    };
    const auto beforeItself = [&](OperatorId op) {
        state.fail(row, "operator '" + state.graph().at(op).name + "' cannot run before itself");
    };
    if (rule.microBatchOffset <= 0) {
        if (paired) {
            for (std::size_t i = 0; i < firsts.size(); ++i) {
                if (firsts[i] == seconds[i])
                    beforeItself(firsts[i]);
            }
        } else { // both are ascending
            std::vector<OperatorId> common;
            std::set_intersection(
                firsts.begin(), firsts.end(), seconds.begin(), seconds.end(), std::back_inserter(common));
            if (!common.empty())
                beforeItself(common.front());
        }
    }
    // All with all takes as many constraints as the larger selection has operators, each named at least once.
    for (std::size_t i = 0; i < std::max(firsts.size(), seconds.size()); ++i)
        add(firsts[std::min(i, firsts.size() - 1)], seconds[std::min(i, seconds.size() - 1)]);
    std::vector<OperatorId> bound;
    std::set_union(firsts.begin(), firsts.end(), seconds.begin(), seconds.end(), std::back_inserter(bound));
    return static_cast<std::int32_t>(bound.size());
}

void bindInFlight(CompletionState &state)
{
    const std::int32_t stages = state.plan.stageCount;
    std::vector<std::int32_t> limits(static_cast<std::size_t>(stages), 0);
    std::vector<RowId> rows(static_cast<std::size_t>(stages), RowId {});
    bool any = false;
    const bool trains = std::any_of(state.graph().operators.begin(), state.graph().operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    for (std::size_t i = 0; i < state.table.rows.size(); ++i) {
        const auto *rule = std::get_if<InFlightRule>(&state.table.rows[i].rule);
        if (!rule || !state.table.rows[i].enabled)
            continue;
        const auto row = static_cast<std::int32_t>(i);
        if (rule->count < 1) {
            state.fail(row, "a stage holds at least one micro-batch in flight");
            continue;
        }
        if (rule->stage >= stages) {
            state.fail(row,
                "there is no stage " + std::to_string(rule->stage) + ": the plan has "
                    + counted(stages, "stage") + ", numbered from 0");
            continue;
        }
        if (!trains) {
            state.reports[i].warning = "nothing is in flight: the model has no backward pass";
            continue;
        }
        for (std::int32_t s = std::max(rule->stage, 0); s < (rule->stage < 0 ? stages : rule->stage + 1); ++s) {
            const auto stage = static_cast<std::size_t>(s);
            if (rows[stage].valid() && limits[stage] != rule->count) {
                state.failBoth(row, rows[stage].index,
                    "give stage " + std::to_string(s) + " different numbers of micro-batches in flight",
                    "switch one of the rows off, or name other stages");
                break;
            }
            limits[stage] = rule->count;
            rows[stage] = RowId {row};
            any = true;
        }
    }
    if (any && !state.failed) {
        state.plan.inFlight = std::move(limits);
        state.plan.inFlightRows = std::move(rows);
    }
}

} // namespace planloom
