// The kernels whose products tensor cores make: blocks of warps over their items.

#include "engine/cuda/kernels/kernel_list.h"
#include "engine/cuda/plugin/launch.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int64_t kMostBlocks = 65535LL * 16; // what is beyond is done in turns

/// A block, as MatrixPass knows it.
class WarpBlock
{
public:
    __device__ explicit WarpBlock(std::uint16_t *shared)
        : m_shared(shared)
    {
    }
    __device__ int warp() const { return static_cast<int>(threadIdx.x) / kLanes; }
    __device__ std::uint16_t *shared() const { return m_shared; }
    __device__ void meet() const { __syncthreads(); }
    __device__ void copy(std::uint16_t *to, const std::uint16_t *from, bool isThere) const
    {
#if __CUDA_ARCH__ >= 800
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
        const int bytes = isThere ? 16 : 0; // zeros take the place of the others
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
                     : "memory");
#else
        *reinterpret_cast<uint4 *>(to) = isThere ? *reinterpret_cast<const uint4 *>(from) : make_uint4(0, 0, 0, 0);
#endif
    }
    __device__ void arrive() const
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    }

private:
    std::uint16_t *m_shared;
};

template<typename Operands, int kWidth, typename Kernel>
__global__ void __launch_bounds__(kMatrixThreads, 2) runMatrices(const __grid_constant__ Kernel kernel, std::int64_t items)
{
#if !defined(__CUDA_ARCH__)
    (void)kernel, (void)items;
#else
    // Of what a device cannot run there is no code either.
    if constexpr (Operands::kArchitecture * 10 <= __CUDA_ARCH__) {
        extern __shared__ uint4 shared[];
        const WarpBlock block(reinterpret_cast<std::uint16_t *>(shared));
        for (std::int64_t i = blockIdx.x; i < items; i += gridDim.x)
            kernel.template run<Operands, kWidth>(block, i);
    }
#endif
}

template<typename Kernel>
cudaError_t launchMatrices(const Kernel &kernel, std::int64_t items, cudaStream_t stream)
{
    cudaError_t status = cudaErrorInvalidDeviceFunction;
    const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, items));
    (void)withMatrixWidth(kernel, [&]<typename Operands, int kWidth>() {
        const std::size_t bytes = kernel.template sharedBytes<kWidth>();
        const auto run = runMatrices<Operands, kWidth, Kernel>;
        if (bytes > 48 * 1024) { // more than a block gets unasked
            status = cudaFuncSetAttribute(
                run, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
            if (status != cudaSuccess)
                return;
        }
        run<<<blocks, kMatrixThreads, bytes, stream>>>(kernel, items);
        status = cudaGetLastError();
    });
    return status;
}

} // namespace

cudaError_t launchMatrixKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream)
{
    switch (kernel) {
#define PLANLOOM_LAUNCH_MATRICES(Name)                                                                       \
    case DeviceKernel::Name:                                                                                 \
        return launchMatrices(*static_cast<const Name##Kernel *>(arguments), items, stream);
        PLANLOOM_MATRIX_KERNELS(PLANLOOM_LAUNCH_MATRICES)
    default:
        return cudaErrorInvalidDeviceFunction;
    }
}

cudaError_t codeArchitecture(std::int32_t &architecture)
{
    cudaFuncAttributes attributes{};
    const auto any = runMatrices<Float16Operands, 64, MatrixAttentionKernel>;
    const cudaError_t status = cudaFuncGetAttributes(&attributes, any);
    architecture = attributes.ptxVersion;
    return status;
}

} // namespace planloom
