#include "engine/search/stages/stage_rows.h"

#include "engine/base/words.h"
#include "engine/binding/stage_numbers.h"
#include "engine/gallery/gallery_pipeline.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// A chain of operators that is cut into runs.
struct StageChain {
    std::vector<std::vector<std::int64_t>> cost{}; ///< By kind of stage.
    std::vector<std::size_t> kindOfStage{};
    std::vector<std::int64_t> crossing{}; ///< By position: bytes that pass from the link before.
    std::vector<bool> allowed{}; ///< By position: it may be cut before this link.
    std::vector<Range> beginnings{}; ///< By run: the links that it may begin with.
};

struct ChainCuts {
    std::int64_t most = 0; ///< Of the most expensive run.
    std::vector<std::size_t> begins{}; ///< Of runs 1, 2, ...
};

/// As stages are cut that no rows say anything of.
std::optional<ChainCuts> cheapestCuts(const StageChain &chain)
{
    const std::size_t runs = chain.beginnings.size();
    if (std::any_of(chain.beginnings.begin(), chain.beginnings.end(),
            [](const Range &each) { return each.size() <= 0; }))
        return std::nullopt;
    auto begins = balancedCuts(
        chain.cost, chain.kindOfStage, chain.crossing, chain.allowed, {.beginnings = chain.beginnings});
    if (begins.size() + 1 != runs)
        return std::nullopt;
    const std::int64_t most = largestRun(chain.cost, chain.kindOfStage, begins);
    return ChainCuts{most, std::move(begins)};
}

/// Two stretches of a chain with at least one cut between them: before `most`, not before `least`.
struct CutBetween {
    std::size_t least = 0;
    std::size_t most = 0;
};

/// The cheapest cuts with one in each of `between`, from the one at `next` on; whichever cut that is.
std::optional<ChainCuts> cutsBetween(
    const StageChain &chain, const std::vector<CutBetween> &between, std::size_t next = 0)
{
    if (next == between.size())
        return cheapestCuts(chain);
    std::optional<ChainCuts> best;
    for (std::size_t run = 1; run < chain.beginnings.size(); ++run) {
        StageChain tried = chain;
        Range &own = tried.beginnings[run];
        own.begin = std::max(own.begin, static_cast<std::int64_t>(between[next].least));
        own.end = std::min(own.end, static_cast<std::int64_t>(between[next].most) + 1);
        auto found = cutsBetween(tried, between, next + 1);
        if (found && (!best || found->most < best->most))
            best = std::move(found);
    }
    return best;
}

/// Where a row's operators stand in a chain, from the first to behind the last.
std::pair<std::size_t, std::size_t> stretchOf(
    const std::vector<OperatorId> &links, const std::vector<OperatorId> &operators)
{
    const auto placeOf = [&](OperatorId op) {
        return static_cast<std::size_t>(std::lower_bound(links.begin(), links.end(), op) - links.begin());
    };
    return {placeOf(operators.front()), placeOf(operators.back()) + 1};
}

constexpr std::size_t kMostApart = 3; ///< Rows whose cuts are looked for; others hold or do not.

} // namespace

StageRows stageRowsOf(const BoundTable &bound)
{
    StageRows rows;
    rows.sharings = bound.sharings;
    const std::size_t count = bound.setting.index().forwardCount();
    std::vector<std::int32_t> byRow(count, -1);
    for (std::size_t i = 0; i < count; ++i)
        if (const std::int32_t *stage = bound.bindings[i].allowed.stage.preferred()) {
            byRow[i] = *stage;
            rows.byRow = {0}; // some are given
        }
    if (!rows.byRow.empty())
        rows.byRow = std::move(byRow);
    return rows;
}

Result<std::vector<std::int32_t>> stagesWithin(
    const SelectorIndex &index, std::int32_t ranks, const StageMeasure &measure, const StageRows &rows)
{
    const auto stages = static_cast<std::int32_t>(measure.kindOfStage.size());
    const auto none = [&] {
        return Error{ErrorCode::InvalidInput,
            "no " + counted(stages, "stage") + " one after another have the operators that rows give them",
            "use another number of stages, or change the rows about stages and devices", "search"};
    };
    std::vector<bool> named(index.graph().operators.size(), false);
    for (std::size_t i = 0; i < rows.byRow.size(); ++i)
        named[i] = rows.byRow[i] >= 0;
    for (const BoundTable::Sharing &sharing : rows.sharings)
        for (const auto *side : {&sharing.sides.first, &sharing.sides.second})
            for (const OperatorId op : *side)
                named[at(op)] = true;
    const auto isFree = freeOperators(index, named, true);
    std::vector<OperatorId> links;
    for (std::size_t i = 0; i < index.forwardCount(); ++i)
        if (!isFree[i])
            links.push_back({static_cast<std::int32_t>(i)});
    const auto runs = static_cast<std::size_t>(stages);
    if (links.size() < runs)
        return none();
    StageChain chain{.kindOfStage = measure.kindOfStage, .crossing = crossingBytes(index, links)};
    for (const std::vector<std::int64_t> &ofKind : measure.ofKind) {
        auto &own = chain.cost.emplace_back();
        for (const OperatorId op : links)
            own.push_back(ofKind[at(op)]);
    }
    for (std::size_t s = 0; s < runs; ++s) // no run is empty
        chain.beginnings.push_back(
            {static_cast<std::int64_t>(s), static_cast<std::int64_t>(links.size() - (runs - s)) + 1});
    for (std::size_t p = 0; p < links.size(); ++p) {
        chain.allowed.push_back(p > 0 && index.layerOf(links[p - 1]) != index.layerOf(links[p]));
        const std::int32_t stage = rows.byRow.empty() ? -1 : rows.byRow[at(links[p])];
        if (stage < 0)
            continue;
        if (stage >= stages)
            return Error{ErrorCode::InvalidInput,
                "rows name stage " + std::to_string(stage) + " of " + counted(stages, "stage"),
                "use more stages", "search"};
        for (std::size_t s = 1; s < runs; ++s) {
            Range &own = chain.beginnings[s];
            if (static_cast<std::size_t>(stage) < s)
                own.begin = std::max(own.begin, static_cast<std::int64_t>(p) + 1);
            else
                own.end = std::min(own.end, static_cast<std::int64_t>(p) + 1);
        }
    }
    StageChain anywhere = chain;
    std::fill(anywhere.allowed.begin(), anywhere.allowed.end(), true);
    std::vector<CutBetween> between;
    for (const BoundTable::Sharing &sharing : rows.sharings) {
        const auto one = stretchOf(links, sharing.sides.first);
        const auto other = stretchOf(links, sharing.sides.second);
        if (sharing.apart) {
            const auto &[first, second] = std::minmax(one, other);
            if (first.second > second.first)
                return none(); // neither is before the other
            if (between.size() < kMostApart)
                between.push_back({first.second, second.first});
        } else if (stages == ranks) {
            const auto forbid = [&](std::size_t from, std::size_t to) {
                for (std::size_t p = from + 1; p < to; ++p)
                    chain.allowed[p] = anywhere.allowed[p] = false;
            };
            if (!sharing.sides.paired())
                forbid(std::min(one.first, other.first), std::max(one.second, other.second));
            else
                for (std::size_t i = 0; i < sharing.sides.first.size(); ++i) {
                    const auto a = stretchOf(links, {sharing.sides.first[i]});
                    const auto b = stretchOf(links, {sharing.sides.second[i]});
                    forbid(std::min(a.first, b.first), std::max(a.second, b.second));
                }
        }
    }
    const auto layers = cutsBetween(chain, between);
    const auto any = cutsBetween(anywhere, between);
    if (!any)
        return none();
    const auto &begins =
        layers && static_cast<double>(layers->most) <= kLayerTolerance * static_cast<double>(any->most)
        ? layers->begins
        : any->begins;
    std::vector<std::int32_t> stageOf(index.graph().operators.size(), 0);
    std::int32_t stage = 0;
    for (std::size_t p = 0; p < links.size(); ++p) {
        if (static_cast<std::size_t>(stage) < begins.size() && p == begins[static_cast<std::size_t>(stage)])
            ++stage;
        stageOf[at(links[p])] = stage;
    }
    joinConsumers(index, isFree, stageOf);
    stageOf.resize(index.forwardCount());
    return stageOf;
}

std::vector<std::vector<std::int32_t>> stagesMoved(
    const SelectorIndex &index, const std::vector<std::int32_t> &stageOf, std::int32_t stages)
{
    const Graph &graph = index.graph();
    const auto layerOf = [&](std::size_t i) { return index.layerOf({static_cast<std::int32_t>(i)}); };
    const auto readsWeight = [&](std::size_t i) {
        const auto &inputs = graph.operators[i].inputs;
        return std::any_of(inputs.begin(), inputs.end(),
            [&](TensorId input) { return input && graph.at(input).role == TensorRole::Weight; });
    };
    // The last layer of a stage goes to the next one, or that one's first comes over: with what stands behind
    // it, or before, outside of any layer.
    const auto moved = [&](std::int32_t stage, bool isLast) -> std::optional<std::vector<std::int32_t>> {
        const std::int32_t from = isLast ? stage : stage + 1;
        std::vector<std::size_t> own;
        for (std::size_t i = 0; i < stageOf.size(); ++i)
            if (stageOf[i] == from)
                own.push_back(i);
        if (isLast)
            std::reverse(own.begin(), own.end());
        const auto hasLayer = [&](std::size_t i) { return layerOf(i) >= 0; };
        const auto first = std::find_if(own.begin(), own.end(), hasLayer);
        if (first == own.end())
            return std::nullopt;
        const std::int32_t layer = layerOf(*first);
        auto end = own.begin();
        for (auto it = own.begin(); it != own.end(); ++it)
            if (layerOf(*it) == layer)
                end = it + 1;
        std::vector<std::int32_t> other = stageOf;
        bool isLeft = false; // some layer is, or embeddings or a head
        for (auto it = own.begin(); it != own.end(); ++it) {
            const bool goes = layerOf(*it) == layer || (it < end && !hasLayer(*it));
            isLeft = isLeft || (!goes && (hasLayer(*it) || readsWeight(*it)));
            if (goes)
                other[*it] = isLast ? stage + 1 : stage;
        }
        return isLeft ? std::optional(std::move(other)) : std::nullopt;
    };
    const auto isInOrder = [&](const std::vector<std::int32_t> &other) {
        for (std::size_t i = 0; i < other.size(); ++i)
            for (const TensorId output : graph.operators[i].outputs)
                if (output)
                    for (const OperatorId user : index.uses().consumers[at(output)])
                        if (at(user) < other.size() && other[at(user)] < other[i])
                            return false;
        return true;
    };
    std::vector<std::vector<std::int32_t>> all;
    for (std::int32_t i = 0; i + 1 < stages; ++i) {
        const std::int32_t stage = i % 2 == 0 ? stages - 2 - i / 2 : i / 2;
        for (const bool isLast : {true, false})
            if (auto other = moved(stage, isLast); other && isInOrder(*other))
                all.push_back(*std::move(other));
    }
    return all;
}

std::optional<Error> brokenSharing(const Graph &graph, const std::vector<BoundTable::Sharing> &sharings,
    const std::vector<std::int32_t> &stageOf, std::int32_t ranks)
{
    for (const BoundTable::Sharing &sharing : sharings) {
        const auto rankOf = [&](OperatorId op) { return stageOf[at(op)] % ranks; };
        const auto &[first, second] = sharing.sides;
        const auto wrong = [&](OperatorId a, OperatorId b) {
            return Error{ErrorCode::InvalidInput,
                "operators '" + graph.at(a).name + "' and '" + graph.at(b).name + "' would run "
                    + (sharing.apart ? "on the same devices" : "on different devices"),
                "use another number of stages", "search"};
        };
        if (!sharing.apart && sharing.sides.paired()) {
            for (std::size_t i = 0; i < first.size(); ++i)
                if (rankOf(first[i]) != rankOf(second[i]))
                    return wrong(first[i], second[i]);
            continue;
        }
        std::set<std::int32_t> firstRanks;
        for (const OperatorId op : first)
            firstRanks.insert(rankOf(op));
        for (const OperatorId op : second) {
            if (sharing.apart && firstRanks.contains(rankOf(op)))
                return wrong(first.front(), op);
            if (!sharing.apart && (firstRanks.size() > 1 || !firstRanks.contains(rankOf(op))))
                return wrong(first.front(), op);
        }
    }
    return std::nullopt;
}

} // namespace planloom
