#include "engine/runtime/machine/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// A machine with everything.
InstallationFacts whole()
{
    InstallationFacts facts{.version = "1.2.3",
        .window = "/usr/bin/planloom",
        .layoutHelper = "/usr/lib/planloom/planloom-layout",
        .runner = "/usr/bin/planloom-exec",
        .display = ":0",
        .oneDnn = "2.7.3",
        .plugin = "/usr/lib/planloom/planloom-cuda.so",
        .pluginProblem = {},
        .oldestNccl = "2.18",
        .python = "/usr/bin/python3",
        .torch = "2.5.1",
        .probe = {}};
    facts.probe.driver = "580.10";
    for (std::int32_t index = 0; index < 2; ++index) {
        ProbedGpu gpu;
        gpu.index = index;
        gpu.name = "NVIDIA H200";
        facts.probe.gpus.push_back(gpu);
    }
    facts.probe.libraries = {{"NCCL", "2.28.9", {}}, {"cuBLASLt", "13.1.0", {}}, {"NVRTC", "13.0", {}}};
    return facts;
}

Finding findingOf(const InstallationFacts &facts, const std::string &name)
{
    for (const Finding &finding : examine(facts))
        if (finding.name == name)
            return finding;
    return {};
}

/// Each feature that is not whole, with its first lack.
std::vector<std::pair<std::string, std::string>> lacksOf(const InstallationFacts &facts)
{
    std::vector<std::pair<std::string, std::string>> lacks;
    for (const Finding &finding : examine(facts)) {
        EXPECT_EQ(finding.lacks.empty(), finding.readiness == FeatureState::Ready) << finding.name;
        for (const Lack &lack : finding.lacks)
            EXPECT_FALSE(lack.remedy.empty()) << lack.what;
        if (!finding.lacks.empty())
            lacks.emplace_back(finding.name, finding.lacks.front().what);
    }
    return lacks;
}

using Lacks = std::vector<std::pair<std::string, std::string>>;

TEST(MachineDoctor, FindsAWholeMachineWhole)
{
    EXPECT_EQ(lacksOf(whole()), Lacks{});
    EXPECT_EQ(findingOf(whole(), "gpus").found,
        "driver 580.10, 2 GPUs, plugin /usr/lib/planloom/planloom-cuda.so, cuBLASLt 13.1.0, NVRTC 13.0, NCCL "
        "2.28.9");
}

TEST(MachineDoctor, OfABareMachineNamesEverything)
{
    InstallationFacts facts;
    facts.probe.gpuProblem = "libnvidia-ml.so.1 was not found";
    const Lacks lacks = lacksOf(facts);
    ASSERT_EQ(lacks.size(), 5U);
    EXPECT_EQ(findingOf(facts, "plan").readiness, FeatureState::Ready);
    EXPECT_EQ(findingOf(facts, "cpu").readiness, FeatureState::Slow);
    for (const char *name : {"window", "gpu", "gpus", "torch"})
        EXPECT_EQ(findingOf(facts, name).readiness, FeatureState::Missing) << name;
    EXPECT_EQ(findingOf(facts, "gpu").lacks.front().what, "no GPU: libnvidia-ml.so.1 was not found");
}

TEST(MachineDoctor, WithoutADisplayThereIsNoWindow)
{
    InstallationFacts facts = whole();
    facts.display.clear();
    EXPECT_EQ(lacksOf(facts),
        (Lacks{{"window", "there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set"}}));
}

TEST(MachineDoctor, WithoutOneDnnRunsAreSlow)
{
    InstallationFacts facts = whole();
    facts.oneDnn.clear();
    const Finding finding = findingOf(facts, "cpu");
    EXPECT_EQ(lacksOf(facts).size(), 1U);
    EXPECT_EQ(finding.readiness, FeatureState::Slow);
    EXPECT_NE(finding.lacks.front().what.find("oneDNN"), std::string::npos);
}

TEST(MachineDoctor, APythonWithoutTorchWritesNoModels)
{
    InstallationFacts facts = whole();
    facts.torch.clear();
    EXPECT_EQ(lacksOf(facts), (Lacks{{"torch", "/usr/bin/python3 has no package torch"}}));
}

TEST(MachineDoctor, AnOldNcclIsForSeveralGpusTooOld)
{
    for (const auto &[version, isOld] : std::vector<std::pair<std::string, bool>>{
             {"2.10.3", true}, {"2.7.8", true}, {"2.18.0", false}, {"2.18.5", false}, {"3.0.1", false}}) {
        InstallationFacts facts = whole();
        facts.probe.libraries.front().version = version;
        const Lacks wanted{{"gpus", "NCCL is version " + version + ", 2.18 or later is needed"}};
        EXPECT_EQ(lacksOf(facts), isOld ? wanted : Lacks{}) << version;
    }
}

TEST(MachineDoctor, OneGpuIsEnoughForEmulatedDevices)
{
    InstallationFacts facts = whole();
    facts.probe.gpus.pop_back();
    EXPECT_EQ(lacksOf(facts), (Lacks{{"gpus", "1 GPU can be used, 2 are needed"}}));
    facts.probe.gpus.front().problem = "it has fallen off the bus";
    EXPECT_EQ(lacksOf(facts).size(), 2U);
}

TEST(MachineDoctor, APluginThatDoesNotLoadIsSaidWithItsReason)
{
    InstallationFacts facts = whole();
    facts.pluginProblem = "it is of another version";
    const Finding finding = findingOf(facts, "gpu");
    EXPECT_EQ(finding.readiness, FeatureState::Missing);
    EXPECT_NE(finding.lacks.front().what.find("it is of another version"), std::string::npos);
}

TEST(MachineDoctor, SaysItOnOnePage)
{
    InstallationFacts facts;
    const std::string page = pageOf(facts, examine(facts), 80);
    EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 60) << page;
    EXPECT_EQ(page.find("to get it: install the package planloom-cuda"),
        page.rfind("to get it: install the package planloom-cuda"))
        << "once is enough:\n"
        << page;
}

} // namespace
} // namespace planloom
