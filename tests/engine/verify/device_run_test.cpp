#include "engine/verify/device_run.h"
#include "engine/verify/step_record.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {

namespace {

ExecutionPlan tensorParallelPlan()
{
    return galleryPlan(
        trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8", OperatorKind::SgdStep),
        "tensor-parallel", 2);
}

/// Why a device that carries its program out by itself has to stop; empty if at a communication.
std::string reasonToStop(DeviceRun &run)
{
    if (std::string reason = run.setUp(); !reason.empty())
        return reason;
    while (run.current() && !isCommunication(run.current()->kind)) {
        if (std::string reason = run.begin(); !reason.empty())
            return reason;
        if (std::string reason = run.apply() + run.finish(); !reason.empty())
            return reason;
    }
    return {};
}

} // namespace

TEST(DeviceRun, GoesToItsFirstCommunication)
{
    const ExecutionPlan plan = tensorParallelPlan();
    const Specification specification(plan);
    DeviceRun run(plan, specification, 0);
    EXPECT_EQ(reasonToStop(run), "");
    ASSERT_NE(run.current(), nullptr);
    EXPECT_TRUE(isCommunication(run.current()->kind));
    EXPECT_EQ(run.begin(), "");
    EXPECT_FALSE(run.isKnown());
    EXPECT_TRUE(run.isKnown());
}

TEST(DeviceRun, ReadsNothingThatIsNotThere)
{
    ExecutionPlan plan = tensorParallelPlan();
    plan.devices[0].setup.edit().clear();
    const Specification specification(plan);
    DeviceRun run(plan, specification, 0);
    const std::string reason = reasonToStop(run);
    EXPECT_NE(reason.find("before it is written"), std::string::npos) << reason;
}

TEST(DeviceRun, LoadsNothingTwice)
{
    ExecutionPlan plan = tensorParallelPlan();
    plan.devices[0].setup.edit().push_back(Instruction(plan.devices[0].setup.edit().front()));
    const Specification specification(plan);
    DeviceRun run(plan, specification, 0);
    EXPECT_EQ(reasonToStop(run), "a persistent buffer is loaded twice");
}

TEST(StepRecord, HasEveryPartRunOnce)
{
    const ExecutionPlan plan = tensorParallelPlan();
    const Specification specification(plan);
    StepRecord record(plan, specification);
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions) {
                if (instruction.kind != InstructionKind::Kernel)
                    continue;
                EXPECT_TRUE(record.checkRan().has_value());
                EXPECT_EQ(record.noteKernel(instruction, 0), "");
                const std::string again = record.noteKernel(instruction, 0);
                EXPECT_EQ(again.empty(), instruction.recompute) << again;
            }
    EXPECT_FALSE(record.checkRan().has_value());
    EXPECT_NE(record.checkStored(), "");
}

TEST(StepRecord, StoresNothingTwice)
{
    const ExecutionPlan plan = tensorParallelPlan();
    const Specification specification(plan);
    StepRecord record(plan, specification);
    BufferInfo loss;
    loss.tensor = plan.graph->loss;
    EXPECT_EQ(record.noteStore(loss, 0, false), "");
    const std::string again = record.noteStore(loss, 0, false);
    EXPECT_NE(again.find("reaches the host twice"), std::string::npos) << again;
    EXPECT_NE(record.noteStore(loss, 0, true), "");
}

} // namespace planloom
