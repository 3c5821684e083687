#include "engine/search/partition/operator_choices.h"

#include "engine/gallery/tensor_parallel_region.h"
#include "engine/graph/annotation/inner_identifier.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/plan/plan_draft.h"
#include "engine/search/partition/summand_joins.h"

#include <algorithm>

namespace planloom {

namespace {

/// How `part`, one of several, lies in `whole`; nothing if it is no cut along one dimension. What has as many
/// boxes as `parts` alone is cut: what several parts share counts as whole, which costs no less.
/// @param parts  0 where boxes may overlap, or be of unequal size
std::optional<AxisLayout> layoutOf(const TensorView &part, const TensorView &whole, std::int64_t parts)
{
    AxisLayout layout = part.value.count > whole.value.count ? kSummands : kWhole;
    for (std::size_t d = 0; d < part.index.ranges.size(); ++d) {
        const std::int64_t own = part.index.ranges[d].size();
        const std::int64_t all = whole.index.ranges[d].size();
        if (own == all || (parts > 0 && own * parts > all))
            continue;
        if (layout != kWhole)
            return std::nullopt;
        layout = cutAlong(d);
    }
    return layout;
}

/// Into how many parts `split` cuts where these are more than the elements of its identifier, so that the cut
/// goes on in the one behind it; else 0.
std::int64_t partsGoingOn(const Operator &op, const std::vector<Split> &before, const Split &split)
{
    if (split.kind != SplitKind::Dimension || !split.sizes.empty())
        return 0;
    std::int64_t parts = split.parts;
    for (const Split &each : before)
        parts *= each.kind == SplitKind::Dimension && each.dimension == split.dimension ? each.parts : 1;
    return op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].size % parts != 0
            && innerOf(op.annotation, split.dimension) >= 0
        ? split.parts
        : 0;
}

TensorType localType(const TensorView &view, DataType type)
{
    return {type, shapeOf(view.index)};
}

std::int64_t bytesOf(const TensorType &type)
{
    return elementCount(type.shape) * sizeOf(type.dataType);
}

} // namespace

ChoiceFinder::ChoiceFinder(const AxisSetting &setting, const ShardGroups &groups)
    : m_setting(setting)
    , m_groups(groups)
    , m_graph(*setting.model->graph)
    , m_ofWeights(gradientsOfWeights(m_graph))
    , m_neighbours(m_graph)
    , m_alike(setting.alike ? setting.alike
                            : std::make_shared<const std::vector<std::int32_t>>(
                                alikeOperators(*setting.model, *setting.plan, *setting.types)))
    , m_joins(setting.joins ? setting.joins
                            : std::make_shared<const std::vector<bool>>(summandJoins(*setting.model)))
{
}

double ChoiceFinder::kernelSeconds(
    OperatorId id, const PartViews &views, const Partition &partition, const std::vector<Range> &outer) const
{
    return kernelSeconds(id, m_graph.at(id), views, partition, outer);
}

bool ChoiceFinder::makesWeightsAlone(OperatorId backward) const
{
    const Operator &op = m_graph.at(backward);
    return std::none_of(op.outputs.begin(), op.outputs.end(),
        [this](TensorId output) { return output && !m_ofWeights[at(output)]; });
}

void ChoiceFinder::addWeightGradients(OperatorId backward, const PartViews &views, const Partition &partition,
    const std::vector<Range> &outer, OperatorChoice &choice) const
{
    if (makesWeightsAlone(backward)) {
        choice.weightGradients = choice.backward;
        return;
    }
    const Operator &op = m_graph.at(backward);
    std::vector<bool> ofWeights(op.outputs.size(), false);
    std::vector<bool> others(op.outputs.size(), false);
    bool any = false;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot])
            continue;
        ofWeights[slot] = m_ofWeights[at(op.outputs[slot])];
        others[slot] = !ofWeights[slot];
        any = any || ofWeights[slot];
    }
    if (!any || categoryOf(op) != OperatorCategory::Product)
        return;
    const auto secondsOf = [&](const std::vector<bool> &wanted) {
        return kernelSeconds(backward, partOfBackward(m_graph, op, wanted), views, partition, outer);
    };
    choice.weightGradients = secondsOf(ofWeights);
    choice.splitMore = std::max(0.0, secondsOf(others) + choice.weightGradients - choice.backward);
}

/// Of the part that takes longest: of causal attention, whose queries see most.
double ChoiceFinder::kernelSeconds(OperatorId id, const Operator &op, const PartViews &views,
    const Partition &partition, const std::vector<Range> &outer) const
{
    if (isView(op))
        return 0;
    std::vector<TensorType> inputs(op.inputs.size());
    std::vector<TensorType> outputs(op.outputs.size());
    for (std::size_t slot = 0; slot < inputs.size(); ++slot)
        if (op.inputs[slot])
            inputs[slot] = localType(views.inputs[slot], m_setting.types->read(id, slot));
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (op.outputs[slot])
            outputs[slot] = localType(views.outputs[slot], m_setting.types->made(id, slot));
    Bytes spared{};
    const bool joined = m_neighbours.joins(id);
    if (joined) {
        const Operator &mate = m_graph.at(m_neighbours.before(id));
        for (std::size_t slot = 0; slot < inputs.size(); ++slot)
            if (op.inputs[slot]
                && std::find(mate.outputs.begin(), mate.outputs.end(), op.inputs[slot]) != mate.outputs.end())
                spared += Bytes{bytesOf(inputs[slot])};
    }
    const OperatorDecision &decision = m_setting.plan->decisions[at(id)];
    double seen = -1;
    for (std::int32_t part = 0; op.kind == OperatorKind::Attention && part < partCount(partition); ++part)
        seen = std::max(seen, seenKeysOf(m_graph, id, partition, part, outer));
    return m_setting.costs->kernel({op, inputs, outputs, arithmeticOf(m_graph, op, decision.precision),
        joined, spared, decision.attention, m_setting.deviceClass, seen});
}

bool ChoiceFinder::add(
    OperatorId forward, const Split &split, const Split &outerSplit, OperatorChoices &choices) const
{
    const Operator &op = m_graph.at(forward);
    const BatchInfo &batch = *m_setting.model->batch;
    const auto outerOf = [&](OperatorId id) {
        return microBatchRanges(batch, m_graph, id, 0, m_setting.batchCuts);
    };
    const auto outer = outerOf(forward);
    const bool nested = m_setting.outerParts > 1;
    Partition partition;
    if (nested)
        partition.splits.push_back(outerSplit);
    const Partition around = partition; // the inner axis
    partition.splits.push_back(split);
    if (!checkPartition(op, partition, outer))
        return false;
    OperatorChoice choice{.split = split, .outer = outerSplit};
    const PartViews whole = partViews(m_graph, op, {}, 0, outer);
    const PartViews half = nested ? partViews(m_graph, op, around, 0, outer) : PartViews{};
    const PartViews part = partViews(m_graph, op, partition, 0, outer);
    const std::int64_t shared = partsGoingOn(op, around.splits, split);
    const std::int64_t sharedAround = nested ? partsGoingOn(op, {}, outerSplit) : 0;
    const auto layouts = [=](const std::vector<TensorView> &parts, const std::vector<TensorView> &halves,
                             const std::vector<TensorView> &wholes, std::size_t count,
                             std::vector<ShardLayout> &to) {
        for (std::size_t slot = 0; slot < count; ++slot) {
            if (slot >= parts.size() || !parts[slot].tensor) {
                to.push_back(kAbsentLayout);
                continue;
            }
            const auto inner = layoutOf(parts[slot], nested ? halves[slot] : wholes[slot], shared);
            const auto outer =
                nested ? layoutOf(halves[slot], wholes[slot], sharedAround) : std::optional(kWhole);
            if (!inner || !outer)
                return false;
            to.push_back({*inner, *outer});
        }
        return true;
    };
    if (!layouts(part.inputs, half.inputs, whole.inputs, op.inputs.size(), choice.inputs)
        || !layouts(part.outputs, half.outputs, whole.outputs, op.outputs.size(), choice.outputs))
        return false;
    choice.forward = kernelSeconds(forward, part, partition, outer);
    choice.inputGradients.assign(op.inputs.size(), kAbsentLayout);
    choice.outputGradients.assign(op.outputs.size(), kAbsentLayout);
    choice.kept.assign(op.inputs.size() + op.outputs.size(), 0);
    if (op.mirror) {
        const Operator &backward = m_graph.at(op.mirror);
        const auto outerBack = outerOf(op.mirror);
        const Partition back = mirrored(backward, partition);
        if (!checkPartition(backward, back, outerBack))
            return false;
        const PartViews wholeBack = partViews(m_graph, backward, {}, 0, outerBack);
        const PartViews halfBack =
            nested ? partViews(m_graph, backward, mirrored(backward, around), 0, outerBack) : PartViews{};
        const PartViews partBack = partViews(m_graph, backward, back, 0, outerBack);
        choice.inputGradients.clear();
        choice.outputGradients.clear();
        if (!layouts(partBack.outputs, halfBack.outputs, wholeBack.outputs, op.inputs.size(),
                choice.inputGradients)
            || !layouts(partBack.inputs, halfBack.inputs, wholeBack.inputs, op.outputs.size(),
                choice.outputGradients))
            return false;
        choice.backward = kernelSeconds(op.mirror, partBack, back, outerBack);
        addWeightGradients(op.mirror, partBack, back, outerBack, choice);
        for (std::size_t k = 0; k < choice.kept.size(); ++k) {
            const std::size_t slot = op.outputs.size() + k;
            const bool made = m_setting.plan->decisions[at(forward)].attention == AttentionMode::Plain
                || static_cast<std::int32_t>(slot) != probabilitiesInput(backward);
            if (made && slot < backward.inputs.size() && backward.inputs[slot])
                choice.kept[k] =
                    bytesOf(localType(partBack.inputs[slot], m_setting.types->read(op.mirror, slot)));
        }
    }
    addHalos(forward, partition, choice);
    choices.choices.push_back(std::move(choice));
    return true;
}

struct ChoiceFinder::Parts {
    std::vector<Range> own{}; ///< By device.
    std::vector<Range> even{};
    std::int64_t lineBytes = 0; ///< Of one index.
    GroupShape group{};
};

/// Along the inner axis where both cut it, if not along one dimension.
/// @param layout  cut; @param size  of the dimension
ChoiceFinder::Parts ChoiceFinder::partsAlong(ShardLayout layout, const std::vector<PartViews> &views,
    bool outputs, std::size_t slot, std::int64_t size, DataType type) const
{
    const bool overInner = isCut(layout.inner);
    const bool overBoth = overInner && layout.outer == layout.inner;
    const auto dimension = static_cast<std::size_t>((overInner ? layout.inner : layout.outer) - cutAlong(0));
    const auto devices = static_cast<std::size_t>(overBoth ? m_setting.shards()
            : overInner                                    ? m_setting.parts
                                                           : m_setting.outerParts);
    const std::size_t step = overInner ? 1 : static_cast<std::size_t>(m_setting.parts);
    Parts parts{.group = overBoth ? m_groups.both : overInner ? m_groups.inner : m_groups.outer};
    const auto count = static_cast<std::int64_t>(devices);
    for (std::size_t device = 0; device < devices; ++device) {
        const PartViews &part = views[device * step];
        const TensorView &view = (outputs ? part.outputs : part.inputs)[slot];
        parts.own.push_back(view.index.ranges[dimension]);
        const auto i = static_cast<std::int64_t>(device);
        parts.even.push_back({size * i / count, size * (i + 1) / count});
        if (const std::int64_t lines = parts.own.back().size(); lines > 0)
            parts.lineBytes = bytesOf(localType(view, type)) / lines;
    }
    return parts;
}

void ChoiceFinder::addHalos(OperatorId forward, const Partition &partition, OperatorChoice &choice) const
{
    const Operator &op = m_graph.at(forward);
    if (op.annotation.windows.empty() || m_setting.batchAlone)
        return;
    const auto viewsOf = [&](OperatorId id, const Partition &own) {
        const auto outer = microBatchRanges(*m_setting.model->batch, m_graph, id, 0, m_setting.batchCuts);
        std::vector<PartViews> views;
        for (std::int32_t part = 0; part < partCount(own); ++part)
            views.push_back(partViews(m_graph, m_graph.at(id), own, part, outer));
        views.push_back(partViews(m_graph, m_graph.at(id), {}, 0, outer)); // the whole
        return views;
    };
    const auto sizeOf = [](ShardLayout layout, const TensorView &whole) {
        const AxisLayout cut = isCut(layout.inner) ? layout.inner : layout.outer;
        return whole.index.ranges[static_cast<std::size_t>(cut - cutAlong(0))].size();
    };
    const std::vector<PartViews> views = viewsOf(forward, partition);
    const std::vector<PartViews> back =
        op.mirror ? viewsOf(op.mirror, mirrored(m_graph.at(op.mirror), partition)) : std::vector<PartViews>{};
    const auto timeOf = [&](const std::vector<Range> &held, const std::vector<Range> &wanted,
                            const Parts &parts) {
        return haloTime(held, wanted, parts.lineBytes, *m_setting.costs, parts.group, m_setting.deviceClass);
    };
    choice.halos.resize(op.inputs.size());
    choice.gradientHalos.resize(op.inputs.size());
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const auto isRead = [](ShardLayout layout) { return isCut(layout.inner) || isCut(layout.outer); };
        if (op.inputs[slot] && isRead(choice.inputs[slot])) {
            const Parts parts = partsAlong(choice.inputs[slot], views, false, slot,
                sizeOf(choice.inputs[slot], views.back().inputs[slot]), m_setting.types->read(forward, slot));
            choice.halos[slot] = timeOf(parts.even, parts.own, parts);
        }
        if (!choice.inputGradients[slot].isAbsent() && isRead(choice.inputGradients[slot])) {
            const Parts parts = partsAlong(choice.inputGradients[slot], back, true, slot,
                sizeOf(choice.inputGradients[slot], back.back().outputs[slot]),
                m_setting.types->made(op.mirror, slot));
            choice.gradientHalos[slot] = timeOf(parts.own, parts.even, parts);
        }
    }
}

double ChoiceFinder::sumSeconds(
    OperatorId id, const PartViews &whole, const PartViews &part, std::int32_t turns) const
{
    const Operator &op = m_graph.at(id);
    const bool joins = categoryOf(op) == OperatorCategory::Product; // a product adds to what is there itself
    const auto moving = [&](std::int64_t moved) {
        const double apart =
            m_setting.costs->copy(Bytes{std::max<std::int64_t>(moved, 0) / 2}, m_setting.deviceClass);
        return joins ? apart - m_setting.costs->copy({}, m_setting.deviceClass) : apart;
    };
    double seconds = 0;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot] || m_graph.at(op.outputs[slot]).role != TensorRole::Activation
            || part.outputs[slot].value.count <= whole.outputs[slot].value.count)
            continue;
        const std::int64_t in = bytesOf(localType(part.outputs[slot], m_setting.types->made(id, slot)));
        const std::int64_t out =
            bytesOf(localType(part.outputs[slot], m_setting.types->carried(op.outputs[slot])));
        seconds += joins ? moving(out - in) + (turns - 1) * moving(2 * out - in)
                         : moving(in + out) + (turns - 1) * moving(in + 2 * out);
    }
    return seconds;
}

std::optional<OperatorInTurns> ChoiceFinder::inTurns(
    OperatorId forward, const OperatorChoice &choice, const Split &turns) const
{
    const Operator &op = m_graph.at(forward);
    Partition around;
    if (m_setting.outerParts > 1)
        around.splits.push_back(choice.outer);
    around.splits.push_back(choice.split);
    Partition partition = around;
    partition.splits.push_back(turns);
    const auto rangesOf = [&](OperatorId id) {
        return microBatchRanges(*m_setting.model->batch, m_graph, id, 0, m_setting.batchCuts);
    };
    const auto outer = rangesOf(forward);
    if (!checkPartition(op, partition, outer))
        return std::nullopt;
    const auto shareOf = [](const TensorView &part, const TensorView &whole) {
        return part.tensor ? static_cast<double>(elementCount(shapeOf(part.index)))
                / static_cast<double>(elementCount(shapeOf(whole.index)))
                           : 1;
    };
    const PartViews whole = partViews(m_graph, op, around, 0, outer);
    const PartViews part = partViews(m_graph, op, partition, 0, outer);
    OperatorInTurns found;
    found.forward = std::max(choice.forward,
        turns.parts * kernelSeconds(forward, part, partition, outer)
            + sumSeconds(forward, whole, part, turns.parts));
    found.kept.assign(op.inputs.size() + op.outputs.size(), 1);
    found.inputGradients.assign(op.inputs.size(), 1);
    found.outputGradients.assign(op.outputs.size(), 1);
    if (!op.mirror)
        return found;
    const Operator &backward = m_graph.at(op.mirror);
    const auto outerBack = rangesOf(op.mirror);
    const Partition back = mirrored(backward, partition);
    if (!checkPartition(backward, back, outerBack))
        return std::nullopt;
    const PartViews wholeBack = partViews(m_graph, backward, mirrored(backward, around), 0, outerBack);
    const PartViews partBack = partViews(m_graph, backward, back, 0, outerBack);
    found.backward = std::max(choice.backward,
        turns.parts * kernelSeconds(op.mirror, partBack, back, outerBack)
            + sumSeconds(op.mirror, wholeBack, partBack, turns.parts));
    for (std::size_t slot = 0; slot < found.inputGradients.size() && slot < backward.outputs.size(); ++slot)
        found.inputGradients[slot] = shareOf(partBack.outputs[slot], wholeBack.outputs[slot]);
    for (std::size_t slot = 0; slot < found.outputGradients.size() && slot < backward.inputs.size(); ++slot)
        found.outputGradients[slot] = shareOf(partBack.inputs[slot], wholeBack.inputs[slot]);
    for (std::size_t k = 0; k < found.kept.size(); ++k)
        if (const std::size_t slot = op.outputs.size() + k; slot < backward.inputs.size())
            found.kept[k] = shareOf(partBack.inputs[slot], wholeBack.inputs[slot]);
    return found;
}

/// Splits of an operator apart from those over the axes.
std::vector<Split> ChoiceFinder::otherSplits(OperatorId forward) const
{
    std::vector<Split> splits;
    const OperatorBinding &binding = m_setting.bound->of(forward);
    bool overReplicas = false;
    for (const ChosenSplit &each : chosenSplits(m_graph.at(forward), binding)) {
        if (!each.split.axis.empty()
            && (each.split.axis == m_setting.axis || each.split.axis == m_setting.outerAxis))
            continue;
        overReplicas = overReplicas || each.split.axis == m_setting.replicaAxis;
        splits.push_back(each.split);
    }
    if (const Split *coshard = binding.allowed.coshard.preferred())
        splits.push_back(*coshard);
    const std::int32_t batch = m_setting.model->batch->operatorDimension[at(forward)];
    if (!overReplicas && m_setting.replicas > 1 && batch >= 0)
        splits.push_back({.kind = SplitKind::Dimension,
            .dimension = batch,
            .parts = m_setting.replicas,
            .axis = m_setting.replicaAxis});
    return splits;
}

const Allowed<Split> *ChoiceFinder::allowedOver(OperatorId forward, const std::string &axis) const
{
    if (m_setting.bound)
        for (const AxisMeaning &each : m_setting.bound->of(forward).allowed.axes)
            if (each.axis == axis)
                return &each.allowed;
    return nullptr;
}

/// That rows allow, whatever else is cut: replicating first, then dimensions, then the value.
std::vector<Split> ChoiceFinder::splitsOver(
    OperatorId forward, const std::string &axis, std::int32_t parts) const
{
    const Allowed<Split> *allowed = allowedOver(forward, axis);
    std::vector<Split> splits;
    const auto consider = [&](const Split &split) {
        if (!allowed || allowed->contains(split))
            splits.push_back(split);
    };
    consider({.kind = SplitKind::Replicate, .parts = parts, .axis = axis});
    // Of other dimensions than vocabularies, uneven parts of one operator may be no parts of another one that
    // cuts what the first made: layouts do not tell.
    if (parts > 1)
        for (const std::int32_t dimension : splittableDimensions(m_graph.at(forward).annotation))
            consider({.kind = SplitKind::Dimension,
                .dimension = dimension,
                .parts = parts,
                .sizes = vocabularyShares(*m_setting.model->index, forward, dimension, parts),
                .axis = axis});
    if (parts > 1 && (*m_joins)[at(forward)])
        consider({.kind = SplitKind::Value, .parts = parts, .axis = axis});
    // What rows say in more detail: parts that are not alike.
    if (allowed && allowed->isListed())
        for (const Split &split : allowed->members())
            if (std::find(splits.begin(), splits.end(), split) == splits.end())
                splits.push_back(split);
    return splits;
}

OperatorChoices ChoiceFinder::find(OperatorId forward) const
{
    const Operator &op = m_graph.at(forward);
    OperatorChoices found{.kind = static_cast<std::int32_t>(m_known.size())};
    const Split whole{.kind = SplitKind::Replicate, .parts = m_setting.parts, .axis = m_setting.axis};
    const Split around{
        .kind = SplitKind::Replicate, .parts = m_setting.outerParts, .axis = m_setting.outerAxis};
    if (m_setting.isAside(at(forward))) {
        OperatorChoice &only = found.choices.emplace_back();
        only.split = whole;
        only.outer = around;
        only.inputs.assign(op.inputs.size(), kAbsentLayout);
        only.inputGradients = only.inputs;
        only.outputs.assign(op.outputs.size(), kAbsentLayout);
        only.outputGradients = only.outputs;
        only.kept.assign(op.inputs.size() + op.outputs.size(), 0);
        return found;
    }
    if (m_setting.batchAlone) {
        const std::int32_t batch = m_setting.model->batch->operatorDimension[at(forward)];
        const bool cut = batch >= 0
            && add(forward,
                {.kind = SplitKind::Dimension,
                    .dimension = batch,
                    .parts = m_setting.parts,
                    .axis = m_setting.axis},
                around, found);
        if (!cut)
            add(forward, whole, around, found);
        return found;
    }
    static const std::vector<PartsMeaning> kAnyParts;
    const auto &parts = m_setting.bound ? m_setting.bound->of(forward).allowed.parts : kAnyParts;
    std::vector<Split> others;
    if (!parts.empty())
        others = otherSplits(forward);
    const auto keeps = [&](const Split &split, const Split &outer) {
        if (parts.empty())
            return true;
        std::vector<Split> all = others;
        if (m_setting.outerParts > 1)
            all.push_back(outer);
        all.push_back(split);
        return keepTo(parts, all);
    };
    const std::vector<Split> inner = splitsOver(forward, m_setting.axis, m_setting.parts);
    for (const Split &outer : m_setting.outerParts > 1
            ? splitsOver(forward, m_setting.outerAxis, m_setting.outerParts)
            : std::vector<Split>{around})
        for (const Split &split : inner)
            if (keeps(split, outer))
                add(forward, split, outer, found);
    return found;
}

ChoiceFinder::Key ChoiceFinder::keyOf(OperatorId id) const
{
    if (m_setting.isAside(at(id))) { // by their slots alone
        const Operator &op = m_graph.at(id);
        return {
            -1, {static_cast<std::int32_t>(op.inputs.size()), static_cast<std::int32_t>(op.outputs.size())}};
    }
    Key key{(*m_alike)[at(id)], {}};
    if ((*m_joins)[at(id)])
        key.second.push_back(-3);
    if (m_setting.bound) {
        const OperatorBinding &binding = m_setting.bound->of(id);
        for (std::size_t a = 0; a < binding.allowed.axes.size(); ++a) {
            const AxisMeaning &axis = binding.allowed.axes[a];
            const bool isOuter = m_setting.outerParts > 1 && axis.axis == m_setting.outerAxis;
            if ((axis.axis != m_setting.axis && !isOuter) || axis.allowed.isAnything())
                continue;
            if (isOuter)
                key.second.push_back(-2);
            key.second.push_back(binding.axisRows[a]);
        }
        if (!binding.partsRows.empty()) {
            key.second.push_back(-1); // what is cut otherwise counts, too
            key.second.insert(key.second.end(), binding.partsRows.begin(), binding.partsRows.end());
            key.second.insert(key.second.end(), binding.axisRows.begin(), binding.axisRows.end());
            key.second.push_back(binding.withinRow);
            key.second.push_back(binding.rowOf(Aspect::Coshard));
        }
    }
    return key;
}

const OperatorChoices &ChoiceFinder::of(OperatorId forward)
{
    const auto [it, fresh] = m_known.try_emplace(keyOf(forward));
    if (fresh)
        it->second = find(forward);
    return it->second;
}

} // namespace planloom
