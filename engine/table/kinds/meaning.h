#pragma once

#include "engine/table/kinds/operator_meaning.h"
#include "engine/table/row_setting.h"
#include "engine/table/selector_matcher.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// What a row means, kind by kind: `RuleMeaning<RuleType>`, each defined in its kind's file behind the
// grammar. Everybody who wants to know what a row says of an operator asks here: completing a plan,
// conflicts, gestures, prices.
//
// Kinds about operators have
//     check(setting, rule)    what is wrong with it whatever it selects
//     actsOn(setting, rule, selected)    those of the selected operators (all directions, ascending) it acts
//     on of(setting, rule, op)   what it says of one of those; nothing if it passes the operator by
//     sameForAll              if that is the same for every operator, so that it is worked out once
// kinds that say of each operator what depends on the others that the row selects, instead of `of`
//     ofEach(setting, rule, acted)    what it says of each of those it acts on, in their order
// kinds about two selections only
//     of(setting, rule, selected, microBatches)    the two sides
// A new kind adds its file, and nobody else changes. Kinds about the whole plan are read by `planMeaning`.

/// What the rows about the whole plan say together. Of each kind the first row that holds counts.
struct PlanMeaning {
    std::vector<MeshAxis> mesh{}; ///< Empty if no row makes one.
    RowId meshRow{}; ///< Invalid without one, as those below.
    std::int32_t microBatches = 1;
    bool wholeBatches = false; ///< Every micro-batch is a whole batch.
    std::int32_t updates = 1; ///< Of the weights, in a step.
    RowId microBatchesRow{};
    ScheduleKind schedule = ScheduleKind::Sequential;
    Schedule order{}; ///< Of a schedule that is listed.
    RowId scheduleRow{}; ///< The one for this number of micro-batches, if there is one, else that for any.
    /// Rows that give a schedule, and which, by number of micro-batches; 0 for any.
    std::map<std::int32_t, std::pair<RowId, ScheduleKind>> scheduleRows{};
    ScheduleRule scheduleLeft{}; ///< What the search may choose from; where no row says, anything.
    RowId scheduleLeftRow{};
    CollectiveOverlap overlap = CollectiveOverlap::None;
    RowId overlapRow{};
    std::vector<std::pair<RowId, DegreeRule>> degrees{}; ///< That bound what the others give.
    std::map<std::string, RowId> sizeRows{}; ///< Of the model's inputs, by dimension.
    std::map<std::string, RowId> capacityRows{}; ///< By operator.
};

template<typename RuleType> struct RuleMeaning;

/// Needs the number of stages: see `stagesOf`.
template<> struct RuleMeaning<InFlightRule> {
    /// The stages that the rule limits. @return InvalidInput if there is no such stage
    static Result<std::vector<std::int32_t>> stagesOf(const InFlightRule &rule, std::int32_t stageCount);
};
template<> struct RuleMeaning<InterleaveRule> {
    /// The stages of the pairs that the rule makes: (of the first block, of the second).
    /// @return InvalidInput if there is no such stage or micro-batch, or a block would run beside itself
    static Result<std::vector<std::pair<std::int32_t, std::int32_t>>> pairsOf(
        const InterleaveRule &rule, std::int32_t stageCount, std::int32_t microBatches);
};
/// Kinds with which nothing can be wrong, whatever they select.
struct AlwaysRight {
    template<typename RuleType> static Result<void> check(const RowSetting &, const RuleType &) { return {}; }
};
/// Kinds that act on the forward operators selected.
struct ActsOnForwardOnes {
    template<typename RuleType>
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const RuleType &, const std::vector<OperatorId> &selected)
    {
        return forwardOnes(setting.graph(), selected);
    }
};

/// Kinds about the blocks of micro-batches: they act on the forward operators selected, and pass by what runs
/// once per step, as what has no such dimension.
struct ActsOnBlocks {
    template<typename RuleType>
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const RuleType &, const std::vector<OperatorId> &selected)
    {
        std::vector<OperatorId> acted = forwardOnes(setting.graph(), selected);
        std::erase_if(acted,
            [&](OperatorId op) { return setting.batch().oncePerStep[static_cast<std::size_t>(op.index)]; });
        return acted;
    }
};
/// Kinds that pass by whatever is no Attention.
struct ActsOnAttentions {
    template<typename RuleType>
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const RuleType &, const std::vector<OperatorId> &selected)
    {
        std::vector<OperatorId> attentions = forwardOnes(setting.graph(), selected);
        std::erase_if(attentions,
            [&](OperatorId op) { return setting.graph().at(op).kind != OperatorKind::Attention; });
        return attentions;
    }
};

template<> struct RuleMeaning<OpTransRule> {
    static constexpr bool sameForAll = false;
    static Result<void> check(const RowSetting &setting, const OpTransRule &rule);
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const OpTransRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const OpTransRule &rule, OperatorId op);
};
template<> struct RuleMeaning<PartsRule> {
    static constexpr bool sameForAll = false;
    static Result<void> check(const RowSetting &setting, const PartsRule &rule);
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const PartsRule &rule, const std::vector<OperatorId> &selected);
    /// Passes by what has no such dimension. @return InvalidInput if the bound allows no number of parts that
    /// the operator can be cut into
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const PartsRule &rule, OperatorId op);
};
template<> struct RuleMeaning<FollowRule> : AlwaysRight, ActsOnForwardOnes {
    static constexpr bool sameForAll = true;
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const FollowRule &rule, OperatorId op);
};
template<> struct RuleMeaning<CoshardRule> : AlwaysRight, ActsOnForwardOnes {
    static constexpr bool sameForAll = false;
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const CoshardRule &rule, OperatorId op);
};
template<> struct RuleMeaning<SliceRule> : ActsOnBlocks {
    static constexpr bool sameForAll = false;
    static Result<void> check(const RowSetting &setting, const SliceRule &rule);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const SliceRule &rule, OperatorId op);
};
template<> struct RuleMeaning<LanesRule> : ActsOnBlocks {
    static constexpr bool sameForAll = true;
    static Result<void> check(const RowSetting &setting, const LanesRule &rule);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const LanesRule &rule, OperatorId op);
};
template<> struct RuleMeaning<OpAssignRule> {
    static constexpr bool sameForAll = true;
    static Result<void> check(const RowSetting &setting, const OpAssignRule &rule);
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const OpAssignRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const OpAssignRule &rule, OperatorId op);
    /// The devices meant. @return as `check`
    static Result<Domain> domainOf(const RowSetting &setting, const OpAssignRule &rule);
};
template<> struct RuleMeaning<SpreadRule> : ActsOnForwardOnes {
    static Result<void> check(const RowSetting &setting, const SpreadRule &rule);
    /// O(operators x log of their sum).
    static std::vector<OperatorMeaning> ofEach(
        const RowSetting &setting, const SpreadRule &rule, const std::vector<OperatorId> &acted);
};
template<> struct RuleMeaning<StageRule> : AlwaysRight {
    static constexpr bool sameForAll = true;
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const StageRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const StageRule &rule, OperatorId op);
};
template<> struct RuleMeaning<LayoutRule> : ActsOnForwardOnes {
    static Result<void> check(const RowSetting &setting, const LayoutRule &rule);
    /// O(operators of the model).
    static std::vector<OperatorMeaning> ofEach(
        const RowSetting &setting, const LayoutRule &rule, const std::vector<OperatorId> &acted);
};
template<> struct RuleMeaning<RecomputeRule> : AlwaysRight, ActsOnForwardOnes {
    static constexpr bool sameForAll = true;
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const RecomputeRule &rule, OperatorId op);
};
template<> struct RuleMeaning<SplitBackwardRule> : AlwaysRight, ActsOnForwardOnes {
    static constexpr bool sameForAll = true;
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const SplitBackwardRule &rule, OperatorId op);
};
template<> struct RuleMeaning<AttentionRule> : AlwaysRight, ActsOnAttentions {
    static constexpr bool sameForAll = false;
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const AttentionRule &rule, OperatorId op);
};
template<> struct RuleMeaning<RingRule> : ActsOnAttentions {
    static constexpr bool sameForAll = false;
    static Result<void> check(const RowSetting &setting, const RingRule &rule);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const RingRule &rule, OperatorId op);
};
template<> struct RuleMeaning<OffloadRule> : AlwaysRight {
    static constexpr bool sameForAll = true;
    /// Of states: as of `OptimizerShardingRule`. Of activations: the forward operators selected.
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const OffloadRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const OffloadRule &rule, OperatorId op);
};
/// Acts on forward operators that read trained weights.
template<> struct RuleMeaning<WeightVersionsRule> : AlwaysRight {
    static constexpr bool sameForAll = true;
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const WeightVersionsRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const WeightVersionsRule &rule, OperatorId op);
};
template<> struct RuleMeaning<OptimizerShardingRule> {
    static constexpr bool sameForAll = true;
    static Result<void> check(const RowSetting &setting, const OptimizerShardingRule &rule);
    /// The optimizer operators selected, or those of the weights that selected forward operators read.
    static Result<std::vector<OperatorId>> actsOn(const RowSetting &setting,
        const OptimizerShardingRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const OptimizerShardingRule &rule, OperatorId op);
};

template<> struct RuleMeaning<PrecisionRule> : AlwaysRight {
    static constexpr bool sameForAll = true;
    /// The forward operators and the optimizer operators selected; backward ones do as their forwards.
    static Result<std::vector<OperatorId>> actsOn(
        const RowSetting &setting, const PrecisionRule &rule, const std::vector<OperatorId> &selected);
    static Result<std::optional<OperatorMeaning>> of(
        const RowSetting &setting, const PrecisionRule &rule, OperatorId op);
};

/// The operators on the two sides of a row about two selections.
struct RuleSides {
    std::vector<OperatorId> first{}; ///< Of the row's selection: of one direction, ascending.
    std::vector<OperatorId> second{}; ///< The same of the second selection.
    /// Selections of equal size are paired in order, others all with all.
    bool paired() const { return first.size() == second.size(); }
};

/// The two sides as they are selected; both empty where one of them is.
RuleSides sidesOf(const RowSetting &setting, const std::vector<OperatorId> &selected, const Selector &second);
/// @return InvalidInput where a side is of another direction: "operator 'X' " and `what`
Result<void> checkForward(const RowSetting &setting, const RuleSides &sides, const std::string &what);
/// @return InvalidInput if `microBatch` (-1 for all of them), or that so many later, is none of the plan's
Result<void> checkMicroBatches(std::int32_t microBatch, std::int32_t offset, std::int32_t microBatches);

/// Order rows are about pairs of operators, and about micro-batches.
template<> struct RuleMeaning<OpOrderRule> {
    /// @return InvalidInput if an operator would run before itself, or there is no such micro-batch
    static Result<RuleSides> of(const RowSetting &setting, const OpOrderRule &rule,
        const std::vector<OperatorId> &selected, std::int32_t microBatches);
};
/// Communicate rows are about what operators communicate, and about micro-batches.
template<> struct RuleMeaning<CommunicateRule> {
    /// @return InvalidInput if what they communicate cannot be ordered so, or there is no such micro-batch
    static Result<RuleSides> of(const RowSetting &setting, const CommunicateRule &rule,
        const std::vector<OperatorId> &selected, std::int32_t microBatches);
};
/// Alike rows are about pairs of operators: both sides are as long (see `AlikeRule`).
template<> struct RuleMeaning<AlikeRule> {
    /// @return InvalidInput if they cannot be paired, or have no partition of their own
    static Result<RuleSides> of(const RowSetting &setting, const AlikeRule &rule,
        const std::vector<OperatorId> &selected, std::int32_t microBatches);
};
/// Rows about sharing devices are about pairs, or about all of two selections.
template<> struct RuleMeaning<DeviceSharingRule> {
    /// @return InvalidInput if an operator would be apart from itself, or has no place of its own
    static Result<RuleSides> of(const RowSetting &setting, const DeviceSharingRule &rule,
        const std::vector<OperatorId> &selected, std::int32_t microBatches);
};

/// True for kinds that say of each operator what depends on the others.
template<typename RuleType>
concept MeansOfSelections = requires(
    const RowSetting &setting, const RuleType &rule, const std::vector<OperatorId> &acted)
{
    RuleMeaning<RuleType>::ofEach(setting, rule, acted);
};

/// True for kinds that say something of single operators.
template<typename RuleType>
concept MeansOfOperators = requires(const RowSetting &setting, const RuleType &rule, OperatorId op)
{
    RuleMeaning<RuleType>::check(setting, rule);
    RuleMeaning<RuleType>::of(setting, rule, op);
};

using SharedMeaning = std::shared_ptr<const OperatorMeaning>;

/// Asks a row what it says of each of the operators that it acts on, in their order; of one after another it
/// may be the same value.
/// @param visit  gets an operator and what is said of it: null where the row passes it by, an error where it
///   cannot hold there. Returns whether to go on
/// @return what is wrong with the rule whatever the operators; visits none of rules about other things
Result<void> askEach(const RowSetting &setting, const Rule &rule, const std::vector<OperatorId> &selected,
    const std::function<bool(OperatorId, Result<SharedMeaning>)> &visit);
/// What the rule of a row says of `op`, one of those it acts on; nothing where it passes the operator by, or
/// for rules about other things than single operators.
Result<std::optional<OperatorMeaning>> meaningOf(const RowSetting &setting, const Rule &rule, OperatorId op);
/// The operators that a rule about single operators acts on; none for others.
Result<std::vector<OperatorId>> actsOn(
    const RowSetting &setting, const Rule &rule, const std::vector<OperatorId> &selected);

/// The micro-batches that the first row on gives that gives them; nothing without one.
std::optional<std::int32_t> givenMicroBatches(const ConstraintTable &table);
/// The first row on that gives the schedule of a plan with so many micro-batches: one for this number, else
/// one for any; nothing without either. Its rule is a `ScheduleRule`. O(rows)
std::optional<RowId> scheduleRowAt(const ConstraintTable &table, std::int32_t microBatches);

/// Rows about the whole plan, in the order of the table.
/// @param failed  called for each that cannot hold; may be empty
PlanMeaning planMeaning(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const std::function<void(RowId, Error)> &failed = {});

/// What the rows of `table` about operators are read against.
RowSetting settingOf(const Model &model, std::int32_t deviceCount, const ConstraintTable &table);

} // namespace planloom
