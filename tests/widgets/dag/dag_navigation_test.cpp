#include "widgets/dag/dag_navigation.h"

#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_nudges.h"
#include "widgets/dag/layout_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace planloom {
namespace {

DagOutline gpt()
{
    return buildOutline(
        trainingStepOf("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128"), DagMode::Folded);
}

std::int32_t unitCalled(const DagOutline &outline, const std::string &name)
{
    for (std::size_t unit = 0; unit < outline.units.size(); ++unit) {
        if (outline.graph->at(outline.units[unit].op).name == name)
            return static_cast<std::int32_t>(unit);
    }
    ADD_FAILURE() << "no operator is called " << name;
    return 0;
}

DagPlace placeAt(double x)
{
    DagPlace place;
    place.centreX = x;
    return place;
}

TEST(DagHistory, GoesBackAndForward)
{
    DagHistory history;
    EXPECT_FALSE(history.back(placeAt(0)));
    history.leave(placeAt(1));
    history.leave(placeAt(2));
    EXPECT_EQ(history.back(placeAt(3)), placeAt(2));
    EXPECT_EQ(history.back(placeAt(2)), placeAt(1));
    EXPECT_FALSE(history.canGoBack());
    EXPECT_EQ(history.forward(placeAt(1)), placeAt(2));
    EXPECT_EQ(history.forward(placeAt(2)), placeAt(3));
    EXPECT_FALSE(history.canGoForward());
    history.leave(placeAt(4));
    EXPECT_FALSE(history.canGoForward()) << "a new way forgets the old one";
    for (int i = 0; i < 1000; ++i)
        history.leave(placeAt(i));
    int steps = 0;
    while (history.back(placeAt(-1)))
        ++steps;
    EXPECT_LE(steps, static_cast<int>(DagHistory::kMost));
}

TEST(Cone, FollowsDataBothWays)
{
    const auto outline = gpt();
    const std::int32_t attention = unitCalled(outline, "h.1.attn.attention");
    const auto after = coneOf(outline, {attention}, true);
    const auto before = coneOf(outline, {attention}, false);
    EXPECT_TRUE(std::binary_search(after.begin(), after.end(), unitCalled(outline, "h.3.mlp.c_fc")));
    EXPECT_FALSE(std::binary_search(after.begin(), after.end(), unitCalled(outline, "h.0.mlp.c_fc")));
    EXPECT_TRUE(std::binary_search(before.begin(), before.end(), unitCalled(outline, "h.0.mlp.c_fc")));
    std::vector<std::int32_t> both;
    std::set_intersection(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(both));
    EXPECT_EQ(both, std::vector{attention});
    EXPECT_LT(coneOf(outline, {attention}, true, 1).size(), after.size());
    EXPECT_EQ(coneOf(outline, {attention}, true, 0), std::vector{attention});
    EXPECT_TRUE(coneOf(outline, {}, true).empty());
}

TEST(ItemPaths, LeadBackToTheirItems)
{
    const auto outline = gpt();
    std::set<std::string> seen;
    for (std::size_t item = 0; item < outline.items.size(); ++item) {
        const auto path = pathOfItem(outline, static_cast<std::int32_t>(item));
        EXPECT_TRUE(seen.insert(path).second) << path;
        EXPECT_EQ(findItem(outline, path), static_cast<std::int32_t>(item)) << path;
    }
    EXPECT_EQ(findItem(outline, "no/such/item"), -1);
}

TEST(ViewState, IsReadAsItWasWritten)
{
    const auto outline = gpt();
    for (const bool all : {false, true}) {
        DagViewState state;
        state.mode = DagMode::Unrolled;
        state.flow = 1;
        state.place.state = all ? fullyOpen(outline) : initialState(outline);
        state.place.centreX = 12.25;
        state.place.centreY = -3;
        state.place.scale = 0.5;
        for (std::size_t item = 1; item < outline.items.size(); ++item) {
            if (outline.items[item].kind == OutlineItem::Kind::Stack)
                state.place.state.nudges[static_cast<std::int32_t>(item)] = {10, -20};
        }
        const auto text = writeViewState(outline, state);
        const auto read = readViewState(outline, text);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->mode, state.mode);
        EXPECT_EQ(read->flow, 1);
        EXPECT_EQ(read->place, state.place);
        EXPECT_EQ(modeOfViewState(text), DagMode::Unrolled);
    }
}

TEST(ViewState, OfAnythingElseIsNone)
{
    const auto outline = gpt();
    for (const char *text : {"", "{}", "[1,2]", "hello", "{\"format\":\"planloom-dag-1\",\"mode\":7}",
             "{\"format\":\"other\",\"mode\":1}"})
        EXPECT_FALSE(readViewState(outline, QString::fromLatin1(text))) << text;
    const auto odd = readViewState(outline,
        QStringLiteral("{\"format\":\"planloom-dag-1\",\"mode\":1,\"scale\":1e300,\"open\":[\"gone\",3],"
                       "\"nudges\":{\"gone\":[1,2]}}"));
    ASSERT_TRUE(odd);
    EXPECT_EQ(odd->place.scale, DagCamera::kMostScale);
    EXPECT_EQ(odd->place.state.open, (std::set<std::int32_t>{0}));
    EXPECT_TRUE(odd->place.state.nudges.empty());
}

TEST(Nudges, MoveAGroupWithAllThatIsInIt)
{
    const auto outline = std::make_shared<const DagOutline>(gpt());
    const TextMeasure measure = [](const std::string &text, bool) {
        return 7.0 * static_cast<double>(text.size());
    };
    LayoutCache cache;
    auto state = initialState(*outline, 60);
    const auto before = makePicture(outline, state, measure, cache);
    std::int32_t group = -1;
    for (std::size_t box = 1; box < before->visible.boxes.size(); ++box) {
        if (before->visible.boxes[box].frame)
            group = static_cast<std::int32_t>(box);
    }
    ASSERT_GT(group, 0);
    state.nudges[before->visible.at(group).item] = {300, 40};
    const auto after = makePicture(outline, state, measure, cache);
    const auto moved = [&](std::int32_t box) {
        const auto &from = before->scene.rects[static_cast<std::size_t>(box)];
        const auto &to = after->scene.rects[static_cast<std::size_t>(box)];
        return std::pair{std::lround(to.x - from.x), std::lround(to.y - from.y)};
    };
    EXPECT_EQ(moved(group), (std::pair{300L, 40L}));
    for (std::size_t box = 1; box < before->visible.boxes.size(); ++box) {
        const auto &shown = before->visible.boxes[box];
        if (shown.parent == group) {
            EXPECT_EQ(moved(static_cast<std::int32_t>(box)), (std::pair{300L, 40L}));
        } else if (!shown.frame) {
            EXPECT_EQ(moved(static_cast<std::int32_t>(box)), (std::pair{0L, 0L}));
        }
        if (shown.parent >= 0) { // frames hold what is in them
            const auto &outer = after->scene.rects[static_cast<std::size_t>(shown.parent)];
            const auto &inner = after->scene.rects[box];
            EXPECT_LE(outer.x, inner.x + 1e-9);
            EXPECT_GE(outer.right(), inner.right() - 1e-9);
        }
    }
    state.nudges.clear();
    EXPECT_EQ(makePicture(outline, state, measure, cache)->scene.rects, before->scene.rects);
}

} // namespace
} // namespace planloom
