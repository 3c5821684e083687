#pragma once

#include "engine/table/kinds/order/block_part.h"
#include "engine/table/kinds/rule_traits.h"
#include "engine/table/selector.h"

namespace planloom {

/// op-order: the row's selection runs before `second` of the micro-batch `microBatchOffset` later. Selections
/// of equal size are paired in order, others all with all.
/// Operators of different blocks order their blocks; of two that run side by side (`InterleaveRule`, or a
/// schedule that interleaves) their pieces: both are cut there.
struct OpOrderRule {
    Selector second{};
    std::int32_t microBatchOffset = 0;
    /// Of the row's selection: only this one, from 0; -1 means all. Operators of one block (stage and
    /// direction) run in one order for every micro-batch, which such a row then decides for all of them.
    std::int32_t microBatch = -1;
    /// Which blocks of the row's selection, where its stage runs in lanes or slices, and which of `second`.
    /// Without lanes, what runs in as many on either side is ordered lane by lane; otherwise all that is
    /// named with all.
    BlockPart part{};
    BlockPart secondPart{};
    friend bool operator==(const OpOrderRule &, const OpOrderRule &) = default;
};

template<> struct RuleTraits<OpOrderRule> {
    static constexpr std::array words{"order"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "order";
    static void describe(RuleForm &form, OpOrderRule &rule);
};

} // namespace planloom
