#include "engine/table/kinds/meaning.h"

#include <algorithm>

namespace planloom {

namespace {

bool isBatch(const SplitStep &step)
{
    return step.kind == SplitKind::Dimension && step.dimension.kind == DimensionRef::Kind::Batch;
}

} // namespace

Result<void> RuleMeaning<OpTransRule>::check(const RowSetting &setting, const OpTransRule &rule)
{
    for (std::size_t i = 0; i < rule.steps.size(); ++i) {
        const SplitStep &step = rule.steps[i];
        TRY_VOID(splitOf(setting, {}, step));
        const auto same = [&](const SplitStep &other) { return other.axis == step.axis; };
        const auto before = rule.steps.begin() + static_cast<std::ptrdiff_t>(i);
        if (!step.axis.empty() && std::any_of(rule.steps.begin(), before, same)) {
            return Error {ErrorCode::InvalidInput, "two steps run over mesh axis '" + step.axis + "'",
                "give each step an axis of its own", ""};
        }
        if (isBatch(step) && setting.batch().size == 0)
            return Error {ErrorCode::InvalidInput, "the model has no batch dimension", setting.batch().limitedBy, ""};
    }
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OpTransRule>::actsOn(
    const RowSetting &setting, const OpTransRule &, const std::vector<OperatorId> &selected)
{
    auto acted = actedOn(setting.graph(), selected);
    if (acted.empty() && !selected.empty()) {
        return Error {ErrorCode::InvalidInput, "backward operators are split as their forward operators",
            "select forward operators", ""};
    }
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OpTransRule>::of(
    const RowSetting &setting, const OpTransRule &rule, OperatorId op)
{
    OperatorMeaning meaning;
    std::vector<Split> within;
    bool hasDimension = false;
    bool foundDimension = false;
    for (const SplitStep &step : rule.steps) {
        TRY(Split split, splitOf(setting, op, step));
        if (step.kind == SplitKind::Dimension) {
            hasDimension = true;
            if (split.parts == 0)
                continue;
            foundDimension = true;
        }
        TRY_VOID(checkPartition(setting.graph().at(op), {{split}}));
        if (split.parts <= 1)
            continue;
        if (split.axis.empty()) {
            within.push_back(std::move(split));
        } else {
            std::string axis = split.axis;
            meaning.axes.push_back({std::move(axis), Allowed<Split>::only(std::move(split))});
        }
    }
    if (hasDimension && !foundDimension)
        return std::optional<OperatorMeaning> {};
    if (!within.empty())
        meaning.within = Allowed<std::vector<Split>>::only(std::move(within));
    std::stable_sort(meaning.axes.begin(), meaning.axes.end(), [&](const AxisMeaning &a, const AxisMeaning &b) {
        return meshPosition(setting.mesh, a.axis) < meshPosition(setting.mesh, b.axis);
    });
    return std::optional(std::move(meaning));
}

} // namespace planloom
