// Several fields of a plan changed so that they agree: nothing but what they mean is wrong.

#include "engine/verify/communication_rules.h"
#include "engine/verify/instruction_rules.h"
#include "engine/verify/verify.h"
#include "tests/engine/verify/verified_plans.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/verify/unpartitioned.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

std::int32_t addBuffer(DeviceProgram &device, BufferInfo buffer)
{
    device.buffers.push_back(std::move(buffer));
    return static_cast<std::int32_t>(device.buffers.size()) - 1;
}

BufferInfo &at(DeviceProgram &device, std::int32_t buffer)
{
    return device.buffers.edit()[static_cast<std::size_t>(buffer)];
}

/// The weight comes from the host in every step, and what the optimizer makes of it is thrown away: right in
/// the first step, and the model never learns.
TEST(AgreeingChanges, AWeightThatIsLoadedInEveryStepIsRejected)
{
    ExecutionPlan plan = *unpartitionedPlan(gpt(), 1, false);
    ASSERT_EQ(reasonOf(plan), "");
    DeviceProgram &device = plan.devices[0];
    Instruction *step = nullptr;
    for (Segment &segment : device.segments.edit())
        for (Instruction &instruction : segment.instructions)
            if (instruction.kind == InstructionKind::Kernel && instruction.op.valid()
                && plan.graph->at(instruction.op).direction == Direction::Optimizer)
                step = &instruction;
    ASSERT_NE(step, nullptr);
    const std::int32_t weight = step->inputs[0];
    ASSERT_EQ(step->outputs[0], weight);
    BufferInfo made = at(device, weight);
    made.tensor = plan.graph->at(step->op).outputs[0];
    made.persistent = false;
    step->outputs[0] = addBuffer(device, std::move(made));
    at(device, weight).persistent = false;
    auto &setup = device.setup.edit();
    const auto load = std::find_if(setup.begin(), setup.end(),
        [&](const Instruction &instruction) { return instruction.outputs[0] == weight; });
    ASSERT_NE(load, setup.end());
    auto &first =
        device.segments.edit()[static_cast<std::size_t>(device.schedule.front().segment)].instructions;
    first.insert(first.begin(), *load);
    setup.erase(load);
    EXPECT_NE(reasonOf(plan).find("lives across steps"), std::string::npos) << reasonOf(plan);
}

/// Two all-reduces of a group that do not depend on each other, on all devices in one order but in one
/// micro-batch: there each device's first meets the other's second.
TEST(AgreeingChanges, CollectivesThatMeetOthersInALaterMicroBatchAreRejected)
{
    ExecutionPlan plan = galleryPlan(gpt(), "tensor-parallel:micro-batches=2", 2);
    ASSERT_EQ(reasonOf(plan), "");
    // Two all-reduces of one segment with equal boxes of different tensors, the first one done again beside
    // the second.
    std::size_t found = 0;
    for (std::size_t s = 0; s < plan.devices[0].segments.size() && found == 0; ++s) {
        const auto &list = plan.devices[0].segments[s].instructions;
        const auto boxOfInput = [&](const Instruction &i) {
            return plan.devices[0].buffers[static_cast<std::size_t>(i.inputs[0])].index;
        };
        for (std::size_t a = 0; a < list.size() && found == 0; ++a)
            for (std::size_t c = a + 1; c < list.size() && found == 0; ++c)
                if (list[a].kind == InstructionKind::AllReduce && list[c].kind == InstructionKind::AllReduce
                    && list[a].group == list[c].group && boxOfInput(list[a]) == boxOfInput(list[c])
                    && plan.devices[1].segments[s].instructions[a].kind == InstructionKind::AllReduce
                    && plan.devices[1].segments[s].instructions[c].kind == InstructionKind::AllReduce) {
                    found = s + 1;
                    for (DeviceProgram &device : plan.devices) {
                        auto &own = device.segments.edit()[s].instructions;
                        Instruction again = own[a];
                        again.outputs[0] = addBuffer(device, at(device, again.outputs[0]));
                        own[a].deaths.erase(
                            std::remove(own[a].deaths.begin(), own[a].deaths.end(), again.inputs[0]),
                            own[a].deaths.end());
                        again.deaths = {again.inputs[0], again.outputs[0]};
                        // Before: up to `again`; then it; then the second; then the rest.
                        Segment repeated = device.segments[s];
                        Segment second = repeated;
                        Segment rest = repeated;
                        repeated.instructions = {again};
                        second.instructions = {own[c]};
                        rest.instructions.assign(own.begin() + static_cast<std::ptrdiff_t>(c) + 1, own.end());
                        own.erase(own.begin() + static_cast<std::ptrdiff_t>(c), own.end());
                        const auto next = static_cast<std::int32_t>(device.segments.size());
                        for (Segment &added : std::array{repeated, second, rest})
                            device.segments.push_back(std::move(added));
                        std::vector<ScheduleEntry> schedule;
                        for (const ScheduleEntry &entry : device.schedule) {
                            schedule.push_back(entry);
                            if (entry.segment == static_cast<std::int32_t>(s))
                                for (std::int32_t k = 0; k < 3; ++k)
                                    schedule.push_back({next + k, entry.microBatch});
                        }
                        device.schedule = std::move(schedule);
                    }
                }
    }
    ASSERT_GT(found, 0u);
    ASSERT_EQ(reasonOf(plan), "") << "done again, in one order: still right";
    const auto repeated = static_cast<std::int32_t>(plan.devices[1].segments.size()) - 3;
    auto &schedule = plan.devices[1].schedule;
    const auto turned = std::find(schedule.begin(), schedule.end(), ScheduleEntry{repeated, 1});
    ASSERT_NE(turned, schedule.end());
    std::swap(turned[0], turned[1]);
    EXPECT_NE(reasonOf(plan).find("all-reduce"), std::string::npos) << reasonOf(plan);
}

/// One instruction held against the rules by itself.
class Rules : public testing::Test
{
protected:
    Rules()
        : m_plan(galleryPlan(gpt(), "data-parallel:micro-batches=2", 2))
        , m_specification(m_plan)
    {
    }

    TensorId withRole(BatchRole role) const
    {
        for (std::size_t t = 0; t < m_plan.batch.tensorRole.size(); ++t)
            if (m_plan.batch.tensorRole[t] == role && !m_plan.graph->tensors[t].type.shape.empty())
                return TensorId{static_cast<std::int32_t>(t)};
        ADD_FAILURE() << "no such tensor";
        return {};
    }

    Content whole(TensorId tensor, bool perMicroBatch)
    {
        m_boxes.push_back(std::make_unique<IndexMask>(wholeMask(m_plan.graph->at(tensor).type.shape)));
        Content content;
        content.tensor = tensor;
        content.box = m_boxes.back().get();
        content.summands = &m_complete;
        content.perMicroBatch = perMicroBatch;
        return content;
    }

    std::string local(InstructionKind kind, Content from, Content to) const
    {
        Instruction instruction;
        instruction.kind = kind;
        return checkLocal(m_plan, m_specification, Side{DeviceId{0}, &instruction, {from}, {to}});
    }

    ExecutionPlan m_plan;
    Specification m_specification;
    std::vector<std::unique_ptr<IndexMask>> m_boxes{};
    SummandSet m_complete{};
};

TEST_F(Rules, WhatIsNoSumOverMicroBatchesIsNotAccumulated)
{
    const TensorId cut = withRole(BatchRole::Split);
    const TensorId same = withRole(BatchRole::Same);
    EXPECT_NE(local(InstructionKind::Accumulate, whole(cut, true), whole(cut, false)), "");
    EXPECT_NE(local(InstructionKind::Accumulate, whole(same, true), whole(same, false)), "");
}

TEST_F(Rules, WhatHoldsAllMicroBatchesIsNotGivenToEach)
{
    const TensorId sum = withRole(BatchRole::Summand);
    EXPECT_NE(local(InstructionKind::Select, whole(sum, false), whole(sum, true)), "");
    EXPECT_EQ(local(InstructionKind::Select, whole(sum, true), whole(sum, true)), "");
    const TensorId cut = withRole(BatchRole::Split); // the box stays where the micro-batch moves on
    Content part = whole(cut, true);
    part.valuePart = {1, 2};
    EXPECT_NE(local(InstructionKind::ValueSelect, whole(cut, false), part), "");
    EXPECT_EQ(local(InstructionKind::ValueSelect, whole(cut, true), part), "");
}

TEST_F(Rules, ABroadcastGivesItsSourceNothingElse)
{
    const TensorId tensor = withRole(BatchRole::Same);
    Instruction broadcast;
    broadcast.kind = InstructionKind::Broadcast;
    Side source{DeviceId{0}, &broadcast, {whole(tensor, true)}, {whole(tensor, true)}};
    const Side other{DeviceId{1}, &broadcast, {}, {whole(tensor, true)}};
    EXPECT_EQ(checkCommunication(m_plan, m_specification, {source, other}), "");
    --m_boxes[1]->ranges[0].end; // of the source's output
    EXPECT_NE(checkCommunication(m_plan, m_specification, {source, other}), "");
    source.outputs.clear();
    EXPECT_EQ(checkCommunication(m_plan, m_specification, {source, other}), "");
}

} // namespace
} // namespace planloom
