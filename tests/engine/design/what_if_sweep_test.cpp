#include "engine/design/explain/what_if_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

PlanRequest smallRequest()
{
    PlanRequest request;
    auto model = openModel({"zoo:gpt?layers=4&hidden=32&heads=4&seq=8&batch=8&vocab=24", {}, {}}, {});
    EXPECT_TRUE(model) << describe(model.error());
    request.model = *model;
    request.target = {"dgx-a100", {}, 4};
    request.gallery = "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4";
    request.upTo = PlanGrade::Timed;
    const auto answer = answerOf(request);
    EXPECT_TRUE(answer);
    request.table = (*answer)->table;
    request.gallery.clear();
    return request;
}

TEST(WhatIfSweep, ChoosesPowersOfTwoUpToTheBatchAndStagesThatDivideTheDevices)
{
    const PlanRequest request = smallRequest();
    const auto answer = answerOf(request);
    ASSERT_TRUE(answer);
    std::vector<std::int32_t> microBatches;
    std::vector<std::string> stages;
    int now = 0;
    for (const SweepChoice &choice : sweepChoices(**answer)) {
        if (choice.axis == SweepAxis::MicroBatches)
            microBatches.push_back(choice.value);
        else
            stages.push_back(choice.now ? "now " + std::to_string(choice.value) : choice.gallery);
        now += choice.now ? 1 : 0;
    }
    EXPECT_EQ(microBatches, (std::vector<std::int32_t>{1, 2, 4, 8}));
    // The plan as it is is the point of its own number, not the gallery's.
    EXPECT_EQ(stages, (std::vector<std::string>{"3d:dp=2,tp=2,pp=1,micro-batches=4", "now 2"}));
    EXPECT_EQ(now, 2);
    EXPECT_TRUE(sweepChoices(PlanAnswer{}).empty());
}

TEST(WhatIfSweep, APointIsWhatThePlanComesTo)
{
    const PlanRequest request = smallRequest();
    const auto answer = answerOf(request);
    ASSERT_TRUE(answer);
    for (const SweepChoice &choice : sweepChoices(**answer)) {
        SCOPED_TRACE(choice.gallery + " " + std::to_string(choice.value));
        const auto point = sweep(request, choice);
        ASSERT_TRUE(point) << describe(point.error());
        ASSERT_FALSE(point->problem) << describe(*point->problem);
        EXPECT_EQ(point->choice, choice);
        // The same by hand.
        auto wanted = requestOf(request, choice);
        ASSERT_TRUE(wanted);
        wanted->upTo = PlanGrade::Timed;
        const auto plan = planOf(*wanted);
        ASSERT_TRUE(plan) << describe(plan.error());
        EXPECT_EQ(point->stepSeconds, (*plan)->summary.stepSeconds);
        EXPECT_EQ(point->peak, (*plan)->summary.largestPeak);
        EXPECT_TRUE(point->fits);
        EXPECT_EQ(choice.axis == SweepAxis::MicroBatches ? (*plan)->plan->microBatches
                                                         : (*plan)->execution->stageCount,
            choice.value);
        if (choice.now) {
            EXPECT_EQ(point->stepSeconds, (*answer)->summary.stepSeconds);
        }
    }
}

TEST(WhatIfSweep, RowsStayAsTheyAreButForTheOneThatIsChanged)
{
    PlanRequest request = smallRequest();
    const auto changed = requestOf(request, {SweepAxis::MicroBatches, 2, false, {}});
    ASSERT_TRUE(changed);
    const auto before = request.table.table().rows;
    const auto after = changed->table.table().rows;
    ASSERT_EQ(before.size(), after.size());
    int different = 0;
    for (std::size_t r = 0; r < before.size(); ++r)
        different += before[r].rule == after[r].rule && before[r].selector == after[r].selector ? 0 : 1;
    EXPECT_EQ(different, 1);
    // Without such a row there is one at the end.
    request.table = TableDocument("mesh dp=4\nsplit all : batch over dp\n");
    const auto added = requestOf(request, {SweepAxis::MicroBatches, 2, false, {}});
    ASSERT_TRUE(added);
    EXPECT_NE(added->table.text().find("micro-batches 2"), std::string::npos);
}

TEST(WhatIfSweep, SaysWhyThereIsNoPlanAndStops)
{
    const PlanRequest request = smallRequest();
    const auto point = sweep(request, {SweepAxis::MicroBatches, 3, false, {}});
    ASSERT_TRUE(point);
    EXPECT_TRUE(point->problem); // 8 samples
    EXPECT_EQ(point->stepSeconds, 0);
    std::stop_source source;
    source.request_stop();
    EXPECT_FALSE(sweep(request, {SweepAxis::MicroBatches, 2, false, {}}, source.get_token()));
}

} // namespace
} // namespace planloom
