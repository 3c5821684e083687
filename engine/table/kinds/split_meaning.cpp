#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

/// A step by a meaning other than the batch, which not every model has.
bool isByMeaning(const SplitStep &step)
{
    return step.kind == SplitKind::Dimension && step.dimension.kind == DimensionRef::Kind::Meaning
        && !isBatch(step);
}

/// What the operators can be cut by: "batch (8), heads (4, 16)".
std::string meaningsOf(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    std::map<DimensionMeaning, std::set<std::int64_t>> found;
    for (const OperatorId op : operators) {
        for (int i = 1; i < kDimensionMeaningCount; ++i) {
            const auto meaning = static_cast<DimensionMeaning>(i);
            const auto meant = findMeant(index.dimensions(), index.graph(), op, meaning);
            if (meant.identifier >= 0)
                found[meaning].insert(meant.extent);
        }
    }
    std::string text;
    for (const auto &[meaning, extents] : found) {
        std::string sizes;
        for (const std::int64_t extent : extents)
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(extent);
        text += (text.empty() ? "" : ", ") + std::string(nameOf(meaning)) + " (" + sizes + ")";
    }
    return text;
}

/// For a meaning that none of the operators can be cut by.
Error noSuchMeaning(
    const RowSetting &setting, const DimensionRef &ref, const std::vector<OperatorId> &operators)
{
    const std::string name = nameOf(ref.meaning);
    bool frozen = false;
    bool called = false;
    for (const OperatorId op : operators) {
        frozen = frozen || findMeant(setting.index().dimensions(), setting.graph(), op, ref.meaning).frozen;
        called = called || findDimension(setting.graph().at(op).annotation, name).has_value();
    }
    const std::string others = meaningsOf(setting.index(), operators);
    return {ErrorCode::InvalidInput,
        frozen ? "what is selected needs " + name + " whole"
               : "nothing selected has a dimension that is " + name,
        (called ? "write \"" + name + "\" in quotes for the identifier of that name; " : "")
            + (others.empty() ? "nothing selected has a dimension that is known" : "there is " + others),
        ""};
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
            return Error{ErrorCode::InvalidInput, "two steps run over mesh axis '" + step.axis + "'",
                "give each step an axis of its own", ""};
        }
        if (isBatch(step) && setting.batch().size == 0)
            return Error{
                ErrorCode::InvalidInput, "the model has no batch dimension", setting.batch().limitedBy, ""};
    }
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OpTransRule>::actsOn(
    const RowSetting &setting, const OpTransRule &rule, const std::vector<OperatorId> &selected)
{
    auto acted = actedOn(setting.graph(), selected);
    if (acted.empty() && !selected.empty()) {
        return Error{ErrorCode::InvalidInput, "backward operators are split as their forward operators",
            "select forward operators", ""};
    }
    for (const SplitStep &step : rule.steps) {
        const auto has = [&](OperatorId op) {
            const auto dimension = resolveDimension(setting, op, step.dimension);
            return !dimension || *dimension >= 0;
        };
        if (isByMeaning(step) && !acted.empty() && std::none_of(acted.begin(), acted.end(), has))
            return noSuchMeaning(setting, step.dimension, acted);
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
        return std::optional<OperatorMeaning>{};
    if (!within.empty())
        meaning.within = Allowed<std::vector<Split>>::only(std::move(within));
    std::stable_sort(
        meaning.axes.begin(), meaning.axes.end(), [&](const AxisMeaning &a, const AxisMeaning &b) {
            return meshPosition(setting.mesh, a.axis) < meshPosition(setting.mesh, b.axis);
        });
    return std::optional(std::move(meaning));
}

} // namespace planloom
