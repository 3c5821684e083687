#include "engine/runtime/machine/nvml.h"

#include <dlfcn.h>

namespace planloom::nvml {

namespace {

template<typename Function> bool find(void *library, const char *name, Function &function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

} // namespace

Result<std::unique_ptr<Library>> Library::open(const std::string &name)
{
    void *const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char *const why = ::dlerror();
        return Error{ErrorCode::NotFound,
            "NVIDIA's driver was not found: " + std::string{why == nullptr ? name : why},
            "install the driver of the GPU, or run on CPU devices", {}};
    }
    std::unique_ptr<Library> library{new Library{handle}};
    Functions &to = library->m_functions;
    const bool complete = find(handle, "nvmlInit_v2", to.init) && find(handle, "nvmlShutdown", to.shutdown)
        && find(handle, "nvmlErrorString", to.errorString)
        && find(handle, "nvmlDeviceGetCount_v2", to.deviceCount)
        && find(handle, "nvmlDeviceGetHandleByIndex_v2", to.deviceByIndex)
        && find(handle, "nvmlDeviceGetName", to.name) && find(handle, "nvmlDeviceGetMemoryInfo", to.memory);
    if (!complete)
        return Error{ErrorCode::NotSupported, name + " lacks functions that NVIDIA's drivers have since 450",
            "install a newer driver", {}};
    find(handle, "nvmlSystemGetDriverVersion", to.driverVersion);
    find(handle, "nvmlSystemGetCudaDriverVersion_v2", to.cudaVersion);
    find(handle, "nvmlDeviceGetCudaComputeCapability", to.computeCapability);
    find(handle, "nvmlDeviceGetPciInfo_v3", to.pciInfo);
    find(handle, "nvmlDeviceGetTemperature", to.temperature);
    find(handle, "nvmlDeviceGetComputeMode", to.computeMode);
    find(handle, "nvmlDeviceGetMaxPcieLinkGeneration", to.pcieGeneration);
    find(handle, "nvmlDeviceGetMaxPcieLinkWidth", to.pcieWidth);
    find(handle, "nvmlDeviceGetNvLinkState", to.linkState);
    find(handle, "nvmlDeviceGetNvLinkVersion", to.linkVersion);
    find(handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2", to.linkRemote);
    return library;
}

Library::~Library()
{
    ::dlclose(m_handle);
}

std::string Library::describe(int error) const
{
    const char *const text = m_functions.errorString(error);
    return text == nullptr ? "error " + std::to_string(error) : text;
}

} // namespace planloom::nvml
