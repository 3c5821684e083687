#pragma once

#include "engine/base/ids.h"
#include "engine/graph/annotation/partition.h"
#include "engine/table/kinds/memory/capacity_row.h"
#include "engine/table/kinds/memory/coshard.h"
#include "engine/table/kinds/memory/offload.h"
#include "engine/table/kinds/memory/recompute.h"
#include "engine/table/kinds/memory/zero1.h"
#include "engine/table/kinds/order/in_flight.h"
#include "engine/table/kinds/order/interleave.h"
#include "engine/table/kinds/order/lanes.h"
#include "engine/table/kinds/order/micro_batches.h"
#include "engine/table/kinds/order/order.h"
#include "engine/table/kinds/order/overlap.h"
#include "engine/table/kinds/order/schedule.h"
#include "engine/table/kinds/order/unroll.h"
#include "engine/table/kinds/order/weight_versions.h"
#include "engine/table/kinds/partition/alike.h"
#include "engine/table/kinds/partition/attention.h"
#include "engine/table/kinds/partition/degree.h"
#include "engine/table/kinds/partition/dimension_size.h"
#include "engine/table/kinds/partition/follow.h"
#include "engine/table/kinds/partition/limit.h"
#include "engine/table/kinds/partition/mesh.h"
#include "engine/table/kinds/partition/parts.h"
#include "engine/table/kinds/partition/precision.h"
#include "engine/table/kinds/partition/ring.h"
#include "engine/table/kinds/partition/slice.h"
#include "engine/table/kinds/partition/split.h"
#include "engine/table/kinds/partition/split_backward.h"
#include "engine/table/kinds/partition/spread.h"
#include "engine/table/kinds/place/communicate.h"
#include "engine/table/kinds/place/device_sharing.h"
#include "engine/table/kinds/place/layout.h"
#include "engine/table/kinds/place/place.h"
#include "engine/table/kinds/place/stage.h"
#include "engine/table/selector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace planloom {

using RowId = Id<struct RowTag>; ///< Index into `ConstraintTable::rows`.

/// What a row decides, one alternative a kind of row: see kinds/rule_traits.h for how a kind is added.
using Rule = std::variant<MeshRule, MicroBatchesRule, OpTransRule, CoshardRule, OpAssignRule, OpOrderRule,
    ScheduleRule, StageRule, RecomputeRule, OptimizerShardingRule, InFlightRule, LimitRule, PrecisionRule,
    OverlapRule, AttentionRule, OffloadRule, SplitBackwardRule, CommunicateRule, RingRule, WeightVersionsRule,
    SliceRule, InterleaveRule, LanesRule, DimensionSizeRule, CapacityRule, UnrollRule, DegreeRule, PartsRule,
    AlikeRule, FollowRule, SpreadRule, DeviceSharingRule, LayoutRule>;

/// Where a row came from.
enum class RowOrigin : std::uint8_t {
    Text,
    Gesture,
    Template,
    Import,
    Solver, ///< The search chose it (engine/search), and chooses anew where it is asked again.
};

/// One decision: which operators, and what of them.
struct Row {
    bool enabled = true;
    Selector selector{}; ///< `all` for rules about the whole plan (`hasSelector` is false).
    Rule rule{};
    RowOrigin origin = RowOrigin::Text;
    std::string note{}; ///< For people; may have several lines.
    /// 0: the row must hold. Else it is a preference of this weight: it holds if it can (see preferences.h).
    std::int32_t preference = 0;
    friend bool operator==(const Row &, const Row &) = default;
};

/// The constraint table: everything that was decided, whatever the order of its rows.
struct ConstraintTable {
    std::vector<Row> rows{};
    std::string note{}; ///< Comment lines behind the last row.
    friend bool operator==(const ConstraintTable &, const ConstraintTable &) = default;
};

constexpr std::int32_t kMostWeight = 1'000'000; ///< Of a preference.

/// The words that rows begin with, in the order of `Rule`.
const std::vector<std::string_view> &ruleNames();
/// How rows that begin with `name` are written; nothing if none do.
std::optional<RuleShape> shapeOf(std::string_view name);

/// False for rules about the whole plan: mesh, schedule, ...
bool hasSelector(const Rule &rule);

/// Kinds about two selections.
template<typename RuleType>
concept HasSecondSelector = requires(const RuleType &rule)
{
    requires std::is_same_v<decltype(rule.second), Selector>;
};

/// The second selector of rows about two selections; null for others.
const Selector *secondSelectorOf(const Rule &rule);
Selector *secondSelectorOf(Rule &rule);

/// "split", "place", ...: the word a row of this rule begins with.
const char *nameOf(const Rule &rule);
const char *nameOf(RowOrigin origin); ///< "text", "gesture", "template", "import", "solver"

/// `Error::where` of a row: "row:5/rule" for row 5 and its part `field` ("selector", "rule").
std::string placeOf(RowId row, std::string_view field);

} // namespace planloom
