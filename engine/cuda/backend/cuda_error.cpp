#include "engine/cuda/backend/cuda_error.h"

namespace planloom {

Error cudaError(CudaFunctions &cuda, CudaStatus status, const std::string &function)
{
    constexpr CudaStatus kInsufficientDriver = 35;
    constexpr CudaStatus kNoDevice = 100;
    constexpr CudaStatus kNoKernelImage = 209;
    constexpr CudaStatus kIllegalAddress = 700;
    Error error{ErrorCode::Internal,
        function + " failed with " + std::to_string(status) + ": " + cuda.errorText(status), {}, {}};
    switch (status) {
    case kCudaOutOfMemory:
        error.code = ErrorCode::ResourceLimit;
        error.advice = "use a smaller batch, more micro-batches, recomputation or more devices";
        break;
    case kInsufficientDriver:
        error.code = ErrorCode::NotSupported;
        error.advice = "install a newer NVIDIA driver, or run with --backend cpu";
        break;
    case kNoDevice:
        error.code = ErrorCode::NotFound;
        error.advice = "run on a machine with an NVIDIA GPU, or with --backend cpu";
        break;
    case kNoKernelImage:
        error.code = ErrorCode::NotSupported;
        error.advice = "the plugin has no code for this GPU (" + cuda.architectures()
            + "): build it with PLANLOOM_CUDA_ARCHITECTURES for it";
        break;
    case 4: // the driver is shutting down
    case 46: // devices unavailable
    case 214: // uncorrectable ECC error
    case kIllegalAddress:
    case 702: // launch timeout
    case 715: // illegal instruction
    case 719: // launch failure
    case 999: // unknown
        error.advice = "the GPU takes no more work of this process: run again; if it stays, look at dmesg "
                       "(\"Xid\") and nvidia-smi";
        break;
    default:
        break;
    }
    return error;
}

} // namespace planloom
