#include "engine/design/schedules/block_move.h"

#include "engine/design/schedules/schedule_choice.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/lowering/order/listed_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Four stages of which the first holds the most: activations are what there is.
PlanRequest pipeline(const std::string &rows)
{
    static const auto kModel =
        openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=256&vocab=128&batch=32&fused=0", {}, {}}, {});
    EXPECT_TRUE(kModel);
    PlanRequest request;
    request.model = *kModel;
    request.target = {.cluster = "dgx-h100:4"};
    static const std::string kRows = [] {
        PlanRequest first;
        first.model = *kModel;
        first.target = {.cluster = "dgx-h100:4"};
        first.gallery = "pipeline:stages=4,micro-batches=8,schedule=1f1b";
        first.upTo = PlanGrade::Checked;
        const auto checked = answerOf(first);
        EXPECT_TRUE(checked);
        return (*checked)->table.text();
    }();
    request.table = TableDocument(kRows + (kRows.ends_with('\n') ? "" : "\n") + rows);
    return request;
}

PlanAnswerSnapshot planned(PlanRequest request)
{
    request.upTo = PlanGrade::Simulated;
    const auto answer = answerOf(request);
    EXPECT_TRUE(answer);
    return *answer;
}

GestureContext contextOf(const PlanRequest &request, const PlanAnswer &answer)
{
    GestureContext context = gestureContextOf(*request.model, request.table, 4);
    context.plan = answer.plan;
    context.cluster = answer.cluster;
    return context;
}

BlockRef forward(std::int32_t stage, std::int32_t microBatch)
{
    return {StageId{stage}, Direction::Forward, microBatch, {}};
}
BlockRef backward(std::int32_t stage, std::int32_t microBatch)
{
    return {StageId{stage}, Direction::Backward, microBatch, {}};
}

/// The plan of a request after a proposal's rows are written.
PlanAnswerSnapshot after(PlanRequest request, const Proposal &proposal)
{
    EXPECT_TRUE(proposal.accepted()) << (proposal.refusal ? describe(*proposal.refusal) : proposal.words);
    EXPECT_TRUE(request.table.apply(proposal.edit));
    return planned(request);
}

TEST(LimitBrokenBy, NamesTheRowForMemoryAndBothBlocks)
{
    const std::int64_t kibibytes = planned(pipeline(""))->summary.largestPeak.count / 1024 + 1;
    const PlanRequest request = pipeline("limit memory " + std::to_string(kibibytes) + "KiB\n");
    const auto before = planned(request);
    ASSERT_FALSE(before->firstError()) << describe(*before->firstError());
    EXPECT_FALSE(limitBrokenBy(*before, nullptr));
    const auto changed =
        after(request, proposeBlockOrder(contextOf(request, *before), forward(0, 4), backward(0, 0), false));
    const auto broken = limitBrokenBy(*changed, before.get());
    ASSERT_TRUE(broken);
    const std::int32_t line = before->rows.back().line;
    EXPECT_EQ(broken->message.find("F4 of stage 0 can't run before B0 of stage 0: GPU 0 would hold "), 0U)
        << broken->message;
    EXPECT_NE(broken->message.find(", row " + std::to_string(line + 1) + " allows "), std::string::npos)
        << broken->message;
    EXPECT_EQ(broken->where, "row:" + std::to_string(line));
    EXPECT_FALSE(limitBrokenBy(*changed, changed.get())); // what was broken before is not broken by the order
}

TEST(LimitBrokenBy, NamesTheMemoryOfTheDevices)
{
    const auto before = planned(pipeline(""));
    const auto changed = after(pipeline(""),
        proposeBlockOrder(contextOf(pipeline(""), *before), forward(0, 4), backward(0, 0), false));
    EXPECT_FALSE(limitBrokenBy(*changed, before.get())); // there is room
    PlanAnswer small = *changed;
    PlanAnswer smallBefore = *before;
    for (PlanAnswer *answer : {&small, &smallBefore})
        answer->cluster.device.memory.value = static_cast<double>(before->summary.largestPeak.count);
    const auto broken = limitBrokenBy(small, &smallBefore);
    ASSERT_TRUE(broken);
    EXPECT_EQ(broken->message.find("F4 of stage 0 can't run before B0 of stage 0: GPU 0 would hold "), 0U)
        << broken->message;
    EXPECT_NE(broken->message.find(" and has "), std::string::npos) << broken->message;
}

/// What moves to another device: no order is to blame for what that one cannot hold. A row that limits it is
/// in the way as other rows are.
TEST(LimitBrokenBy, NamesTheDeviceThatAPlaceOverfills)
{
    const std::int64_t peak = planned(pipeline(""))->summary.largestPeak.count;
    const auto overfilled = [](const PlanRequest &request, const PlanAnswer &before) {
        const GestureContext context = contextOf(request, before);
        return after(request,
            proposePlace(
                context, {.operators = operatorsOfStage(context, StageId{1}), .devices = {DeviceId{0}}}));
    };
    const PlanRequest request = pipeline("");
    PlanAnswer before = *planned(request);
    PlanAnswer changed = *overfilled(request, before);
    for (PlanAnswer *answer : {&before, &changed})
        answer->cluster.device.memory.value = static_cast<double>(peak);
    const auto broken = limitBrokenBy(changed, &before);
    ASSERT_TRUE(broken);
    EXPECT_EQ(broken->message.find("GPU 0 would hold "), 0U) << broken->message;
    EXPECT_EQ(broken->where, "memory");

    const PlanRequest limited = pipeline("limit memory " + std::to_string(peak / 1024 + 1) + "KiB\n");
    const auto within = planned(limited);
    ASSERT_FALSE(within->firstError()) << describe(*within->firstError());
    const auto over = overfilled(limited, *within);
    EXPECT_TRUE(over->firstError());
    EXPECT_FALSE(limitBrokenBy(*over, within.get()));
}

TEST(LimitBrokenBy, NamesTheRowForMicroBatchesInFlight)
{
    const PlanRequest request = pipeline("in-flight 4 stage 0\n");
    const auto before = planned(request);
    ASSERT_FALSE(before->firstError());
    ASSERT_EQ(mostInFlight(*before->execution).front(), 4);
    const auto changed =
        after(request, proposeBlockOrder(contextOf(request, *before), forward(0, 4), backward(0, 0), false));
    const auto broken = limitBrokenBy(*changed, before.get());
    ASSERT_TRUE(broken);
    EXPECT_EQ(broken->message,
        "F4 of stage 0 can't run before B0 of stage 0: row " + std::to_string(before->rows.back().line + 1)
            + " allows 4 micro-batches in flight on stage 0");
}

TEST(BlockOrder, ARefusalNamesTheBlocksAndThoseBetween)
{
    const PlanRequest request = pipeline("");
    const auto answer = planned(request);
    const Proposal proposal =
        proposeBlockOrder(contextOf(request, *answer), backward(0, 0), forward(1, 0), false);
    ASSERT_TRUE(proposal.refusal);
    EXPECT_EQ(proposal.refusal->message,
        "B0 of stage 0 can't run before F0 of stage 1: it waits for it, over B of stage 1");
}

std::string orderOf(const Schedule &schedule, std::size_t rank)
{
    return toString(Schedule{.ranks = {schedule.ranks[rank]}});
}

TEST(ListedSchedule, IsWhatTheDevicesRun)
{
    for (const ScheduleKind kind : {ScheduleKind::OneFOneB, ScheduleKind::GPipe, ScheduleKind::ZeroBubbleH1,
             ScheduleKind::CombinedOneFOneB, ScheduleKind::ZeroBubbleH2}) {
        SCOPED_TRACE(nameOf(kind));
        auto named = withSchedule(pipeline(""), {kind, {}});
        ASSERT_TRUE(named);
        const Schedule listed = listedScheduleOf(*planned(*named)->execution);
        EXPECT_EQ(listed.ranks.size(), 4U);
        EXPECT_TRUE(listed.interleaved.empty()); // nothing is communicated inside these blocks
        auto again = withSchedule(pipeline(""), {ScheduleKind::Listed, listed});
        ASSERT_TRUE(again);
        const auto answer = planned(*again);
        ASSERT_FALSE(answer->firstError()) << describe(*answer->firstError());
        EXPECT_EQ(listedScheduleOf(*answer->execution), listed);
    }
}

TEST(ListedSchedule, KeepsWhatRunsSideBySide)
{
    PlanRequest request = pipeline("");
    request.table = {};
    request.gallery = "3d:dp=1,tp=2,pp=2,micro-batches=4,schedule=combined-1f1b";
    const auto answer = planned(request);
    ASSERT_FALSE(answer->firstError()) << describe(*answer->firstError());
    const Schedule listed = listedScheduleOf(*answer->execution);
    ASSERT_EQ(listed.ranks.size(), 2U);
    EXPECT_EQ(orderOf(listed, 1), "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
    EXPECT_EQ(listed.interleaved.size(), 5U); // three on the last stage, two on the first
    auto again = withSchedule(request, {ScheduleKind::Listed, listed});
    ASSERT_TRUE(again);
    EXPECT_EQ(listedScheduleOf(*planned(*again)->execution), listed);
}

TEST(UnitMove, MovesEveryCopy)
{
    PlanRequest request = pipeline("");
    const auto before = planned(request);
    ASSERT_EQ(orderOf(listedScheduleOf(*before->execution), 0),
        "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7");
    const Proposal move = proposeUnitMove(contextOf(request, *before), *before->execution,
        {.first = backward(0, 1), .second = forward(0, 4), .movesSecond = false, .unit = 1});
    EXPECT_EQ(move.words, "move B1 of stage 0 before F4 of stage 0, in every unit");
    const auto changed = after(request, move);
    ASSERT_FALSE(changed->firstError()) << describe(*changed->firstError());
    EXPECT_EQ(orderOf(listedScheduleOf(*changed->execution), 0),
        "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0F5 0B3 0F6 0B4 0F7 0B5 0B6 0B7");
    for (std::size_t rank = 1; rank < 4; ++rank)
        EXPECT_EQ(orderOf(listedScheduleOf(*changed->execution), rank),
            orderOf(listedScheduleOf(*before->execution), rank));
    // The next move goes on from what is listed, though its plan is not there yet; every second unit alone.
    ASSERT_TRUE(request.table.apply(move.edit));
    const Proposal back = proposeUnitMove(contextOf(request, *before), *before->execution,
        {.first = forward(0, 4), .second = backward(0, 1), .movesSecond = true, .unit = 2});
    EXPECT_EQ(back.words, "move B1 of stage 0 behind F4 of stage 0, in every unit");
    EXPECT_EQ(orderOf(listedScheduleOf(*after(request, back)->execution), 0),
        "0F0 0F1 0F2 0B0 0F3 0F4 0B1 0B2 0F5 0F6 0B3 0B4 0F7 0B5 0B6 0B7");
}

TEST(UnitMove, IsRefusedAsAnyMoveOfBlocks)
{
    const PlanRequest request = pipeline("");
    const auto before = planned(request);
    const GestureContext context = contextOf(request, *before);
    const UnitMove impossible{.first = backward(0, 0), .second = forward(0, 0)};
    const Proposal refused = proposeUnitMove(context, *before->execution, impossible);
    ASSERT_TRUE(refused.refusal);
    EXPECT_EQ(refused.refusal->message,
        proposeBlockOrder(context, backward(0, 0), forward(0, 0), false).refusal->message);
    const Proposal same = proposeUnitMove(
        context, *before->execution, {.first = forward(0, 3), .second = backward(0, 0), .unit = 1});
    EXPECT_TRUE(same.edit.empty()); // runs so already
}

} // namespace
} // namespace planloom
