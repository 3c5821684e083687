// What is measured on a GPU, by the clock of its events, and what runs there are predicted to take by it.

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/machine/distinct_kernels.h"
#include "engine/table/table_text.h"

#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/training_plans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <stop_token>

namespace planloom {
namespace {

ExecutionPlan smallGpt(const std::string &gallery, std::int32_t devices)
{
    return trainingPlanOf(
        "zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=4&vocab=24", gallery, devices, OperatorKind::SgdStep);
}

Result<void> measureOn(const std::shared_ptr<FakeCuda> &cuda, const ExecutionPlan &plan,
    MachineProfile &profile, CalibrateOptions options = {.seconds = 60, .repeats = 4},
    std::stop_token stop = {})
{
    const OpenDevices open = emulatedCudaDevices(
        [cuda]() -> Result<std::shared_ptr<CudaFunctions>> { return std::shared_ptr<CudaFunctions>{cuda}; });
    TRY(const auto devices, open(plan));
    TRY_VOID(devices->connect({}));
    return calibrate(profile, plan, *devices, options, std::move(stop));
}

constexpr double kMillisecond = 1e-3;

/// Kernels take so many milliseconds, and every fourth one a tenth more.
std::shared_ptr<FakeCuda> gpuOf(std::int64_t milliseconds)
{
    auto cuda = std::make_shared<FakeCuda>(5);
    cuda->takes = [milliseconds, count = 0](const std::string &kernel) mutable -> std::int64_t {
        if (kernel == "fill" || kernel == "copy")
            return 0;
        return milliseconds * (++count % 4 == 0 ? 1100 : 1000);
    };
    return cuda;
}

TEST(CalibrateGpu, MeasuresEveryKernelByEventsOfTheDevice)
{
    const ExecutionPlan plan = smallGpt("data-parallel", 2);
    const auto cuda = gpuOf(20);
    MachineProfile profile;
    profile.machine = "a CPU, 2 cores"; // of another machine: nothing of it stays
    profile.taskSeconds = 1;
    profile.kernels["MatMul"] = {};
    const auto done = measureOn(cuda, plan, profile);
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(profile.machine, "Fake GPU, compute capability 9.0");
    EXPECT_EQ(profile.machine, gpuMachineName("Fake GPU", 90));
    EXPECT_EQ(profile.cores, 1);
    const auto kernels = kernelsOf(plan);
    EXPECT_GT(kernels.size(), 10U);
    EXPECT_EQ(profile.kernels.size(), kernels.size());
    std::size_t spread = 0;
    for (const auto &[key, kernel] : profile.kernels) {
        ASSERT_TRUE(kernels.contains(key)) << key;
        // Some are several launches of the device's kernels; those that only copy take no time of the fake.
        const double launches = std::round(kernel.seconds / (20 * kMillisecond));
        EXPECT_NEAR(kernel.seconds, launches * 20 * kMillisecond, 3.5 * kMillisecond) << key;
        EXPECT_EQ(kernel.seconds, kernel.coreSeconds);
        EXPECT_EQ(kernel.flops, kernels.at(key).work.flops);
        spread += kernel.spread > 0.05 ? 1 : 0;
    }
    EXPECT_GT(spread, 5U);
    EXPECT_GT(profile.taskSeconds, 0);
    EXPECT_LT(profile.taskSeconds, kMillisecond);
    EXPECT_GT(profile.copyRate, 0);
    EXPECT_GT(profile.exchangeSeconds, 0);
    EXPECT_GT(profile.exchangeRate, 0);
    EXPECT_GT(cuda->replayed, 0) << "kernels are measured as runs launch them";
    EXPECT_EQ(cuda->live(), 0U);
}

TEST(CalibrateGpu, AddsWhatIsNotKnownAndStopsWhenItIsTold)
{
    const auto cuda = gpuOf(1);
    MachineProfile profile;
    ASSERT_TRUE(measureOn(cuda, smallGpt("single", 1), profile));
    EXPECT_EQ(profile.exchangeRate, 0) << "one device has nobody to exchange with";
    const MachineProfile before = profile;
    ASSERT_TRUE(measureOn(cuda, smallGpt("single", 1), profile));
    EXPECT_EQ(profile, before);
    ASSERT_TRUE(measureOn(cuda, smallGpt("tensor-parallel", 2), profile));
    EXPECT_GT(profile.kernels.size(), before.kernels.size());

    std::stop_source stop;
    stop.request_stop();
    MachineProfile stopped;
    const auto outcome = measureOn(cuda, smallGpt("single", 1), stopped, {}, stop.get_token());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(cuda->live(), 0U);
}

TEST(CalibrateGpu, TellsWhatFails)
{
    const ExecutionPlan plan = smallGpt("single", 1);
    auto cuda = gpuOf(1);
    cuda->failAfter = 400;
    MachineProfile profile;
    const auto failed = measureOn(cuda, plan, profile);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("719"), std::string::npos) << failed.error().message;

    cuda = gpuOf(1);
    cuda->driver = 0;
    EXPECT_FALSE(measureOn(cuda, plan, profile));
}

TEST(CalibrateGpu, IsKeptAndPredictsRunsOnThatGpu)
{
    const ExecutionPlan plan = smallGpt("data-parallel", 2);
    const auto folder = std::filesystem::temp_directory_path() / "planloom-gpu-profile";
    const std::string path = (folder / "profile.json").string();
    Probe here;
    here.gpus.push_back({.name = "Fake GPU", .computeCapability = 90});
    double before = 0;
    for (const std::int64_t milliseconds : {10, 20}) {
        MachineProfile profile;
        ASSERT_TRUE(measureOn(gpuOf(milliseconds), plan, profile));
        ASSERT_TRUE(writeProfile(path, profile));
        const auto kept = gpuProfile(path, here);
        ASSERT_TRUE(kept);
        EXPECT_EQ(kept->kernels.size(), profile.kernels.size());
        EXPECT_EQ(kept->machine, profile.machine);
        const auto shared = predictOnGpus(plan, *kept, here);
        ASSERT_TRUE(shared) << describe(shared.error());
        const double seconds = std::chrono::duration<double>(shared->step).count();
        EXPECT_GT(seconds, 2 * 10 * static_cast<double>(milliseconds) * kMillisecond);
        if (before > 0) {
            EXPECT_NEAR(seconds / before, 2, 0.2);
        }
        before = seconds;
        // A GPU each: neither waits for the other's kernels.
        MachineProfile each = *kept;
        each.oneEach = true;
        const auto apart = predictOnGpus(plan, each, here);
        ASSERT_TRUE(apart) << describe(apart.error());
        EXPECT_LT(std::chrono::duration<double>(apart->step).count(), 0.7 * seconds);
    }
    Probe other;
    other.gpus.push_back({.name = "Fake GPU", .computeCapability = 80});
    EXPECT_FALSE(gpuProfile(path, other)) << "another architecture";
    EXPECT_FALSE(gpuProfile(path, {})) << "no GPU at all";
    std::filesystem::remove_all(folder);
    EXPECT_FALSE(gpuProfile(path, here));
    if (!profilePath().empty()) {
        EXPECT_NE(profilePath("cuda"), profilePath("cuda-emulated"));
        EXPECT_NE(profilePath("cuda"), profilePath());
    }
}

} // namespace
} // namespace planloom
