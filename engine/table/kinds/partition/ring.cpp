#include "engine/table/kinds/partition/ring.h"

#include "engine/graph/operators/attention.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<RingRule>::describe(RuleForm &form, RingRule &rule)
{
    form.word("over", "'over' and a mesh axis");
    form.axis(rule.axis, false);
}

Result<void> RuleMeaning<RingRule>::check(const RowSetting &setting, const RingRule &rule)
{
    TRY_VOID(splitOf(setting, {}, {.kind = SplitKind::Replicate, .axis = rule.axis}));
    return {};
}

Result<std::optional<OperatorMeaning>> RuleMeaning<RingRule>::of(
    const RowSetting &setting, const RingRule &rule, OperatorId op)
{
    const Operator &attention = setting.graph().at(op);
    const MeshAxis *axis = findAxis(setting.mesh, rule.axis);
    if (attention.kind != OperatorKind::Attention || !axis)
        return std::optional<OperatorMeaning>{};
    const AttentionSequences sequences = attentionSequences(attention);
    if (!sequences.areSplittable())
        return Error{ErrorCode::InvalidInput,
            "the keys of '" + attention.name
                + "' cannot be split: it adds a mask to its scores, or has a sequence of one",
            "select other attentions, or split this one along its queries (\"split ... : s over " + rule.axis
                + "\")",
            ""};
    OperatorMeaning meaning;
    meaning.attention = AttentionMode::Fused;
    if (axis->size < 2)
        return std::optional(std::move(meaning));
    Split queries{
        .kind = SplitKind::Dimension, .dimension = sequences.queries, .parts = axis->size, .axis = rule.axis};
    Split keys{.kind = SplitKind::Dimension, .dimension = sequences.keys, .parts = axis->size};
    for (const Split &split : {queries, keys})
        TRY_VOID(checkPartition(attention, {{split}}));
    meaning.axes.push_back({rule.axis, Allowed<Split>::only(std::move(queries))});
    meaning.coshard = Allowed<Split>::only(std::move(keys));
    meaning.ring = rule.axis;
    return std::optional(std::move(meaning));
}

} // namespace planloom
