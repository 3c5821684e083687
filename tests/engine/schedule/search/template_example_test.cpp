#include "engine/schedule/search/template_example.h"

#include "engine/schedule/search/schedule_proof.h"
#include "tests/engine/schedule/search/placements_for_tests.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

TEST(TemplateExample, EveryTemplateHasOneThatIsValidAndItsOwn)
{
    std::set<std::vector<BlockStart>> seen;
    for (const ScheduleKind kind : kAllSchedules) {
        SCOPED_TRACE(nameOf(kind));
        const auto example = exampleOf(kind);
        ASSERT_TRUE(example) << describe(example.error());
        EXPECT_EQ(
            textOf(violationsOf(example->stages.placement, example->setting.microBatches, example->starts)),
            "");
        EXPECT_TRUE(seen.insert(example->starts).second) << "another template looks the same";
    }
}

TEST(TemplateExample, LiesAsTheTemplateIsMeantFor)
{
    const auto ranksOf = [](ScheduleKind kind) { return exampleOf(kind)->setting.rankOf.size(); };
    EXPECT_EQ(ranksOf(ScheduleKind::OneFOneB), 4U);
    EXPECT_EQ(ranksOf(ScheduleKind::Interleaved), 12U);
    EXPECT_EQ(ranksOf(ScheduleKind::ZeroBubbleV), 8U);
    EXPECT_EQ(ranksOf(ScheduleKind::OneFOneBPlus), 5U);
    EXPECT_FALSE(exampleOf(ScheduleKind::Chimera)->setting.laneRanks.empty());
}

std::string steps(std::int64_t time)
{
    return std::to_string(time) + " steps";
}

TEST(ScheduleProof, NamesTheDeviceThatIsAlwaysBusy)
{
    const Placement placement = tesselPlacement("vshape", 4, 4);
    const auto answer = findSchedule(placement, {.microBatches = 8, .seconds = 60});
    ASSERT_TRUE(answer);
    ASSERT_TRUE(answer->period.proven());
    ASSERT_EQ(answer->period.schedule->period, busiestQueue(placement));
    const std::string proof = proofOf(placement, *answer, {"GPU 0", "GPU 1", "GPU 2", "GPU 3"}, steps);
    EXPECT_EQ(proof.find("GPU 0 is busy 100% of the period of 4 steps: no schedule has a shorter one. "), 0U)
        << proof;
    EXPECT_NE(proof.find("8 micro-batches take "), std::string::npos) << proof;
}

TEST(ScheduleProof, SaysHowMuchIsOpen)
{
    const Placement placement = tesselPlacement("vshape", 4, 4);
    ScheduleAnswer answer{.microBatches = 10};
    answer.period.schedule = PeriodicSchedule{.period = 5, .start = {}};
    answer.period.bound = 4;
    answer.makespan.starts = {{0, 0, 0}};
    answer.makespan.makespan = 50;
    answer.makespan.bound = 49;
    EXPECT_EQ(proofOf(placement, answer, {"GPU 0", "GPU 1", "GPU 2", "GPU 3"}, steps),
        "The period is 5 steps; none is below 4 steps: at most 20% less. 10 micro-batches take 50 steps; "
        "none "
        "is below 49 steps: at most 2.0% less.");
    answer.period.bound = 5; // proven, though no queue is always busy
    EXPECT_EQ(proofOf(placement, answer, {"GPU 0", "GPU 1", "GPU 2", "GPU 3"}, steps)
                  .find("No schedule that repeats with every micro-batch has a period below 5 steps: what "
                        "blocks wait for, or memory, forbids it "
                        "(GPU 0 is busy 80% of it, the most)."),
        0U);
    answer.period.schedule.reset();
    answer.period.none = true;
    EXPECT_EQ(proofOf(placement, answer, {"GPU 0", "GPU 1", "GPU 2", "GPU 3"}, steps)
                  .find("No steady state keeps within the memory."),
        0U);
}

} // namespace
} // namespace planloom
