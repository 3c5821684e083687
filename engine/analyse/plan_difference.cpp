#include "engine/analyse/plan_difference.h"

#include "engine/simulate/summary.h"
#include "engine/table/selector.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// For each operator of `a`, its like in `b`; -1 without.
std::vector<std::int32_t> match(const Graph &a, const Graph &b)
{
    std::unordered_map<std::string_view, std::vector<std::int32_t>> named;
    for (std::size_t i = b.operators.size(); i-- > 0;)
        named[b.operators[i].name].push_back(static_cast<std::int32_t>(i)); // the first one last
    std::vector<std::int32_t> like(a.operators.size(), -1);
    for (std::size_t i = 0; i < a.operators.size(); ++i)
        if (const auto found = named.find(a.operators[i].name);
            found != named.end() && !found->second.empty()) {
            like[i] = found->second.back();
            found->second.pop_back();
        }
    return like;
}

/// Kernels of a device in order, each with the operator's index, its part, the micro-batch and whether it is
/// a repetition.
using Run = std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>;

std::vector<Run> runsOf(const DeviceProgram &program)
{
    std::vector<Run> runs;
    for (const ScheduleEntry &entry : program.schedule)
        for (const Instruction &instruction : instructionsOf(program, entry))
            if (instruction.kind == InstructionKind::Kernel)
                runs.emplace_back(
                    instruction.op.index, instruction.part, entry.microBatch, instruction.recompute);
    return runs;
}

/// Positions of `values` outside one of its longest rising subsequences.
std::vector<std::size_t> outOfOrder(const std::vector<std::size_t> &values)
{
    std::vector<std::size_t> tails; // by length: where the sequence with the smallest end ends
    std::vector<std::size_t> before(values.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = std::lower_bound(tails.begin(), tails.end(), values[i],
            [&](std::size_t t, std::size_t value) { return values[t] < value; });
        if (at != tails.begin())
            before[i] = *(at - 1);
        if (at == tails.end())
            tails.push_back(i);
        else
            *at = i;
    }
    std::vector<bool> kept(values.size(), false);
    for (std::size_t i = tails.empty() ? values.size() : tails.back(); i < values.size(); i = before[i])
        kept[i] = true;
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!kept[i])
            out.push_back(i);
    return out;
}

/// Marks the operators of `a` that a device runs at another place. Two orders can have several longest
/// subsequences in common; the search begins from the side whose first differing kernel has the smaller name,
/// so that the mirror image is the same.
void markOrder(const Graph &graph, const DeviceProgram &a, const DeviceProgram &b,
    const std::vector<std::int32_t> &like, std::vector<bool> &ordered)
{
    const std::vector<Run> runsA = runsOf(a);
    const std::vector<Run> runsB = runsOf(b);
    std::vector<std::pair<Run, std::size_t>> positionB;
    positionB.reserve(runsB.size());
    for (std::size_t i = 0; i < runsB.size(); ++i)
        positionB.emplace_back(runsB[i], i);
    std::sort(positionB.begin(), positionB.end());
    std::vector<bool> taken(runsB.size(), false);
    std::vector<std::size_t> places; // in b, of the common runs in a's order
    std::vector<Run> common;
    for (const Run &run : runsA) {
        const auto [op, part, microBatch, recompute] = run;
        if (like[static_cast<std::size_t>(op)] < 0)
            continue;
        const Run wanted{like[static_cast<std::size_t>(op)], part, microBatch, recompute};
        const auto found = std::lower_bound(positionB.begin(), positionB.end(), wanted,
            [](const auto &entry, const Run &key) { return entry.first < key; });
        if (found == positionB.end() || found->first != wanted || taken[found->second])
            continue;
        taken[found->second] = true;
        places.push_back(found->second);
        common.push_back(run);
    }
    std::vector<std::size_t> ranks = places;
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::size_t> inverse(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] =
            static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), places[i]) - ranks.begin());
        inverse[places[i]] = i;
    }
    std::size_t first = 0;
    while (first < places.size() && inverse[first] == first)
        ++first;
    if (first == places.size())
        return;
    const auto labelOf = [&](std::size_t i) {
        const auto &[op, part, microBatch, recompute] = common[i];
        return std::tuple(std::string_view(graph.operators[static_cast<std::size_t>(op)].name), part,
            microBatch, recompute);
    };
    const bool fromA = labelOf(first) <= labelOf(inverse[first]);
    for (const std::size_t i : outOfOrder(fromA ? places : inverse))
        ordered[static_cast<std::size_t>(std::get<0>(common[fromA ? i : inverse[i]]))] = true;
}

/// What two rows have in common that speak of the same thing.
std::pair<std::size_t, std::string> subjectOf(const Row &row)
{
    return {row.rule.index(), hasSelector(row.rule) ? toString(row.selector) : std::string{}};
}

/// Rows of `a` and `b` with equal keys, in their order; those left over stay in `leftA` and `leftB`,
/// ascending.
template<typename KeyOf>
std::vector<std::pair<std::int32_t, std::int32_t>> pairUp(const ConstraintTable &a, const ConstraintTable &b,
    std::vector<std::int32_t> &leftA, std::vector<std::int32_t> &leftB, KeyOf keyOf)
{
    std::map<decltype(keyOf(a.rows.front())), std::vector<std::int32_t>> ofB;
    for (auto it = leftB.rbegin(); it != leftB.rend(); ++it)
        ofB[keyOf(b.rows[static_cast<std::size_t>(*it)])].push_back(*it);
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    std::vector<std::int32_t> rest;
    for (const std::int32_t row : leftA) {
        const auto found = ofB.find(keyOf(a.rows[static_cast<std::size_t>(row)]));
        if (found == ofB.end() || found->second.empty()) {
            rest.push_back(row);
            continue;
        }
        pairs.emplace_back(row, found->second.back());
        found->second.pop_back();
    }
    leftA = std::move(rest);
    leftB.clear();
    for (const auto &[key, rows] : ofB)
        leftB.insert(leftB.end(), rows.begin(), rows.end());
    std::sort(leftB.begin(), leftB.end());
    return pairs;
}

} // namespace

std::optional<PlanDifference> differenceOf(
    const ExecutionPlan &a, const ExecutionPlan &b, std::stop_token stop)
{
    const std::vector<std::int32_t> like = match(*a.graph, *b.graph);
    std::vector<bool> ordered(a.graph->operators.size(), false);
    for (std::size_t d = 0; d < std::min(a.devices.size(), b.devices.size()); ++d) {
        if (stop.stop_requested())
            return std::nullopt;
        markOrder(*a.graph, a.devices[d], b.devices[d], like, ordered);
    }
    PlanDifference difference;
    std::vector<bool> matched(b.graph->operators.size(), false);
    for (std::size_t i = 0; i < like.size(); ++i) {
        OperatorDifference one{.a = {static_cast<std::int32_t>(i)}, .name = a.graph->operators[i].name};
        if (like[i] >= 0) {
            const auto j = static_cast<std::size_t>(like[i]);
            one.b = {like[i]};
            matched[j] = true;
            one.split = a.partitions[i].splits.size() != b.partitions[j].splits.size()
                || !std::equal(a.partitions[i].splits.begin(), a.partitions[i].splits.end(),
                    b.partitions[j].splits.begin(), [](const Split &x, const Split &y) {
                        // The mesh axis is how it was said, not how it is cut.
                        return std::tie(x.kind, x.dimension, x.parts, x.sizes)
                            == std::tie(y.kind, y.dimension, y.parts, y.sizes);
                    });
            one.placed = a.placement[i] != b.placement[j];
            if (one.split && one.placed) {
                // Cut differently over the same devices in the same order is not placed elsewhere.
                const auto distinct = [](std::vector<DeviceId> devices) {
                    std::sort(devices.begin(), devices.end());
                    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
                    return devices;
                };
                one.placed = distinct(a.placement[i]) != distinct(b.placement[j]);
            }
            one.ordered = ordered[i] && !one.split && !one.placed;
            one.computed = attentionOf(a, one.a) != attentionOf(b, one.b);
            if (!one.split && !one.placed && !one.ordered && !one.computed) {
                ++difference.same;
                continue;
            }
        }
        difference.operators.push_back(std::move(one));
    }
    for (std::size_t j = 0; j < matched.size(); ++j)
        if (!matched[j])
            difference.operators.push_back(
                {.b = {static_cast<std::int32_t>(j)}, .name = b.graph->operators[j].name});
    return difference;
}

std::vector<RowDifference> differenceOf(const ConstraintTable &a, const ConstraintTable &b)
{
    std::vector<std::int32_t> leftA;
    std::vector<std::int32_t> leftB;
    for (std::size_t i = 0; i < a.rows.size(); ++i)
        leftA.push_back(static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < b.rows.size(); ++i)
        leftB.push_back(static_cast<std::int32_t>(i));
    pairUp(a, b, leftA, leftB, [](const Row &row) { return print(row); }); // the same decision
    const auto changed = pairUp(a, b, leftA, leftB, subjectOf);
    std::vector<RowDifference> differences;
    for (const auto &[rowA, rowB] : changed)
        differences.push_back({RowDifference::Kind::Changed, {rowA}, {rowB}});
    for (const std::int32_t row : leftA)
        differences.push_back({RowDifference::Kind::OnlyInA, {row}, {}});
    std::sort(differences.begin(), differences.end(),
        [](const RowDifference &x, const RowDifference &y) { return x.a < y.a; });
    for (const std::int32_t row : leftB)
        differences.push_back({RowDifference::Kind::OnlyInB, {}, {row}});
    return differences;
}

std::vector<MetricDifference> metricsOf(const Timeline &a, const Timeline &b)
{
    const TimelineSummary summaryA = summaryOf(a);
    const TimelineSummary summaryB = summaryOf(b);
    std::vector<MetricDifference> metrics;
    const auto add = [&](const char *name, MetricDifference::Unit unit, double from, double to) {
        MetricDifference metric{.name = name, .unit = unit, .a = from, .b = to, .delta = to - from};
        if (from != 0)
            metric.percent = 100 * (to - from) / from;
        metrics.push_back(std::move(metric));
    };
    using Unit = MetricDifference::Unit;
    add("step", Unit::Seconds, summaryA.stepSeconds, summaryB.stepSeconds);
    add("peak", Unit::Bytes, static_cast<double>(summaryA.largestPeak.count),
        static_cast<double>(summaryB.largestPeak.count));
    add("bubble", Unit::Ratio, summaryA.bubble, summaryB.bubble);
    add("sent", Unit::Bytes, static_cast<double>(summaryA.sent.count),
        static_cast<double>(summaryB.sent.count));
    add("exposed communication", Unit::Seconds, summaryA.exposedCommunicationSeconds,
        summaryB.exposedCommunicationSeconds);
    return metrics;
}

} // namespace planloom
