#pragma once

#include "engine/graph/dimension_classes.h"
#include "engine/graph/partition.h"
#include "engine/plan/plan.h"
#include "engine/plan/selector.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace planloom {

/// One axis of a device mesh.
struct MeshAxis {
    std::string name {};
    std::int32_t size = 1;
    friend bool operator==(const MeshAxis &, const MeshAxis &) = default;
};

/// A place along one axis of the mesh.
struct AxisCoordinate {
    std::string axis {};
    std::int32_t index = 0;
    friend auto operator<=>(const AxisCoordinate &, const AxisCoordinate &) = default;
};

/// Arranges devices 0, 1, ... as a mesh; the last axis varies fastest.
struct MeshRule {
    std::vector<MeshAxis> axes {}; ///< Outermost first, at least one.
    friend bool operator==(const MeshRule &, const MeshRule &) = default;
};

/// Runs the mini-batch in `count` micro-batches: parts of the model's batch, or, where `whole` is set or the model's
/// batch has nothing to cut (it holds one sample), whole batches of their own.
struct MicroBatchesRule {
    std::int32_t count = 1;
    bool whole = false;
    friend bool operator==(const MicroBatchesRule &, const MicroBatchesRule &) = default;
};

/// How a row names an operator's dimension, so that it fits operators of several kinds.
struct DimensionRef {
    enum class Kind : std::uint8_t {
        Identifier, ///< `m`: the identifier of the annotation.
        Input, ///< `in0.1`: the identifier that leads dimension 1 of input 0; negative ones count from the
               ///< last.
        Output, ///< `out0.-1`
        Meaning, ///< `batch`, `sequence`, `heads`: what the identifier is in the model.
    };
    Kind kind = Kind::Identifier;
    /// Of Meaning. Batch is what `analyseBatch` cuts, the others are found by `analyseDimensions`; where an
    /// operator has several, `findMeant` says which (the query's sequence; the key's has its identifier as
    /// name).
    DimensionMeaning meaning = DimensionMeaning::Batch;
    std::string name {}; ///< Of Identifier.
    std::int32_t slot = 0; ///< Of Input and Output.
    std::int32_t dimension = 0; ///< Of Input and Output.
    friend bool operator==(const DimensionRef &, const DimensionRef &) = default;
};

/// One of an op-trans row's nested splits.
struct SplitStep {
    SplitKind kind = SplitKind::Dimension;
    DimensionRef dimension {}; ///< Of SplitKind::Dimension.
    std::int32_t parts = 0; ///< 0 takes the size of `axis`, or the number of `sizes`.
    std::vector<std::int64_t> sizes {}; ///< Of uneven parts; empty means equal parts. Dimension only.
    std::string axis {}; ///< The mesh axis it runs over; may be empty.
    friend bool operator==(const SplitStep &, const SplitStep &) = default;
};

/// op-trans: how the selected operators are split, outermost first. Steps over mesh axes are put in the order
/// of the mesh; steps over none cut what one device has.
struct OpTransRule {
    std::vector<SplitStep> steps {}; ///< At least one.
    friend bool operator==(const OpTransRule &, const OpTransRule &) = default;
};

/// Cuts further into parts that stay on the same device, one after the other, and recomputes them in the
/// backward pass (nnScaler's coshard, OSDI '24, section 6).
struct CoshardRule {
    DimensionRef dimension {};
    std::int32_t parts = 2;
    friend bool operator==(const CoshardRule &, const CoshardRule &) = default;
};

/// op-assign: where the parts run: on a list of devices, or on the part of the mesh with the given
/// coordinates (all of it if there are none).
struct OpAssignRule {
    std::vector<DeviceId> devices {}; ///< Of parts 0, 1, ...; may repeat; empty if by coordinates.
    std::vector<AxisCoordinate> coordinates {};
    friend bool operator==(const OpAssignRule &, const OpAssignRule &) = default;
};

/// op-order: the row's selection runs before `second` of the micro-batch `microBatchOffset` later. Selections
/// of equal size are paired in order, others all with all.
struct OpOrderRule {
    Selector second {};
    std::int32_t microBatchOffset = 0;
    /// Of the row's selection: only this one, from 0; -1 means all. Operators of one block (stage and direction)
    /// run in one order for every micro-batch, which such a row then decides for all of them.
    std::int32_t microBatch = -1;
    friend bool operator==(const OpOrderRule &, const OpOrderRule &) = default;
};

struct ScheduleRule {
    ScheduleKind kind = ScheduleKind::Sequential;
    friend bool operator==(const ScheduleRule &, const ScheduleRule &) = default;
};

/// The pipeline stage of the selected operators.
struct StageRule {
    std::int32_t index = 0;
    friend bool operator==(const StageRule &, const StageRule &) = default;
};

/// What is recomputed together.
enum class RecomputePer : std::uint8_t { Selection, Layer, Operator };

/// Drops the outputs of the selected operators and computes them again before their backward pass.
struct RecomputeRule {
    RecomputePer per = RecomputePer::Selection;
    friend bool operator==(const RecomputeRule &, const RecomputeRule &) = default;
};

/// Cuts the optimizer step and state of the selected operators' weights over replicas (ZeRO stage 1).
struct OptimizerShardingRule {
    std::string axis {}; ///< The replicas along this mesh axis; empty takes all of them.
    std::int32_t parts = 0; ///< Without an axis: into how many; 0 is the number of replicas.
    friend bool operator==(const OptimizerShardingRule &, const OptimizerShardingRule &) = default;
};

/// A pipeline stage holds at most `count` micro-batches whose backward pass has not run: how far it warms up.
struct InFlightRule {
    std::int32_t count = 1;
    std::int32_t stage = -1; ///< -1 means every stage.
    friend bool operator==(const InFlightRule &, const InFlightRule &) = default;
};

/// What every device, or the step, may take at most. Decides nothing: it is held against the simulated step.
struct LimitRule {
    enum class Kind : std::uint8_t {
        Memory, ///< Bytes of each device at its peak.
        Time, ///< Nanoseconds of one step.
    };
    Kind kind = Kind::Memory;
    std::int64_t value = 1; ///< Bytes or nanoseconds.
    friend bool operator==(const LimitRule &, const LimitRule &) = default;
};

using Rule = std::variant<MeshRule, MicroBatchesRule, OpTransRule, CoshardRule, OpAssignRule, OpOrderRule,
    ScheduleRule, StageRule, RecomputeRule, OptimizerShardingRule, InFlightRule, LimitRule>;

/// Where a row came from.
enum class RowOrigin : std::uint8_t { Text, Gesture, Template, Import };

/// One decision: which operators, and what of them.
struct Row {
    bool enabled = true;
    Selector selector {}; ///< `all` for rules about the whole plan (`hasSelector` is false).
    Rule rule {};
    RowOrigin origin = RowOrigin::Text;
    std::string note {}; ///< For people; may have several lines.
    /// 0: the row must hold. Else it is a preference of this weight: it holds if it can (see preferences.h).
    std::int32_t preference = 0;
    friend bool operator==(const Row &, const Row &) = default;
};

/// The constraint table: everything that was decided, whatever the order of its rows.
struct ConstraintTable {
    std::vector<Row> rows {};
    std::string note {}; ///< Comment lines behind the last row.
    friend bool operator==(const ConstraintTable &, const ConstraintTable &) = default;
};

constexpr std::int32_t kMostWeight = 1'000'000; ///< Of a preference.

/// False for rules about the whole plan: mesh, micro-batches, schedule, in-flight, limit.
bool hasSelector(const Rule &rule);

/// "split", "place", ...: the word a row of this rule begins with.
const char *nameOf(const Rule &rule);
const char *nameOf(ScheduleKind kind); ///< "gpipe", "1f1b", "sequential"
const char *nameOf(LimitRule::Kind kind); ///< "memory", "time"
const char *nameOf(RowOrigin origin); ///< "text", "gesture", "template", "import"

/// `Error::where` of a row: "row:5/rule" for row 5 and its part `field` ("selector", "rule").
std::string placeOf(RowId row, std::string_view field);

} // namespace planloom
