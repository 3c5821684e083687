// The CUDA plugin with a fake in place of CUDA: a planloom-exec beside which it lies runs plans as on a GPU,
// and comes upon what the environment variable PLANLOOM_FAKE_CUDA says, such as "fail-after=900 failure=719".

#include "tests/engine/cuda/fake_cuda.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace {

/// "name=value name=value".
std::map<std::string, std::int64_t> faults()
{
    std::map<std::string, std::int64_t> found;
    const char *const given = std::getenv("PLANLOOM_FAKE_CUDA");
    std::istringstream text(given == nullptr ? "" : given);
    for (std::string word; text >> word;) {
        const std::size_t sign = word.find('=');
        if (sign != std::string::npos)
            found[word.substr(0, sign)] = std::atoll(word.c_str() + sign + 1);
    }
    return found;
}

} // namespace

extern "C" __attribute__((visibility("default"))) planloom::CudaFunctions *planloomCudaFunctions(
    std::uint32_t version)
{
    static planloom::FakeCuda cuda;
    for (const auto &[name, value] : faults()) {
        if (name == "fail-after")
            cuda.failAfter = value;
        else if (name == "failure")
            cuda.failure = static_cast<planloom::CudaStatus>(value);
        else if (name == "stuck-after")
            cuda.stuckAfter = value;
        else if (name == "free-bytes")
            cuda.freeBytes = value;
        else if (name == "driver")
            cuda.driver = static_cast<std::int32_t>(value);
        else if (name == "version" && static_cast<std::uint32_t>(value) != version)
            return nullptr;
    }
    return &cuda;
}
