#include "engine/gallery/gallery_context.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"

namespace planloom {

Result<void> appendContextParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, bool ring, ConstraintTable &table)
{
    const SelectorIndex &index = *model.index;
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    const MeaningSplit sequence(setting, DimensionMeaning::Sequence, axis);
    if (!appendMeaningSplit(sequence, table))
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
        return sequence.divides(op) && meaning && *meaning && !(*meaning)->ring.empty();
    };
    if (!appendWhere(
            index, {.kind = SelectorKind::Kind, .text = "Attention"}, rule, isNoAttention, canBeRing, table))
        return Error{ErrorCode::InvalidInput,
            "no attention has keys that can go round in " + std::to_string(parts) + " parts",
            "gather them: ring=0", "gallery/ring"};
    return {};
}

} // namespace planloom
