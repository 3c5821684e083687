#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_scene.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace planloom {
namespace {

double sevenPerLetter(const std::string &text, bool bold)
{
    return static_cast<double>(text.size()) * (bold ? 7 : 6);
}

DagScene sceneOf(const DagOutline &outline, const VisibleGraph &visible, DagFlow flow = DagFlow::Down)
{
    LayoutCache cache;
    auto scene = composeScene(outline, visible, sevenPerLetter, layeredEngine(cache), flow);
    EXPECT_TRUE(scene.has_value());
    return std::move(*scene);
}

void expectSound(const DagOutline &outline, const DagState &state, DagFlow flow = DagFlow::Down)
{
    const auto visible = visibleGraph(outline, state);
    for (std::size_t unit = 0; unit < outline.units.size(); ++unit) {
        ASSERT_GE(visible.boxOfUnit[unit], 0);
        EXPECT_FALSE(visible.at(visible.boxOfUnit[unit]).frame);
    }
    const auto scene = sceneOf(outline, visible, flow);
    for (std::size_t box = 1; box < visible.boxes.size(); ++box) {
        const auto &rect = scene.rects[box];
        const auto &outer = scene.rects[static_cast<std::size_t>(visible.boxes[box].parent)];
        ASSERT_GT(rect.width, 0);
        EXPECT_GE(rect.x, outer.x - 1e-6);
        EXPECT_GE(rect.y, outer.y - 1e-6);
        EXPECT_LE(rect.right(), outer.right() + 1e-6);
        EXPECT_LE(rect.bottom(), outer.bottom() + 1e-6);
    }
    for (const auto &frame : visible.frames) {
        EXPECT_LE(frame.ports.size(), 2 * VisibleGraph::kMostPorts);
        const auto &children = visible.at(frame.box).children;
        if (children.size() > 60)
            continue;
        for (std::size_t i = 0; i < children.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j)
                EXPECT_FALSE(scene.rects[static_cast<std::size_t>(children[i])].intersects(
                    scene.rects[static_cast<std::size_t>(children[j])]))
                    << scene.texts[static_cast<std::size_t>(children[i])].title << " covers "
                    << scene.texts[static_cast<std::size_t>(children[j])].title;
        }
    }
    // Every edge in sight is drawn into its target, or marked there.
    for (const auto &edge : visible.edges) {
        const bool drawn = std::any_of(scene.paths.begin(), scene.paths.end(),
            [&](const ScenePath &path) { return path.source == edge.from && path.target == edge.to; });
        const bool marked = std::any_of(scene.stubs.begin(), scene.stubs.end(), [&](const SceneStub &stub) {
            return stub.atTarget && stub.box == edge.to
                && std::binary_search(stub.others.begin(), stub.others.end(), edge.from);
        });
        EXPECT_TRUE(drawn || marked) << edge.from << " -> " << edge.to;
    }
}

TEST(VisibleGraph, AClosedStackIsOneBoxAndAnOpenOneShowsOneCopy)
{
    const auto outline =
        buildOutline(trainingStepOf("zoo:gpt?layers=6&hidden=64&heads=4&seq=16&vocab=100"), DagMode::Folded);
    std::int32_t stack = -1;
    for (std::size_t i = 0; i < outline.items.size(); ++i) {
        if (outline.items[i].kind == OutlineItem::Kind::Stack)
            stack = static_cast<std::int32_t>(i);
    }
    ASSERT_GE(stack, 0);
    DagState state;
    const auto closed = visibleGraph(outline, state);
    const std::int32_t box = closed.boxOfItem(stack);
    ASSERT_GE(box, 0);
    EXPECT_FALSE(closed.at(box).frame);
    const auto all = operatorsOf(outline, closed, box);

    state.open.insert(stack);
    const auto open = visibleGraph(outline, state);
    const std::int32_t frame = open.boxOfItem(stack);
    EXPECT_TRUE(open.at(frame).frame);
    EXPECT_EQ(open.at(frame).children.size(), outline.at(outline.at(stack).children.front()).children.size());
    EXPECT_EQ(operatorsOf(outline, open, frame), all) << "the open stack stands for the same operators";
    for (const auto child : open.at(frame).children) {
        EXPECT_EQ(open.at(child).copies, 6);
        EXPECT_EQ(operatorsOf(outline, open, child, false).size() % 6, 0U);
    }
    // Data that goes from one copy to the next is no edge within the one that is shown.
    for (const auto &edge : open.edges)
        EXPECT_TRUE(
            open.at(edge.from).parent != frame || open.at(edge.to).parent != frame || edge.from < edge.to);

    state.unstacked.insert(stack);
    const auto unstacked = visibleGraph(outline, state);
    EXPECT_EQ(unstacked.at(unstacked.boxOfItem(stack)).children.size(), 6U);
    EXPECT_EQ(operatorsOf(outline, unstacked, unstacked.boxOfItem(stack)), all);
}

TEST(DagScene, ZooModelsAreSoundClosedInitialAndFullyOpen)
{
    for (const char *spec : {"zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100", "zoo:resnet",
             "zoo:moe?layers=2", "zoo:evoformer?layers=2"}) {
        SCOPED_TRACE(spec);
        const auto graph = trainingStepOf(spec);
        for (const auto mode : {DagMode::ForwardOnly, DagMode::Folded, DagMode::Unrolled}) {
            const auto outline = buildOutline(graph, mode);
            expectSound(outline, {});
            expectSound(outline, initialState(outline));
            expectSound(outline, initialState(outline), DagFlow::Right);
            expectSound(outline, fullyOpen(outline));
        }
    }
}

TEST(DagScene, RandomlyOpenedModelsAreSound)
{
    const auto outline = buildOutline(trainingStepOf("zoo:evoformer?layers=4"), DagMode::Folded);
    std::mt19937 random(3);
    for (int round = 0; round < 12; ++round) {
        DagState state;
        for (std::size_t i = 0; i < outline.items.size(); ++i) {
            if (outline.items[i].kind != OutlineItem::Kind::Operator && random() % 3 != 0)
                state.open.insert(static_cast<std::int32_t>(i));
            if (outline.items[i].kind == OutlineItem::Kind::Stack && random() % 2 == 0)
                state.unstacked.insert(static_cast<std::int32_t>(i));
        }
        expectSound(outline, state);
    }
}

TEST(DagScene, CopiesShareTheirLayout)
{
    const auto outline =
        buildOutline(trainingStepOf("zoo:gpt?layers=40&hidden=64&heads=4&seq=16&vocab=100"), DagMode::Folded);
    const auto visible = visibleGraph(outline, fullyOpen(outline));
    LayoutCache cache;
    ASSERT_TRUE(composeScene(outline, visible, sevenPerLetter, layeredEngine(cache)));
    EXPECT_GT(visible.frames.size(), 120U);
    EXPECT_LT(cache.size(), 12U);
}

TEST(DagScene, DataFlowsRightIfAskedTo)
{
    const auto outline =
        buildOutline(trainingStepOf("zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100"), DagMode::Folded);
    const auto visible = visibleGraph(outline, initialState(outline));
    const auto down = sceneOf(outline, visible, DagFlow::Down);
    const auto right = sceneOf(outline, visible, DagFlow::Right);
    EXPECT_GT(down.bounds.height, down.bounds.width);
    EXPECT_GT(right.bounds.width, right.bounds.height);
    for (const auto &path : right.paths) {
        for (std::uint32_t i = path.begin + 1; i < path.end; ++i)
            EXPECT_GE(right.points[i].x, right.points[i - 1].x - 1e-6);
        // Both ends lie on the borders of what they join.
        if (path.target >= 0 && !visible.at(path.target).frame) {
            EXPECT_NEAR(
                right.points[path.end - 1].x, right.rects[static_cast<std::size_t>(path.target)].x, 1e-6);
        }
    }
}

TEST(DagScene, IsDeterministic)
{
    const auto graph = trainingStepOf("zoo:moe?layers=2");
    const auto first = buildOutline(graph, DagMode::Folded);
    const auto second = buildOutline(graph, DagMode::Folded);
    const auto one = sceneOf(first, visibleGraph(first, fullyOpen(first)));
    const auto two = sceneOf(second, visibleGraph(second, fullyOpen(second)));
    EXPECT_EQ(one.rects, two.rects);
    EXPECT_EQ(one.points, two.points);
}

TEST(DagScene, AMissingLayoutIsNoSceneAndIsAskedForInsideOut)
{
    const auto outline = buildOutline(trainingStepOf("zoo:mlp?layers=3"), DagMode::Folded);
    const auto visible = visibleGraph(outline, fullyOpen(outline));
    int asked = 0;
    EXPECT_FALSE(composeScene(outline, visible, sevenPerLetter, [&asked](const LayeredGraph &) {
        ++asked;
        return std::shared_ptr<const LayeredLayout>();
    }));
    EXPECT_GE(asked, 1);
}

TEST(DagScene, FindsWhatIsAtAPlaceAndBesideIt)
{
    const auto outline = buildOutline(trainingStepOf("zoo:mlp?layers=3"), DagMode::Folded);
    const auto visible = visibleGraph(outline, fullyOpen(outline));
    const auto scene = sceneOf(outline, visible);
    for (std::size_t box = 1; box < visible.boxes.size(); ++box) {
        if (visible.boxes[box].frame)
            continue;
        const auto &rect = scene.rects[box];
        EXPECT_EQ(
            scene.boxAt(visible, rect.x + rect.width / 2, rect.y + rect.height / 2), static_cast<int>(box));
        const auto below = scene.neighbour(visible, static_cast<int>(box), 0, 1);
        if (below >= 0) {
            EXPECT_GT(scene.rects[static_cast<std::size_t>(below)].y, rect.y);
        }
    }
    EXPECT_EQ(scene.boxAt(visible, -1e6, 0), 0);
}

} // namespace
} // namespace planloom
