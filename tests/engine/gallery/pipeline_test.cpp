#include "engine/gallery/gallery_pipeline.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

namespace planloom {
namespace {

using Numbers = std::vector<std::int64_t>;

CostModel costs()
{
    return costModelOf(*clusterNamed("dgx-h100:1"));
}

std::pair<std::int64_t, std::int64_t> valueOf(
    const Numbers &cost, const Numbers &crossing, const std::vector<std::size_t> &cuts)
{
    std::int64_t largest = 0;
    std::int64_t bytes = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s <= cuts.size(); ++s) {
        const std::size_t end = s < cuts.size() ? cuts[s] : cost.size();
        std::int64_t sum = 0;
        for (std::size_t i = begin; i < end; ++i)
            sum += cost[i];
        largest = std::max(largest, sum);
        if (s < cuts.size())
            bytes += crossing[cuts[s]];
        begin = end;
    }
    return {largest, bytes};
}

TEST(BalancedCuts, EqualsBruteForceOnShortChains)
{
    std::mt19937 random(3);
    const auto pick = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    int solved = 0;
    for (int trial = 0; trial < 500; ++trial) {
        const auto n = static_cast<std::size_t>(pick(1, 9));
        const int stages = pick(2, 4);
        Numbers cost;
        Numbers crossing;
        std::vector<bool> allowed;
        for (std::size_t i = 0; i < n; ++i) {
            cost.push_back(pick(0, 9));
            crossing.push_back(pick(0, 9));
            allowed.push_back(pick(0, 3) > 0);
        }
        std::pair<std::int64_t, std::int64_t> best{std::numeric_limits<std::int64_t>::max(), 0};
        bool possible = false;
        for (unsigned mask = 0; mask < (1u << n); mask += 2) { // bit i: cut before link i
            std::vector<std::size_t> cuts;
            bool legal = true;
            for (std::size_t i = 1; i < n; ++i) {
                if (mask & (1u << i)) {
                    cuts.push_back(i);
                    legal = legal && allowed[i];
                }
            }
            if (!legal || static_cast<int>(cuts.size()) != stages - 1)
                continue;
            possible = true;
            best = std::min(best, valueOf(cost, crossing, cuts));
        }
        const auto cuts = balancedCuts(cost, crossing, allowed, stages);
        ASSERT_EQ(!cuts.empty(), possible);
        if (!possible)
            continue;
        ++solved;
        ASSERT_EQ(static_cast<int>(cuts.size()), stages - 1);
        EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
        for (const std::size_t cut : cuts)
            EXPECT_TRUE(allowed[cut]);
        EXPECT_EQ(valueOf(cost, crossing, cuts), best);
    }
    EXPECT_GT(solved, 200);
}

/// 26 on 8 stages are 4 at most: a stage with a layer left over would wait for the others all the same, while
/// these take longer than they need.
TEST(BalancedCuts, LeaveNoStageWithWhatTheOthersCouldNotTake)
{
    Numbers cost(24, 1000);
    cost.push_back(2000);
    const auto cuts = balancedCuts(cost, Numbers(cost.size(), 5), std::vector<bool>(cost.size(), true), 8);
    ASSERT_EQ(cuts.size(), 7u);
    std::size_t begin = 0;
    for (std::size_t s = 0; s < 8; ++s) {
        const std::size_t end = s < cuts.size() ? cuts[s] : cost.size();
        const auto run = std::accumulate(cost.begin() + static_cast<std::ptrdiff_t>(begin),
            cost.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0});
        EXPECT_LE(run, 4000) << s;
        EXPECT_GE(run, 3000) << s;
        begin = end;
    }
}

TEST(BalancedCuts, EqualsBruteForceWhereRunsAreHeldToMore)
{
    std::mt19937 random(11);
    const auto pick = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    int solved = 0;
    for (int trial = 0; trial < 500; ++trial) {
        const auto n = static_cast<std::size_t>(pick(3, 9));
        const auto stages = static_cast<std::size_t>(pick(2, 3));
        Numbers cost;
        Numbers crossing;
        RunLimits room;
        for (std::size_t i = 0; i < n; ++i) {
            cost.push_back(pick(0, 9));
            crossing.push_back(pick(0, 9));
            room.bytes.push_back(pick(0, 9));
        }
        for (std::size_t s = 0; s < stages; ++s)
            room.room.push_back(pick(0, 40));
        if (pick(0, 2) == 0)
            room.room.clear();
        for (std::size_t s = 0; s < stages && trial % 2 == 0; ++s) {
            const std::int64_t from = pick(0, static_cast<int>(n) - 1);
            room.beginnings.push_back({from, from + pick(1, 6)});
        }
        const std::vector<bool> anywhere(n, true);
        std::pair<std::int64_t, std::int64_t> best{std::numeric_limits<std::int64_t>::max(), 0};
        bool possible = false;
        for (unsigned mask = 0; mask < (1u << n); mask += 2) {
            std::vector<std::size_t> cuts;
            for (std::size_t i = 1; i < n; ++i)
                if (mask & (1u << i))
                    cuts.push_back(i);
            if (cuts.size() + 1 != stages)
                continue;
            bool holds = true;
            for (std::size_t s = 0; s < stages; ++s) {
                std::int64_t bytes = 0;
                for (std::size_t i = s == 0 ? 0 : cuts[s - 1]; i < (s + 1 < stages ? cuts[s] : n); ++i)
                    bytes += room.bytes[i];
                holds = holds && (room.room.empty() || bytes <= room.room[s]);
                if (s > 0 && !room.beginnings.empty()) {
                    const auto begin = static_cast<std::int64_t>(cuts[s - 1]);
                    holds = holds && begin >= room.beginnings[s].begin && begin < room.beginnings[s].end;
                }
            }
            if (!holds)
                continue;
            possible = true;
            best = std::min(best, valueOf(cost, crossing, cuts));
        }
        const auto cuts = balancedCuts({cost}, std::vector<std::size_t>(stages, 0), crossing, anywhere, room);
        ASSERT_EQ(!cuts.empty(), possible);
        if (!possible)
            continue;
        ++solved;
        EXPECT_EQ(valueOf(cost, crossing, cuts), best);
    }
    EXPECT_GT(solved, 100);
}

TEST(BalancedCuts, EqualsBruteForceWhereStagesDiffer)
{
    std::mt19937 random(4);
    int solved = 0;
    for (int trial = 0; trial < 300; ++trial) {
        const std::size_t n = 2 + random() % 7;
        std::vector<std::size_t> kindOfStage(2 + random() % 3);
        for (std::size_t &kind : kindOfStage)
            kind = random() % 2;
        std::vector<Numbers> cost(2, Numbers(n));
        Numbers crossing(n);
        for (std::size_t i = 0; i < n; ++i) {
            cost[0][i] = static_cast<std::int64_t>(random() % 9);
            cost[1][i] = cost[0][i] * 3;
            crossing[i] = static_cast<std::int64_t>(random() % 9);
        }
        std::pair<std::int64_t, std::int64_t> best{std::numeric_limits<std::int64_t>::max(), 0};
        const auto valueOfCuts = [&](const std::vector<std::size_t> &cuts) {
            std::pair<std::int64_t, std::int64_t> value{0, 0};
            for (std::size_t s = 0; s <= cuts.size(); ++s) {
                const std::size_t begin = s == 0 ? 0 : cuts[s - 1];
                const std::size_t end = s < cuts.size() ? cuts[s] : n;
                std::int64_t sum = 0;
                for (std::size_t i = begin; i < end; ++i)
                    sum += cost[kindOfStage[s]][i];
                value.first = std::max(value.first, sum);
                value.second += s == 0 ? 0 : crossing[begin];
            }
            return value;
        };
        for (unsigned mask = 0; mask < (1U << n); mask += 2) {
            std::vector<std::size_t> cuts;
            for (std::size_t i = 1; i < n; ++i)
                if (mask & (1U << i))
                    cuts.push_back(i);
            if (cuts.size() + 1 == kindOfStage.size())
                best = std::min(best, valueOfCuts(cuts));
        }
        const auto cuts = balancedCuts(cost, kindOfStage, crossing, std::vector<bool>(n, true));
        ASSERT_EQ(!cuts.empty(), n >= kindOfStage.size());
        if (cuts.empty())
            continue;
        ++solved;
        ASSERT_EQ(valueOfCuts(cuts), best);
    }
    EXPECT_GT(solved, 150);
}

TEST(PipelineStages, GiveFasterDevicesMoreLayers)
{
    const SelectorIndex index(zooTraining("zoo:gpt?layers=12&hidden=1024&heads=8&seq=512&vocab=64&batch=8"));
    const CostModel cluster = costModelOf(*clusterNamed("mixed-h100-a100:16"));
    const OperatorCosts mixed(index.graph(), cluster);
    const auto layersOf = [&](const std::vector<OperatorId> &stage) {
        std::set<std::int32_t> layers;
        for (const OperatorId op : stage)
            if (index.layerOf(op) >= 0)
                layers.insert(index.layerOf(op));
        return layers.size();
    };
    const auto alike = pipelineStages(index, 2, mixed);
    const auto stages = pipelineStages(index, 2, mixed, {{0}, {1}});
    const auto swapped = pipelineStages(index, 2, mixed, {{1}, {0}});
    ASSERT_TRUE(alike && stages && swapped);
    EXPECT_GT(layersOf((*stages)[0]), layersOf((*alike)[0]));
    EXPECT_LT(layersOf((*swapped)[0]), layersOf((*alike)[0]));
    // The slower of a stage's devices counts.
    const auto slowest = pipelineStages(index, 2, mixed, {{0, 1}, {1}});
    ASSERT_TRUE(slowest);
    EXPECT_EQ(layersOf((*slowest)[0]), layersOf((*alike)[0]));
}

TEST(PipelineStages, CoverEveryForwardOperatorAlongTheDataFlow)
{
    const SelectorIndex index(zooTraining("zoo:gpt?layers=8&hidden=64&heads=4&seq=16&vocab=64&batch=4"));
    const Graph &graph = index.graph();
    const CostModel device = costs();
    const OperatorCosts own(graph, device);
    for (const std::int32_t count : {2, 3, 4, 8}) {
        const auto stages = pipelineStages(index, count, own);
        ASSERT_TRUE(stages) << describe(stages.error());
        ASSERT_EQ(static_cast<std::int32_t>(stages->size()), count);
        std::vector<std::int32_t> stageOf(graph.operators.size(), -1);
        for (std::size_t s = 0; s < stages->size(); ++s) {
            EXPECT_FALSE((*stages)[s].empty());
            for (const OperatorId op : (*stages)[s])
                stageOf[static_cast<std::size_t>(op.index)] = static_cast<std::int32_t>(s);
        }
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (graph.operators[i].direction != Direction::Forward)
                continue;
            ASSERT_GE(stageOf[i], 0);
            for (const TensorId input : graph.operators[i].inputs) {
                if (!input.valid())
                    continue;
                for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)])
                    EXPECT_LE(stageOf[static_cast<std::size_t>(maker.index)], stageOf[i]);
            }
        }
    }
    // Equal layers and small ends: cuts lie between layers.
    const auto four = pipelineStages(index, 4, own);
    ASSERT_TRUE(four);
    std::vector<std::set<std::int32_t>> layers(4);
    for (std::size_t s = 0; s < 4; ++s) {
        for (const OperatorId op : (*four)[s]) {
            if (index.layerOf(op) >= 0)
                layers[s].insert(index.layerOf(op));
        }
    }
    std::size_t total = 0;
    for (const auto &of : layers)
        total += of.size();
    EXPECT_EQ(total, 8u);
    EXPECT_FALSE(pipelineStages(index, 100000, own));
}

/// In 16 bits products take an eighth, but no launch takes less: another cut is the best.
TEST(PipelineStages, AreBalancedInTheNumberFormatsThatTheyRunIn)
{
    const SelectorIndex index(
        zooTraining("zoo:gpt?layers=8&hidden=512&heads=8&seq=512&vocab=32000&batch=16"));
    const CostModel device = costs();
    const OperatorCosts wide(index.graph(), device);
    const OperatorCosts narrow(index.graph(), device, PrecisionPreset::BFloat16);
    const auto byWide = pipelineStages(index, 4, wide);
    const auto byNarrow = pipelineStages(index, 4, narrow);
    ASSERT_TRUE(byWide && byNarrow);
    const auto slowest = [&](const std::vector<std::vector<OperatorId>> &stages) {
        std::int64_t most = 0;
        for (const auto &stage : stages) {
            std::int64_t sum = 0;
            for (const OperatorId op : stage)
                sum += narrow.nanosecondsOf(op);
            most = std::max(most, sum);
        }
        return most;
    };
    EXPECT_LT(slowest(*byNarrow), slowest(*byWide));
}

} // namespace
} // namespace planloom
