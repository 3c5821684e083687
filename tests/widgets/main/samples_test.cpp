#include "widgets/main/samples.h"

#include "widgets/dag/dag_colours.h"
#include "widgets/design/plan_update.h"
#include "widgets/timeline/timeline_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace planloom {
namespace {

TEST(Samples, AreBundledGpt2First)
{
    ASSERT_EQ(samples().size(), 9u);
    EXPECT_EQ(samples().front().name, "gpt2");
    EXPECT_EQ(samples().front().devices, 4);
    EXPECT_TRUE(sampleNamed("mlp"));
    const auto unknown = sampleNamed("nothing");
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().advice.find("gpt2"), std::string::npos);
}

/// A sample's model under a plan of the gallery, with further rows, on the sample's devices.
PlanUpdateSnapshot planned(const ModelSnapshot &model, const Sample &sample, const std::string &gallery,
    const std::string &rows = {})
{
    PlanRequest request;
    request.model = model;
    request.gallery = gallery;
    request.table = TableDocument(rows);
    request.target = {sample.cluster, {}, sample.devices};
    PlanUpdateSnapshot last;
    makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    EXPECT_TRUE(last && !last->error) << gallery << (last ? describe(*last->error) : "");
    return last;
}

bool fits(const PlanUpdate &update)
{
    return static_cast<double>(update.summary.largestPeak.count) <= update.cluster.device.memory.value;
}

TEST(Samples, EachGivesAVerifiedPlanThatFits)
{
    for (const Sample &sample : samples()) {
        SCOPED_TRACE(sample.name);
        const auto model = openModel({sample.model, {}, {}}, {});
        ASSERT_TRUE(model) << describe(model.error());
        const PlanUpdateSnapshot last = planned(*model, sample, sample.gallery);
        ASSERT_TRUE(last && last->verdict);
        EXPECT_TRUE(last->verdict->ok()) << last->verdict->failure->reason;
        EXPECT_TRUE(fits(*last));
    }
}

/// A plan that one would try before that of a sample, and what is wrong with it there.
struct Instead {
    const char *sample;
    const char *gallery;
    const char *rows;
    bool fits; ///< Then it takes at least 3% longer.
};

/// What samples say of their technique: beside it, nothing that is as obvious fits and is as fast.
TEST(Samples, TechniquesWinWhereTheyAreShown)
{
    constexpr Instead kAll[]{{"t5", "1f1b:pp=4,micro-batches=8", "", true},
        {"t5", "tensor-parallel", "", true}, {"t5", "data-parallel", "", false}, {"t5", "zero1", "", true},
        {"swin", "3d:dp=4,recompute=full", "", false},
        {"swin", "zero3", "recompute layer:* per layer", false}, {"swin", "tensor-parallel", "", false},
        {"evoformer", "data-parallel", "", false}, {"evoformer", "zero3", "", false},
        {"evoformer", "axial:recompute=1", "", true}, {"llama", "zero2", "", false},
        {"llama", "tensor-parallel", "", false}, {"llama", "sequence-parallel", "", true},
        {"long", "context-parallel:ring=0", "", true}, {"long", "sequence-parallel", "", true},
        {"long", "tensor-parallel", "", false}, {"experts", "data-parallel", "", false},
        {"experts", "zero3", "", true}, {"experts", "tensor-parallel", "", true}};
    for (const Sample &sample : samples()) {
        ModelSnapshot model;
        double shown = 0;
        for (const Instead &other : kAll) {
            if (sample.name != other.sample)
                continue;
            SCOPED_TRACE(sample.name + " with " + other.gallery);
            if (!model) {
                model = *openModel({sample.model, {}, {}}, {});
                shown = planned(model, sample, sample.gallery)->summary.stepSeconds;
            }
            const PlanUpdateSnapshot update = planned(model, sample, other.gallery, other.rows);
            ASSERT_TRUE(update);
            EXPECT_EQ(fits(*update), other.fits) << update->summary.largestPeak.count;
            if (other.fits) {
                EXPECT_GT(update->summary.stepSeconds, 1.03 * shown);
            }
        }
    }
}

/// Parts that run in turns are seen as such: on the graph how many there are, on the lanes which one runs.
TEST(Samples, TurnsAreSeenOnGraphAndLanes)
{
    const Sample sample = *sampleNamed("swin");
    const auto model = openModel({sample.model, {}, {}}, {});
    ASSERT_TRUE(model);
    const PlanUpdateSnapshot update = planned(*model, sample, sample.gallery);
    ASSERT_TRUE(update && update->scene);
    std::int32_t most = 1;
    for (const OperatorDecision &decision : update->plan->decisions)
        most = std::max(most, turnsOf(decision));
    ASSERT_GT(most, 1);

    const DagOutline outline = buildOutline((*model)->graph, DagMode::Folded);
    const VisibleGraph visible = visibleGraph(outline, initialState(outline));
    OperatorFacts facts;
    facts.plan = update->plan;
    const DagColours colours = coloursOf(outline, visible, facts, ColourBy::Device, lightPalette());
    const QString turns = QStringLiteral("%1 turns").arg(most);
    EXPECT_TRUE(std::any_of(colours.boxes.begin(), colours.boxes.end(),
        [&](const BoxColours &box) { return box.badge.contains(turns); }));

    std::set<std::string> ends;
    for (std::size_t row = 0; row < update->scene->timeline->spans.size(); ++row) {
        const std::string label = labelOf(*update->scene, row);
        if (const auto space = label.rfind(' '); space != std::string::npos)
            ends.insert(label.substr(space + 1));
    }
    for (std::int32_t turn = 1; turn <= most; ++turn)
        EXPECT_TRUE(ends.contains(std::to_string(turn) + "/" + std::to_string(most))) << turn;
}

TEST(Samples, MalformedOnesSayWhere)
{
    EXPECT_EQ(sampleFromJson("a", "[]").error().where, "/");
    EXPECT_EQ(sampleFromJson("a", "{").error().where, "/");
    const std::string texts =
        R"("title":"t","about":"a","model":"zoo:mlp","cluster":"cpu","gallery":"single")";
    EXPECT_EQ(sampleFromJson("a", "{" + texts + "}").error().where, "/devices");
    EXPECT_EQ(sampleFromJson("a", "{" + texts + R"(,"devices":0})").error().where, "/devices");
    EXPECT_EQ(sampleFromJson("a", R"({"title":3})").error().where, "/title");
    EXPECT_TRUE(sampleFromJson("a", "{" + texts + R"(,"devices":2})"));
}

} // namespace
} // namespace planloom
