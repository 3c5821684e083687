#include "engine/runtime/training/check.h"

#include "engine/runtime/processes/frames.h"
#include "engine/runtime/processes/place.h"
#include "engine/runtime/processes/run_folder.h"
#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include <sys/socket.h>
#include <unistd.h>

using namespace planloom;

namespace {

RunOutcome outcomeOf(float gradient, float weight, double loss = 2.0)
{
    RunOutcome outcome;
    outcome.losses = {loss};
    outcome.outputs["logits"] = floats({2}, {1, -3});
    outcome.gradients["w"] = floats({3}, {gradient, 0.5F, 0});
    outcome.weights["w"] = floats({3}, {weight, 2, 3});
    return outcome;
}

} // namespace

TEST(CompareOutcomes, EqualOutcomesAreEqual)
{
    const auto report = compareOutcomes(outcomeOf(1, 1), outcomeOf(1, 1));
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok);
    EXPECT_EQ(report->worstError, 0);
}

TEST(CompareOutcomes, NamesTheWorstTensor)
{
    const auto gradient = compareOutcomes(outcomeOf(1.01F, 1), outcomeOf(1, 1));
    ASSERT_TRUE(gradient);
    EXPECT_FALSE(gradient->ok);
    EXPECT_EQ(gradient->worstTensor, "grad/w");
    EXPECT_NEAR(gradient->worstError, 0.01, 1e-6);
    const auto weight = compareOutcomes(outcomeOf(1, 1.3F), outcomeOf(1, 1));
    ASSERT_TRUE(weight);
    EXPECT_FALSE(weight->ok);
    EXPECT_EQ(weight->worstTensor, "weight/w");
    EXPECT_NEAR(weight->worstError, 0.1, 1e-6);
    const auto loss = compareOutcomes(outcomeOf(1, 1, 2.001), outcomeOf(1, 1));
    ASSERT_TRUE(loss);
    EXPECT_FALSE(loss->ok);
    EXPECT_EQ(loss->worstTensor, "loss");
}

TEST(CompareOutcomes, ToleratesRounding)
{
    const auto report = compareOutcomes(outcomeOf(1.00005F, 1.0001F, 2.00001), outcomeOf(1, 1));
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok) << report->worstTensor;
    EXPECT_GT(report->worstError, 0);
}

TEST(CompareOutcomes, AllowsAFewTimesWhatRoundingWasSeenToDo)
{
    const RunOutcome reference = outcomeOf(1, 1);
    const auto movement = movementBetween(outcomeOf(1.01F, 1, 2.002), reference);
    ASSERT_TRUE(movement) << describe(movement.error());
    EXPECT_NEAR(movement->tensors.at("grad/w"), 0.01, 1e-6);
    EXPECT_EQ(movement->tensors.at("weight/w"), 0);
    const auto near = compareOutcomes(outcomeOf(1.05F, 1, 2.01), reference, {}, *movement);
    ASSERT_TRUE(near);
    EXPECT_TRUE(near->ok) << near->worstTensor;
    EXPECT_GT(near->allowed, near->worstError);
    const auto far = compareOutcomes(outcomeOf(1.5F, 1), reference, {}, *movement);
    ASSERT_TRUE(far);
    EXPECT_FALSE(far->ok);
    const auto elsewhere = compareOutcomes(outcomeOf(1, 1.05F), reference, {}, *movement);
    ASSERT_TRUE(elsewhere);
    EXPECT_FALSE(elsewhere->ok) << "rounding does not move the weight";
}

TEST(CompareOutcomes, LossesOneStepOfTheirFormatApartAreEqual)
{
    for (const auto &[preset, step] :
        {std::pair{PrecisionPreset::BFloat16, 0x1p-7}, {PrecisionPreset::Float16, 0x1p-10}}) {
        ExecutionPlan plan = oneDevice(1).plan;
        plan.precisions.assign(plan.graph->operators.size(), precisionOf(preset));
        for (const double loss : {1.0, 1.5, 2.0 - step}) {
            const auto report =
                compareOutcomes(outcomeOf(1, 1, loss + step), outcomeOf(1, 1, loss), tolerancesOf(plan));
            ASSERT_TRUE(report);
            EXPECT_TRUE(report->ok) << loss;
        }
        const auto report = compareOutcomes(outcomeOf(1, 1, 1.05), outcomeOf(1, 1, 1), tolerancesOf(plan));
        ASSERT_TRUE(report);
        EXPECT_FALSE(report->ok);
    }
}

TEST(RequireMemoryOfCheck, CountsTheUnpartitionedModelAndWhatRunsHandBack)
{
    const ExecutionPlan plan = oneDevice(1).plan;
    EXPECT_TRUE(requireMemoryOfCheck(plan, plan, std::nullopt));
    EXPECT_TRUE(requireMemoryOfCheck(plan, plan, Bytes{1 << 20}));
    const auto refused = requireMemoryOfCheck(plan, plan, Bytes{16});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::ResourceLimit);
    EXPECT_NE(refused.error().message.find("unpartitioned model needs"), std::string::npos);
    EXPECT_NE(refused.error().advice.find("without --check"), std::string::npos);
}

TEST(CompareOutcomes, NoNumberEqualsNaN)
{
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto &[a, b] : {std::pair{nan, 1.0F}, std::pair{1.0F, nan}}) {
        const auto report = compareOutcomes(outcomeOf(a, 1), outcomeOf(b, 1));
        ASSERT_TRUE(report);
        EXPECT_FALSE(report->ok);
    }
}

TEST(CompareOutcomes, AdamsStepOfAZeroGradientIsNoDifference)
{
    RunOutcome got = outcomeOf(1, 1);
    got.weights["w"] = floats({3}, {1, 2, 3.1F}); // the third gradient is 0
    const auto ignored = compareOutcomes(got, outcomeOf(1, 1));
    ASSERT_TRUE(ignored);
    EXPECT_TRUE(ignored->ok);
    got.weights["w"] = floats({3}, {1, 2.1F, 3}); // the second is not
    const auto seen = compareOutcomes(got, outcomeOf(1, 1));
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->ok);
}

TEST(CompareOutcomes, WhatRoundingLeavesOfAZeroGradientIsNoDifference)
{
    const auto withGradient = [](float gradient, float weight) {
        RunOutcome outcome = outcomeOf(0, weight, 5.0);
        outcome.gradients["w"] = floats({3}, {gradient, 0, 0});
        return outcome;
    };
    const CheckTolerances fine{1e-9, 1e-9, 1e-9, 1e-9, 1e-9};
    const auto ignored = compareOutcomes(withGradient(1e-16F, 1.1F), withGradient(-1e-17F, 1), fine);
    ASSERT_TRUE(ignored);
    EXPECT_TRUE(ignored->ok) << ignored->worstTensor;
    const auto seen = compareOutcomes(withGradient(1e-13F, 1), withGradient(0, 1), fine);
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->ok);
}

TEST(CompareOutcomes, AdamsStepOfAGradientWhoseSignIsRoundingIsNoDifference)
{
    RunOutcome got = outcomeOf(1, 1);
    got.weights["w"] = floats({3}, {1, 2.1F, 3}); // the second gradient is 0.5
    Movement movement;
    movement.tensors["grad/w"] = 0.02;
    const auto seen = compareOutcomes(got, outcomeOf(1, 1), {}, movement);
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->ok);
    movement.tensors["grad/w"] = 0.05;
    const auto ignored = compareOutcomes(got, outcomeOf(1, 1), {}, movement);
    ASSERT_TRUE(ignored);
    EXPECT_TRUE(ignored->ok) << ignored->worstTensor;
}

TEST(CompareOutcomes, WhatRoundingDoesToOneGradientItMayDoToAnother)
{
    const auto withOther = [](float gradient, float other) {
        RunOutcome outcome = outcomeOf(gradient, 1);
        outcome.gradients["v"] = floats({2}, {other, 0});
        outcome.weights["v"] = floats({2}, {1, 1});
        return outcome;
    };
    const RunOutcome reference = withOther(1, 0.1F);
    RunOutcome got = withOther(1, 0.11F);
    Movement movement;
    movement.tensors["grad/w"] = 0.002;
    const auto alone = compareOutcomes(got, reference, {}, movement);
    ASSERT_TRUE(alone);
    EXPECT_FALSE(alone->ok);
    movement.shared = true;
    const auto shared = compareOutcomes(got, reference, {}, movement);
    ASSERT_TRUE(shared);
    EXPECT_TRUE(shared->ok) << shared->worstTensor;
    got.weights["w"] = floats({3}, {1.1F, 2, 3}); // weights move by their own gradients alone
    const auto weight = compareOutcomes(got, reference, {}, movement);
    ASSERT_TRUE(weight);
    EXPECT_FALSE(weight->ok);
    EXPECT_EQ(weight->worstTensor, "weight/w");
    const auto far = compareOutcomes(withOther(1, 1), reference, {}, movement);
    ASSERT_TRUE(far);
    EXPECT_FALSE(far->ok);
}

TEST(CompareOutcomes, RunsOfDifferentModelsAreRefused)
{
    RunOutcome other = outcomeOf(1, 1);
    other.gradients.clear();
    EXPECT_FALSE(compareOutcomes(other, outcomeOf(1, 1)));
    other = outcomeOf(1, 1);
    other.losses.push_back(1);
    EXPECT_FALSE(compareOutcomes(other, outcomeOf(1, 1)));
    other = outcomeOf(1, 1);
    other.outputs["logits"] = floats({1, 2}, {1, -3}); // of another shape
    EXPECT_FALSE(compareOutcomes(other, outcomeOf(1, 1)));
}

TEST(Place, CountsInstructionsOverMicroBatchesAndSteps)
{
    const PlanWriter writer = oneDevice(2); // 5 instructions, twice a step
    EXPECT_FALSE(placeOf(writer.plan, 0, 0));
    EXPECT_EQ(placeOf(writer.plan, 0, 1), (InstructionPlace{0, 0, 0, 0}));
    EXPECT_EQ(placeOf(writer.plan, 0, 5), (InstructionPlace{0, 0, 4, 0}));
    EXPECT_EQ(placeOf(writer.plan, 0, 7), (InstructionPlace{0, 0, 1, 1}));
    EXPECT_EQ(placeOf(writer.plan, 0, 13), (InstructionPlace{1, 0, 2, 0}));
    const std::string text = describe(writer.plan, 0, {1, 0, 1, 0});
    EXPECT_EQ(text, "kernel of " + writer.plan.graph->at(OperatorId{0}).name + ", micro-batch 0, step 1");
}

TEST(Frames, ArriveWholeHoweverTheyAreCut)
{
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const std::vector<std::string> sent{"a", "", std::string(1000, 'x'), "{\"t\":1}"};
    for (const std::string &text : sent)
        ASSERT_TRUE(writeFrame(ends[0], text));
    ::close(ends[0]);
    std::string stream(5000, '\0');
    const ssize_t got = ::read(ends[1], stream.data(), stream.size());
    ::close(ends[1]);
    ASSERT_GT(got, 0);
    stream.resize(static_cast<std::size_t>(got));
    for (const std::size_t cut : {std::size_t{1}, std::size_t{3}, std::size_t{7}, stream.size()}) {
        FrameReader reader;
        std::vector<std::string> read;
        for (std::size_t at = 0; at < stream.size(); at += cut) {
            reader.feed(std::string_view{stream}.substr(at, cut));
            for (auto frame = reader.next(); frame && frame->has_value(); frame = reader.next())
                read.push_back(**frame);
        }
        EXPECT_EQ(read, sent);
    }
    FrameReader damaged;
    damaged.feed("\xFF\xFF\xFF\xFF");
    EXPECT_FALSE(damaged.next());
}

TEST(RunFolder, HoldsAllOfARequest)
{
    const auto folder = std::filesystem::temp_directory_path() / "planloom_run_folder_test";
    std::filesystem::remove_all(folder);
    RunRequest request;
    request.plan = oneDevice(2).plan;
    request.reference = std::make_shared<const ExecutionPlan>(oneDevice(1).plan);
    request.options.steps = 3;
    request.options.seed = 9;
    request.options.keepGradients = true;
    request.options.inputs["x"] = floats({4, 4}, drawn(16, 8));
    request.predictedStepSeconds = 0.5;
    const auto written = writeRunFolder(folder.string(), request);
    ASSERT_TRUE(written) << describe(written.error());
    const auto read = readRunFolder((folder / "plan.json").string(), (folder / "options.json").string());
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(read->options.steps, 3);
    EXPECT_EQ(read->options.seed, 9U);
    EXPECT_TRUE(read->options.keepGradients);
    EXPECT_EQ(read->predictedStepSeconds, 0.5);
    ASSERT_TRUE(read->reference);
    const auto a = runOnCpu(request.plan, request.options);
    const auto b = runOnCpu(read->plan, read->options);
    const auto c = runOnCpu(*read->reference, read->options);
    ASSERT_TRUE(a && b && c);
    EXPECT_EQ(a->losses, b->losses);
    EXPECT_EQ(a->losses, c->losses);
    EXPECT_EQ(dumpOf(*a).size(), 3U); // the losses, and two outputs
    EXPECT_FALSE(readRunFolder((folder / "plan.json").string(), (folder / "none.json").string()));
    std::filesystem::remove_all(folder);
}
