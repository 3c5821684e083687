#include "engine/gallery/gallery_context.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <functional>

namespace planloom {

namespace {

/// Adds a row for the forward operators of `among` that `takes` says can take it: one for the whole `among`
/// if all of them can.
/// @return whether any can
bool appendWhere(const SelectorIndex &index, const Selector &among, const Rule &rule,
    const std::function<bool(OperatorId)> &passedBy, const std::function<bool(OperatorId)> &takes,
    ConstraintTable &table)
{
    std::vector<OperatorId> able;
    bool all = true;
    for (const OperatorId op : index.select(among)) {
        if (index.graph().at(op).direction != Direction::Forward || passedBy(op))
            continue;
        if (takes(op))
            able.push_back(op);
        else
            all = false;
    }
    if (able.empty())
        return false;
    if (all)
        table.rows.push_back(templateRow(among, rule));
    else
        for (Selector &selector : selectorsByName(index, able))
            table.rows.push_back(templateRow(std::move(selector), rule));
    return true;
}

} // namespace

Result<void> appendContextParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, bool ring, ConstraintTable &table)
{
    const SelectorIndex &index = *model.index;
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    const SplitStep step{.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
        .parts = 0,
        .sizes = {},
        .axis = axis};
    const auto hasNone = [&](OperatorId op) {
        const auto split = splitOf(setting, op, step);
        return split && split->parts == 0;
    };
    const auto divides = [&](OperatorId op) {
        const auto split = splitOf(setting, op, step);
        return split && split->parts > 1 && checkPartition(index.graph().at(op), {{*split}});
    };
    if (!appendWhere(index, {}, OpTransRule{{step}}, hasNone, divides, table))
        return Error{ErrorCode::InvalidInput,
            "no operator has a sequence that " + std::to_string(parts) + " divides", "use another number",
            "gallery/context-parallel"};
    if (!ring)
        return {};
    const RingRule rule{axis};
    const auto isNoAttention = [&](OperatorId op) {
        return index.graph().at(op).kind != OperatorKind::Attention;
    };
    const auto canBeRing = [&](OperatorId op) {
        const auto meaning = RuleMeaning<RingRule>::of(setting, rule, op);
        return divides(op) && meaning && *meaning && !(*meaning)->ring.empty();
    };
    if (!appendWhere(
            index, {.kind = SelectorKind::Kind, .text = "Attention"}, rule, isNoAttention, canBeRing, table))
        return Error{ErrorCode::InvalidInput,
            "no attention has keys that can go round in " + std::to_string(parts) + " parts",
            "gather them: ring=0", "gallery/ring"};
    return {};
}

} // namespace planloom
