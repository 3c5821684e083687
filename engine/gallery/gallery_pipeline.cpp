#include "engine/gallery/gallery_pipeline.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_rows.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// Fewest runs with no run above `limit`; more than the number of links if a piece alone is above.
std::size_t runsNeeded(const std::vector<std::int64_t> &pieces, std::int64_t limit)
{
    std::size_t runs = 1;
    std::int64_t sum = 0;
    for (const std::int64_t piece : pieces) {
        if (piece > limit)
            return pieces.size() + 1;
        if (sum + piece > limit) {
            ++runs;
            sum = 0;
        }
        sum += piece;
    }
    return runs;
}

/// Pieces of a chain between the places where it may be cut.
struct Pieces {
    std::vector<std::vector<std::int64_t>> cost{}; ///< By kind.
    std::vector<std::size_t> start{};
    // Of all pieces before one, and of all:
    std::vector<std::vector<std::int64_t>> costUntil{}; ///< By kind.
    std::vector<std::int64_t> bytesUntil{};
    std::vector<Range> beginnings{}; ///< By run: the pieces that it may begin with; empty: any.
};

Pieces piecesOf(const std::vector<std::vector<std::int64_t>> &costOfKind, const std::vector<bool> &allowed,
    const RunLimits &limits)
{
    const std::vector<std::int64_t> &bytes = limits.bytes;
    Pieces pieces;
    pieces.cost.resize(costOfKind.size());
    pieces.bytesUntil.push_back(0);
    for (std::size_t i = 0; i < costOfKind.front().size(); ++i) {
        const bool begins = i == 0 || allowed[i];
        if (begins) {
            pieces.start.push_back(i);
            pieces.bytesUntil.push_back(pieces.bytesUntil.back());
        }
        pieces.bytesUntil.back() += bytes.empty() ? 0 : bytes[i];
        for (std::size_t kind = 0; kind < costOfKind.size(); ++kind) {
            if (begins)
                pieces.cost[kind].push_back(0);
            pieces.cost[kind].back() += costOfKind[kind][i];
        }
    }
    for (const std::vector<std::int64_t> &cost : pieces.cost) {
        std::vector<std::int64_t> &until = pieces.costUntil.emplace_back(1, 0);
        std::partial_sum(cost.begin(), cost.end(), std::back_inserter(until));
    }
    const auto pieceFrom = [&](std::int64_t link) {
        const auto found =
            std::lower_bound(pieces.start.begin(), pieces.start.end(), static_cast<std::size_t>(link));
        return static_cast<std::int64_t>(found - pieces.start.begin());
    };
    for (const Range &links : limits.beginnings)
        pieces.beginnings.push_back({pieceFrom(links.begin), pieceFrom(links.end)});
    return pieces;
}

struct Cuts {
    std::vector<std::size_t> begins{}; ///< Of runs 1, 2, ...
    std::int64_t crossing = 0; ///< Of all of them.
};

/// What runs may cost and hold.
struct RunBounds {
    std::int64_t limit = 0; ///< The most that one costs,
    std::int64_t floor = 0; ///< and the least.
    const std::vector<std::int64_t> &room; ///< Of each: the most bytes that it holds; empty: any.
};

/// Whether pieces [begin, end) may be run `s`, as far as the upper bounds say.
bool isRun(const Pieces &pieces, const std::vector<std::size_t> &kindOfStage, const RunBounds &bounds,
    std::size_t s, std::size_t begin, std::size_t end)
{
    const std::vector<std::int64_t> &until = pieces.costUntil[kindOfStage[s]];
    return until[end] - until[begin] <= bounds.limit
        && (bounds.room.empty() || pieces.bytesUntil[end] - pieces.bytesUntil[begin] <= bounds.room[s]);
}

/// By s: where the first s runs can end at all, if the others are to take what is left. The window is narrow
/// where the limit is near the mean. Nothing if there are no such cuts.
std::optional<std::vector<Range>> endsOfRuns(
    const Pieces &pieces, const std::vector<std::size_t> &kindOfStage, const RunBounds &bounds)
{
    const std::size_t n = pieces.start.size();
    const std::size_t count = kindOfStage.size();
    // Runs as long as they may be, from the front and from the back, even if others are empty then.
    std::vector<Range> ends(count + 1, Range{0, 1});
    const bool areHeld = !pieces.beginnings.empty();
    const auto mayBegin = [&](std::size_t s) { // run s, which is where the first s end
        return areHeld && s < count ? pieces.beginnings[s] : Range{0, static_cast<std::int64_t>(n) + 1};
    };
    std::size_t last = 0;
    for (std::size_t s = 1; s <= count; ++s) {
        const std::size_t begin = last;
        const auto most = static_cast<std::size_t>(
            std::clamp<std::int64_t>(mayBegin(s).end - 1, 0, static_cast<std::int64_t>(n - (count - s))));
        last = std::min(last, most);
        while (last < most && isRun(pieces, kindOfStage, bounds, s - 1, begin, last + 1))
            ++last;
        ends[s].end = static_cast<std::int64_t>(last) + 1;
    }
    std::size_t first = n;
    for (std::size_t s = count; s > 0; --s) {
        first = std::max(first, static_cast<std::size_t>(mayBegin(s).begin));
        ends[s].begin = static_cast<std::int64_t>(first);
        if (ends[s].size() <= 0)
            return std::nullopt;
        const std::size_t end = first;
        while (first > s - 1 && isRun(pieces, kindOfStage, bounds, s - 1, first - 1, end))
            --first;
    }
    return first == 0 ? std::optional{std::move(ends)} : std::nullopt;
}

/// Cuts within `bounds`, with the least crossing; nothing if that cannot be.
std::optional<Cuts> cutsWithin(const RunBounds &bounds, const Pieces &pieces,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::int64_t> &crossing)
{
    // Least crossing of exactly s runs over the first j pieces, j within the runs' ends.
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    const std::size_t n = pieces.start.size();
    const std::size_t count = kindOfStage.size();
    const auto ends = endsOfRuns(pieces, kindOfStage, bounds);
    if (!ends)
        return std::nullopt;
    const auto firstEnd = [&](std::size_t s) { return static_cast<std::size_t>((*ends)[s].begin); };
    const auto endOfEnds = [&](std::size_t s) { return static_cast<std::size_t>((*ends)[s].end); };
    std::vector<std::int64_t> best{0};
    std::vector<std::int64_t> next;
    std::vector<std::vector<std::uint32_t>> from(count + 1);
    // Begins of a run that ends before piece j, those that may still be the best of some end: totals ascend,
    // and of equal ones the last stays.
    std::vector<std::pair<std::int64_t, std::size_t>> begins;
    for (std::size_t s = 1; s <= count; ++s) {
        const std::vector<std::int64_t> &until = pieces.costUntil[kindOfStage[s - 1]];
        next.assign(endOfEnds(s) - firstEnd(s), kNever);
        from[s].resize(next.size());
        begins.clear();
        std::size_t front = 0; // of `begins`
        std::size_t entering = firstEnd(s - 1); // the next begin whose run may be long enough
        for (std::size_t j = firstEnd(s); j < endOfEnds(s); ++j) {
            for (; entering < std::min(j, endOfEnds(s - 1)) && until[j] - until[entering] >= bounds.floor;
                 ++entering) {
                const std::int64_t before = best[entering - firstEnd(s - 1)];
                if (before == kNever)
                    continue;
                const std::int64_t total = before + (entering == 0 ? 0 : crossing[pieces.start[entering]]);
                while (begins.size() > front && begins.back().first >= total)
                    begins.pop_back();
                begins.emplace_back(total, entering);
            }
            while (
                front < begins.size() && !isRun(pieces, kindOfStage, bounds, s - 1, begins[front].second, j))
                ++front;
            if (front == begins.size())
                continue;
            next[j - firstEnd(s)] = begins[front].first;
            from[s][j - firstEnd(s)] = static_cast<std::uint32_t>(begins[front].second);
        }
        best.swap(next);
    }
    if (best.back() == kNever)
        return std::nullopt;
    Cuts cuts{std::vector<std::size_t>(count - 1), best.back()};
    std::size_t end = n;
    for (std::size_t s = count; s > 1; --s) {
        end = from[s][end - firstEnd(s)];
        cuts.begins[s - 2] = pieces.start[end];
    }
    return cuts;
}

/// Of cuts of stages that are alike, as good as `cuts`, some whose smallest run is large: where a few stages
/// are full, what is left is dealt out to all others, and not left over for the last.
Cuts evenedOut(Cuts cuts, std::int64_t limit, const Pieces &pieces,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::int64_t> &crossing)
{
    const std::vector<std::int64_t> anywhere; // no bounds of bytes
    constexpr std::int64_t kSteps = 32; // the smallest run is this near to the best
    std::int64_t reached = 0; // in parts of `limit`, of `kSteps`
    std::int64_t tooMuch = kSteps + 1;
    while (reached + 1 < tooMuch) {
        const std::int64_t middle = (reached + tooMuch) / 2;
        auto even = cutsWithin({limit, limit * middle / kSteps, anywhere}, pieces, kindOfStage, crossing);
        if (even && even->crossing == cuts.crossing) {
            cuts = *std::move(even);
            reached = middle;
        } else {
            tooMuch = middle;
        }
    }
    return cuts;
}

} // namespace

std::vector<std::int64_t> crossingBytes(const SelectorIndex &index, const std::vector<OperatorId> &order)
{
    const Graph &graph = index.graph();
    std::vector<std::int32_t> position(graph.operators.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
        position[static_cast<std::size_t>(order[i].index)] = static_cast<std::int32_t>(i);
    std::vector<std::int64_t> change(order.size() + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (const TensorId output : graph.at(order[i]).outputs) {
            if (!output.valid())
                continue;
            std::int32_t last = -1;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)])
                last = std::max(last, position[static_cast<std::size_t>(user.index)]);
            if (last <= static_cast<std::int32_t>(i))
                continue;
            const TensorType &type = graph.at(output).type;
            const std::int64_t bytes = elementCount(type.shape) * sizeOf(type.dataType);
            change[i + 1] += bytes;
            change[static_cast<std::size_t>(last) + 1] -= bytes;
        }
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
}

std::int64_t largestRun(const std::vector<std::vector<std::int64_t>> &costOfKind,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::size_t> &cuts)
{
    std::int64_t largest = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
        const std::vector<std::int64_t> &cost = costOfKind[kindOfStage[i]];
        const std::size_t end = i < cuts.size() ? cuts[i] : cost.size();
        largest = std::max(largest,
            std::accumulate(cost.begin() + static_cast<std::ptrdiff_t>(begin),
                cost.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}));
        begin = end;
    }
    return largest;
}

std::vector<std::size_t> balancedCuts(const std::vector<std::int64_t> &cost,
    const std::vector<std::int64_t> &crossing, const std::vector<bool> &allowed, std::int32_t stages)
{
    if (stages < 2)
        return {};
    return balancedCuts(
        {cost}, std::vector<std::size_t>(static_cast<std::size_t>(stages), 0), crossing, allowed);
}

std::vector<std::size_t> balancedCuts(const std::vector<std::vector<std::int64_t>> &costOfKind,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::int64_t> &crossing,
    const std::vector<bool> &allowed, const RunLimits &limits)
{
    if (costOfKind.empty() || costOfKind.front().empty() || kindOfStage.size() < 2)
        return {};
    const Pieces pieces = piecesOf(costOfKind, allowed, limits);
    if (pieces.start.size() < kindOfStage.size())
        return {};
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = 0;
    for (const std::vector<std::int64_t> &cost : pieces.cost) {
        least = std::min(least, *std::max_element(cost.begin(), cost.end()));
        most = std::max(most, std::accumulate(cost.begin(), cost.end(), std::int64_t{0}));
    }
    const bool alike = costOfKind.size() == 1 && limits.room.empty();
    while (least < most) {
        const std::int64_t middle = least + (most - least) / 2;
        const bool fits = alike && limits.beginnings.empty()
            ? runsNeeded(pieces.cost.front(), middle) <= kindOfStage.size()
            : cutsWithin({middle, 0, limits.room}, pieces, kindOfStage, crossing).has_value();
        if (fits)
            most = middle;
        else
            least = middle + 1;
    }
    auto cuts = cutsWithin({least, 0, limits.room}, pieces, kindOfStage, crossing);
    if (cuts && alike)
        cuts = evenedOut(*std::move(cuts), least, pieces, kindOfStage, crossing);
    return cuts ? std::move(cuts->begins) : std::vector<std::size_t>{};
}

namespace {

/// What the chain costs on each kind of stage, and which stages are of which.
struct StageCosts {
    std::vector<std::vector<std::int64_t>> ofKind{};
    std::vector<std::size_t> kindOfStage{};
    RunLimits limits{};
};

StageCosts stageCosts(const std::vector<OperatorId> &order, std::int32_t stages, const OperatorCosts &costs,
    const std::vector<std::set<std::int32_t>> &classes)
{
    StageCosts result;
    std::map<std::int32_t, std::pair<std::size_t, std::int64_t>> kinds; // by class; and what the chain takes
    const auto kindOf = [&](std::int32_t deviceClass) {
        const auto [found, isNew] = kinds.try_emplace(deviceClass, kinds.size(), 0);
        if (isNew) {
            auto &own = result.ofKind.emplace_back();
            for (const OperatorId op : order) {
                own.push_back(costs.nanosecondsOf(op, deviceClass));
                found->second.second += own.back();
            }
        }
        return found->second;
    };
    for (std::size_t s = 0; s < static_cast<std::size_t>(stages); ++s) {
        std::pair<std::size_t, std::int64_t> slowest{0, -1};
        for (const std::int32_t deviceClass : s < classes.size() ? classes[s] : std::set<std::int32_t>{0})
            if (const auto kind = kindOf(deviceClass); kind.second > slowest.second)
                slowest = kind;
        result.kindOfStage.push_back(slowest.first);
    }
    return result;
}

} // namespace

namespace {

/// The operators that stages are made of, in order: the others belong where they are first read.
std::vector<OperatorId> stagedOperators(
    const Graph &graph, const std::vector<bool> &without, const std::vector<bool> &outside)
{
    std::vector<OperatorId> order;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward && !without[i]
            && (outside.empty() || !outside[i]))
            order.push_back({static_cast<std::int32_t>(i)});
    }
    return order;
}

Result<std::vector<std::vector<OperatorId>>> stagesOf(const SelectorIndex &index, std::int32_t stages,
    const std::vector<bool> &without, const std::vector<bool> &outside, const std::vector<OperatorId> &order,
    const StageCosts &cost)
{
    const Graph &graph = index.graph();
    std::vector<bool> anywhere(order.size(), true);
    std::vector<bool> betweenLayers(order.size(), false);
    for (std::size_t i = 1; i < order.size(); ++i)
        betweenLayers[i] = index.layerOf(order[i - 1]) != index.layerOf(order[i]);
    const auto crossing = crossingBytes(index, order);
    auto cuts = balancedCuts(cost.ofKind, cost.kindOfStage, crossing, anywhere, cost.limits);
    if (stages > 1 && cuts.empty()) {
        return Error{ErrorCode::InvalidInput,
            "the model has " + counted(static_cast<std::int64_t>(order.size()), "operator")
                + " with weights, too few for " + counted(stages, "stage"),
            "use fewer stages", ""};
    }
    const auto layerCuts = balancedCuts(cost.ofKind, cost.kindOfStage, crossing, betweenLayers, cost.limits);
    if (!layerCuts.empty()
        && static_cast<double>(largestRun(cost.ofKind, cost.kindOfStage, layerCuts))
            <= kLayerTolerance * static_cast<double>(largestRun(cost.ofKind, cost.kindOfStage, cuts)))
        cuts = layerCuts;

    std::vector<std::int32_t> stageOf(graph.operators.size(), -1);
    std::int32_t stage = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (static_cast<std::size_t>(stage) < cuts.size() && cuts[static_cast<std::size_t>(stage)] == i)
            ++stage;
        stageOf[static_cast<std::size_t>(order[i].index)] = stage;
    }
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        if (!without[i] || (!outside.empty() && outside[i]))
            continue;
        std::int32_t first = stages;
        for (const TensorId output : graph.operators[i].outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)]) {
                if (const std::int32_t theirs = stageOf[static_cast<std::size_t>(user.index)];
                    graph.at(user).direction == Direction::Forward && theirs >= 0)
                    first = std::min(first, theirs);
            }
        }
        stageOf[i] = first == stages ? 0 : first;
    }
    std::vector<std::vector<OperatorId>> result(static_cast<std::size_t>(stages));
    for (std::size_t i = 0; i < stageOf.size(); ++i) {
        if (stageOf[i] >= 0)
            result[static_cast<std::size_t>(stageOf[i])].push_back({static_cast<std::int32_t>(i)});
    }
    return result;
}

} // namespace

Result<std::vector<std::vector<OperatorId>>> pipelineStages(const SelectorIndex &index, std::int32_t stages,
    const OperatorCosts &costs, const std::vector<std::set<std::int32_t>> &classes,
    const std::vector<bool> &outside)
{
    const auto without = weightless(index);
    const auto order = stagedOperators(index.graph(), without, outside);
    return stagesOf(index, stages, without, outside, order, stageCosts(order, stages, costs, classes));
}

Result<std::vector<std::vector<OperatorId>>> pipelineStages(const SelectorIndex &index, std::int32_t stages,
    const StageMeasure &measure, const std::vector<bool> &outside)
{
    const auto without = weightless(index);
    const auto order = stagedOperators(index.graph(), without, outside);
    StageCosts cost;
    const bool differ = !measure.ofKind.empty();
    for (std::size_t kind = 0; kind < (differ ? measure.ofKind.size() : 1); ++kind) {
        auto &own = cost.ofKind.emplace_back();
        for (const OperatorId op : order)
            own.push_back(
                (differ ? measure.ofKind[kind] : measure.nanoseconds)[static_cast<std::size_t>(op.index)]);
    }
    if (!measure.bytes.empty())
        for (const OperatorId op : order)
            cost.limits.bytes.push_back(measure.bytes[static_cast<std::size_t>(op.index)]);
    cost.kindOfStage = measure.kindOfStage;
    cost.kindOfStage.resize(static_cast<std::size_t>(stages), 0);
    if (measure.room.size() == static_cast<std::size_t>(stages)) {
        cost.limits.room = measure.room;
        if (auto within = stagesOf(index, stages, without, outside, order, cost))
            return within;
        cost.limits.room.clear();
    }
    return stagesOf(index, stages, without, outside, order, cost);
}

Result<std::vector<std::vector<OperatorId>>> pipelineStages(
    const SelectorIndex &index, std::int32_t stages, const std::vector<std::int64_t> &nanoseconds)
{
    return pipelineStages(index, stages, StageMeasure{.nanoseconds = nanoseconds});
}

} // namespace planloom
