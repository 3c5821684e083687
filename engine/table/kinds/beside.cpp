#include "engine/table/kinds/beside.h"

#include "engine/base/words.h"

#include <string>
#include <variant>

namespace planloom {

namespace {

Beside clashIf(bool clash)
{
    return clash ? Beside::Clash : Beside::Same;
}

// One function for each kind of row about the whole plan: a kind without one does not compile.

Beside stand(const Graph &, const MeshRule &, const MeshRule &)
{
    return Beside::Clash;
}

Beside stand(const Graph &, const MicroBatchesRule &, const MicroBatchesRule &)
{
    return Beside::Clash;
}

Beside stand(const Graph &, const OverlapRule &, const OverlapRule &)
{
    return Beside::Clash;
}

Beside stand(const Graph &, const ScheduleRule &a, const ScheduleRule &b)
{
    // What is left to the search may be given, too, if it is among what it was left.
    if (a.chosen != b.chosen && !(a.chosen ? allows(a, b.kind) : allows(b, a.kind)))
        return Beside::Clash;
    return a.microBatches != b.microBatches ? Beside::Apart : clashIf(a.chosen == b.chosen);
}

Beside stand(const Graph &, const InFlightRule &a, const InFlightRule &b)
{
    const bool meet = a.stage < 0 || b.stage < 0 || a.stage == b.stage;
    return meet ? clashIf(a.count != b.count) : Beside::Apart;
}

Beside stand(const Graph &, const DegreeRule &a, const DegreeRule &b)
{
    if (a.degree != b.degree)
        return Beside::Apart;
    if (!canAgree({a.bound, b.bound}))
        return Beside::Clash;
    // One bounds it from above and one from below.
    const bool bothEnds = a.bound.kind != b.bound.kind && a.bound.kind != CountBound::Kind::OneOf
        && b.bound.kind != CountBound::Kind::OneOf;
    return bothEnds ? Beside::Apart : Beside::Same;
}

Beside stand(const Graph &graph, const DimensionSizeRule &a, const DimensionSizeRule &b)
{
    const InputDimension *mine = findDimension(graph.dimensions, a.name);
    const bool same =
        a.name == b.name || (mine != nullptr && mine == findDimension(graph.dimensions, b.name));
    return same ? Beside::Clash : Beside::Apart;
}

Beside stand(const Graph &, const CapacityRule &a, const CapacityRule &b)
{
    return a.name == b.name ? Beside::Clash : Beside::Apart;
}

Beside stand(const Graph &, const UnrollRule &a, const UnrollRule &b)
{
    return a.name == b.name ? Beside::Same : Beside::Apart;
}

Beside stand(const Graph &, const InterleaveRule &a, const InterleaveRule &b)
{
    return a == b ? Beside::Same : Beside::Apart; // each pairs others
}

Beside stand(const Graph &, const LimitRule &a, const LimitRule &b)
{
    return a.kind == b.kind && a.links == b.links ? Beside::Same : Beside::Apart;
}

std::string nameIn(const Graph &graph, const std::string &dimension)
{
    const InputDimension *known = findDimension(graph.dimensions, dimension);
    return known != nullptr ? known->name : dimension;
}

/// What a row gives that no other one may give, for "... is given already".
std::string givenBy(const Graph &graph, const Rule &rule)
{
    if (const auto *schedule = std::get_if<ScheduleRule>(&rule))
        return schedule->microBatches > 0
            ? "the schedule at " + counted(schedule->microBatches, "micro-batch")
            : std::string("the schedule");
    if (const auto *size = std::get_if<DimensionSizeRule>(&rule))
        return "the size of '" + nameIn(graph, size->name) + "'";
    if (const auto *capacity = std::get_if<CapacityRule>(&rule))
        return "the room of '" + capacity->name + "'";
    if (std::holds_alternative<MicroBatchesRule>(rule))
        return "the number of micro-batches";
    return std::string("the ") + nameOf(rule);
}

} // namespace

Error clashError(const Graph &graph, const Rule &rule, const Rule &earlier, RowId row)
{
    Error error{ErrorCode::InvalidInput, {}, "change one of the two rows, or switch it off", {}};
    const auto *schedule = std::get_if<ScheduleRule>(&rule);
    if (const auto *degree = std::get_if<DegreeRule>(&rule))
        error.message = "no number of " + std::string(nameOf(degree->degree)) + " keeps to this row and to "
            + rowWords(row.index);
    else if (schedule && schedule->chosen != std::get<ScheduleRule>(earlier).chosen)
        error.message = "the schedule of one row is not among those that the other one leaves to the search: "
                        "this row and "
            + rowWords(row.index);
    else
        error.message = givenBy(graph, rule) + " is given already, by " + rowWords(row.index);
    return error;
}

Beside besides(const Graph &graph, const Rule &a, const Rule &b)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &mine) {
            if constexpr (RuleTraits<RuleType>::shape != RuleShape::Plain) {
                return Beside::Apart;
            } else {
                const auto *theirs = std::get_if<RuleType>(&b);
                return theirs ? stand(graph, mine, *theirs) : Beside::Apart;
            }
        },
        a);
}

} // namespace planloom
