// The real functions of CUDA, and the plugin's entry point.

#include "engine/cuda/backend/cuda_functions.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/plugin/compiler.h"
#include "engine/cuda/plugin/launch.h"
#include "engine/cuda/plugin/products.h"

#include <algorithm>
#include <cstring>

#include <cuda_runtime_api.h>

namespace planloom {

namespace {

cudaStream_t streamOf(CudaStream stream)
{
    return static_cast<cudaStream_t>(stream);
}
cudaEvent_t eventOf(CudaEvent event)
{
    return static_cast<cudaEvent_t>(event);
}

class RealCuda final : public CudaFunctions
{
public:
    CudaStatus driverVersion(std::int32_t &version) override { return cudaDriverGetVersion(&version); }
    CudaStatus runtimeVersion(std::int32_t &version) override { return cudaRuntimeGetVersion(&version); }
    CudaStatus deviceCount(std::int32_t &count) override { return cudaGetDeviceCount(&count); }
    CudaStatus deviceInfo(std::int32_t device, CudaDeviceInfo &info) override
    {
        cudaDeviceProp properties{};
        if (const cudaError_t status = cudaGetDeviceProperties(&properties, device); status != cudaSuccess)
            return status;
        std::strncpy(info.name, properties.name, sizeof info.name - 1);
        info.major = properties.major;
        info.minor = properties.minor;
        info.multiprocessors = properties.multiProcessorCount;
        if (const cudaError_t status = cudaDeviceGetPCIBusId(info.busId, sizeof info.busId, device);
            status != cudaSuccess)
            return status;
        if (const cudaError_t status = cudaSetDevice(device); status != cudaSuccess)
            return status;
        std::size_t free = 0;
        std::size_t total = 0;
        const cudaError_t status = cudaMemGetInfo(&free, &total);
        info.freeBytes = static_cast<std::int64_t>(free);
        info.totalBytes = static_cast<std::int64_t>(total);
        return status;
    }
    CudaStatus setDevice(std::int32_t device) override { return cudaSetDevice(device); }
    std::string errorText(CudaStatus status) override
    {
        const auto error = static_cast<cudaError_t>(status);
        return std::string{cudaGetErrorName(error)} + ", " + cudaGetErrorString(error);
    }
    std::string architectures() override { return PLANLOOM_CUDA_ARCHITECTURES_TEXT; }
    CudaStatus codeArchitecture(std::int32_t &architecture) override
    {
        return planloom::codeArchitecture(architecture);
    }

    CudaStatus allocate(void **memory, std::size_t bytes) override
    {
        return cleared(cudaMalloc(memory, bytes));
    }
    CudaStatus release(void *memory) override { return cudaFree(memory); }
    CudaStatus allocateHost(void **memory, std::size_t bytes) override
    {
        return cleared(cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    }
    CudaStatus releaseHost(void *memory) override { return cudaFreeHost(memory); }

    CudaStatus createStream(CudaStream *stream, bool urgent) override
    {
        int least = 0;
        int most = 0;
        if (const cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &most); status != cudaSuccess)
            return status;
        cudaStream_t made = nullptr;
        const cudaError_t status =
            cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, urgent ? most : least);
        *stream = made;
        return status;
    }
    CudaStatus destroyStream(CudaStream stream) override { return cudaStreamDestroy(streamOf(stream)); }
    CudaStatus createEvent(CudaEvent *event) override
    {
        cudaEvent_t made = nullptr;
        const cudaError_t status = cudaEventCreate(&made);
        *event = made;
        return status;
    }
    CudaStatus destroyEvent(CudaEvent event) override { return cudaEventDestroy(eventOf(event)); }
    CudaStatus record(CudaEvent event, CudaStream stream) override
    {
        return cudaEventRecord(eventOf(event), streamOf(stream));
    }
    CudaStatus wait(CudaStream stream, CudaEvent event) override
    {
        return cudaStreamWaitEvent(streamOf(stream), eventOf(event), 0);
    }
    CudaStatus query(CudaEvent event) override { return cudaEventQuery(eventOf(event)); }
    CudaStatus recordTime(CudaEvent event, CudaStream stream) override
    {
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        if (const cudaError_t status = cudaStreamIsCapturing(streamOf(stream), &capture);
            status != cudaSuccess)
            return status;
        return cudaEventRecordWithFlags(eventOf(event), streamOf(stream),
            capture == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault);
    }
    CudaStatus milliseconds(float &passed, CudaEvent from, CudaEvent to) override
    {
        return cudaEventElapsedTime(&passed, eventOf(from), eventOf(to));
    }

    CudaStatus copy(void *to, const void *from, std::size_t bytes, CudaStream stream) override
    {
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streamOf(stream));
    }
    CudaStatus fill(void *to, std::uint8_t value, std::size_t bytes, CudaStream stream) override
    {
        return cudaMemsetAsync(to, value, bytes, streamOf(stream));
    }
    CudaStatus hostFunction(CudaStream stream, void (*function)(void *), void *data) override
    {
        return cudaLaunchHostFunc(streamOf(stream), function, data);
    }
    CudaStatus launch(
        DeviceKernel kernel, const void *arguments, std::int64_t items, CudaStream stream) override
    {
        return launchKernel(kernel, arguments, items, streamOf(stream));
    }

    CudaStatus beginCapture(CudaStream stream) override
    {
        return cudaStreamBeginCapture(streamOf(stream), cudaStreamCaptureModeRelaxed);
    }
    CudaStatus endCapture(CudaStream stream, CudaGraph *graph) override
    {
        cudaGraph_t captured = nullptr;
        cudaError_t status = cudaStreamEndCapture(streamOf(stream), &captured);
        if (status == cudaSuccess) {
            cudaGraphExec_t made = nullptr;
            status = cudaGraphInstantiate(&made, captured, 0);
            *graph = made;
        }
        if (captured != nullptr)
            (void)cudaGraphDestroy(captured);
        if (status != cudaSuccess)
            (void)cudaGetLastError(); // known, and not to be found again by the next launch
        return status;
    }
    CudaStatus launchGraph(CudaGraph graph, CudaStream stream) override
    {
        return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), streamOf(stream));
    }
    CudaStatus destroyGraph(CudaGraph graph) override
    {
        return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
    }

    std::string whyNoProducts() override { return planloom::whyNoProducts(); }
    CudaStatus planProduct(const ProductShape &shape, std::size_t &workspace, CudaProduct *product) override
    {
        return planloom::planProduct(shape, workspace, product);
    }
    CudaStatus multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c,
        void *aux, void *workspace, CudaStream stream) override
    {
        return planloom::multiply(product, a, b, bias, c, aux, workspace, stream);
    }
    void forgetProduct(CudaProduct product) override { planloom::forgetProduct(product); }

    std::string whyNoCompiler() override { return planloom::whyNoCompiler(); }
    std::string compilerVersion() override { return planloom::compilerVersion(); }
    CudaStatus compile(const std::string &source,
        const std::vector<std::pair<std::string, std::string>> &headers, std::int32_t architecture,
        std::string &code, std::string &log) override
    {
        return planloom::compile(source, headers, architecture, code, log);
    }
    CudaStatus loadKernel(const std::string &code, const char *name, CudaKernel *kernel) override
    {
        return planloom::loadKernel(code, name, kernel);
    }
    CudaStatus unloadKernel(CudaKernel kernel) override { return planloom::unloadKernel(kernel); }
    CudaStatus launchCompiled(CudaKernel kernel, const std::vector<std::uint64_t> &words, std::int64_t items,
        CudaStream stream) override
    {
        return planloom::launchCompiled(kernel, words, items, stream);
    }

private:
    /// That memory ran out is known, and must not be found again by the next launch.
    static CudaStatus cleared(cudaError_t status)
    {
        if (status == cudaErrorMemoryAllocation)
            (void)cudaGetLastError();
        return status;
    }
};

} // namespace

} // namespace planloom

extern "C" [[gnu::visibility("default")]] planloom::CudaFunctions *planloomCudaFunctions(
    std::uint32_t version)
{
    static planloom::RealCuda functions;
    return version == planloom::kCudaPluginVersion ? &functions : nullptr;
}
