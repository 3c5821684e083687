#pragma once

#include "engine/table/kinds/order/segment_kind.h"
#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Two blocks of a pipeline run side by side: each is cut where it has communicated, and the pieces run in
/// turn, so that one computes while the other waits for what it communicates (as in DualPipe,
/// arXiv:2412.19437, section 3.2.1): `first` of micro-batch i with `second` of micro-batch i +
/// `microBatchOffset`, for every i where both exist. The two cannot wait for one another.
struct InterleaveRule {
    SegmentKind first = SegmentKind::Forward;
    SegmentKind second = SegmentKind::Backward;
    std::int32_t stage = -1; ///< Of `first`; -1 means every stage, each with itself.
    std::int32_t secondStage = -1; ///< Of `second`; -1 if and only if `stage` is.
    std::int32_t microBatchOffset = 0;
    /// Of the stages that run in lanes: those that are paired; -1 for every lane of `first` with that of
    /// `second` on its devices.
    std::int32_t lane = -1;
    std::int32_t secondLane = -1;
    friend bool operator==(const InterleaveRule &, const InterleaveRule &) = default;
};

template<> struct RuleTraits<InterleaveRule> {
    static constexpr std::array words{"interleave"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "interleave blocks";
    static void describe(RuleForm &form, InterleaveRule &rule);
};

} // namespace planloom
