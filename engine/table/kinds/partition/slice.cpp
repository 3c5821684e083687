#include "engine/table/kinds/partition/slice.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<SliceRule>::describe(RuleForm &form, SliceRule &rule)
{
    partsAlong(form, rule.dimension, rule.parts);
}

Result<void> RuleMeaning<SliceRule>::check(const RowSetting &, const SliceRule &rule)
{
    if (rule.dimension.kind == DimensionRef::Kind::Meaning
        && rule.dimension.meaning == DimensionMeaning::Batch)
        return Error{ErrorCode::InvalidInput, "slices of the batch are micro-batches",
            "use a micro-batches row, or slice along the sequence", ""};
    return {};
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
