#include "engine/naming/operator_cut.h"

#include <array>
#include <set>
#include <vector>

namespace planloom {

namespace {

/// Over how many devices the parts lie that differ from the first one in split `at` alone, and how many of
/// them there are on a device.
struct Spread {
    std::int32_t devices = 1;
    std::int32_t perDevice = 1;
};

Spread spreadOf(const OperatorDecision &decision, std::size_t at)
{
    const std::vector<Split> &splits = decision.partition.splits;
    std::size_t stride = 1;
    for (std::size_t i = at + 1; i < splits.size(); ++i)
        stride *= static_cast<std::size_t>(splits[i].parts);
    std::set<DeviceId> devices;
    for (std::int32_t digit = 0; digit < splits[at].parts; ++digit)
        if (const std::size_t part = stride * static_cast<std::size_t>(digit); part < decision.devices.size())
            devices.insert(decision.devices[part]);
    const auto count = std::max<std::int32_t>(1, static_cast<std::int32_t>(devices.size()));
    return {count, splits[at].parts / count};
}

bool isMeant(const SelectorIndex &index, OperatorId op, std::int32_t identifier, DimensionMeaning meaning)
{
    const DimensionClasses &classes = index.dimensions();
    const std::vector<DimensionClassId> &own = classes.ofOperator[at(op)];
    return at(identifier) < own.size() && own[at(identifier)].valid()
        && leadingWith(classes, own[at(identifier)], meaning).valid();
}

bool isSpace(const SelectorIndex &index, OperatorId op, std::int32_t identifier)
{
    constexpr std::array kSpace{DimensionMeaning::Height, DimensionMeaning::Width, DimensionMeaning::Depth};
    return std::any_of(kSpace.begin(), kSpace.end(),
        [&](DimensionMeaning meaning) { return isMeant(index, op, identifier, meaning); });
}

} // namespace

OperatorCut cutOf(const Plan &plan, const BatchInfo &batch, const SelectorIndex &index, OperatorId op)
{
    const OperatorDecision &decision = plan.decisions[at(op)];
    const Operator &one = plan.graph->at(op);
    OperatorCut cut;
    cut.turns = turnsOf(decision);
    for (std::size_t i = 0; i < decision.partition.splits.size(); ++i) {
        const Split &split = decision.partition.splits[i];
        if (split.over == SplitOver::Lanes)
            cut.lanes *= split.parts;
        else if (split.over == SplitOver::Slices)
            cut.slices *= split.parts;
        if (split.over != SplitOver::Devices)
            continue;
        const Spread spread = spreadOf(decision, i);
        const std::int32_t devices = spread.devices;
        if (split.kind == SplitKind::Replicate)
            cut.copies *= devices;
        else if (split.kind == SplitKind::Value) {
            cut.tensor *= devices;
            cut.rows = cut.rows || devices > 1;
        } else if (split.dimension == batch.operatorDimension[at(op)])
            cut.data *= devices;
        else if (isMeant(index, op, split.dimension, DimensionMeaning::Sequence)) {
            cut.sequence *= devices;
            cut.zigzag = cut.zigzag || (devices > 1 && spread.perDevice > 1);
        } else if (isMeant(index, op, split.dimension, DimensionMeaning::Expert))
            cut.experts *= devices;
        else if (isSpace(index, op, split.dimension))
            cut.space *= devices;
        else {
            cut.tensor *= devices;
            const bool isSum = one.annotation.dimensions[at(split.dimension)].mark == DimensionMark::Reduce;
            (isSum ? cut.rows : cut.columns) = devices > 1 || (isSum ? cut.rows : cut.columns);
        }
    }
    return cut;
}

std::string toString(const OperatorCut &cut, std::int32_t units, bool isProduct)
{
    std::string text;
    const auto add = [&text](const char *words, std::int32_t degree) {
        if (degree > 1)
            text += (text.empty() ? "" : ", ") + std::string(words) + std::to_string(degree);
    };
    add("data parallel ", cut.data * units);
    add(isProduct ? "tensor parallel " : "cut in ", cut.tensor);
    add("sequence over ", cut.sequence);
    add("experts over ", cut.experts);
    add("space over ", cut.space);
    add("lanes ", cut.lanes);
    add("slices ", cut.slices);
    add("copied on ", cut.copies);
    return text.empty() ? "whole" : text;
}

} // namespace planloom
