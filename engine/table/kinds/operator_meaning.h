#pragma once

#include "engine/table/allowed.h"
#include "engine/table/domain.h"
#include "engine/table/table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// Two places that are the same devices in the same order, whether a row lists them or names a part of the
/// mesh.
struct SamePlace {
    bool operator()(const Domain &a, const Domain &b) const { return a.devices == b.devices; }
};
using AllowedPlace = Allowed<Domain, SamePlace>;
using AllowedPlaceSnapshot = std::shared_ptr<const AllowedPlace>;

/// What can be decided of an operator, and rows can speak of.
enum class Aspect : std::uint8_t {
    Split,
    Parts,
    Place,
    Coshard,
    CoshardKeeps,
    Ring,
    Slices,
    Lanes,
    Stage,
    Follow,
    Recompute,
    Sharding,
    Precision,
    Attention,
    WeightVersions,
    SplitBackward,
    Offload,
};
constexpr std::size_t kAspectCount = static_cast<std::size_t>(Aspect::Offload) + 1;

/// The splits allowed along one axis of the mesh.
struct AxisMeaning {
    std::string axis{};
    Allowed<Split> allowed{};
    friend bool operator==(const AxisMeaning &, const AxisMeaning &) = default;
};

/// Into how many parts an operator may be cut; see `PartsRule`.
struct PartsMeaning {
    std::int32_t dimension = -1; ///< Identifier of its annotation; -1: along all of them together.
    CountBound bound{};
    friend bool operator==(const PartsMeaning &, const PartsMeaning &) = default;
};

/// Into how many parts `splits` cut an operator along `dimension`, as `PartsRule` counts.
std::int64_t partsOf(const std::vector<Split> &splits, std::int32_t dimension);
/// Whether what `splits` cut keeps to all of `bounds`.
bool keepTo(const std::vector<PartsMeaning> &bounds, const std::vector<Split> &splits);

/// What a row says of one operator: for each aspect the set of what it allows. A member with its default
/// value says nothing: what the row does not speak of stays free.
struct OperatorMeaning {
    std::vector<AxisMeaning> axes{}; ///< op-trans over the mesh: axes it speaks of, in mesh order.
    /// op-trans within what one device has: lists of nested splits over no axis. A row that speaks of this
    /// says all there is to say of how the operator is split: rows about other axes do not compose with it.
    Allowed<std::vector<Split>> within{};
    std::vector<PartsMeaning> parts{}; ///< All of them hold.
    AllowedPlaceSnapshot place{}; ///< op-assign; null is anywhere. Shared: the devices may be many thousands.
    Allowed<Split> coshard{}; ///< Parts on one device, one after the other.
    std::optional<bool> coshardKeeps{}; ///< Whether those parts keep what their backward operators read.
    /// The mesh axis whose devices pass the parts of `coshard`, an attention's keys, round; empty for none.
    std::string ring{};
    Allowed<Split> slices{}; ///< Of its stage: see plan/block_places.h.
    std::optional<LanesRule> lanes{}; ///< Of its stage: see plan/block_places.h.
    Allowed<std::int32_t> stage{};
    bool follows = false; ///< It is cut as its producer is; rows that ask for it cannot disagree.
    std::optional<RecomputeRule> recompute{}; ///< Always or Never.
    std::optional<OptimizerShardingRule> sharding{};
    std::optional<PrecisionRule> precision{};
    std::optional<AttentionMode> attention{};
    std::optional<std::int32_t> weightVersions{};
    bool splitBackward = false; ///< Gradients of its weights have a pass of their own.
    std::optional<bool> offloaded{}; ///< False: it stays on its device.

    bool splits() const { return !axes.empty() || !within.isAnything(); }
};

/// An aspect whose value is one member of what rows say.
template<typename Value> struct AspectValue {
    Aspect aspect;
    Value OperatorMeaning::*value;
    const char *clash; ///< What two rows do that disagree, as in "this row and row 3 CLASH operator 'a'".
};
/// Deduced for aggregates by itself in C++20, but not by clang before 17.
template<typename Value> AspectValue(Aspect, Value OperatorMeaning::*, const char *) -> AspectValue<Value>;

/// All of them but Split and Parts, which depend on other members. A new aspect is written here, in `Aspect`
/// and in `OperatorMeaning`; if two of its values agree otherwise than by being equal, with a `both` of its
/// own.
inline constexpr std::tuple kAspects{
    AspectValue{Aspect::Place, &OperatorMeaning::place, "place in different ways"},
    AspectValue{Aspect::Coshard, &OperatorMeaning::coshard, "cut, or keep, in different ways"},
    AspectValue{Aspect::CoshardKeeps, &OperatorMeaning::coshardKeeps, "cut, or keep, in different ways"},
    AspectValue{Aspect::Ring, &OperatorMeaning::ring, "cut, or keep, in different ways"},
    AspectValue{Aspect::Slices, &OperatorMeaning::slices, "cut into different slices"},
    AspectValue{Aspect::Lanes, &OperatorMeaning::lanes, "give different lanes to"},
    AspectValue{Aspect::Stage, &OperatorMeaning::stage, "give different stages to"},
    AspectValue{Aspect::Follow, &OperatorMeaning::follows, ""},
    AspectValue{Aspect::Recompute, &OperatorMeaning::recompute, "recompute"},
    AspectValue{Aspect::Sharding, &OperatorMeaning::sharding, "shard differently"},
    AspectValue{Aspect::Precision, &OperatorMeaning::precision, "give different precisions to"},
    AspectValue{Aspect::Attention, &OperatorMeaning::attention, "compute attention differently in"},
    AspectValue{Aspect::WeightVersions, &OperatorMeaning::weightVersions,
        "keep different numbers of weight versions of"},
    AspectValue{Aspect::SplitBackward, &OperatorMeaning::splitBackward, ""},
    AspectValue{Aspect::Offload, &OperatorMeaning::offloaded, "offload, or keep on their devices,"},
};

/// Whether `visit(entry)` holds for one of `kAspects`; asks in their order, no more after the first.
template<typename Visit> bool anyAspect(Visit visit)
{
    return std::apply([&](const auto &...entries) { return (visit(entries) || ...); }, kAspects);
}

/// `AspectValue::clash` of any aspect.
const char *clashWords(Aspect aspect);

/// Whether a row says something with the value of an aspect.
template<typename Value> bool speaks(const Value &value)
{
    return value != Value{};
}

/// What two values of an aspect allow together; nothing if they cannot both hold.
template<typename Value> std::optional<Value> both(const Value &a, const Value &b)
{
    if (speaks(a) && speaks(b) && a != b)
        return std::nullopt;
    return std::optional<Value>(std::in_place, speaks(a) ? a : b);
}
template<typename T> std::optional<Allowed<T>> both(const Allowed<T> &a, const Allowed<T> &b)
{
    auto allowed = intersection(a, b);
    return allowed.isEmpty() ? std::nullopt : std::optional(std::move(allowed));
}
/// Where both say the same, the part of the mesh stands before the list of its devices: splits over its axes
/// go on.
std::optional<AllowedPlaceSnapshot> both(const AllowedPlaceSnapshot &a, const AllowedPlaceSnapshot &b);
/// What is recomputed together is a group, and an operator is in one: even equal rows clash.
std::optional<std::optional<RecomputeRule>> both(
    const std::optional<RecomputeRule> &a, const std::optional<RecomputeRule> &b);
/// Settings are compared one by one.
std::optional<std::optional<PrecisionRule>> both(
    const std::optional<PrecisionRule> &a, const std::optional<PrecisionRule> &b);

/// Where two meanings of one operator cannot both hold; nothing if they can.
std::optional<Aspect> clashOf(const OperatorMeaning &a, const OperatorMeaning &b);
/// What both op-trans meanings allow together, axes in the order of `mesh`; nothing if they clash.
std::optional<OperatorMeaning> composedSplits(
    const OperatorMeaning &a, const OperatorMeaning &b, const std::vector<MeshAxis> &mesh);

} // namespace planloom
