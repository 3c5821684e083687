#pragma once

#include "engine/cuda/backend/cuda_functions.h"

namespace planloom {

// As those of CudaFunctions, by NVRTC and the runtime.
std::string whyNoCompiler();
std::string compilerVersion();
CudaStatus compile(const std::string &source, const std::vector<std::pair<std::string, std::string>> &headers,
    std::int32_t architecture, std::string &code, std::string &log);
CudaStatus loadKernel(const std::string &code, const char *name, CudaKernel *kernel);
CudaStatus unloadKernel(CudaKernel kernel);
CudaStatus launchCompiled(
    CudaKernel kernel, const std::vector<std::uint64_t> &words, std::int64_t items, CudaStream stream);

} // namespace planloom
