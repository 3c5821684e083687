#include "widgets/design/plan_update.h"

#include <gtest/gtest.h>

#include <vector>

namespace planloom {
namespace {

PlanRequest smallRequest(PlanGrade upTo)
{
    PlanRequest request;
    request.model = *openModel({"zoo:mlp?layers=2&hidden=32&batch=8", {}, {}});
    request.table = TableDocument("mesh dp=2\nsplit all : batch over dp\n");
    request.target = {"dgx-a100", {}, 2};
    request.upTo = upTo;
    return request;
}

std::vector<PlanUpdateSnapshot> updatesOf(const PlanRequest &request, const PlanUpdateSnapshot &begin = {})
{
    std::vector<PlanUpdateSnapshot> updates;
    makeUpdates(request, begin, {}, [&](PlanUpdateSnapshot update) { updates.push_back(std::move(update)); });
    return updates;
}

TEST(MakeUpdates, BringASceneWithTheTimeline)
{
    const auto updates = updatesOf(smallRequest(PlanGrade::Verified));
    ASSERT_EQ(updates.size(), 5u);
    for (const PlanUpdateSnapshot &update : updates)
        EXPECT_EQ(update->scene != nullptr, update->grade >= PlanGrade::Simulated);
    const PlanUpdate &last = *updates.back();
    EXPECT_EQ(last.scene, updates[3]->scene) << "it is made once";
    EXPECT_EQ(last.scene->timeline, last.timeline);
    EXPECT_EQ(last.scene->plan, last.execution);
    EXPECT_EQ(last.scene->lanes.size(), 2u);
    EXPECT_EQ(last.scene->decidedBy.size(), last.model->graph->operators.size());
}

TEST(MakeUpdates, GoOnWithTheSceneThatIsThere)
{
    const PlanUpdateSnapshot ghost = updatesOf(smallRequest(PlanGrade::Simulated)).back();
    ASSERT_TRUE(ghost->scene && ghost->final);
    const auto updates = updatesOf(smallRequest(PlanGrade::Verified), ghost);
    ASSERT_EQ(updates.size(), 1u);
    EXPECT_EQ(updates[0]->scene, ghost->scene);
    EXPECT_TRUE(updates[0]->verdict);
}

} // namespace
} // namespace planloom
