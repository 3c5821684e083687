#pragma once

#include "engine/cuda/kernels/kernel_list.h"
#include "engine/graph/shape.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

// Every function of CUDA, cuBLASLt, NVRTC and NCCL that the backend calls, and nothing else: the plugin has
// the real ones, tests a fake that keeps device memory on the host. What they do is what NVIDIA's documents
// say of the function named.

/// 0: done. Else the number that the library gives the error.
using CudaStatus = std::int32_t;
constexpr CudaStatus kCudaSuccess = 0;
constexpr CudaStatus kCudaOutOfMemory = 2;
constexpr CudaStatus kCudaNotReady = 600;

using CudaStream = void *;
using CudaEvent = void *;
using CudaProduct = void *;
using CudaGraph = void *; ///< One that can be launched.
using CudaKernel = void *; ///< One that was compiled while the program runs.

/// One GPU of this machine.
struct CudaDeviceInfo {
    char name[256] = {};
    char busId[32] = {}; ///< On PCI: "0000:17:00.0".
    std::int32_t major = 0; ///< Of the architecture: 9.0 is 90.
    std::int32_t minor = 0;
    std::int32_t multiprocessors = 0;
    std::int64_t totalBytes = 0;
    std::int64_t freeBytes = 0;
};

/// What a product does beside multiplying, before its result is rounded.
enum class Epilogue : std::int32_t {
    None,
    Relu, ///< c = relu(c)
    Gelu, ///< c = gelu(c), in its tanh form, as are the next two.
    GeluKeeping, ///< aux = c, c = gelu(c)
    GeluSlope, ///< c = c gelu'(aux)
    SumsOfA, ///< aux [m] = the sums of a's rows.
    SumsOfB, ///< aux [n] = the sums of b's columns.
};

/// One product, or several alike: c [m n] = a [m k] b [k n] (+ bias [n], + c). Strides in elements; c's
/// columns are next to each other.
struct ProductShape {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::int64_t aRow = 0;
    std::int64_t aColumn = 1;
    std::int64_t bRow = 0;
    std::int64_t bColumn = 1;
    std::int64_t cRow = 0;
    std::int64_t repeats = 1;
    std::int64_t aStep = 0; ///< From one product to the next.
    std::int64_t bStep = 0;
    std::int64_t cStep = 0;
    DataType operands = DataType::Float32; ///< Of a and b: Float32, BFloat16 or Float16.
    DataType result = DataType::Float32; ///< Of c and bias.
    bool tensorFloat32 = false; ///< Float32 operands are rounded to 10 bits of mantissa.
    bool bias = false;
    bool accumulate = false; ///< c += instead of c =.
    Epilogue epilogue = Epilogue::None; ///< Other than None: of one product, which is not added to c.
    friend auto operator<=>(const ProductShape &, const ProductShape &) = default;
};

class CudaFunctions
{
public:
    virtual ~CudaFunctions() = default;

    /// 13000 for 13.0; 0 where no driver is installed.
    virtual CudaStatus driverVersion(std::int32_t &version) = 0;
    virtual CudaStatus runtimeVersion(std::int32_t &version) = 0;
    virtual CudaStatus deviceCount(std::int32_t &count) = 0;
    virtual CudaStatus deviceInfo(std::int32_t device, CudaDeviceInfo &info) = 0;
    /// The device of all calls of this thread that follow.
    virtual CudaStatus setDevice(std::int32_t device) = 0;
    virtual std::string errorText(CudaStatus status) = 0;
    /// "75 80 86 90": architectures that the plugin has code for; "120+" also for all later ones.
    virtual std::string architectures() = 0;
    /// The architecture that the code was made for which the current device runs: 80 also for a device of 90
    /// that the driver has compiled PTX of 80 for.
    virtual CudaStatus codeArchitecture(std::int32_t &architecture) = 0;

    virtual CudaStatus allocate(void **memory, std::size_t bytes) = 0;
    virtual CudaStatus release(void *memory) = 0;
    /// Pinned memory of the host, which the device may read and write, too.
    virtual CudaStatus allocateHost(void **memory, std::size_t bytes) = 0;
    virtual CudaStatus releaseHost(void *memory) = 0;

    /// @param urgent  its kernels go before those of other streams
    virtual CudaStatus createStream(CudaStream *stream, bool urgent) = 0;
    virtual CudaStatus destroyStream(CudaStream stream) = 0;
    virtual CudaStatus createEvent(CudaEvent *event) = 0;
    virtual CudaStatus destroyEvent(CudaEvent event) = 0;
    virtual CudaStatus record(CudaEvent event, CudaStream stream) = 0;
    virtual CudaStatus wait(CudaStream stream, CudaEvent event) = 0;
    /// kCudaNotReady until it has happened.
    virtual CudaStatus query(CudaEvent event) = 0;
    /// As `record`; in a stream that is captured, it happens whenever the graph comes to it, and orders
    /// nothing (cudaEventRecordExternal).
    virtual CudaStatus recordTime(CudaEvent event, CudaStream stream) = 0;
    virtual CudaStatus milliseconds(float &passed, CudaEvent from, CudaEvent to) = 0;

    virtual CudaStatus copy(void *to, const void *from, std::size_t bytes, CudaStream stream) = 0;
    virtual CudaStatus fill(void *to, std::uint8_t value, std::size_t bytes, CudaStream stream) = 0;
    /// `function`, on a thread of the host, between what stands before and after it in the stream. It must
    /// call none of these functions.
    virtual CudaStatus hostFunction(CudaStream stream, void (*function)(void *), void *data) = 0;
    /// @param arguments  the kernel's of kernel_list.h, copied @param items  as there
    virtual CudaStatus launch(
        DeviceKernel kernel, const void *arguments, std::int64_t items, CudaStream stream) = 0;

    /// What is put into `stream`, and those that wait for its events from now on, is captured; in the relaxed
    /// mode, in which other calls may be made, too.
    virtual CudaStatus beginCapture(CudaStream stream) = 0;
    /// Ends it, also where a call in between has failed; makes what was captured a graph that can be
    /// launched.
    virtual CudaStatus endCapture(CudaStream stream, CudaGraph *graph) = 0;
    virtual CudaStatus launchGraph(CudaGraph graph, CudaStream stream) = 0;
    virtual CudaStatus destroyGraph(CudaGraph graph) = 0;

    /// Why `planProduct` always fails (a library that is missing); empty where it does not.
    virtual std::string whyNoProducts() = 0;
    /// Chooses an algorithm, which may take some time. @param workspace  bytes that it may use, at most; made
    /// what it needs
    virtual CudaStatus planProduct(
        const ProductShape &shape, std::size_t &workspace, CudaProduct *product) = 0;
    /// @param aux  of the epilogue: of c's type, and laid out as c is
    virtual CudaStatus multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c,
        void *aux, void *workspace, CudaStream stream) = 0;
    virtual void forgetProduct(CudaProduct product) = 0;

    /// Why `compile` always fails (NVRTC is missing); empty where it does not.
    virtual std::string whyNoCompiler() = 0;
    virtual std::string compilerVersion() = 0; ///< "13.0"
    /// Without fused multiplications and additions: what an operator rounds stays rounded.
    /// @param headers  name and text of what `source` includes @param architecture  90 for 9.0
    /// @param code  what `loadKernel` takes @param log  what is wrong with the source
    /// @return NVRTC's number
    virtual CudaStatus compile(const std::string &source,
        const std::vector<std::pair<std::string, std::string>> &headers, std::int32_t architecture,
        std::string &code, std::string &log) = 0;
    virtual CudaStatus loadKernel(const std::string &code, const char *name, CudaKernel *kernel) = 0;
    virtual CudaStatus unloadKernel(CudaKernel kernel) = 0;
    /// One thread for each of `items`. @param words  the kernel's first argument, copied; the second is
    /// `items`
    virtual CudaStatus launchCompiled(CudaKernel kernel, const std::vector<std::uint64_t> &words,
        std::int64_t items, CudaStream stream) = 0;
};

} // namespace planloom
