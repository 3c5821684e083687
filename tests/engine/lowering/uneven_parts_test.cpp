#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

int countOf(const ExecutionPlan &plan, InstructionKind kind)
{
    int count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                count += instruction.kind == kind ? 1 : 0;
    return count;
}

/// Parts of a vocabulary that one axis cannot cut evenly are alike over every other axis: what is added up or
/// gathered there goes by collectives, as with parts of one size.
TEST(UnevenParts, AreReducedOverOtherAxesByCollectives)
{
    const GraphSnapshot graph =
        trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&vocab=27&batch=16&tied=0");
    for (const char *const states : {"", "zero1 weight:* over dp\n", "zero3 weight:* over dp\n"})
        for (const std::int32_t replicas : {2, 4, 8}) {
            const auto plan = loweredRows(graph,
                "mesh dp=" + std::to_string(replicas)
                    + " tp=2\nsplit all : batch over dp\n"
                      "split name:wte : in0.0 into 14,13 over tp\n"
                      "split name:lm_head : out0.-1 into 14,13 over tp\n"
                    + states,
                2 * replicas);
            ASSERT_TRUE(plan) << describe(plan.error());
            const auto report = verify(*plan);
            ASSERT_TRUE(report && report->ok());
            EXPECT_EQ(countOf(*plan, InstructionKind::Send), 0) << replicas << " " << states;
            EXPECT_GT(countOf(*plan, InstructionKind::AllReduce), 0);
        }
}

/// A tied vocabulary is read in two stages, whose gradients are added up by collectives, too.
TEST(UnevenParts, OfTwoStagesAreSentAsEvenOnesAre)
{
    const auto sends = [](const std::string &vocabulary) {
        const GraphSnapshot graph =
            trainingStep("zoo:gpt?layers=4&hidden=8&heads=2&seq=4&batch=16&vocab=" + vocabulary);
        const ExecutionPlan plan = galleryPlan(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8);
        const auto report = verify(plan);
        EXPECT_TRUE(report && report->ok());
        return countOf(plan, InstructionKind::Send);
    };
    EXPECT_GT(sends("28"), 0);
    EXPECT_EQ(sends("27"), sends("28"));
}

} // namespace
} // namespace planloom
