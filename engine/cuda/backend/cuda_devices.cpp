#include "engine/cuda/backend/cuda_devices.h"

#include "engine/base/user_folder.h"
#include "engine/base/work_pool.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/nccl/emulated_world.h"
#include "engine/cuda/nccl/nccl_devices.h"
#include "engine/runtime/machine/probe.h"
#include "engine/runtime/processes/stall.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

class EmulatedDevices final : public RunDevices
{
public:
    EmulatedDevices(
        std::shared_ptr<CudaFunctions> cuda, const ExecutionPlan &plan, const CudaBackendOptions &options)
        : m_cuda(std::move(cuda))
        , m_options(options)
        , m_devices(static_cast<std::int32_t>(plan.devices.size()))
        , m_shared(*m_cuda, allowedCores())
        , m_world(m_shared, static_cast<std::int32_t>(plan.devices.size()), plan.groups)
    {
    }

    Result<void> connect(const RankLink &link) override
    {
        if (link.ranks != 1)
            return Error{ErrorCode::NotSupported, "devices that are emulated on one GPU run in one process",
                "leave --ranks out", "ranks"};
        for (std::int32_t d = 0; d < m_devices; ++d) {
            TRY(auto backend, cudaBackend(m_shared, m_world.communicator(DeviceId{d}), m_options));
            m_backends.push_back(std::move(backend));
        }
        return {};
    }

    void setWarning(std::function<void(const std::string &)> warning) override
    {
        m_shared.warning = std::move(warning);
    }
    Result<std::string> machine() override { return cudaMachineName(*m_cuda, m_options.gpu); }
    std::unique_ptr<DeviceBackend> device(DeviceId device) override
    {
        return std::move(m_backends[static_cast<std::size_t>(device.index)]);
    }
    Result<void> requireMemory(const std::vector<MemoryNeed> &needs) override
    {
        CudaDeviceInfo info;
        CUDA_TRY(*m_cuda, "cudaGetDeviceProperties", m_cuda->deviceInfo(m_options.gpu, info));
        Bytes sum{};
        for (const MemoryNeed &need : needs)
            sum.count += need.own.count;
        if (sum.count <= info.freeBytes)
            return {};
        return Error{ErrorCode::ResourceLimit,
            "the plan's " + std::to_string(needs.size()) + " devices need " + std::to_string(sum.count >> 20)
                + " MiB together, and the one GPU that is to be all of them (" + info.name + ") has "
                + std::to_string(info.freeBytes >> 20) + " MiB free",
            "use a smaller batch, more micro-batches or recomputation", {}};
    }
    void abort() override { m_world.abort(); }

private:
    std::shared_ptr<CudaFunctions> m_cuda;
    CudaBackendOptions m_options;
    std::int32_t m_devices;
    CudaShared m_shared;
    EmulatedWorld m_world;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
};

} // namespace

Result<void> checkCuda(CudaFunctions &cuda, std::int32_t gpu)
{
    std::int32_t driver = 0;
    std::int32_t runtime = 0;
    CUDA_TRY(cuda, "cudaDriverGetVersion", cuda.driverVersion(driver));
    CUDA_TRY(cuda, "cudaRuntimeGetVersion", cuda.runtimeVersion(runtime));
    const auto text = [](std::int32_t version) {
        return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    };
    if (driver == 0)
        return Error{ErrorCode::NotFound, "no NVIDIA driver is installed on this machine",
            "install one, or run with --backend cpu", {}};
    if (driver / 1000 < runtime / 1000)
        return Error{ErrorCode::NotSupported,
            "the NVIDIA driver is for CUDA " + text(driver) + ", and this build needs one for CUDA "
                + text(runtime),
            "install a newer driver, or run with --backend cpu", {}};
    std::int32_t count = 0;
    CUDA_TRY(cuda, "cudaGetDeviceCount", cuda.deviceCount(count));
    if (gpu >= count)
        return Error{ErrorCode::NotFound,
            "this machine has " + std::to_string(count) + " GPUs, and number " + std::to_string(gpu)
                + " was asked for",
            "use fewer devices, or --backend cuda-emulated", {}};
    CudaDeviceInfo info;
    CUDA_TRY(cuda, "cudaGetDeviceProperties", cuda.deviceInfo(gpu, info));
    if (info.major * 10 + info.minor < 75)
        return Error{ErrorCode::NotSupported,
            std::string{info.name} + " is of architecture " + std::to_string(info.major * 10 + info.minor)
                + ", expected 75 or later",
            "run with --backend cpu", {}};
    return {};
}

Result<std::string> cudaMachineName(CudaFunctions &cuda, std::int32_t gpu)
{
    CudaDeviceInfo info;
    CUDA_TRY(cuda, "cudaGetDeviceProperties", cuda.deviceInfo(gpu, info));
    return gpuMachineName(info.name, info.major * 10 + info.minor);
}

OpenDevices emulatedCudaDevices(OpenCuda open, CudaBackendOptions options)
{
    return [open = std::move(open), options](
               const ExecutionPlan &plan) -> Result<std::unique_ptr<RunDevices>> {
        TRY(auto cuda, open());
        TRY_VOID(checkCuda(*cuda, options.gpu));
        return std::unique_ptr<RunDevices>{std::make_unique<EmulatedDevices>(std::move(cuda), plan, options)};
    };
}

Result<OpenDevices> devicesOfBackend(const std::string &backend, double predictedStepSeconds)
{
    CudaBackendOptions options;
    options.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(
        stallLimit(std::chrono::duration<double>(options.deadline).count(), predictedStepSeconds)));
    if (const std::filesystem::path folder = userCacheFolder(); !folder.empty())
        options.kernelFolder = folder / "kernels";
    if (backend == "cpu")
        return OpenDevices{};
    if (backend == "cuda-emulated")
        return emulatedCudaDevices([] { return openCudaPlugin(); }, options);
    if (backend == "cuda")
        return ncclDevices(
            [] { return openCudaPlugin(); }, [] { return openNcclPlugin(cudaPluginPaths()); }, options);
    return Error{ErrorCode::NotSupported, "\"" + backend + "\" is no backend of this build",
        "known: cpu, cuda, cuda-emulated, torch", "--backend"};
}

} // namespace planloom
