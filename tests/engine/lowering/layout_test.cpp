#include "engine/lowering/layout/layout.h"
#include "engine/lowering/layout/layout_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace planloom {
namespace {

IndexMask boxOfShape(const Shape &shape)
{
    return wholeMask(shape);
}

std::vector<DeviceId> groupOf(std::int32_t n)
{
    std::vector<DeviceId> group;
    for (std::int32_t i = 0; i < n; ++i)
        group.push_back(DeviceId{i});
    return group;
}

/// A random layout of `n` devices over `shape`: every digit is a replica, a summand or a cut that divides.
Layout randomLayout(
    const Shape &shape, const std::vector<std::int32_t> &radices, bool summands, std::mt19937 &random)
{
    Layout layout;
    layout.dimensionDigits.resize(shape.size());
    std::vector<std::int64_t> left = shape;
    std::vector<std::int8_t> digits(radices.size());
    std::iota(digits.begin(), digits.end(), std::int8_t{0});
    std::shuffle(digits.begin(), digits.end(), random);
    for (const std::int8_t digit : digits) {
        const auto choice = std::uniform_int_distribution<std::size_t>(0, shape.size() + 1)(random);
        const std::int32_t radix = radices[static_cast<std::size_t>(digit)];
        if (choice < shape.size() && left[choice] % radix == 0) {
            left[choice] /= radix;
            layout.dimensionDigits[choice].push_back(digit);
        } else if (choice == shape.size() && summands) {
            layout.summandDigits.push_back(digit);
        }
    }
    std::sort(layout.summandDigits.begin(), layout.summandDigits.end());
    return layout;
}

/// Holdings that a layout describes; summand numbers by the digits' value.
std::vector<Holding> holdingsUnder(
    const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices, std::int32_t n)
{
    std::vector<Holding> holdings;
    for (const auto &positions : subgroupsOf(layout.summandDigits, radices))
        for (std::size_t i = 0; i < positions.size(); ++i) {
            Holding h{DeviceId{positions[i]}, boxUnder(layout, whole, radices, positions[i]), {}, 0};
            if (!layout.summandDigits.empty())
                h.summands = {static_cast<std::int32_t>(i)};
            holdings.push_back(std::move(h));
        }
    std::sort(holdings.begin(), holdings.end(),
        [](const Holding &a, const Holding &b) { return a.device < b.device; });
    EXPECT_EQ(static_cast<std::int32_t>(holdings.size()), n);
    return holdings;
}

TEST(Radices, AreThePrimeFactors)
{
    EXPECT_EQ(radicesOf(1), (std::vector<std::int32_t>{}));
    EXPECT_EQ(radicesOf(12), (std::vector<std::int32_t>{3, 2, 2}));
    EXPECT_EQ(radicesOf(7), (std::vector<std::int32_t>{7}));
}

TEST(Layout, IsRecognisedFromWhatItPutsWhere)
{
    std::mt19937 random(7);
    for (int i = 0; i < 400; ++i) {
        const std::int32_t n =
            std::vector<std::int32_t>{1, 2, 3, 4, 6, 8, 12, 16}[static_cast<std::size_t>(i) % 8];
        const auto radices = radicesOf(n);
        const Shape shape{12, 8, 24};
        const Layout layout = randomLayout(shape, radices, true, random);
        const auto holdings = holdingsUnder(layout, boxOfShape(shape), radices, n);
        const auto found = recogniseLayout(holdings, boxOfShape(shape), radices);
        ASSERT_TRUE(found) << "case " << i;
        // Where several spellings mean the same placement, the boxes are what counts.
        const auto again = holdingsUnder(*found, boxOfShape(shape), radices, n);
        for (std::size_t d = 0; d < holdings.size(); ++d)
            EXPECT_EQ(again[d].box, holdings[d].box);
        EXPECT_EQ(found->summandDigits, layout.summandDigits);
    }
}

TEST(Layout, IsNotMadeUpForIrregularHoldings)
{
    const auto radices = radicesOf(2);
    const IndexMask whole = boxOfShape({10});
    const std::vector<Holding> uneven{{DeviceId{0}, {{{0, 4}}}, {}, 0}, {DeviceId{1}, {{{4, 10}}}, {}, 0}};
    EXPECT_FALSE(recogniseLayout(uneven, whole, radices));
    const std::vector<Holding> overlapping{{DeviceId{0}, whole, {0, 1}, 0}, {DeviceId{1}, whole, {1}, 0}};
    EXPECT_FALSE(recogniseLayout(overlapping, whole, radices));
}

/// Walks a path on what the devices hold, as the instructions would.
void walk(std::vector<Holding> &holdings, const Hop &hop, const IndexMask &whole,
    const std::vector<std::int32_t> &radices)
{
    std::vector<Holding> next = holdings;
    for (const auto &positions : subgroupsOf(hop.digits, radices)) {
        const auto at = [&](std::size_t i) -> const Holding & {
            return holdings[static_cast<std::size_t>(positions[i])];
        };
        for (std::size_t i = 0; i < positions.size(); ++i) {
            Holding &to = next[static_cast<std::size_t>(positions[i])];
            const IndexMask expected = hop.cells.empty()
                ? boxUnder(hop.to, whole, radices, positions[i])
                : hop.cells[static_cast<std::size_t>(positions[i])].box;
            switch (hop.kind) {
            case HopKind::AllReduce:
            case HopKind::ReduceScatter: {
                std::vector<std::int32_t> all;
                for (std::size_t j = 0; j < positions.size(); ++j) {
                    ASSERT_EQ(at(j).box, at(0).box);
                    all.insert(all.end(), at(j).summands.begin(), at(j).summands.end());
                }
                std::sort(all.begin(), all.end());
                ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
                to.summands = all;
                to.box = at(0).box;
                if (hop.kind == HopKind::ReduceScatter) {
                    Range &range = to.box.ranges[static_cast<std::size_t>(hop.dimension)];
                    const auto extent = range.size() / static_cast<std::int64_t>(positions.size());
                    range = {range.begin + extent * static_cast<std::int64_t>(i),
                        range.begin + extent * static_cast<std::int64_t>(i + 1)};
                }
                break;
            }
            case HopKind::AllGather: {
                to.box = at(0).box;
                const auto d = static_cast<std::size_t>(hop.dimension);
                for (std::size_t j = 1; j < positions.size(); ++j) {
                    ASSERT_EQ(at(j).box.ranges[d].begin, to.box.ranges[d].end);
                    to.box.ranges[d].end = at(j).box.ranges[d].end;
                }
                break;
            }
            case HopKind::AllToAll: {
                const auto cut = static_cast<std::size_t>(hop.dimension);
                const auto gathered = static_cast<std::size_t>(hop.gatherDimension);
                to.box = at(0).box;
                for (std::size_t j = 1; j < positions.size(); ++j) {
                    ASSERT_EQ(at(j).box.ranges[gathered].begin, to.box.ranges[gathered].end);
                    to.box.ranges[gathered].end = at(j).box.ranges[gathered].end;
                }
                Range &range = to.box.ranges[cut];
                const auto extent = range.size() / static_cast<std::int64_t>(positions.size());
                range = {range.begin + extent * static_cast<std::int64_t>(i),
                    range.begin + extent * static_cast<std::int64_t>(i + 1)};
                break;
            }
            case HopKind::Slice:
                ASSERT_TRUE(contains(at(i).box, expected));
                to.box = expected;
                break;
            case HopKind::Permute:
                to.box =
                    holdings[static_cast<std::size_t>(hop.sources[static_cast<std::size_t>(positions[i])])]
                        .box;
                to.summands =
                    holdings[static_cast<std::size_t>(hop.sources[static_cast<std::size_t>(positions[i])])]
                        .summands;
                break;
            case HopKind::ValueSelect:
                FAIL() << "nobody asked for parts of the value";
            }
            ASSERT_EQ(to.box, expected);
        }
    }
    holdings = std::move(next);
}

TEST(CheapestPath, LeadsWhereItSaysByLegalHops)
{
    std::mt19937 random(11);
    const Shape shape{8, 16, 12};
    const IndexMask whole = boxOfShape(shape);
    const auto cluster = clusterNamed("dgx-a100:16");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    int reached = 0;
    for (int i = 0; i < 120; ++i) {
        const std::int32_t n = std::vector<std::int32_t>{2, 4, 6, 8}[static_cast<std::size_t>(i) % 4];
        const auto radices = radicesOf(n);
        const Layout from = randomLayout(shape, radices, true, random);
        const Layout to = randomLayout(shape, radices, false, random);
        const auto path = cheapestPath(from, to, whole, DataType::Float32, groupOf(n), *cluster, costs);
        ASSERT_TRUE(path) << "every complete layout can be reached through full replication";
        auto holdings = holdingsUnder(from, whole, radices, n);
        for (const Hop &hop : path->hops)
            walk(holdings, hop, whole, radices);
        for (std::int32_t d = 0; d < n; ++d)
            EXPECT_EQ(holdings[static_cast<std::size_t>(d)].box, boxUnder(to, whole, radices, d));
        ++reached;
    }
    EXPECT_EQ(reached, 120);
}

TEST(CheapestPath, TakesTheCollectiveThatAnExpertWould)
{
    const auto cluster = clusterNamed("dgx-a100:8");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    const IndexMask whole = boxOfShape({1024, 4096});
    const auto group = groupOf(2);
    Layout summands{{0}, {{}, {}}};
    Layout replicas{{}, {{}, {}}};
    Layout rows{{}, {{0}, {}}};
    Layout columns{{}, {{}, {0}}};
    const auto kinds = [&](const Layout &from, const Layout &to) {
        std::vector<HopKind> list;
        const auto path = cheapestPath(from, to, whole, DataType::Float32, group, *cluster, costs);
        for (const Hop &hop : path->hops)
            list.push_back(hop.kind);
        return list;
    };
    EXPECT_EQ(kinds(summands, replicas), (std::vector<HopKind>{HopKind::AllReduce}));
    EXPECT_EQ(kinds(summands, rows), (std::vector<HopKind>{HopKind::ReduceScatter}));
    EXPECT_EQ(kinds(rows, replicas), (std::vector<HopKind>{HopKind::AllGather}));
    EXPECT_EQ(kinds(rows, columns), (std::vector<HopKind>{HopKind::AllToAll}));
    EXPECT_EQ(kinds(replicas, rows), (std::vector<HopKind>{HopKind::Slice}));
    EXPECT_TRUE(kinds(rows, rows).empty());
}

TEST(CheapestPath, OfLogarithmsPaysForTheirLargestFirst)
{
    const auto cluster = clusterNamed("dgx-a100:8");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    const Bytes bytes{4 * 1024 * 4096};
    const auto group = groupOf(8);
    const GroupShape shape = groupShape(*cluster, group);
    const double reduce = costs.collective(CollectiveKind::AllReduce, bytes, shape);
    const double scatter = costs.collective(CollectiveKind::ReduceScatter, bytes, shape);
    const auto priced = [&](CollectiveKind kind, Combination combination) {
        return reductionSeconds(costs, kind, bytes, shape, combination);
    };
    EXPECT_DOUBLE_EQ(priced(CollectiveKind::AllReduce, Combination::Sum), reduce);
    EXPECT_DOUBLE_EQ(priced(CollectiveKind::AllReduce, Combination::Max), reduce);
    EXPECT_DOUBLE_EQ(priced(CollectiveKind::AllReduce, Combination::LogSumExp), 2 * reduce);
    EXPECT_DOUBLE_EQ(priced(CollectiveKind::ReduceScatter, Combination::LogSumExp), reduce + scatter);

    const IndexMask whole = boxOfShape({1024, 4096});
    const Layout summands{{0, 1, 2}, {{}, {}}};
    const Layout replicas{{}, {{}, {}}};
    const auto seconds = [&](Combination combination) {
        return cheapestPath(summands, replicas, whole, DataType::Float32, group, *cluster, costs, combination)
            ->seconds;
    };
    EXPECT_EQ(seconds(Combination::Max), seconds(Combination::Sum));
    EXPECT_GT(seconds(Combination::LogSumExp), 1.5 * seconds(Combination::Sum));
    EXPECT_LE(seconds(Combination::LogSumExp), 2 * reduce);
}

TEST(CheapestPath, OfManyDevicesTakesDigitsThatGoTogetherAsOne)
{
    const auto cluster = clusterNamed("dgx-a100:512");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    const IndexMask whole = boxOfShape({4096, 4096});
    const auto radices = radicesOf(512);
    const std::vector<std::int8_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<std::int8_t> outer{0, 1, 2, 3, 4, 5};
    const std::vector<std::int8_t> inner{6, 7, 8};
    const std::vector<std::pair<Layout, Layout>> moves{{{all, {{}, {}}}, {{}, {{}, {}}}},
        {{all, {{}, {}}}, {{}, {all, {}}}}, {{outer, {inner, {}}}, {{}, {{}, inner}}},
        {{inner, {{}, outer}}, {{}, {inner, outer}}}, {{{}, {all, {}}}, {{}, {{}, outer}}}};
    for (const auto &[from, to] : moves) {
        const auto path = cheapestPath(from, to, whole, DataType::Float32, groupOf(512), *cluster, costs);
        ASSERT_TRUE(path);
        auto holdings = holdingsUnder(from, whole, radices, 512);
        for (const Hop &hop : path->hops)
            walk(holdings, hop, whole, radices);
        for (std::int32_t d = 0; d < 512; ++d)
            ASSERT_EQ(holdings[static_cast<std::size_t>(d)].box, boxUnder(to, whole, radices, d));
    }
}

/// All-pairs shortest paths by brute force over single hops, against the search.
TEST(CheapestPath, IsNoLongerThanAnyDetour)
{
    const auto cluster = clusterNamed("dgx-h100:4");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    const IndexMask whole = boxOfShape({8, 8});
    const auto group = groupOf(4);
    const auto radices = radicesOf(4);
    std::mt19937 random(3);
    for (int i = 0; i < 60; ++i) {
        const Layout a = randomLayout({8, 8}, radices, false, random);
        const Layout b = randomLayout({8, 8}, radices, false, random);
        const Layout via = randomLayout({8, 8}, radices, false, random);
        const double direct = cheapestPath(a, b, whole, DataType::Float32, group, *cluster, costs)->seconds;
        const double detour = cheapestPath(a, via, whole, DataType::Float32, group, *cluster, costs)->seconds
            + cheapestPath(via, b, whole, DataType::Float32, group, *cluster, costs)->seconds;
        EXPECT_LE(direct, detour * (1 + 1e-12));
    }
}

/// Small gradients are reduced together: one launch for all of them, not three for each as would be fastest
/// for a large one.
TEST(CheapestPath, OfABucketHasFewHops)
{
    const Cluster cluster = *clusterNamed("dgx2-v100:16");
    const CostModel costs = costModelOf(cluster);
    const auto radices = radicesOf(16);
    const IndexMask whole = boxOfShape({256, 64});
    Layout summed;
    summed.dimensionDigits.resize(2);
    for (std::size_t i = 0; i < radices.size(); ++i)
        summed.summandDigits.push_back(static_cast<std::int8_t>(i));
    Layout everywhere;
    everywhere.dimensionDigits.resize(2);
    const auto path = cheapestPath(summed, cellsUnder(everywhere, whole, radices), whole, DataType::Float16,
        groupOf(16), cluster, costs, Combination::Sum, Launch::InBucket);
    ASSERT_TRUE(path);
    ASSERT_EQ(path->hops.size(), 1u);
    EXPECT_EQ(path->hops.front().kind, HopKind::AllReduce);
}

/// What A* goes by: no path is cheaper than its bound says, wherever on it one stands, and a single
/// collective is bounded by what it takes.
TEST(LayoutBound, NoPathIsCheaper)
{
    const auto cluster = clusterNamed("dgx-h100:16");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    std::mt19937 random(11);
    int tight = 0;
    int paths = 0;
    for (int i = 0; i < 300; ++i) {
        const std::int32_t n = std::vector<std::int32_t>{4, 6, 8, 12, 16}[static_cast<std::size_t>(i) % 5];
        const auto radices = radicesOf(n);
        const Shape shape{1 << 6, 48 << 4};
        const IndexMask whole = boxOfShape(shape);
        const std::vector<DeviceId> group = groupOf(n);
        const Layout from = randomLayout(shape, radices, true, random);
        const Layout to = randomLayout(shape, radices, false, random);
        const auto path = cheapestPath(from, to, whole, DataType::Float32, group, *cluster, costs);
        ASSERT_TRUE(path);
        PathCosts seconds(
            whole, DataType::Float32, group, *cluster, costs, radices, Combination::Sum, Launch::Alone);
        PathGoal goal;
        goal.elements = 1;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            goal.extents.push_back(shape[d] / partsOf(to.dimensionDigits[d], radices));
            goal.elements *= goal.extents.back();
        }
        const LayoutBound bound(from, goal, whole, radices, seconds);
        double left = path->seconds;
        EXPECT_LE(bound.from(from), left * (1 + 1e-9)) << "case " << i;
        tight += bound.from(from) > 0 && bound.from(from) > 0.999 * left ? 1 : 0;
        ++paths;
        Layout at = from;
        for (const Hop &hop : path->hops) { // and from one to the next it falls by no more than the hop takes
            if (!hop.cells.empty() || hop.kind == HopKind::Slice || hop.kind == HopKind::Permute)
                break;
            const std::int64_t parts = partsOf(hop.digits, radices);
            std::int64_t elements = 1;
            for (std::size_t d = 0; d < shape.size(); ++d)
                elements *= shape[d] / partsOf(at.dimensionDigits[d], radices);
            const CollectiveKind kind = hop.kind == HopKind::AllGather ? CollectiveKind::AllGather
                : hop.kind == HopKind::AllToAll                        ? CollectiveKind::AllToAll
                : hop.kind == HopKind::AllReduce                       ? CollectiveKind::AllReduce
                                                                       : CollectiveKind::ReduceScatter;
            const double takes = seconds.collective(
                kind, kind == CollectiveKind::AllGather ? elements * parts : elements, hop.digits);
            EXPECT_LE(bound.from(at), (takes + bound.from(hop.to)) * (1 + 1e-9)) << "case " << i;
            at = hop.to;
        }
    }
    EXPECT_GT(tight, paths / 4);
}

/// A gather that many replicas stand beside: tens of thousands of layouts are no dearer, and what is found is
/// no dearer than the gather.
TEST(LayoutBound, LeadsThroughLargeGroups)
{
    const auto cluster = clusterNamed("dgx-h100:128");
    ASSERT_TRUE(cluster);
    const CostModel costs = costModelOf(*cluster);
    const auto radices = radicesOf(128);
    const IndexMask whole = boxOfShape({4096, 4096});
    const auto group = groupOf(128);
    const Layout from{{}, {{}, {0, 2, 5}}};
    const Layout to{{}, {{}, {}}};
    const auto path = cheapestPath(from, to, whole, DataType::BFloat16, group, *cluster, costs);
    ASSERT_TRUE(path);
    ASSERT_FALSE(path->hops.empty());
    EXPECT_EQ(path->hops.back().kind, HopKind::AllGather);
    PathCosts seconds(
        whole, DataType::BFloat16, group, *cluster, costs, radices, Combination::Sum, Launch::Alone);
    EXPECT_LE(
        path->seconds, seconds.collective(CollectiveKind::AllGather, std::int64_t{4096} * 4096, {0, 2, 5}));
}

} // namespace
} // namespace planloom
