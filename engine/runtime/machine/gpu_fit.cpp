#include "engine/runtime/machine/gpu_fit.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

constexpr std::array<const char *, kRunBackendCount> kBackendNames{"cpu", "cuda", "cuda-emulated", "torch"};

std::string memoryText(std::int64_t bytes)
{
    return std::to_string(bytes >> 20) + " MiB";
}

std::string gpuText(const ProbedGpu &gpu)
{
    return "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ")";
}

} // namespace

const char *nameOf(RunBackend backend)
{
    return kBackendNames[static_cast<std::size_t>(backend)];
}

std::optional<RunBackend> backendNamed(std::string_view name)
{
    const auto found = std::find(kBackendNames.begin(), kBackendNames.end(), name);
    if (found == kBackendNames.end())
        return std::nullopt;
    return static_cast<RunBackend>(found - kBackendNames.begin());
}

std::string whyNotOnGpus(const Probe &probe, RunBackend backend, const std::vector<Bytes> &peaks)
{
    if (backend == RunBackend::Cpu || backend == RunBackend::Torch)
        return {};
    if (probe.gpus.empty())
        return "this machine has no GPU that can be seen"
            + (probe.gpuProblem.empty() ? std::string{} : " (" + probe.gpuProblem + ")")
            + ": the devices can be emulated on the processor";
    if (!probe.gpus.front().problem.empty())
        return gpuText(probe.gpus.front()) + " cannot be used (" + probe.gpus.front().problem
            + "): the devices can be emulated on the processor";
    if (backend == RunBackend::CudaEmulated) {
        Bytes all{};
        for (const Bytes peak : peaks)
            all.count += peak.count;
        const ProbedGpu &gpu = probe.gpus.front();
        if (gpu.freeMemory.count > 0 && all.count > gpu.freeMemory.count)
            return "all devices together need about " + memoryText(all.count) + ", and " + gpuText(gpu)
                + " has " + memoryText(gpu.freeMemory.count) + " free";
        return {};
    }
    constexpr const char *kEmulate = ": they can be emulated on one GPU";
    if (probe.gpus.size() < peaks.size())
        return "the plan is for " + std::to_string(peaks.size()) + " devices, and this machine has "
            + std::to_string(probe.gpus.size()) + (probe.gpus.size() == 1 ? " GPU" : " GPUs") + kEmulate;
    for (std::size_t d = 0; d < peaks.size(); ++d) {
        const ProbedGpu &gpu = probe.gpus[d];
        if (!gpu.problem.empty())
            return "device " + std::to_string(d) + " would run on " + gpuText(gpu)
                + ", which cannot be used (" + gpu.problem + ")" + kEmulate;
        if (gpu.freeMemory.count > 0 && peaks[d].count > gpu.freeMemory.count)
            return "device " + std::to_string(d) + " needs about " + memoryText(peaks[d].count) + ", and "
                + gpuText(gpu) + " has " + memoryText(gpu.freeMemory.count) + " free";
    }
    return {};
}

} // namespace planloom
