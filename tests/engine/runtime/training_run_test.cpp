// Runs of many steps: learning rates, data, checkpoints that go on under another plan.

#include "engine/runtime/training/training_run.h"

#include "engine/interop/npz.h"
#include "engine/interop/safetensors.h"
#include "engine/runtime/processes/supervisor.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/step_data.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <ostream>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace planloom {
namespace {

TEST(RateSchedules, RiseAndFall)
{
    const auto constant = parseRateSchedule("constant:warmup=4");
    ASSERT_TRUE(constant);
    EXPECT_EQ(rateShare(*constant, 0), 0.25);
    EXPECT_EQ(rateShare(*constant, 3), 1);
    EXPECT_EQ(rateShare(*constant, 1000), 1);
    const auto cosine = parseRateSchedule("cosine:warmup=2,total=12,floor=0.1");
    ASSERT_TRUE(cosine);
    EXPECT_EQ(rateShare(*cosine, 0), 0.5);
    EXPECT_EQ(rateShare(*cosine, 1), 1);
    EXPECT_EQ(rateShare(*cosine, 2), 1);
    EXPECT_DOUBLE_EQ(rateShare(*cosine, 7), 0.55);
    EXPECT_DOUBLE_EQ(rateShare(*cosine, 4), 0.1 + 0.9 * 0.5 * (1 + std::cos(0.2 * std::numbers::pi)));
    EXPECT_DOUBLE_EQ(rateShare(*cosine, 12), 0.1);
    EXPECT_DOUBLE_EQ(rateShare(*cosine, 50), 0.1);
}

TEST(RateSchedules, AreReadAsTheyArePrinted)
{
    for (const char *text : {"constant", "constant:warmup=10", "cosine", "cosine:total=3",
             "cosine:warmup=10,total=100,floor=0.125"}) {
        const auto schedule = parseRateSchedule(text);
        ASSERT_TRUE(schedule) << text;
        EXPECT_EQ(print(*schedule), text);
    }
}

TEST(RateSchedules, WrongOnesSayWhatWasFound)
{
    const auto messageOf = [](const char *text) {
        const auto schedule = parseRateSchedule(text);
        return schedule ? print(*schedule) : schedule.error().message;
    };
    EXPECT_EQ(messageOf("linear"), "expected constant or cosine, found \"linear\"");
    EXPECT_EQ(messageOf("cosine:warmup=-1"), "warmup is a number of steps, found \"-1\"");
    EXPECT_EQ(messageOf("cosine:floor=2"), "floor is a share of the rate from 0 to 1, found \"2\"");
    EXPECT_EQ(messageOf("cosine:floor=nan"), "floor is a share of the rate from 0 to 1, found \"nan\"");
    EXPECT_EQ(messageOf("constant:total=5"), "\"total\" is nothing that a constant schedule has");
    EXPECT_EQ(messageOf("cosine:warmup=5,total=5"), "a warm-up of 5 steps leaves none of the 5");
    EXPECT_FALSE(resolved({.shape = RateShape::Cosine, .warmup = 4}, 4));
    EXPECT_EQ(resolved({.shape = RateShape::Cosine, .warmup = 4}, 9)->total, 9);
}

TEST(TrainingRuns, AreReadAsTheyAreWritten)
{
    TrainingRun training;
    setData(training, "folder");
    training.learningRate = 0.25;
    training.schedule = RateSchedule{.shape = RateShape::Cosine, .warmup = 2, .total = 10, .floor = 0.1};
    training.checkpoints = "there";
    training.every = 5;
    training.resume = "here";
    const auto again = trainingRunFromJson(toJson(training));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, training);
    EXPECT_EQ(*trainingRunFromJson(toJson(TrainingRun{})), TrainingRun{});
    training.checkpoints.clear();
    EXPECT_FALSE(trainingRunFromJson(toJson(training)));
}

constexpr const char *kGpt = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=8&vocab=64&dropout=0.1";
constexpr const char *kLlama = "zoo:llama?layers=2&hidden=32&heads=4&kv_heads=2&seq=16&batch=8&vocab=64";

ExecutionPlan planOf(const GraphSnapshot &graph, const std::string &gallery, std::int32_t devices)
{
    const auto table = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(table) << describe(table.error());
    auto plan = loweredRows(graph, table ? print(*table) : "", devices);
    EXPECT_TRUE(plan) << gallery << ": " << describe(plan.error());
    return plan ? *std::move(plan) : ExecutionPlan{};
}

RunOptions trainingOptions(std::int32_t steps)
{
    RunOptions options;
    options.steps = steps;
    options.randomWeights = true;
    options.training.batches = BatchSource::Drawn;
    options.training.learningRate = 3e-3;
    options.training.schedule =
        RateSchedule{.shape = RateShape::Cosine, .warmup = 3, .total = 20, .floor = 0.1};
    return options;
}

RunOutcome ran(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events = {})
{
    auto outcome = runOnCpu(plan, options, events);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return outcome ? *std::move(outcome) : RunOutcome{};
}

struct TwoPlans {
    const char *model;
    const char *first;
    std::int32_t firstDevices;
    const char *second;
    std::int32_t secondDevices;
};

std::ostream &operator<<(std::ostream &out, const TwoPlans &plans)
{
    return out << plans.first << " then " << plans.second;
}

class ContinuedRun : public testing::TestWithParam<TwoPlans>
{
};

// The loss curve of ten steps under one plan and ten under another is that of twenty under the first.
TEST_P(ContinuedRun, UnderAnotherPlanIsTheUninterruptedOne)
{
    const TwoPlans &plans = GetParam();
    const GraphSnapshot graph = trainingStepOf(plans.model, OperatorKind::AdamWStep);
    const ExecutionPlan first = planOf(graph, plans.first, plans.firstDevices);
    const ExecutionPlan second = planOf(graph, plans.second, plans.secondDevices);
    const RunOutcome whole = ran(first, trainingOptions(20));
    ASSERT_EQ(whole.losses.size(), 20U);
    EXPECT_LT(whole.losses.back(), whole.losses.front());

    const TemporaryFolder folder;
    RunOptions options = trainingOptions(10);
    options.training.checkpoints = folder.at("run");
    const RunOutcome begun = ran(first, options);
    EXPECT_EQ(begun.checkpoint, folder.at("run") + "/step-00000010.safetensors");
    RunOptions further;
    further.steps = 10;
    further.seed = 99; // the checkpoint's counts
    further.training.batches = BatchSource::Drawn;
    further.training.resume = folder.at("run");
    const RunOutcome continued = ran(second, further);
    EXPECT_EQ(continued.firstStep, 10);
    ASSERT_EQ(continued.losses.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i) {
        SCOPED_TRACE("step " + std::to_string(i));
        EXPECT_EQ(begun.losses[i], whole.losses[i]);
        EXPECT_NEAR(continued.losses[i], whole.losses[10 + i], 1e-5 * std::abs(whole.losses[10 + i]));
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, ContinuedRun,
    testing::Values(TwoPlans{kGpt, "data-parallel", 2, "tensor-parallel", 2},
        TwoPlans{kGpt, "tensor-parallel", 4, "zero3", 4}, TwoPlans{kGpt, "zero2", 4, "single", 1},
        TwoPlans{kGpt, "zero1", 2, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8},
        TwoPlans{kGpt, "pipeline:stages=2,micro-batches=4", 2, "data-parallel", 4},
        TwoPlans{kGpt, "zero3", 2, "pipeline:stages=2,micro-batches=2", 2},
        TwoPlans{kLlama, "tensor-parallel", 2, "zero1", 4}, TwoPlans{kLlama, "single", 1, "zero3", 2}));

TEST(Checkpoints, ContinueTheSamePlanWithTheSameBits)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    const ExecutionPlan plan = planOf(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8);
    RunOptions options = trainingOptions(6);
    options.keepGradients = true;
    const RunOutcome whole = ran(plan, options);
    const TemporaryFolder folder;
    options.training.checkpoints = folder.at("run");
    options.training.every = 2;
    options.steps = 5;
    (void)ran(plan, options);
    for (const char *step : {"2", "4", "5"})
        EXPECT_TRUE(
            std::filesystem::exists(folder.at("run/step-0000000" + std::string{step} + ".safetensors")));
    options.training.checkpoints.clear();
    options.training.every = 0;
    options.training.resume = folder.at("run/step-00000004.safetensors");
    options.steps = 2;
    options.threads = 3;
    const RunOutcome continued = ran(plan, options);
    ASSERT_EQ(continued.losses.size(), 2U);
    EXPECT_EQ(continued.losses[0], whole.losses[4]);
    EXPECT_EQ(continued.losses[1], whole.losses[5]);
    ASSERT_EQ(continued.weights.size(), whole.weights.size());
    for (const auto &[name, array] : whole.weights)
        EXPECT_TRUE(continued.weights.at(name).bytes == array.bytes) << name;
}

// Masters beside rounded copies, states in host memory, gradients of several micro-batches, states in 16
// bits.
TEST(Checkpoints, ContinueWhateverThePlanKeepsWhere)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    for (const char *rows : {"precision all : bf16\n", "precision all : bf16 optimizer=bf16\n",
             "mesh dp=2\nsplit all : batch over dp\n"
             "precision all : bf16\nzero1 all over dp\n",
             "offload all : states\nmicro-batches 2\n",
             "mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\n"}) {
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions options = trainingOptions(4);
        options.keepGradients = true;
        const RunOutcome whole = ran(*plan, options);
        const TemporaryFolder folder;
        options.steps = 2;
        options.training.checkpoints = folder.at("run");
        (void)ran(*plan, options);
        options.training.resume = folder.at("run");
        const RunOutcome continued = ran(*plan, options);
        ASSERT_EQ(continued.losses.size(), 2U);
        EXPECT_EQ(continued.losses[0], whole.losses[2]);
        EXPECT_EQ(continued.losses[1], whole.losses[3]);
        for (const auto &[name, array] : whole.weights)
            EXPECT_TRUE(continued.weights.at(name).bytes == array.bytes) << name;
    }
}

TEST(Checkpoints, OfPlansWithDelayedGradientsAreRefused)
{
    const GraphSnapshot graph = trainingStepOf(kLlama, OperatorKind::AdamWStep);
    ExecutionPlan plan = planOf(graph, "single", 1);
    plan.devices[0].buffers.edit()[0].persistent = true;
    plan.devices[0].buffers.edit()[0].versions = 2;
    RunOptions options = trainingOptions(1);
    options.training.checkpoints = "nowhere";
    const auto outcome = runOnCpu(plan, options);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::NotSupported);
}

TEST(Checkpoints, HoldEveryWeightAndStateWholeByItsNameInFiles)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    const TemporaryFolder folder;
    RunOptions options = trainingOptions(2);
    options.keepGradients = true;
    options.training.checkpoints = folder.at("run");
    const RunOutcome outcome = ran(planOf(graph, "zero3", 4), options);
    const auto file = SafetensorsFile::open(outcome.checkpoint);
    ASSERT_TRUE(file) << describe(file.error());
    EXPECT_EQ(file->metadata().at("step"), "2");
    for (const auto &[name, array] : outcome.weights) {
        ASSERT_TRUE(file->tensors().contains(name)) << name;
        const SafetensorsEntry &entry = file->tensors().at(name);
        EXPECT_EQ(entry.type, array.type) << name;
        std::vector<std::byte> bytes(entry.bytes);
        ASSERT_TRUE(file->read(entry, 0, bytes));
        EXPECT_TRUE(bytes == array.bytes) << name;
    }
    EXPECT_EQ(file->tensors().size(), 3 * outcome.weights.size()); // with m and v
}

TEST(Checkpoints, OfAnotherModelAreRefused)
{
    const TemporaryFolder folder;
    RunOptions options = trainingOptions(1);
    options.training.checkpoints = folder.at("run");
    (void)ran(planOf(trainingStepOf(kGpt, OperatorKind::AdamWStep), "single", 1), options);
    RunOptions further;
    further.training.resume = folder.at("run");
    const auto other =
        runOnCpu(planOf(trainingStepOf(kLlama, OperatorKind::AdamWStep), "single", 1), further);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::InvalidInput);
    EXPECT_TRUE(other.error().message.starts_with("the checkpoint has no tensor ")) << other.error().message;
    further.training.resume = folder.at("nothing");
    const auto none = runOnCpu(planOf(trainingStepOf(kGpt, OperatorKind::AdamWStep), "single", 1), further);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::NotFound);
}

TEST(Checkpoints, AreWrittenWhenARunIsStopped)
{
    const ExecutionPlan plan = planOf(trainingStepOf(kGpt, OperatorKind::AdamWStep), "data-parallel", 2);
    const TemporaryFolder folder;
    RunOptions options = trainingOptions(12);
    options.training.checkpoints = folder.at("run");
    std::stop_source finish;
    RunEvents events;
    events.finish = finish.get_token();
    events.stepDone = [&](std::int32_t step, double, double) {
        if (step == 4)
            finish.request_stop();
    };
    const RunOutcome stopped = ran(plan, options, events);
    EXPECT_TRUE(stopped.stopped);
    EXPECT_EQ(stopped.losses.size(), 5U);
    EXPECT_EQ(stopped.checkpoint, folder.at("run") + "/step-00000005.safetensors");
    options.training.resume = folder.at("run");
    options.steps = 7;
    const RunOutcome continued = ran(plan, options);
    options = trainingOptions(12);
    const RunOutcome whole = ran(plan, options);
    for (std::size_t i = 0; i < continued.losses.size(); ++i)
        EXPECT_EQ(continued.losses[i], whole.losses[5 + i]);
}

TEST(Checkpoints, AreWrittenWhenTheSupervisorIsAskedToFinish)
{
    const TemporaryFolder folder;
    RunRequest request;
    request.plan = planOf(trainingStepOf(kGpt, OperatorKind::AdamWStep), "single", 1);
    request.options = trainingOptions(1'000'000);
    request.options.training.checkpoints = folder.at("run");
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    SuperviseOptions options;
    options.controlDescriptor = pipe[0];
    bool asked = false;
    const auto outcome = superviseRun(request, options, [&](const std::string &line) {
        if (!asked && nlohmann::json::parse(line).at("t") == "step") {
            asked = true;
            EXPECT_EQ(::write(pipe[1], "finish\n", 7), 7);
        }
        return true;
    });
    ::close(pipe[0]);
    ::close(pipe[1]);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_TRUE(outcome->stopped);
    EXPECT_FALSE(outcome->losses.empty());
    EXPECT_TRUE(std::filesystem::exists(outcome->checkpoint)) << outcome->checkpoint;
}

TEST(Checkpoints, ThatCannotBeWrittenEndTheRun)
{
    const TemporaryFolder folder;
    ASSERT_TRUE(writeBytes(folder.at("file"), {}));
    RunOptions options = trainingOptions(1);
    options.training.checkpoints = folder.at("file/below");
    const auto outcome =
        runOnCpu(planOf(trainingStepOf(kGpt, OperatorKind::AdamWStep), "single", 1), options);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Io);
}

/// Batches for `kGpt`: `count` of them, drawn from `seed`.
std::vector<NamedArrays> batchesOf(const Graph &graph, int count)
{
    std::vector<NamedArrays> batches;
    for (int i = 0; i < count; ++i) {
        NamedArrays &batch = batches.emplace_back();
        for (const TensorId id : graph.inputs) {
            const Tensor &tensor = graph.at(id);
            TensorData array{tensor.type, {}};
            for (std::int64_t e = 0; e < elementCount(tensor.type.shape); ++e) {
                const std::int64_t value = (e * 7 + i * 13) % 64;
                const auto *bytes = reinterpret_cast<const std::byte *>(&value);
                array.bytes.insert(array.bytes.end(), bytes, bytes + sizeOf(tensor.type.dataType));
            }
            batch.emplace(tensor.name, std::move(array));
        }
    }
    return batches;
}

NamedArrays stacked(const std::vector<NamedArrays> &batches)
{
    NamedArrays all;
    for (const auto &[name, first] : batches.front()) {
        TensorData &array = all[name];
        array.type = first.type;
        array.type.shape.insert(array.type.shape.begin(), static_cast<std::int64_t>(batches.size()));
        for (const NamedArrays &batch : batches)
            array.bytes.insert(array.bytes.end(), batch.at(name).bytes.begin(), batch.at(name).bytes.end());
    }
    return all;
}

TEST(TrainingData, IsTheSameInWhateverFilesItLies)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    const auto batches = batchesOf(*graph, 12);
    const TemporaryFolder folder;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        ASSERT_TRUE(writeNpz(folder.at("archives/" + std::to_string(i) + ".npz"), batches[i]));
        for (const auto &[name, array] : batches[i])
            ASSERT_TRUE(writeNpy(folder.at("folders/step" + std::to_string(i) + "/" + name + ".npy"), array));
    }
    ASSERT_TRUE(writeNpz(folder.at("all.npz"), stacked(batches)));
    for (const auto &[name, array] : stacked(batches))
        ASSERT_TRUE(writeNpy(folder.at("arrays/" + name + ".npy"), array));
    for (const char *form : {"archives", "folders", "arrays", "all.npz"}) {
        SCOPED_TRACE(form);
        const auto data = StepData::open(folder.at(form), graph);
        ASSERT_TRUE(data) << describe(data.error());
        EXPECT_EQ(data->count(), 12);
        for (const std::int64_t step : {0, 2, 10, 11, 12, 35}) {
            const auto batch = data->read(step);
            ASSERT_TRUE(batch) << describe(batch.error());
            ASSERT_EQ(batch->size(), batches.front().size());
            for (const auto &[name, array] : batches[static_cast<std::size_t>(step % 12)])
                EXPECT_TRUE(batch->at(name).bytes == array.bytes) << name << " of step " << step;
        }
    }
}

TEST(TrainingData, FeedsEachStepItsBatchAndWrapsAroundWithANote)
{
    const GraphSnapshot graph = trainingStepOf(kLlama, OperatorKind::AdamWStep); // without dropout
    const auto batches = batchesOf(*graph, 3);
    const TemporaryFolder folder;
    ASSERT_TRUE(writeNpz(folder.at("all.npz"), stacked(batches)));
    RunOptions options = trainingOptions(5);
    options.training.learningRate = 0; // each loss is its batch's
    setData(options.training, folder.at("all.npz"));
    RunEvents events;
    std::vector<std::string> warnings;
    events.warning = [&](const std::string &text) { warnings.push_back(text); };
    const ExecutionPlan plan = planOf(graph, "data-parallel", 2);
    const RunOutcome outcome = ran(plan, options, events);
    ASSERT_EQ(outcome.losses.size(), 5U);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0],
        "there are 3 batches in " + folder.at("all.npz") + ": step 4 begins with the first again");
    for (std::size_t i = 0; i < outcome.losses.size(); ++i) {
        RunOptions alone = trainingOptions(1);
        alone.training.batches = BatchSource::Same;
        alone.inputs = batches[i % 3];
        EXPECT_EQ(ran(plan, alone).losses[0], outcome.losses[i]) << "step " << i;
    }
    EXPECT_NE(outcome.losses[0], outcome.losses[1]);
}

TEST(TrainingData, GoesOnWhereTheCheckpointLeftIt)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    const TemporaryFolder folder;
    ASSERT_TRUE(writeNpz(folder.at("all.npz"), stacked(batchesOf(*graph, 5))));
    RunOptions options = trainingOptions(8);
    setData(options.training, folder.at("all.npz"));
    const ExecutionPlan plan = planOf(graph, "zero1", 2);
    const RunOutcome whole = ran(plan, options);
    options.steps = 3;
    options.training.checkpoints = folder.at("run");
    (void)ran(plan, options);
    options.steps = 5;
    options.training.resume = folder.at("run");
    const RunOutcome continued = ran(plan, options);
    for (std::size_t i = 0; i < continued.losses.size(); ++i)
        EXPECT_EQ(continued.losses[i], whole.losses[3 + i]);
}

TEST(TrainingData, OfTheWrongTypeOrShapeNamesFileAndArray)
{
    const GraphSnapshot graph = trainingStepOf(kGpt, OperatorKind::AdamWStep);
    const std::string name = graph->at(graph->inputs.front()).name;
    const TemporaryFolder folder;
    auto batches = batchesOf(*graph, 2);
    ASSERT_TRUE(writeNpz(folder.at("run/0.npz"), batches[0]));
    batches[1].at(name).type.shape.push_back(1);
    ASSERT_TRUE(writeNpz(folder.at("run/1.npz"), batches[1]));
    const auto data = StepData::open(folder.at("run"), graph);
    ASSERT_TRUE(data) << describe(data.error());
    EXPECT_TRUE(data->read(0));
    RunOptions options = trainingOptions(2);
    setData(options.training, folder.at("run"));
    std::size_t steps = 0;
    RunEvents events;
    events.stepDone = [&](std::int32_t, double, double) { ++steps; };
    const auto outcome = runOnCpu(planOf(graph, "single", 1), options, events);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().where, folder.at("run/1.npz") + ": " + name);
    EXPECT_EQ(steps, 1U);
    const auto wrong = data->read(1);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().where, folder.at("run/1.npz") + ": " + name);
    EXPECT_EQ(wrong.error().message,
        "input " + name + " is int64 [8 16] in the model, the array given is int64 [8 16 1]");
    batches[1].erase(name);
    ASSERT_TRUE(writeNpz(folder.at("run/1.npz"), batches[1]));
    EXPECT_FALSE(data->read(1));
    const auto flat = StepData::open(folder.at("run/0.npz"), graph);
    ASSERT_FALSE(flat);
    EXPECT_TRUE(
        flat.error().message.find("expected as much behind a dimension of steps") != std::string::npos)
        << flat.error().message;
    std::filesystem::create_directory(folder.at("empty"));
    EXPECT_FALSE(StepData::open(folder.at("empty"), graph));
    EXPECT_FALSE(StepData::open(folder.at("nowhere"), graph));
}

} // namespace
} // namespace planloom
