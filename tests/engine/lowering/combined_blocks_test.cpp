// Two blocks of a rank that run side by side, in slices.

#include "engine/lowering/lower.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr const char *kSliced = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";

ExecutionPlan combinedPlan(const char *model, std::int32_t devices, const std::string &rows)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(trainingStep(model), devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

TEST(CombinedSchedule, PairsBlocksThatDoNotWaitForOneAnother)
{
    for (const std::int32_t p : {1, 2, 4})
        for (const std::int32_t m : {1, 2, 8}) {
            ScheduleSetting setting{.rankCount = p, .microBatches = m};
            for (std::int32_t s = 0; s < p; ++s)
                setting.rankOf.push_back(s);
            const auto schedule = combined1F1BSchedule(setting);
            ASSERT_TRUE(schedule) << describe(schedule.error());
            std::int32_t pairs = 0;
            for (std::int32_t r = 0; r < p; ++r)
                pairs += std::max(m - (p - r), 0);
            EXPECT_EQ(schedule->interleaved.size(), static_cast<std::size_t>(pairs));
            for (const auto &[first, second] : schedule->interleaved) {
                const auto &rank = schedule->ranks[static_cast<std::size_t>(first.block.stage.index)];
                const auto at = std::find(rank.begin(), rank.end(), first);
                ASSERT_NE(at, rank.end());
                EXPECT_EQ(*(at + 1), second);
                EXPECT_EQ(first.microBatch, second.microBatch + p - first.block.stage.index);
            }
        }
}

/// "F0 B0 ..." of one device; slices of one run are told by dots.
std::string slicesOn(const ExecutionPlan &plan, std::size_t device, SegmentKind kind, std::int32_t microBatch)
{
    std::string text;
    for (const ScheduleEntry &entry : plan.devices[device].schedule)
        if (plan.devices[device].segments[static_cast<std::size_t>(entry.segment)].kind == kind
            && entry.microBatch == microBatch)
            text += text.empty() ? "1" : "+1";
    return text;
}

TEST(CombinedSchedule, CutsBlocksWhereTheyHaveCommunicated)
{
    const ExecutionPlan plan = combinedPlan(
        kSliced, 2, "mesh tp=2\nsplit all : heads over tp\nmicro-batches 4\nschedule combined-1f1b");
    EXPECT_EQ(slicesOn(plan, 0, SegmentKind::Forward, 0), "1"); // the warm-up runs alone
    EXPECT_NE(slicesOn(plan, 0, SegmentKind::Forward, 1).find("+1+1"), std::string::npos);
    EXPECT_NE(slicesOn(plan, 0, SegmentKind::Backward, 0).find("+1+1"), std::string::npos);
    EXPECT_EQ(mostInFlight(plan), (std::vector<std::int32_t>{2}));
    // In turn: no two slices of one run stand side by side while the other has some left.
    const auto &schedule = plan.devices[0].schedule;
    std::size_t turns = 0;
    for (std::size_t i = 1; i < schedule.size(); ++i)
        turns += schedule[i].begin > 0 && schedule[i - 1].segment != schedule[i].segment ? 1 : 0;
    EXPECT_GE(turns, 12U);
    // What is launched together is not cut, and the order holds on both devices.
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(CombinedSchedule, HidesWhatBlocksCommunicate)
{
    constexpr const char *kWide = "zoo:gpt?layers=2&hidden=2048&heads=16&seq=1024&batch=8&vocab=1024";
    const std::string rows = "mesh tp=4\nsplit all : heads over tp\nmicro-batches 8\nschedule ";
    const auto exposed = [&](const char *schedule) {
        const ExecutionPlan plan = combinedPlan(kWide, 4, rows + schedule);
        const auto timeline = simulate(plan, *clusterNamed("dgx-a100:4"));
        EXPECT_TRUE(timeline) << describe(timeline.error());
        return std::pair(timeline->step.count(), timeline->exposedCommunication[0].count());
    };
    const auto [step, left] = exposed("combined-1f1b");
    const auto [stepAlone, leftAlone] = exposed("1f1b");
    EXPECT_LT(step, stepAlone);
    EXPECT_LT(left, leftAlone * 6 / 10); // all but the first forward and the last backward block
}

} // namespace
} // namespace planloom
