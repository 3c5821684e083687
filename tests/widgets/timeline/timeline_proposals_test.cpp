#include "widgets/timeline/timeline_proposals.h"

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "widgets/timeline/timeline_idle_text.h"
#include "widgets/timeline/timeline_panel_text.h"

#include "engine/analyse/statistics.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// A small transformer in two stages on four devices.
class TimelineProposals : public testing::Test
{
protected:
    static void SetUpTestSuite()
    {
        auto model =
            openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8&fused=0", {}, {}}, {});
        ASSERT_TRUE(model) << model.error().message;
        s_model = *model;
        s_update = planned(s_model, {}, "3d:dp=1,tp=2,pp=2,micro-batches=4,schedule=1f1b", 4);
        ASSERT_TRUE(s_update);
    }
    static void TearDownTestSuite()
    {
        s_model.reset();
        s_update.reset();
    }

    GestureContextSnapshot context() const { return RecordingHost(s_model, s_update, 4).gestureContext(); }
    static OperatorId linear()
    {
        const auto &operators = s_model->graph->operators;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (operators[i].kind == OperatorKind::Linear)
                return OperatorId{static_cast<std::int32_t>(i)};
        }
        return {};
    }

    static inline ModelSnapshot s_model;
    static inline PlanUpdateSnapshot s_update;
};

TEST_F(TimelineProposals, BackwardOperatorsStandForTheirForwardOnes)
{
    const OperatorId op = linear();
    const OperatorId mirror = s_model->graph->at(op).mirror;
    ASSERT_TRUE(mirror.valid());
    EXPECT_EQ(forwardOperators(*s_model->graph, {mirror, op}), std::vector<OperatorId>{op});
}

TEST_F(TimelineProposals, SpreadSplitsAndPlacesInOne)
{
    const auto of = context();
    const OperatorId op = linear();
    const Proposal proposal = proposeSpread(
        *of, {.operators = {op}, .on = op, .devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}}});
    ASSERT_FALSE(proposal.refusal) << proposal.refusal->message;
    TableDocument document = of->document;
    ASSERT_TRUE(document.apply(proposal.edit));
    EXPECT_EQ(proposal.operators, std::vector<OperatorId>{op});
    const auto update = planned(s_model, document.text(), {}, 4);
    ASSERT_TRUE(update) << document.text();
    EXPECT_EQ(update->plan->decisions[static_cast<std::size_t>(op.index)].devices.size(), 4u)
        << document.text();
}

TEST_F(TimelineProposals, SpreadOverANumberThatDoesNotDivideIsRefused)
{
    const auto of = context();
    const OperatorId op = linear();
    const Proposal proposal =
        proposeSpread(*of, {.operators = {op}, .on = op, .devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}}});
    ASSERT_TRUE(proposal.refusal);
    EXPECT_NE(proposal.refusal->message.find("3"), std::string::npos);
    EXPECT_TRUE(proposal.edit.empty());
}

TEST_F(TimelineProposals, ARefusedFirstRefusesTheWhole)
{
    const auto of = context();
    Proposal first;
    first.refusal = Error{ErrorCode::InvalidInput, "no"};
    bool asked = false;
    const Proposal both = joinedProposal(*of, first, [&](const GestureContext &) {
        asked = true;
        return Proposal{};
    });
    EXPECT_FALSE(asked);
    EXPECT_EQ(both.refusal->message, "no");
}

TEST_F(TimelineProposals, AnAxisThatIsNotThereIsSaid)
{
    const auto of = context();
    const Proposal proposal = proposeAxis(*of, {linear()}, "ep");
    ASSERT_TRUE(proposal.refusal);
    EXPECT_NE(proposal.refusal->message.find("ep"), std::string::npos);
    EXPECT_TRUE(proposeAxis(*of, {}, "tp").refusal);
}

TEST_F(TimelineProposals, FiguresOfABoxAreTheEngines)
{
    const TimelineScene &scene = *s_update->scene;
    const TimeBox whole = wholeOf(*scene.timeline);
    const auto figures = statisticsOf(*scene.plan, *scene.timeline, whole);
    ASSERT_TRUE(figures);
    const PanelTable table = statisticsTable(scene, *figures);
    EXPECT_EQ(table.lines.front().depth, 0);
    std::size_t devices = 0;
    for (const PanelLine &line : table.lines) {
        EXPECT_LE(line.cells.size(), table.columns.size());
        devices += line.cells.front().rfind("GPU ", 0) == 0 ? 1 : 0;
    }
    EXPECT_EQ(devices, 4u);
    EXPECT_EQ(table.lines[1].cells[0], "all");
    const std::string text = table.text();
    EXPECT_NE(text.find("GPU 3\t"), std::string::npos);
    EXPECT_NE(text.find("Compute by micro-batch\n0\t"), std::string::npos);
}

TEST_F(TimelineProposals, ABubbleIsExplainedInSentences)
{
    const TimelineScene &scene = *s_update->scene;
    const auto dependencies = dependenciesOf(*scene.plan, *scene.timeline);
    ASSERT_TRUE(dependencies);
    // The second stage waits for the first forward block of the first.
    const auto bubble = whyIdle(*scene.plan, s_update->plan.get(), *scene.timeline, *dependencies,
        DeviceId{2}, Nanoseconds{scene.lanes[2].warmUp.begin / 2});
    ASSERT_TRUE(bubble);
    const PanelTable table = bubbleTable(scene, *bubble, blocksBehind(*scene.plan, *scene.timeline, *bubble),
        nullptr, [](RowId) { return std::string{}; });
    EXPECT_TRUE(table.title.starts_with("GPU 2 waits ")) << table.title;
    EXPECT_TRUE(table.folded);
    ASSERT_FALSE(table.lines.empty());
    EXPECT_NE(table.text().find("GPU 2"), std::string::npos);
}

} // namespace
} // namespace planloom
