#include "engine/cuda/nccl/nccl_devices.h"

#include "engine/base/work_pool.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/nccl/nccl_log.h"
#include "engine/cuda/nccl/nccl_world.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/process_handles.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {

namespace {

constexpr const char *kOrEmulate = "run with --backend cuda-emulated, which needs one GPU, or --backend cpu";

class NcclDevices final : public RunDevices
{
public:
    NcclDevices(OpenCuda cuda, OpenNccl nccl, const ExecutionPlan &plan, const CudaBackendOptions &options)
        : m_openCuda(std::move(cuda))
        , m_openNccl(std::move(nccl))
        , m_plan(plan)
        , m_options(options)
    {
    }

    ~NcclDevices() override
    {
        if (m_cuda)
            (void)m_cuda->setDevice(m_options.gpu);
    }

    void setWarning(std::function<void(const std::string &)> warning) override
    {
        m_warning = std::move(warning);
    }

    Result<void> connect(const RankLink &link) override
    {
        const auto devices = static_cast<std::int32_t>(m_plan.devices.size());
        if (link.ranks != devices)
            return Error{ErrorCode::NotSupported,
                "the plan's " + std::to_string(devices)
                    + " devices need as many processes, one for each GPU, "
                      "and run in "
                    + std::to_string(link.ranks),
                "leave --ranks out", "ranks"};
        m_device = DeviceId{link.rank};
        m_options.gpu = link.rank;
        TRY(m_cuda, m_openCuda());
        TRY_VOID(checkCuda(*m_cuda, m_options.gpu));
        CUDA_TRY(*m_cuda, "cudaSetDevice", m_cuda->setDevice(m_options.gpu));
        m_shared.emplace(*m_cuda, std::max(allowedCores() / link.ranks, 1));
        m_shared->warning = m_warning;
        NcclWorldOptions options{.device = m_device,
            .devices = devices,
            .groups = m_plan.groups,
            .deadline = m_options.deadline,
            .log = [this] { return m_log ? m_log->warnings() : std::string{}; }};
        TRY(options.order, ncclOrder(m_plan, m_device));
        if (devices > 1) {
            m_log.emplace(); // before the library reads its settings
            TRY(m_nccl, m_openNccl());
            TRY_VOID(checkNccl(*m_nccl));
        }
        {
            const std::lock_guard lock{m_mutex};
            m_world.emplace(m_nccl.get(), std::move(options));
            if (m_aborted)
                m_world->abort();
        }
        if (devices > 1)
            TRY_VOID(meet(link));
        TRY(m_backend, cudaBackend(*m_shared, m_world->communicator(), m_options));
        return {};
    }

    Result<std::string> machine() override { return cudaMachineName(*m_cuda, m_options.gpu); }

    std::unique_ptr<DeviceBackend> device(DeviceId device) override
    {
        assert(device == m_device);
        (void)device;
        return std::move(m_backend);
    }

    Result<void> requireMemory(const std::vector<MemoryNeed> &needs) override
    {
        CudaDeviceInfo info;
        CUDA_TRY(*m_cuda, "cudaGetDeviceProperties", m_cuda->deviceInfo(m_options.gpu, info));
        const Bytes need = needs.empty() ? Bytes{} : needs.front().own;
        if (need.count <= info.freeBytes)
            return {};
        return Error{ErrorCode::ResourceLimit,
            "device " + std::to_string(m_device.index) + " needs " + std::to_string(need.count >> 20)
                + " MiB, and GPU " + std::to_string(m_options.gpu) + " (" + info.name + ") has "
                + std::to_string(info.freeBytes >> 20) + " MiB free",
            "use a smaller batch, more micro-batches or recomputation, or end what else runs there", {}};
    }

    void abort() override
    {
        const std::lock_guard lock{m_mutex};
        m_aborted = true;
        if (m_world)
            m_world->abort();
    }

private:
    /// Joins the other ranks' devices.
    Result<void> meet(const RankLink &link)
    {
        NcclId id;
        if (link.rank == 0)
            if (const NcclStatus status = m_nccl->uniqueId(id); status != kNcclSuccess)
                return Error{ErrorCode::Internal,
                    "ncclGetUniqueId failed with " + std::to_string(status) + ": " + m_nccl->errorText(status)
                        + ", " + m_nccl->lastError(nullptr),
                    "run again with NCCL_DEBUG=INFO for more", {}};
        TRY(const auto bytes, link.broadcast({id.bytes, sizeof id.bytes}));
        assert(bytes.size() == sizeof id.bytes);
        std::memcpy(id.bytes, bytes.data(), sizeof id.bytes);
        return m_world->connect(id);
    }

    OpenCuda m_openCuda;
    OpenNccl m_openNccl;
    const ExecutionPlan &m_plan;
    CudaBackendOptions m_options;
    DeviceId m_device{};
    std::function<void(const std::string &)> m_warning{};
    std::shared_ptr<CudaFunctions> m_cuda{};
    std::shared_ptr<NcclFunctions> m_nccl{};
    std::optional<NcclLog> m_log{};
    std::optional<CudaShared> m_shared{};
    std::mutex m_mutex{}; ///< Of the next two, until the run has begun.
    bool m_aborted = false;
    std::optional<NcclWorld> m_world{};
    std::unique_ptr<DeviceBackend> m_backend{};
};

/// What `check` says, in a process of its own.
Result<void> inChild(const std::function<Result<void>()> &check)
{
    constexpr int kPatience = 15'000; // milliseconds: a driver that hangs is a reason, too
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error{ErrorCode::Io, std::string{"no pipe: "} + std::strerror(errno), {}, {}};
    const Descriptor reading{ends[0]};
    Descriptor writing{ends[1]};
    const pid_t child = ::fork();
    if (child < 0)
        return Error{ErrorCode::Io, std::string{"no process: "} + std::strerror(errno), {}, {}};
    if (child == 0) {
        const auto outcome = check();
        const std::string text = outcome
            ? "{}"
            : errorEvent(outcome.error()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        ::_exit(
            ::write(writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    writing.close();
    std::string text;
    std::array<char, 4096> bytes{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{kPatience};
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd waited{reading.get(), POLLIN, 0};
        const int ready = left.count() <= 0 ? 0 : ::poll(&waited, 1, static_cast<int>(left.count()));
        if (ready < 0 && errno == EINTR)
            continue;
        const ssize_t got = ready <= 0 ? -1 : ::read(reading.get(), bytes.data(), bytes.size());
        if (got <= 0)
            break;
        text.append(bytes.data(), static_cast<std::size_t>(got));
    }
    ::kill(child, SIGKILL); // which has ended, or hangs
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) { }
    if (text == "{}")
        return {};
    if (const auto told = nlohmann::json::parse(text, nullptr, false); told.is_object())
        return errorIn(told);
    return Error{ErrorCode::Internal, "CUDA does not answer on this machine",
        "look at nvidia-smi and dmesg (\"Xid\"), or run with --backend cpu", {}};
}

} // namespace

OpenDevices ncclDevices(OpenCuda cuda, OpenNccl nccl, const CudaBackendOptions &options)
{
    return [cuda = std::move(cuda), nccl = std::move(nccl), options](
               const ExecutionPlan &plan) -> Result<std::unique_ptr<RunDevices>> {
        return std::unique_ptr<RunDevices>{std::make_unique<NcclDevices>(cuda, nccl, plan, options)};
    };
}

Result<void> checkGpus(const OpenCuda &openCuda, const OpenNccl &openNccl, std::int32_t devices)
{
    TRY(const auto cuda, openCuda());
    TRY_VOID(checkCuda(*cuda, 0));
    std::int32_t count = 0;
    CUDA_TRY(*cuda, "cudaGetDeviceCount", cuda->deviceCount(count));
    if (count < devices)
        return Error{ErrorCode::NotFound,
            "the plan is for " + std::to_string(devices) + " devices, and this machine has "
                + std::to_string(count) + (count == 1 ? " GPU" : " GPUs"),
            std::string{"make a plan for "} + std::to_string(count) + ", or " + kOrEmulate, "--backend"};
    for (std::int32_t gpu = 1; gpu < devices; ++gpu)
        TRY_VOID(checkCuda(*cuda, gpu));
    if (devices == 1)
        return {};
    TRY(const auto nccl, openNccl());
    return checkNccl(*nccl);
}

Result<void> requireGpus(std::int32_t devices)
{
    return inChild([devices] {
        return checkGpus(
            [] { return openCudaPlugin(); }, [] { return openNcclPlugin(cudaPluginPaths()); }, devices);
    });
}

Result<void> openBackend(RunRequest &request, bool now)
{
    TRY(request.options.devices, devicesOfBackend(request.backend, request.predictedStepSeconds));
    if (request.backend != "cuda")
        return {};
    request.ranks = static_cast<std::int32_t>(request.plan.devices.size()) * request.plan.units.count;
    return now ? requireGpus(request.ranks) : Result<void>{};
}

} // namespace planloom
