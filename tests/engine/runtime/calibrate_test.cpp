// Times measured here as a source of costs, and what a run is predicted to take by them.

#include "engine/runtime/machine/calibrate.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/runtime/machine/distinct_kernels.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/training_plans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

constexpr const char *kMeasuredGpt = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=4&vocab=64";

ExecutionPlan planOfGpt(const std::string &gallery, std::int32_t devices)
{
    return trainingPlanOf(kMeasuredGpt, gallery, devices);
}

/// Every kernel takes a millisecond of one core, whatever it does; nothing else takes time.
MachineProfile millisecondProfile(const ExecutionPlan &plan, std::int32_t cores)
{
    MachineProfile profile;
    EXPECT_TRUE(calibrate(profile, plan, {.seconds = 60, .repeats = 1}));
    profile.cores = cores;
    profile.taskSeconds = 0;
    profile.exchangeSeconds = 0;
    profile.exchangeRate = 1e18;
    profile.copyRate = 1e18;
    for (auto &[key, kernel] : profile.kernels) {
        kernel.seconds = 1e-3;
        kernel.coreSeconds = 1e-3;
    }
    return profile;
}

TEST(Calibrate, MeasuresEveryKernelOfAPlanOnce)
{
    const ExecutionPlan plan = planOfGpt("single", 1);
    MachineProfile profile;
    std::size_t told = 0;
    ASSERT_TRUE(calibrate(profile, plan,
        {.seconds = 60, .repeats = 2, .progress = [&](std::size_t done, std::size_t) { told = done; }}));
    EXPECT_EQ(profile.machine, machineName());
    EXPECT_EQ(told, profile.kernels.size());
    EXPECT_GT(profile.kernels.size(), 10U);
    EXPECT_GT(profile.taskSeconds, 0);
    EXPECT_GT(profile.exchangeRate, 0);
    EXPECT_GT(profile.copyRate, 0);
    for (const auto &[key, kernel] : profile.kernels) {
        EXPECT_GT(kernel.seconds, 0) << key;
        EXPECT_GE(kernel.coreSeconds, kernel.seconds) << key;
    }
    // What is known is not measured again; what another plan runs is added.
    const MachineProfile before = profile;
    told = 0;
    ASSERT_TRUE(calibrate(profile, plan, {.progress = [&](std::size_t done, std::size_t) { told = done; }}));
    EXPECT_EQ(told, 0U);
    EXPECT_EQ(profile, before);
    ASSERT_TRUE(calibrate(profile, planOfGpt("data-parallel", 2), {.seconds = 60, .repeats = 1}));
    EXPECT_GT(profile.kernels.size(), before.kernels.size());
    // Times of another machine are of no use.
    profile.machine = "another";
    ASSERT_TRUE(calibrate(profile, plan, {.seconds = 60, .repeats = 1}));
    EXPECT_EQ(profile.machine, machineName());
    EXPECT_EQ(profile.kernels.size(), before.kernels.size());
}

TEST(Calibrate, StopsAndKeepsToItsTime)
{
    const ExecutionPlan plan = planOfGpt("single", 1);
    MachineProfile profile;
    ASSERT_TRUE(calibrate(profile, plan, {.seconds = 0}));
    EXPECT_TRUE(profile.kernels.empty());
    std::stop_source stop;
    stop.request_stop();
    const auto stopped = calibrate(profile, plan, {}, stop.get_token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
}

TEST(Calibrate, KernelsReadFromMemoryWhatAStepHasNotTouchedOfLate)
{
    const ExecutionPlan plan = planOfGpt("single", 1);
    const DeviceProgram &program = plan.devices[0];
    std::size_t made = 0;
    std::size_t kept = 0;
    for (const Segment &segment : program.segments) {
        for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
            const Instruction &instruction = segment.instructions[i];
            for (const std::int32_t input : instruction.inputs) {
                if (input < 0)
                    continue;
                const OperandPlace place = operandPlace(program, segment.instructions, i, input);
                if (i > 0 && segment.instructions[i - 1].outputs == BufferList{input}) {
                    EXPECT_EQ(place, OperandPlace::Core); // all is small here
                    ++made;
                } else if (const BufferInfo &info = program.buffers[static_cast<std::size_t>(input)];
                           info.memory == MemoryKind::OptimizerState) {
                    EXPECT_EQ(place, OperandPlace::Memory); // each is read once in a step
                    ++kept;
                }
            }
        }
    }
    EXPECT_GT(made, 5U);
    EXPECT_GT(kept, 5U);
}

TEST(Calibrate, KernelsReadFromMemoryWhatIsLarge)
{
    DeviceProgram program;
    std::vector<BufferInfo> buffers;
    for (const std::int64_t megabytes : {1, 8, 64})
        buffers.push_back({.index = wholeMask({megabytes << 18})});
    program.buffers = buffers;
    const auto kernel = [](BufferList in, BufferList out) {
        Instruction instruction;
        instruction.inputs = std::move(in);
        instruction.outputs = std::move(out);
        return instruction;
    };
    const std::vector<Instruction> step{kernel({}, {0}), kernel({0}, {1}), kernel({1}, {}), kernel({0}, {2}),
        kernel({2}, {}), kernel({0}, {})};
    EXPECT_EQ(operandPlace(program, step, 1, 0), OperandPlace::Core);
    EXPECT_EQ(operandPlace(program, step, 2, 1), OperandPlace::Shared); // larger than a core's caches
    EXPECT_EQ(operandPlace(program, step, 3, 0), OperandPlace::Shared); // behind 8 MiB of others
    EXPECT_EQ(operandPlace(program, step, 4, 2), OperandPlace::Memory);
    EXPECT_EQ(operandPlace(program, step, 5, 0), OperandPlace::Memory); // behind 64
    EXPECT_EQ(operandPlace(program, step, 0, 1), OperandPlace::Memory); // nobody touched it before
}

/// Every kernel takes a millisecond of one core, and most runs five times as long, since others have the
/// core. Nothing else takes time.
class DisturbedClock
{
public:
    BenchClock clock()
    {
        const auto worked = [this] {
            m_passedAsked = 0; // a run begins or has ended
            return m_worked;
        };
        return {[this] {
                    if (++m_passedAsked == 2) {
                        m_passed += ++m_runs % 7 == 0 ? 1e-3 : 5e-3;
                        m_worked += 1e-3;
                    }
                    return m_passed;
                },
            worked, worked};
    }

private:
    int m_passedAsked = 3;
    std::int64_t m_runs = 0;
    double m_passed = 0;
    double m_worked = 0;
};

TEST(Calibrate, IsNotSpoiledByWhatRunsBeside)
{
    const ExecutionPlan plan = planOfGpt("single", 1);
    DisturbedClock machine;
    MachineProfile profile;
    ASSERT_TRUE(calibrate(profile, plan, {.seconds = 1e9, .repeats = 3, .clock = machine.clock()}));
    EXPECT_GT(profile.kernels.size(), 10U);
    for (const auto &[key, kernel] : profile.kernels) {
        EXPECT_NEAR(kernel.seconds, 1e-3, 2e-4) << key;
        EXPECT_NEAR(kernel.coreSeconds, 1e-3, 2e-4) << key;
    }
}

TEST(MachineProfile, OutlivesItsFile)
{
    const auto folder = std::filesystem::path(testing::TempDir()) / "planloom_profile_test";
    std::filesystem::remove_all(folder);
    const std::string path = (folder / "deeper" / "profile.json").string();
    const ExecutionPlan plan = planOfGpt("single", 1);
    const auto first = profileFor(plan, path, {.seconds = 60, .repeats = 1});
    ASSERT_TRUE(first);
    const auto kept = readProfile(path);
    ASSERT_TRUE(kept) << describe(kept.error());
    EXPECT_EQ(*kept, *first);
    const auto again = profileFor(plan, path);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *first); // nothing was measured anew
    EXPECT_EQ(readProfile(path + "x").error().code, ErrorCode::NotFound);
    for (const char *const text : {"", "{}", "[1]", "{\"format\":\"planloom-machine-profile\",\"version\":1}",
             "{\"format\":\"planloom-machine-profile\",\"version\":99}"}) {
        std::ofstream(path, std::ios::trunc) << text;
        const auto broken = readProfile(path);
        ASSERT_FALSE(broken) << text;
        EXPECT_EQ(broken.error().code, ErrorCode::InvalidInput);
    }
    ASSERT_TRUE(profileFor(plan, path, {.seconds = 60, .repeats = 1})); // replaces what is broken
    EXPECT_TRUE(readProfile(path));
    std::filesystem::remove_all(folder);
}

TEST(MachineProfile, KernelsThatWereNotMeasuredLieBetweenThoseThatWere)
{
    MachineProfile profile;
    profile.cores = 2;
    for (const double bytes : {1e4, 1e5, 1e6, 1e7})
        profile.kernels["add of " + std::to_string(bytes)] = {
            OperatorCategory::Elementwise, 0, bytes, bytes / 1e10, 2 * bytes / 1e10, 0};
    CostModel otherwise;
    otherwise.kernel = [](const KernelQuery &) { return 42.0; };
    const CostModel costs = costModelOf(profile, otherwise);
    const CostModel work = costModelOf(profile, otherwise, ProfileTime::Work);
    Operator add;
    add.kind = OperatorKind::Add;
    add.inputs = {TensorId{0}, TensorId{1}};
    add.outputs = {TensorId{2}};
    double last = 0;
    for (std::int64_t count = 1000; count < 3'000'000; count *= 3) {
        const std::vector<TensorType> in(2, {DataType::Float32, {count}});
        const std::vector<TensorType> out(1, {DataType::Float32, {count}});
        const KernelQuery query{add, in, out};
        const double bytes = workOf(add, in, out).bytes;
        EXPECT_NEAR(costs.kernel(query), bytes / 1e10, 0.01 * bytes / 1e10);
        EXPECT_NEAR(work.kernel(query), bytes / 1e10, 0.01 * bytes / 1e10); // two cores, both busy
        EXPECT_GT(costs.kernel(query), last);
        last = costs.kernel(query);
    }
    Operator norm;
    norm.kind = OperatorKind::LayerNorm;
    const std::vector<TensorType> none;
    EXPECT_EQ(costs.kernel({norm, none, none}), 42.0); // nothing of its category is known
}

TEST(PredictRun, DevicesThatShareCoresWaitForThem)
{
    // One kernel after another on one device; on two, each runs as many.
    const ExecutionPlan one = planOfGpt("single", 1);
    const ExecutionPlan two = planOfGpt("data-parallel", 2);
    const auto alone = predictRun(two, millisecondProfile(two, 2), false);
    const auto shared = predictRun(two, millisecondProfile(two, 1), false);
    const auto single = predictRun(one, millisecondProfile(one, 1));
    ASSERT_TRUE(alone && shared && single);
    const auto milliseconds = [](const Timeline &timeline) {
        return static_cast<double>(timeline.step.count()) * 1e-6;
    };
    EXPECT_NEAR(milliseconds(*shared), 2 * milliseconds(*alone), 0.1 * milliseconds(*alone));
    EXPECT_NEAR(milliseconds(*alone), milliseconds(*single), 0.3 * milliseconds(*single));
    // A second core is of no use to one device whose kernels use one.
    const auto idle = predictRun(one, millisecondProfile(one, 2));
    ASSERT_TRUE(idle);
    EXPECT_NEAR(milliseconds(*idle), milliseconds(*single), 0.01 * milliseconds(*single));
}

TEST(PredictRun, WhatDevicesComputeAlikeIsComputedOnce)
{
    // Every kernel takes a millisecond: of two devices that share one core, the second one updates no
    // weights.
    const ExecutionPlan plan = planOfGpt("data-parallel", 2);
    int kernels = 0;
    int updates = 0;
    for (const Segment &segment : plan.devices[1].segments) {
        for (const Instruction &instruction : segment.instructions) {
            kernels += instruction.kind == InstructionKind::Kernel ? 1 : 0;
            updates += instruction.kind == InstructionKind::Kernel
                    && plan.graph->at(instruction.op).direction == Direction::Optimizer
                ? 1
                : 0;
        }
    }
    ASSERT_GT(updates, 4);
    const auto every = predictRun(plan, millisecondProfile(plan, 1), false);
    const auto once = predictRun(plan, millisecondProfile(plan, 1), true);
    ASSERT_TRUE(every && once);
    const double saved = static_cast<double>(every->step.count() - once->step.count())
        / static_cast<double>(every->step.count());
    EXPECT_NEAR(saved, 0.5 * updates / kernels, 0.05);
}

} // namespace
} // namespace planloom
