#pragma once

#include "engine/base/ids.h"
#include "engine/graph/partition.h"
#include "engine/table/kinds/alike.h"
#include "engine/table/kinds/attention.h"
#include "engine/table/kinds/capacity_row.h"
#include "engine/table/kinds/communicate.h"
#include "engine/table/kinds/coshard.h"
#include "engine/table/kinds/degree.h"
#include "engine/table/kinds/device_sharing.h"
#include "engine/table/kinds/dimension_size.h"
#include "engine/table/kinds/follow.h"
#include "engine/table/kinds/in_flight.h"
#include "engine/table/kinds/interleave.h"
#include "engine/table/kinds/lanes.h"
#include "engine/table/kinds/limit.h"
#include "engine/table/kinds/mesh.h"
#include "engine/table/kinds/micro_batches.h"
#include "engine/table/kinds/offload.h"
#include "engine/table/kinds/order.h"
#include "engine/table/kinds/overlap.h"
#include "engine/table/kinds/parts.h"
#include "engine/table/kinds/place.h"
#include "engine/table/kinds/precision.h"
#include "engine/table/kinds/recompute.h"
#include "engine/table/kinds/ring.h"
#include "engine/table/kinds/schedule.h"
#include "engine/table/kinds/slice.h"
#include "engine/table/kinds/split.h"
#include "engine/table/kinds/split_backward.h"
#include "engine/table/kinds/spread.h"
#include "engine/table/kinds/stage.h"
#include "engine/table/kinds/unroll.h"
#include "engine/table/kinds/weight_versions.h"
#include "engine/table/kinds/zero1.h"
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
    AlikeRule, FollowRule, SpreadRule, DeviceSharingRule>;

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
