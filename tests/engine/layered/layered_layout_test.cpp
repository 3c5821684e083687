#include "engine/layered/layered_layout.h"

#include "tests/engine/layered/nasty_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace planloom {
namespace {

LayeredGraph randomGraph(std::mt19937 &random, int nodes, int edges, bool cyclic)
{
    LayeredGraph graph = boxes(nodes);
    for (auto &node : graph.nodes) {
        node.width = 20 + static_cast<double>(random() % 200);
        node.height = 10 + static_cast<double>(random() % 60);
    }
    for (int e = 0; e < edges; ++e) {
        auto from = static_cast<std::int32_t>(random() % static_cast<unsigned>(nodes));
        auto to = static_cast<std::int32_t>(random() % static_cast<unsigned>(nodes));
        if (!cyclic && from > to)
            std::swap(from, to);
        graph.edges.push_back({from, to});
    }
    return graph;
}

/// Everything that must hold of any layout of any graph.
void expectSound(const LayeredGraph &graph, const LayeredLayout &layout)
{
    ASSERT_EQ(layout.centres.size(), graph.nodes.size());
    ASSERT_EQ(layout.ranks.size(), graph.nodes.size());
    ASSERT_EQ(layout.routes.size(), graph.edges.size());
    std::vector<std::size_t> order(graph.nodes.size());
    for (std::size_t v = 0; v < order.size(); ++v) {
        order[v] = v;
        const auto &centre = layout.centres[v];
        ASSERT_TRUE(std::isfinite(centre.x) && std::isfinite(centre.y));
        EXPECT_GE(centre.x - graph.nodes[v].width / 2, -1e-6);
        EXPECT_LE(centre.x + graph.nodes[v].width / 2, layout.width + 1e-6);
        EXPECT_GE(centre.y - graph.nodes[v].height / 2, -1e-6);
        EXPECT_LE(centre.y + graph.nodes[v].height / 2, layout.height + 1e-6);
    }
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        return std::pair(layout.ranks[a], layout.centres[a].x)
            < std::pair(layout.ranks[b], layout.centres[b].x);
    });
    double rankBottom = -1;
    double bottomAbove = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto v = order[i];
        const double top = layout.centres[v].y - graph.nodes[v].height / 2;
        if (i > 0 && layout.ranks[order[i - 1]] == layout.ranks[v]) {
            const auto u = order[i - 1];
            EXPECT_GE(layout.centres[v].x - layout.centres[u].x + 1e-6,
                (graph.nodes[u].width + graph.nodes[v].width) / 2)
                << "nodes " << u << " and " << v << " of rank " << layout.ranks[v] << " overlap";
        } else {
            bottomAbove = rankBottom;
        }
        EXPECT_GT(top, bottomAbove - 1e-6) << "ranks overlap";
        rankBottom = std::max(rankBottom, top + graph.nodes[v].height);
    }
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &edge = graph.edges[e];
        const auto &route = layout.routes[e];
        EXPECT_EQ(route.kind == EdgeRoute::Loop, edge.from == edge.to);
        if (route.kind != EdgeRoute::Routed) {
            EXPECT_TRUE(route.points.empty());
            continue;
        }
        const auto span = layout.ranks[static_cast<std::size_t>(edge.to)]
            - layout.ranks[static_cast<std::size_t>(edge.from)];
        EXPECT_GE(span, 1);
        EXPECT_LE(span, graph.longestSpan);
        ASSERT_EQ(route.points.size(), static_cast<std::size_t>(2 * span + 2));
        for (std::size_t i = 1; i < route.points.size(); ++i)
            EXPECT_GE(route.points[i].y, route.points[i - 1].y - 1e-6) << "edges flow downwards";
    }
}

TEST(LayeredLayout, OfNothingAndOfOneBox)
{
    expectSound({}, layeredLayout({}));
    const auto one = layeredLayout(boxes(1));
    EXPECT_EQ(one.centres, (std::vector<LayoutPoint>{{50, 15}}));
    EXPECT_EQ(one.width, 100);
    EXPECT_EQ(one.height, 30);
}

TEST(LayeredLayout, AChainIsAStraightColumn)
{
    LayeredGraph graph = boxes(5);
    for (std::int32_t v = 0; v + 1 < 5; ++v)
        graph.edges.push_back({v, v + 1});
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    for (std::size_t v = 0; v < 5; ++v) {
        EXPECT_EQ(layout.ranks[v], static_cast<std::int32_t>(v));
        EXPECT_NEAR(layout.centres[v].x, 50, 1e-6);
    }
}

TEST(LayeredLayout, ADiamondIsSymmetric)
{
    LayeredGraph graph = boxes(4);
    graph.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    EXPECT_NEAR(layout.centres[0].x, layout.centres[3].x, 0.5);
    EXPECT_NEAR(layout.centres[1].x + layout.centres[2].x, 2 * layout.centres[0].x, 1.0);
}

TEST(LayeredLayout, AResidualEdgePassesItsRanksBesideTheBoxes)
{
    LayeredGraph graph = boxes(4);
    graph.edges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    const auto &route = layout.routes[3];
    ASSERT_EQ(route.points.size(), 8U);
    for (const std::size_t i : {2U, 4U}) {
        const std::size_t passed = i == 2 ? 1 : 2;
        EXPECT_GT(std::abs(route.points[i].x - layout.centres[passed].x), graph.nodes[passed].width / 2);
    }
}

TEST(LayeredLayout, PinnedPortsStandInTheFirstAndLastRank)
{
    LayeredGraph graph = boxes(5);
    graph.nodes[3] = {.width = 6, .height = 0, .pin = LayeredNode::Pin::First};
    graph.nodes[4] = {.width = 6, .height = 0, .pin = LayeredNode::Pin::Last};
    graph.edges = {{0, 1}, {1, 2}, {3, 2}, {0, 4}};
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    EXPECT_EQ(layout.ranks[3], 0);
    EXPECT_EQ(layout.ranks[0], 1);
    EXPECT_EQ(layout.ranks[4], 4);
}

TEST(LayeredLayout, AConstantStandsJustAboveItsUser)
{
    LayeredGraph graph = boxes(6);
    graph.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {5, 4}};
    EXPECT_EQ(layeredLayout(graph).ranks[5], 3);
}

TEST(LayeredLayout, CyclesAreBroken)
{
    LayeredGraph graph = boxes(3);
    graph.edges = {{0, 1}, {1, 2}, {2, 0}, {1, 1}};
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    EXPECT_EQ(layout.ranks, (std::vector<std::int32_t>{0, 1, 2}));
    EXPECT_EQ(layout.routes[2].kind, EdgeRoute::Stub);
    EXPECT_EQ(layout.routes[3].kind, EdgeRoute::Loop);
}

TEST(LayeredLayout, LongEdgesAreStubs)
{
    LayeredGraph graph = boxes(40);
    for (std::int32_t v = 0; v + 1 < 40; ++v)
        graph.edges.push_back({v, v + 1});
    graph.edges.push_back({0, 39});
    const auto layout = layeredLayout(graph);
    expectSound(graph, layout);
    EXPECT_EQ(layout.routes.back().kind, EdgeRoute::Stub);
}

TEST(LayeredLayout, NastyGraphsAreLaidOut)
{
    const LayeredGraph star = starOf(5000);
    expectSound(star, layeredLayout(star));

    const LayeredGraph chains = parallelChains(200, 50);
    const auto straight = layeredLayout(chains);
    expectSound(chains, straight);
    EXPECT_EQ(crossingsOf(chains, straight), 0);

    const auto tall = layeredLayout(edgeAcross(40'000));
    EXPECT_EQ(tall.ranks.back(), 39'999);
    EXPECT_EQ(tall.routes.back().kind, EdgeRoute::Stub);

    for (const LayeredGraph &graph : {trainingChain(1024), allToAll(60)})
        expectSound(graph, layeredLayout(graph));
}

TEST(LayeredLayout, OfRandomGraphsIsSoundAndDeterministic)
{
    std::mt19937 random(7);
    for (int round = 0; round < 120; ++round) {
        SCOPED_TRACE(round);
        const int nodes = 1 + static_cast<int>(random() % 60);
        const auto graph = randomGraph(random, nodes, static_cast<int>(random() % 120), round % 2 == 0);
        const auto layout = layeredLayout(graph);
        expectSound(graph, layout);
        EXPECT_EQ(layout, layeredLayout(graph));
    }
}

TEST(LayeredLayout, LargeRandomGraphsAreSound)
{
    std::mt19937 random(11);
    const auto graph = randomGraph(random, 4000, 6000, false);
    expectSound(graph, layeredLayout(graph));
}

TEST(RoutedLayout, KeepsForeignPositionsAndFindsGaps)
{
    LayeredGraph graph = boxes(4);
    graph.edges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 0}};
    const auto layout = routedLayout(graph, {{0, 0}, {0, 60}, {0, 120}, {0, 180}});
    expectSound(graph, layout);
    EXPECT_EQ(layout.ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
    ASSERT_EQ(layout.routes[3].points.size(), 8U);
    EXPECT_GT(std::abs(layout.routes[3].points[2].x - layout.centres[1].x), 50);
    EXPECT_EQ(layout.routes[4].kind, EdgeRoute::Stub);
}

TEST(RoutedLayout, OfOwnLayoutsIsSound)
{
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE(round);
        const auto graph = randomGraph(random, 1 + static_cast<int>(random() % 40), 50, true);
        const auto own = layeredLayout(graph);
        const auto routed = routedLayout(graph, own.centres);
        expectSound(graph, routed);
        EXPECT_EQ(routed.ranks, own.ranks);
    }
}

TEST(Wrapped, BreaksALongChainIntoColumnsWithoutOverlaps)
{
    LayeredGraph graph = boxes(200);
    for (std::int32_t v = 0; v + 1 < 200; ++v)
        graph.edges.push_back({v, v + 1});
    const auto tall = layeredLayout(graph);
    const auto page = wrapped(graph, tall);
    EXPECT_LT(page.height, tall.height / 2);
    EXPECT_GT(page.width / page.height, 0.5);
    EXPECT_LT(page.width / page.height, 3);
    int stubs = 0;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &route = page.routes[e];
        stubs += route.kind == EdgeRoute::Stub ? 1 : 0;
        if (route.kind == EdgeRoute::Routed) {
            EXPECT_NEAR(
                route.points.front().x, page.centres[static_cast<std::size_t>(graph.edges[e].from)].x, 1e-6);
            EXPECT_NEAR(
                route.points.back().x, page.centres[static_cast<std::size_t>(graph.edges[e].to)].x, 1e-6);
        }
    }
    EXPECT_GE(stubs, 2);
    EXPECT_LE(stubs, 30);
    for (std::size_t a = 0; a < 200; ++a) {
        for (std::size_t b = 0; b < a; ++b) {
            const bool apart = std::abs(page.centres[a].x - page.centres[b].x) >= 100 - 1e-6
                || std::abs(page.centres[a].y - page.centres[b].y) >= 30 - 1e-6;
            ASSERT_TRUE(apart) << a << " and " << b;
        }
        EXPECT_GE(page.centres[a].x - 50, -1e-6);
        EXPECT_LE(page.centres[a].x + 50, page.width + 1e-6);
        EXPECT_LE(page.centres[a].y + 15, page.height + 1e-6);
    }
}

TEST(Wrapped, LeavesOthersAsTheyAre)
{
    LayeredGraph graph = boxes(30);
    for (std::int32_t v = 0; v + 1 < 30; ++v)
        graph.edges.push_back({v, v + 1});
    const auto layout = layeredLayout(graph);
    EXPECT_EQ(wrapped(graph, layout), layout);
    EXPECT_EQ(wrapped({}, layeredLayout({})), layeredLayout({}));
}

TEST(CrossingsOf, CountsPairs)
{
    LayeredGraph graph = boxes(4);
    graph.edges = {{0, 3}, {1, 2}};
    const auto crossed = routedLayout(graph, {{0, 0}, {150, 0}, {0, 60}, {150, 60}});
    EXPECT_EQ(crossingsOf(graph, crossed), 1);
    EXPECT_EQ(crossingsOf(graph, layeredLayout(graph)), 0);
}

} // namespace
} // namespace planloom
