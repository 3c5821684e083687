// Rules of weight versions, broken one by one in plans that are right.

#include "engine/table/table_text.h"
#include "tests/engine/verify/verified_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

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

TEST(WeightVersionRules, AllVersionsAreLoaded)
{
    const ExecutionPlan plan = delayedPlan("weight-versions all : 3");
    for (std::size_t i = 0; i < plan.devices[0].setup.size(); ++i) {
        ExecutionPlan other = plan;
        auto &setup = other.devices[0].setup.edit();
        const BufferInfo version = infoOf(other.devices[0], setup[i].outputs[0]);
        setup.erase(setup.begin() + static_cast<std::ptrdiff_t>(i));
        if (version.versions > 1) {
            EXPECT_NE(reasonOf(other).find("never loaded"), std::string::npos) << version.staleness;
        }
    }
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

/// A plan of one device, as "F0 B0 U0 F1 ...": passes and updates by their first micro-batch.
struct Order {
    ExecutionPlan plan{};

    static char letterOf(SegmentKind kind)
    {
        return kind == SegmentKind::Forward ? 'F'
            : kind == SegmentKind::Backward ? 'B'
            : isOfUpdate(kind)              ? 'U'
                                            : 'P';
    }
    char letterAt(const ScheduleEntry &entry) const
    {
        return letterOf(plan.devices[0].segments[static_cast<std::size_t>(entry.segment)].kind);
    }
    /// Runs all slices of a pass where the word asks for it.
    std::string reasonOfOrder(const std::string &words)
    {
        ExecutionPlan other = plan;
        auto &schedule = other.devices[0].schedule;
        schedule.clear();
        std::istringstream in("P0 " + words);
        for (std::string word; in >> word;)
            for (const ScheduleEntry &entry : plan.devices[0].schedule)
                if (letterAt(entry) == word[0] && entry.microBatch == word[1] - '0')
                    schedule.push_back(entry);
        return reasonOf(other);
    }
};

TEST(UpdateRules, AreAboutTheVersionsThatAreThere)
{
    Order order{delayedPlan("micro-batches 4 update every 1\nweight-versions all : 2")};
    EXPECT_EQ(order.reasonOfOrder("F0 B0 U0 F1 B1 U1 F2 B2 U2 F3 B3 U3"), "");
    // One update may be behind ...
    EXPECT_EQ(order.reasonOfOrder("F0 F1 B0 U0 F2 B1 U1 F3 B2 U2 B3 U3"), "");
    // ... not two: the version is not there yet.
    const std::string reason = order.reasonOfOrder("F0 F1 F2 B0 U0 B1 U1 F3 B2 U2 B3 U3");
    EXPECT_NE(reason.find("1 update before number 2"), std::string::npos) << reason;
    // With three it is.
    Order three{delayedPlan("micro-batches 4 update every 1\nweight-versions all : 3")};
    EXPECT_EQ(three.reasonOfOrder("F0 F1 F2 B0 U0 B1 U1 F3 B2 U2 B3 U3"), "");
    EXPECT_NE(three.reasonOfOrder("F0 F1 F2 F3 B0 U0 B1 U1 B2 U2 B3 U3"), "");
    // With one, nothing may be behind.
    Order one{delayedPlan("micro-batches 4 update every 1")};
    EXPECT_EQ(one.reasonOfOrder("F0 B0 U0 F1 B1 U1 F2 B2 U2 F3 B3 U3"), "");
    EXPECT_NE(one.reasonOfOrder("F0 F1 B0 U0 B1 U1 F2 B2 U2 F3 B3 U3"), "");
}

TEST(UpdateRules, EachTakesTheGradientsOfItsMicroBatches)
{
    Order order{delayedPlan("micro-batches 4 update every 2\nweight-versions all : 2")};
    EXPECT_EQ(order.reasonOfOrder("F0 B0 F1 B1 U0 F2 B2 F3 B3 U2"), "");
    EXPECT_EQ(order.reasonOfOrder("F0 F1 F2 B1 B0 U0 B2 F3 B3 U2"), "");
    for (const char *wrong : {
             "F0 B0 U0 F1 B1 F2 B2 F3 B3 U2", // without the second
             "F0 B0 F1 F2 B2 B1 U0 F3 B3 U2", // with one of the next update
             "F0 B0 F1 B1 F2 B2 F3 B3 U0 U2", // with all
             "F0 B0 F1 B1 U2 F2 B2 F3 B3 U0", // in the other's place
             "F0 B0 F1 B1 U0 F2 B2 F3 B3", // not at all
             "F0 B0 F1 B1 U0 U0 F2 B2 F3 B3 U2", // twice
         })
        EXPECT_NE(order.reasonOfOrder(wrong), "") << wrong;
}

TEST(UpdateRules, TheStepHasAsManyAsThePlanSays)
{
    const ExecutionPlan plan = delayedPlan("micro-batches 4 update every 2\nweight-versions all : 2");
    ASSERT_EQ(plan.updates, 2);
    for (const std::int32_t updates : {0, 1, 3, 4, -2}) {
        ExecutionPlan other = plan;
        other.updates = updates;
        EXPECT_NE(reasonOf(other), "") << updates;
    }
}

} // namespace
} // namespace planloom
