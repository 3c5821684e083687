// Kernels that are compiled while a plan runs.

#include "engine/cuda/plugin/compiler.h"

#include "engine/base/vendor_library.h"
#include "engine/cuda/plugin/launch.h"

#include <algorithm>
#include <memory>

#include <dlfcn.h>
#include <nvrtc.h>

namespace planloom {

namespace {

/// The functions of NVRTC that are called.
struct Compiler {
    decltype(&nvrtcVersion) version = nullptr;
    decltype(&nvrtcCreateProgram) create = nullptr;
    decltype(&nvrtcDestroyProgram) destroy = nullptr;
    decltype(&nvrtcCompileProgram) compile = nullptr;
    decltype(&nvrtcGetProgramLogSize) logSize = nullptr;
    decltype(&nvrtcGetProgramLog) log = nullptr;
    decltype(&nvrtcGetCUBINSize) codeSize = nullptr;
    decltype(&nvrtcGetCUBIN) code = nullptr;
    std::string why{}; ///< There is none of it; empty where there is.
};

template<typename Function> bool find(void *library, const char *name, Function &function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Compiler openCompiler()
{
    Compiler compiler;
#if CUDART_VERSION < 12080 // the runtime loads what it was not built with since 12.8
    compiler.why = "the plugin was built with a CUDA toolkit before 12.8";
#else
    void *const library = openVendorLibrary(kCompilerNames, compiler.why);
    if (library != nullptr
        && (!find(library, "nvrtcVersion", compiler.version)
            || !find(library, "nvrtcCreateProgram", compiler.create)
            || !find(library, "nvrtcDestroyProgram", compiler.destroy)
            || !find(library, "nvrtcCompileProgram", compiler.compile)
            || !find(library, "nvrtcGetProgramLogSize", compiler.logSize)
            || !find(library, "nvrtcGetProgramLog", compiler.log)
            || !find(library, "nvrtcGetCUBINSize", compiler.codeSize)
            || !find(library, "nvrtcGetCUBIN", compiler.code)))
        compiler.why = "NVRTC is of a version without the functions that are needed";
#endif
    return compiler;
}

const Compiler &compiler()
{
    static const Compiler kCompiler = openCompiler();
    return kCompiler;
}

/// What NVRTC has of a program, by the two functions that tell how long it is and give it.
template<typename Size, typename Get>
nvrtcResult textOf(nvrtcProgram program, Size size, Get get, std::string &text)
{
    std::size_t bytes = 0;
    if (const nvrtcResult status = size(program, &bytes); status != NVRTC_SUCCESS)
        return status;
    text.assign(bytes, '\0');
    return get(program, text.data());
}

#if CUDART_VERSION >= 12080
/// A kernel with the library that it is of.
struct Loaded {
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
};
#endif

} // namespace

std::string whyNoCompiler()
{
    return compiler().why;
}

std::string compilerVersion()
{
    int major = 0;
    int minor = 0;
    if (!compiler().why.empty() || compiler().version(&major, &minor) != NVRTC_SUCCESS)
        return {};
    return std::to_string(major) + "." + std::to_string(minor);
}

CudaStatus compile(const std::string &source, const std::vector<std::pair<std::string, std::string>> &headers,
    std::int32_t architecture, std::string &code, std::string &log)
{
    if (!compiler().why.empty())
        return NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
    std::vector<const char *> names;
    std::vector<const char *> texts;
    for (const auto &[name, text] : headers) {
        names.push_back(name.c_str());
        texts.push_back(text.c_str());
    }
    nvrtcProgram program = nullptr;
    if (const nvrtcResult status = compiler().create(&program, source.c_str(), "planloom_chain.cu",
            static_cast<int>(headers.size()), texts.data(), names.data());
        status != NVRTC_SUCCESS)
        return status;
    const std::string target = "--gpu-architecture=sm_" + std::to_string(architecture);
    // Contracted, a product of one operator and a sum of another would not be rounded in between.
    const std::vector<const char *> options{
        target.c_str(), "--std=c++20", "--fmad=false", "--device-as-default-execution-space"};
    nvrtcResult status = compiler().compile(program, static_cast<int>(options.size()), options.data());
    if (status == NVRTC_SUCCESS)
        status = textOf(program, compiler().codeSize, compiler().code, code);
    else
        (void)textOf(program, compiler().logSize, compiler().log, log);
    (void)compiler().destroy(&program);
    return status;
}

#if CUDART_VERSION >= 12080

CudaStatus loadKernel(const std::string &code, const char *name, CudaKernel *kernel)
{
    auto loaded = std::make_unique<Loaded>();
    cudaError_t status =
        cudaLibraryLoadData(&loaded->library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (status == cudaSuccess) {
        status = cudaLibraryGetKernel(&loaded->kernel, loaded->library, name);
        if (status != cudaSuccess)
            (void)cudaLibraryUnload(loaded->library);
    }
    if (status != cudaSuccess) {
        (void)cudaGetLastError(); // known, and not to be found again by the next launch
        return status;
    }
    *kernel = loaded.release();
    return kCudaSuccess;
}

CudaStatus unloadKernel(CudaKernel kernel)
{
    const std::unique_ptr<Loaded> loaded(static_cast<Loaded *>(kernel));
    return cudaLibraryUnload(loaded->library);
}

CudaStatus launchCompiled(
    CudaKernel kernel, const std::vector<std::uint64_t> &words, std::int64_t items, CudaStream stream)
{
    // Both are copied by the launch. A kernel without words has one that it does not look at.
    std::uint64_t none = 0;
    void *arguments[] = {
        words.empty() ? static_cast<void *>(&none) : const_cast<std::uint64_t *>(words.data()), &items};
    return cudaLaunchKernel(static_cast<const void *>(static_cast<Loaded *>(kernel)->kernel),
        blocksFor(items), kThreads, arguments, 0, static_cast<cudaStream_t>(stream));
}

#else

CudaStatus loadKernel(const std::string &, const char *, CudaKernel *)
{
    return cudaErrorNotSupported;
}
CudaStatus unloadKernel(CudaKernel)
{
    return cudaErrorNotSupported;
}
CudaStatus launchCompiled(CudaKernel, const std::vector<std::uint64_t> &, std::int64_t, CudaStream)
{
    return cudaErrorNotSupported;
}

#endif

} // namespace planloom
