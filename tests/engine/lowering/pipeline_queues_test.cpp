// In which queue what goes between stages waits.

#include "engine/lowering/lower.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace planloom {
namespace {

/// What the queues of messages of a plan are, by tag.
std::map<std::int32_t, std::set<QueueKind>> queuesByTag(const ExecutionPlan &plan)
{
    std::map<std::int32_t, std::set<QueueKind>> queues;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.tag >= 0)
                    queues[instruction.tag].insert(queueOf(instruction));
    return queues;
}

bool carriesGradients(const ExecutionPlan &plan, const DeviceProgram &device, const Instruction &instruction)
{
    const BufferList &buffers = instruction.inputs.empty() ? instruction.outputs : instruction.inputs;
    return plan.graph->at(device.buffers[static_cast<std::size_t>(buffers[0])].tensor).role
        == TensorRole::Gradient;
}

/// Gradients in one queue, all else in the other, on all devices alike.
TEST(PipelineQueues, AreThoseOfEachDirection)
{
    const GraphSnapshot graph = trainingStep(smallModels()[1]);
    for (const auto &[gallery, devices] : {std::pair{"pipeline:schedule=gpipe,micro-batches=4", 2},
             {"pipeline:schedule=1f1b,micro-batches=4", 2}, {"pipeline:schedule=zb-h1,micro-batches=4", 2},
             {"3d:dp=2,tp=2,pp=2,micro-batches=2", 8}}) {
        SCOPED_TRACE(gallery);
        const ExecutionPlan plan = galleryPlan(graph, gallery, devices);
        for (const auto &[tag, queues] : queuesByTag(plan))
            EXPECT_EQ(queues.size(), 1U) << tag;
        std::map<QueueKind, int> transfers;
        for (const DeviceProgram &device : plan.devices)
            for (const Segment &segment : device.segments)
                for (const Instruction &instruction : segment.instructions) {
                    if (segment.kind != SegmentKind::Transfer || !isCommunication(instruction.kind))
                        continue;
                    const QueueKind queue = queueOf(instruction);
                    EXPECT_EQ(queue,
                        carriesGradients(plan, device, instruction) ? QueueKind::PipelineBack
                                                                    : QueueKind::Pipeline);
                    ++transfers[queue];
                }
        EXPECT_GT(transfers[QueueKind::Pipeline], 0);
        EXPECT_EQ(transfers[QueueKind::Pipeline], transfers[QueueKind::PipelineBack]);
        const auto report = verify(plan);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->ok()) << report->failure->reason;
    }
}

/// The forward pass of a lane may go to lower ranks than its stages before: directions are those of passes.
TEST(PipelineQueues, AreThoseOfPassesWhereLanesGoBothWays)
{
    const auto plan = loweredRows(trainingStep("zoo:gpt?layers=2&hidden=8&heads=2&seq=4&batch=4&vocab=8"),
        "lanes all : 2\nmicro-batches 2\nstage layer:0 : 0\nstage layer:1 : 1\n"
        "place layer:0 : devices 0,1\nplace layer:1 : devices 1,0\nschedule chimera\n",
        2);
    ASSERT_TRUE(plan) << describe(plan.error());
    std::set<std::pair<bool, bool>> ways; // to a higher rank, gradients
    for (std::int32_t d = 0; d < 2; ++d) {
        const DeviceProgram &device = plan->devices[static_cast<std::size_t>(d)];
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                if (segment.kind == SegmentKind::Transfer && instruction.kind == InstructionKind::Send) {
                    const bool gradients = carriesGradients(*plan, device, instruction);
                    ways.emplace(instruction.peer.index > d, gradients);
                    EXPECT_EQ(
                        queueOf(instruction), gradients ? QueueKind::PipelineBack : QueueKind::Pipeline);
                }
    }
    EXPECT_EQ(ways.size(), 4U);
    const auto report = verify(*plan);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok()) << report->failure->reason;
}

} // namespace
} // namespace planloom
