#include "engine/design/schedule_choice.h"

#include "engine/verify/verify.h"
#include "tests/engine/design/small_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

PlanRequest pipelineRequest()
{
    const auto model =
        openModel({"zoo:gpt?layers=8&hidden=256&heads=4&seq=64&batch=16&vocab=512", {}, {}}, {});
    EXPECT_TRUE(model);
    PlanRequest request;
    request.model = *model;
    request.gallery = "pipeline:stages=4,micro-batches=8";
    request.target = {.cluster = "dgx-h100:4"};
    return request;
}

/// The chosen schedule is the shortest of all that fit, is a row of the table, and is proven.
TEST(ChooseSchedule, IsNoLongerThanAnyTemplate)
{
    const auto choice = chooseSchedule(pipelineRequest(), 10);
    ASSERT_TRUE(choice) << describe(choice.error());
    ASSERT_TRUE(choice->best->isTimed());
    std::size_t searched = 0;
    std::size_t planned = 0;
    for (const TriedSchedule &each : choice->tried) {
        if (each.problem)
            continue;
        ++planned;
        searched += each.name == "best" ? 1 : 0;
        if (each.fits) {
            EXPECT_GE(each.stepSeconds, choice->best->summary.stepSeconds) << each.name;
        }
    }
    EXPECT_EQ(searched, 2U); // with whole backward passes, and with split ones
    EXPECT_GT(planned, 8U);
    EXPECT_EQ(choice->searches.size(), 2U);
    for (const ScheduleAnswer &each : choice->searches)
        EXPECT_EQ(each.status, ScheduleStatus::Optimal);
    const ConstraintTable table = choice->best->table.table();
    EXPECT_EQ(std::count_if(table.rows.begin(), table.rows.end(),
                  [](const Row &row) { return std::holds_alternative<ScheduleRule>(row.rule); }),
        1);
    const auto verdict = verify(*choice->best->execution);
    ASSERT_TRUE(verdict) << describe(verdict.error());
    EXPECT_TRUE(verdict->ok());
}

TEST(ChooseSchedule, ASearchedScheduleIsAsListed)
{
    const auto base = answerOf(pipelineRequest());
    ASSERT_TRUE(base && (*base)->materialized);
    const StagePlacement stages =
        placementOfBlocks((*base)->materialized->blocks, (*base)->materialized->dataFlow, {}, {});
    ASSERT_TRUE(validate(stages.placement));
    EXPECT_EQ(stages.placement.devices, 4);
    const auto found = findSchedule(stages.placement, {.microBatches = 8, .seconds = 10});
    ASSERT_TRUE(found);
    const Schedule schedule = scheduleOf(stages, found->makespan.starts);
    const auto request = withSchedule(pipelineRequest(), {ScheduleKind::Listed, schedule});
    ASSERT_TRUE(request) << describe(request.error());
    const auto answer = answerOf(*request);
    ASSERT_TRUE(answer);
    ASSERT_FALSE((*answer)->firstError()) << describe(*(*answer)->firstError());
    EXPECT_EQ((*answer)->plan->order, schedule);
    // Blocks of each device run in the listed order.
    for (const DeviceProgram &device : (*answer)->execution->devices) {
        std::vector<std::pair<std::int32_t, std::int32_t>> runs; // stage and micro-batch
        for (const ScheduleEntry &entry : device.schedule) {
            const Segment &segment = device.segments[static_cast<std::size_t>(entry.segment)];
            if (segment.kind == SegmentKind::Forward && (entry.begin == 0))
                runs.emplace_back(segment.stage.index, entry.microBatch);
        }
        std::vector<std::pair<std::int32_t, std::int32_t>> listed;
        for (const auto &rank : schedule.ranks)
            for (const ScheduledBlock &block : rank)
                if (block.block.pass == Pass::Forward && !runs.empty()
                    && block.block.stage.index == runs.front().first)
                    listed.emplace_back(block.block.stage.index, block.microBatch);
        EXPECT_EQ(runs, listed);
    }
}

TEST(ChooseSchedule, StopsWhenAskedTo)
{
    std::stop_source stop;
    stop.request_stop();
    const auto choice = chooseSchedule(pipelineRequest(), 10, stop.get_token());
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::Cancelled);
}

} // namespace
} // namespace planloom
