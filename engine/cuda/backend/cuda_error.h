#pragma once

#include "engine/base/result.h"
#include "engine/cuda/backend/cuda_functions.h"

#include <string>

namespace planloom {

/// The error of a function of CUDA: names the function, the number and its meaning, and what may help.
Error cudaError(CudaFunctions &cuda, CudaStatus status, const std::string &function);

} // namespace planloom

/// Returns from a function with a Result if the status of a call is not success.
#define CUDA_TRY(cuda, function, call)                                                                       \
    do {                                                                                                     \
        if (const ::planloom::CudaStatus cudaStatus = (call); cudaStatus != ::planloom::kCudaSuccess)        \
            return ::planloom::cudaError(cuda, cudaStatus, function);                                        \
    } while (false)
