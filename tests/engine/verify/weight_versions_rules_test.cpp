// Rules of weight versions, broken one by one in plans that are right.

#include "engine/table/table_text.h"
#include "tests/engine/verify/verified_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace planloom {
namespace {

ExecutionPlan delayedPlan(const std::string &rows, std::int32_t devices = 1)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(gpt(), devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    auto plan = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

BufferInfo infoOf(const DeviceProgram &device, std::int32_t buffer)
{
    return buffer < 0 ? BufferInfo{} : device.buffers[static_cast<std::size_t>(buffer)];
}

/// The first kernel of this direction that reads a weight of several versions, and where it reads it.
std::pair<Instruction *, std::size_t> readerOf(ExecutionPlan &plan, Direction direction)
{
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            for (Instruction &instruction : segment.instructions)
                for (std::size_t slot = 0; slot < instruction.inputs.size(); ++slot)
                    if (instruction.kind == InstructionKind::Kernel
                        && plan.graph->at(instruction.op).direction == direction
                        && infoOf(device, instruction.inputs[slot]).versions > 1)
                        return {&instruction, slot};
    ADD_FAILURE() << "nobody reads versions";
    return {};
}

TEST(WeightVersionRules, HoldInThePlansThemselves)
{
    for (const char *rows : {"weight-versions all : 3", "weight-versions all : 2\nmicro-batches 4"})
        EXPECT_EQ(reasonOf(delayedPlan(rows)), "");
}

TEST(WeightVersionRules, ForwardAndBackwardReadTheVersionOfTheirAge)
{
    for (const Direction direction : {Direction::Forward, Direction::Backward})
        for (const std::int32_t other : {-2, -1}) {
            ExecutionPlan plan = delayedPlan("weight-versions all : 3");
            const auto [kernel, slot] = readerOf(plan, direction);
            ASSERT_NE(kernel, nullptr);
            ASSERT_EQ(infoOf(plan.devices[0], kernel->inputs[slot]).staleness, 2);
            kernel->inputs[slot] += other; // a newer one
            EXPECT_NE(reasonOf(plan).find("as it was 2 updates ago"), std::string::npos) << reasonOf(plan);
        }
}

TEST(WeightVersionRules, AnUpdateChangesTheNewestAndWritesOverTheOldest)
{
    ExecutionPlan plan = delayedPlan("weight-versions all : 3");
    const auto [kernel, slot] = readerOf(plan, Direction::Optimizer);
    ASSERT_NE(kernel, nullptr);
    ASSERT_EQ(slot, 0U);
    ASSERT_EQ(kernel->outputs[0], kernel->inputs[0] + 2);
    --kernel->outputs[0];
    EXPECT_NE(reasonOf(plan).find("expected the oldest"), std::string::npos) << reasonOf(plan);
    kernel->outputs[0] = kernel->inputs[0]; // in place: the next step would find it nowhere
    EXPECT_NE(reasonOf(plan).find("expected the oldest"), std::string::npos) << reasonOf(plan);
    ++kernel->outputs[0];
    ++kernel->outputs[0];
    EXPECT_EQ(reasonOf(plan), "");
    ++kernel->inputs[0];
    EXPECT_NE(reasonOf(plan).find("as it was 0 updates ago"), std::string::npos) << reasonOf(plan);
}

TEST(WeightVersionRules, NoVersionIsOverwrittenWhileItIsNeeded)
{
    ExecutionPlan plan = delayedPlan("weight-versions all : 2\nmicro-batches 2");
    auto &schedule = plan.devices[0].schedule;
    const auto kindOf = [&](const ScheduleEntry &entry) {
        return plan.devices[0].segments[static_cast<std::size_t>(entry.segment)].kind;
    };
    const auto update = std::find_if(schedule.begin(), schedule.end(),
        [&](const ScheduleEntry &entry) { return kindOf(entry) == SegmentKind::Optimizer; });
    ASSERT_NE(update, schedule.end());
    std::rotate(schedule.begin(), update, update + 1);
    EXPECT_NE(reasonOf(plan), "");
}

TEST(WeightVersionRules, AllVersionsStandSideBySide)
{
    const auto broken = [](const std::function<void(BufferInfo &)> &edit) {
        ExecutionPlan plan = delayedPlan("weight-versions all : 3");
        auto &buffers = plan.devices[0].buffers.edit();
        const auto second = std::find_if(
            buffers.begin(), buffers.end(), [](const BufferInfo &b) { return b.staleness == 1; });
        EXPECT_NE(second, buffers.end());
        edit(*second);
        return reasonOf(plan);
    };
    const std::string apart = "do not stand side by side";
    EXPECT_NE(broken([](BufferInfo &b) { b.staleness = 2; }).find(apart), std::string::npos);
    EXPECT_NE(broken([](BufferInfo &b) { b.versions = 2; }).find(apart), std::string::npos);
    EXPECT_NE(broken([](BufferInfo &b) { b.staleness = 3; }).find(apart), std::string::npos);
    EXPECT_NE(broken([](BufferInfo &b) { b.staleness = -1; }).find(apart), std::string::npos);
    EXPECT_NE(broken([](BufferInfo &b) { b.persistent = false; }), "");
}

TEST(WeightVersionRules, TheProgramKeepsThoseThatThePlanAsksFor)
{
    ExecutionPlan plan = delayedPlan("weight-versions all : 3");
    const auto [kernel, slot] = readerOf(plan, Direction::Backward);
    ASSERT_NE(kernel, nullptr);
    const OperatorId backward = kernel->op;
    const OperatorId forward = plan.graph->at(backward).mirror;
    ExecutionPlan other = plan;
    other.weightVersions[static_cast<std::size_t>(backward.index)] = 2;
    EXPECT_NE(reasonOf(other).find("than its forward operator"), std::string::npos) << reasonOf(other);
    other.weightVersions[static_cast<std::size_t>(forward.index)] = 2;
    EXPECT_NE(reasonOf(other).find("as it was 1 update ago"), std::string::npos) << reasonOf(other);
    other.weightVersions.clear();
    EXPECT_NE(reasonOf(other).find("as it was 0 updates ago"), std::string::npos) << reasonOf(other);
    other = plan;
    other.weightVersions.pop_back();
    EXPECT_NE(reasonOf(other).find("weight versions"), std::string::npos) << reasonOf(other);
    other = plan;
    for (std::size_t o = 0; o < plan.graph->operators.size(); ++o)
        if (plan.graph->operators[o].direction == Direction::Optimizer)
            other.weightVersions[o] = 2;
    EXPECT_NE(reasonOf(other).find("cannot keep 2 versions"), std::string::npos) << reasonOf(other);
}

/// What is gathered or cast of a version is of that version.
TEST(WeightVersionRules, CopiesAreOfTheVersionTheyWereMadeOf)
{
    ExecutionPlan plan =
        delayedPlan("mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\nweight-versions all : 2", 2);
    ASSERT_EQ(reasonOf(plan), "");
    int gathers = 0;
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (std::size_t s = 0; s < plan.devices[d].segments.size(); ++s)
            for (std::size_t i = 0; i < plan.devices[d].segments[s].instructions.size(); ++i) {
                ExecutionPlan mutant = plan;
                Instruction &gather = mutant.devices[d].segments.edit()[s].instructions[i];
                if (gather.kind != InstructionKind::AllGather
                    || infoOf(mutant.devices[d], gather.inputs[0]).staleness != 1)
                    continue;
                ++gathers;
                --gather.inputs[0]; // the newest
                EXPECT_NE(reasonOf(mutant), "");
            }
    EXPECT_GT(gathers, 4);
}

} // namespace
} // namespace planloom
