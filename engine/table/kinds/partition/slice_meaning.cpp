#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<SliceRule>::check(const RowSetting &, const SliceRule &rule)
{
    if (rule.dimension.kind == DimensionRef::Kind::Meaning
        && rule.dimension.meaning == DimensionMeaning::Batch)
        return Error{ErrorCode::InvalidInput, "slices of the batch are micro-batches",
            "use a micro-batches row, or slice along the sequence", ""};
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<SliceRule>::actsOn(
    const RowSetting &setting, const SliceRule &, const std::vector<OperatorId> &selected)
{
    // What runs once per step has no slices: it is passed by, as what has no such dimension.
    std::vector<OperatorId> acted = forwardOnes(setting.graph(), selected);
    std::erase_if(acted,
        [&](OperatorId op) { return setting.batch().oncePerStep[static_cast<std::size_t>(op.index)]; });
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<SliceRule>::of(
    const RowSetting &setting, const SliceRule &rule, OperatorId op)
{
    Split split{.kind = SplitKind::Dimension, .parts = rule.parts, .over = SplitOver::Slices};
    TRY(const bool has, bindDimension(setting, op, rule.dimension, split));
    if (!has)
        return std::optional<OperatorMeaning>{};
    TRY_VOID(checkPartition(setting.graph().at(op), {{split}}));
    return std::optional(OperatorMeaning{.slices = Allowed<Split>::only(std::move(split))});
}

} // namespace planloom
