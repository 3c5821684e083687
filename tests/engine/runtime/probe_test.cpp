// What a machine has to run on, and why it cannot be used: with a library that stands in for NVIDIA's.

#include "engine/runtime/machine/probe.h"

#include "engine/hardware/cluster_json.h"
#include "engine/runtime/machine/gpu_fit.h"
#include "engine/runtime/machine/machine_cluster.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace planloom {
namespace {

const char *const kFake = PLANLOOM_BINARY_DIR "/tests/libplanloom_fake_nvidia.so";

Probe probeWith(const char *wrong, ProbeOptions options = {})
{
    options.nvml = kFake;
    options.nccl = {kFake};
    options.products = {"/none/libcublasLt.so", kFake};
    options.compilers = {kFake};
    ::setenv("PLANLOOM_FAKE_NVIDIA", wrong, 1);
    Probe probe = probeMachine(options);
    ::unsetenv("PLANLOOM_FAKE_NVIDIA");
    return probe;
}

TEST(Probe, TellsWhatThereIs)
{
    const Probe probe = probeWith("");
    EXPECT_EQ(probe.gpuProblem, "");
    EXPECT_EQ(probe.driver, "580.95.05");
    EXPECT_EQ(probe.cuda, "13.0");
    const ProbedGpu first{.index = 0,
        .name = "NVIDIA H100 80GB HBM3",
        .memory = {std::int64_t{80} << 30},
        .freeMemory = {std::int64_t{79} << 30},
        .computeCapability = 90,
        .busId = "00000000:00:00.0",
        .pcieGeneration = 5,
        .pcieWidth = 16,
        .links = {{"00000000:11:00.0", 3, 4}, {"00000000:A0:00.0", 1, 4}},
        .temperature = 41};
    ASSERT_EQ(probe.gpus.size(), 3U);
    EXPECT_EQ(probe.gpus[0].name, first.name);
    EXPECT_EQ(probe.gpus[0].memory, first.memory);
    EXPECT_EQ(probe.gpus[0].freeMemory, first.freeMemory);
    EXPECT_EQ(probe.gpus[0].computeCapability, first.computeCapability);
    EXPECT_EQ(probe.gpus[0].links, first.links);
    EXPECT_EQ(probe.gpus[0].temperature, first.temperature);
    EXPECT_EQ(probe.gpus[0].problem, "");
    EXPECT_EQ(probe.gpus[1].links.front().count, 3);
    EXPECT_TRUE(probe.gpus[2].links.empty());
    EXPECT_NE(probe.gpus[2].problem.find("compute capability is 7.0"), std::string::npos);
    EXPECT_EQ(probe.libraries,
        (std::vector<ProbedLibrary>{
            {"NCCL", "2.28.9", ""}, {"cuBLASLt", "13.1.0", ""}, {"NVRTC", "13.0", ""}}));
    EXPECT_GE(probe.cpu.cores, 1);
    EXPECT_GT(probe.cpu.memory.count, std::int64_t{1} << 28);
}

TEST(Probe, GivesAReasonForAllThatCannotBeUsed)
{
    EXPECT_NE(probeWith("not loaded").gpuProblem.find("Driver Not Loaded"), std::string::npos);
    EXPECT_NE(probeWith("no GPU").gpuProblem.find("sees no GPU"), std::string::npos);
    const Probe lost = probeWith("one is lost");
    ASSERT_EQ(lost.gpus.size(), 3U);
    EXPECT_EQ(lost.gpus[0].problem, "");
    EXPECT_NE(lost.gpus[1].problem.find("GPU is lost"), std::string::npos);
    EXPECT_NE(probeWith("prohibited").gpus.at(0).problem.find("compute mode"), std::string::npos);
    const Probe old = probeWith("old driver");
    for (const ProbedGpu &gpu : old.gpus)
        EXPECT_NE(gpu.problem, "");
    EXPECT_NE(old.gpus.at(0).problem.find("470.82 knows CUDA 11.4 at most"), std::string::npos)
        << old.gpus.at(0).problem;
}

TEST(Probe, ADriverThatDoesNotAnswerIsAReasonToo)
{
    const auto begin = std::chrono::steady_clock::now();
    const Probe probe = probeWith("hangs", {.patience = std::chrono::milliseconds{200}});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{2});
    EXPECT_NE(probe.gpuProblem.find("did not answer within 200 ms"), std::string::npos);
    EXPECT_EQ(probe.libraries.size(), 3U); // the rest is told all the same
}

TEST(Probe, LibrariesThatAreMissingAreNamed)
{
    ProbeOptions options;
    options.nvml = "libplanloom_none.so.1";
    options.nccl = {"libplanloom_none.so.1"};
    options.products = options.compilers = {"libplanloom_none.so.2", "libplanloom_none.so.1"};
    const Probe probe = probeMachine(options);
    EXPECT_TRUE(probe.gpus.empty());
    EXPECT_NE(probe.gpuProblem.find("libplanloom_none.so.1"), std::string::npos) << probe.gpuProblem;
    ASSERT_EQ(probe.libraries.size(), 3U);
    for (const ProbedLibrary &library : probe.libraries) {
        EXPECT_EQ(library.version, "");
        EXPECT_NE(library.problem.find("libplanloom_none.so"), std::string::npos) << library.problem;
    }
}

TEST(Probe, IsOneJsonObject)
{
    const nlohmann::json json = toJson(probeWith("one is lost"));
    EXPECT_EQ(json.at("v"), 1);
    EXPECT_EQ(json.at("gpus").size(), 3U);
    EXPECT_EQ(json.at("gpus")[0].at("usable"), true);
    EXPECT_EQ(json.at("gpus")[0].at("memory_bytes"), std::int64_t{80} << 30);
    EXPECT_EQ(json.at("gpus")[0].at("nvlinks")[0].at("count"), 3);
    EXPECT_EQ(json.at("gpus")[1].at("usable"), false);
    EXPECT_EQ(json.at("gpus")[1].at("temperature_celsius"), nullptr);
    EXPECT_EQ(json.at("libraries")[0].at("version"), "2.28.9");
    EXPECT_GE(json.at("cpu").at("cores"), 1);
    for (const char *wrong : {"", "one is lost", "no GPU"}) {
        const Probe probe = probeWith(wrong);
        const auto back = probeFromJson(toJson(probe).dump());
        ASSERT_TRUE(back) << describe(back.error());
        EXPECT_EQ(*back, probe);
    }
    for (const char *text :
        {"", "[]", "{}", "{\"cpu\": 1}", "{\"cpu\": {\"name\": \"x\", \"cores\": \"two\"}}"})
        EXPECT_EQ(probeFromJson(text).error().code, ErrorCode::InvalidInput) << text;
}

TEST(Probe, SaysWhatAPlanRunsOn)
{
    Probe probe;
    probe.cpu.cores = 2;
    probe.gpuProblem = "no driver";
    EXPECT_EQ(whatItRunsOn(probe, 4),
        "The plan's 4 devices are emulated on 2 cores, since no GPU can be used (no driver).");
    probe.gpuProblem.clear();
    probe.gpus = {{.name = "V100", .problem = "too old"}};
    EXPECT_EQ(whatItRunsOn(probe, 1),
        "The plan's 1 device is emulated on 2 cores, since no GPU can be used (V100: too old).");
    probe.gpus.push_back({.name = "H100"});
    EXPECT_EQ(whatItRunsOn(probe, 2),
        "1 GPU of this machine can be used; in this run the plan's 2 devices are emulated on 2 cores.");
}

TEST(GpuFit, SaysBeforeARunWhatIsInItsWay)
{
    constexpr std::int64_t kGiB = std::int64_t{1} << 30;
    const std::vector<Bytes> two(2, Bytes{3 * kGiB});
    Probe probe;
    probe.gpuProblem = "no driver";
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::Cpu, two), "");
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::Cuda, two),
        "this machine has no GPU that can be seen (no driver): the devices can be emulated on the processor");
    probe.gpuProblem.clear();
    probe.gpus = {{.index = 0, .name = "H100", .freeMemory = {4 * kGiB}}};
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::Cuda, two),
        "the plan is for 2 devices, and this machine has 1 GPU: they can be emulated on one GPU");
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::CudaEmulated, two),
        "all devices together need about 6144 MiB, and GPU 0 (H100) has 4096 MiB free");
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::CudaEmulated, {two.front()}), "");
    probe.gpus.push_back({.index = 1, .name = "V100", .freeMemory = {4 * kGiB}, .problem = "too old"});
    EXPECT_NE(whyNotOnGpus(probe, RunBackend::Cuda, two).find("GPU 1 (V100), which cannot be used (too old)"),
        std::string::npos);
    probe.gpus[1] = {.index = 1, .name = "H100", .freeMemory = {2 * kGiB}};
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::Cuda, two),
        "device 1 needs about 3072 MiB, and GPU 1 (H100) has 2048 MiB free");
    probe.gpus[1].freeMemory = {4 * kGiB};
    EXPECT_EQ(whyNotOnGpus(probe, RunBackend::Cuda, two), "");
    for (const RunBackend backend : {RunBackend::Cpu, RunBackend::Cuda, RunBackend::CudaEmulated})
        EXPECT_EQ(backendNamed(nameOf(backend)), backend);
    EXPECT_FALSE(backendNamed("tpu"));
}

TEST(MachineCluster, IsOfTheGpusThatCanBeUsedWithWhatWasFound)
{
    const auto cluster = machineCluster(probeWith("")); // two H100, and a V100 that is too old
    ASSERT_TRUE(cluster) << describe(cluster.error());
    EXPECT_EQ(cluster->deviceCount, 2);
    EXPECT_EQ(cluster->links.devicesPerNode, 2);
    EXPECT_EQ(cluster->device.name, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(cluster->device.memory.value, static_cast<double>(std::int64_t{80} << 30));
    EXPECT_DOUBLE_EQ(cluster->links.intraBandwidth.value, 4 * 20.6e9);
    const auto known = clusterNamed("dgx-h100:2");
    ASSERT_TRUE(known);
    EXPECT_EQ(cluster->device.float16Flops, known->device.float16Flops);
    const auto back = clusterFromJson(toJson(*cluster));
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(*back, *cluster);
}

TEST(MachineCluster, OfAGpuWithoutAProfileSaysWhoseFiguresItHas)
{
    Probe probe;
    probe.gpus = {{.name = "NVIDIA L40S",
        .memory = {std::int64_t{48} << 30},
        .computeCapability = 89,
        .pcieGeneration = 4,
        .pcieWidth = 16}};
    const auto cluster = machineCluster(probe);
    ASSERT_TRUE(cluster) << describe(cluster.error());
    EXPECT_EQ(cluster->device.float16Flops.source.find("taken for NVIDIA L40S: of GeForce RTX 4090"), 0U)
        << cluster->device.float16Flops.source;
    EXPECT_EQ(cluster->links.architecture, LinkArchitecture::PcieOnly);
    EXPECT_DOUBLE_EQ(cluster->links.intraBandwidth.value, 20e9);
    probe.gpus[0].computeCapability = 60;
    EXPECT_EQ(machineCluster(probe).error().code, ErrorCode::NotSupported);
}

TEST(MachineCluster, WithoutGpusIsOfTheCoresWithWhatWasMeasured)
{
    Probe probe;
    probe.cpu = {.name = "Processor", .cores = 4, .memory = {std::int64_t{32} << 30}};
    const auto plain = machineCluster(probe);
    ASSERT_TRUE(plain) << describe(plain.error());
    EXPECT_EQ(plain->deviceCount, 4);
    EXPECT_EQ(plain->device.memory.value, static_cast<double>(std::int64_t{8} << 30));
    MachineProfile profile;
    profile.exchangeRate = 40e9;
    profile.kernels["product"] = {
        .category = OperatorCategory::Product, .flops = 1e9, .seconds = 0.005, .coreSeconds = 0.01};
    const auto measured = machineCluster(probe, profile);
    ASSERT_TRUE(measured) << describe(measured.error());
    EXPECT_DOUBLE_EQ(measured->device.float32Flops.value * measured->device.productEfficiency.value, 1e11);
    EXPECT_EQ(measured->links.intraBandwidth,
        (Sourced{5e9,
            "measured on this machine: each byte is read and written, by devices that share the memory"}));
    EXPECT_EQ(measured->device.launchLatency, plain->device.launchLatency); // not measured
    EXPECT_TRUE(clusterFromJson(toJson(*measured)));
}

} // namespace
} // namespace planloom
