// Stands in for NVIDIA's libraries where there is no GPU: what probe.cpp opens. The environment variable
// PLANLOOM_FAKE_NVIDIA says what is wrong with it.

#include "engine/runtime/machine/nvml.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using namespace planloom::nvml;

namespace {

constexpr int kNotLoaded = 9;
constexpr int kLost = 15;

bool isWrong(const char *what)
{
    const char *const given = std::getenv("PLANLOOM_FAKE_NVIDIA");
    return given != nullptr && std::string{given} == what;
}

int write(char *to, unsigned length, const char *text)
{
    std::strncpy(to, text, length);
    return kSuccess;
}

std::size_t indexOf(Device device)
{
    return reinterpret_cast<std::size_t>(device) - 1;
}

} // namespace

extern "C" {

int nvmlInit_v2()
{
    if (isWrong("hangs"))
        std::this_thread::sleep_for(std::chrono::seconds{30});
    return isWrong("not loaded") ? kNotLoaded : kSuccess;
}
int nvmlShutdown()
{
    return kSuccess;
}
const char *nvmlErrorString(int error)
{
    return error == kNotLoaded ? "Driver Not Loaded" : error == kLost ? "GPU is lost" : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = isWrong("no GPU") ? 0 : 3;
    return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device)
{
    if (index == 1 && isWrong("one is lost"))
        return kLost;
    *device = reinterpret_cast<Device>(std::size_t{index} + 1);
    return kSuccess;
}
int nvmlDeviceGetName(Device device, char *name, unsigned length)
{
    return write(name, length, indexOf(device) == 2 ? "Tesla V100-SXM2-32GB" : "NVIDIA H100 80GB HBM3");
}
int nvmlDeviceGetMemoryInfo(Device, Memory *memory)
{
    *memory = {80ULL << 30U, 79ULL << 30U, 1ULL << 30U};
    return kSuccess;
}
int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    return write(version, length, isWrong("old driver") ? "470.82" : "580.95.05");
}
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = isWrong("old driver") ? 11040 : 13000;
    return kSuccess;
}
int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor)
{
    *major = indexOf(device) == 2 ? 7 : 9;
    *minor = 0;
    return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info)
{
    std::strcpy(info->busId, "00000000:10:00.0");
    info->busId[10] = static_cast<char>('0' + indexOf(device));
    return kSuccess;
}
int nvmlDeviceGetTemperature(Device, int, unsigned *degrees)
{
    *degrees = 41;
    return kSuccess;
}
int nvmlDeviceGetComputeMode(Device device, int *mode)
{
    *mode = indexOf(device) == 0 && isWrong("prohibited") ? kProhibited : 0;
    return kSuccess;
}
int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned *generation)
{
    *generation = 5;
    return kSuccess;
}
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned *width)
{
    *width = 16;
    return kSuccess;
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, int *active)
{
    if (indexOf(device) == 2)
        return kNotSupported;
    *active = link < 4 ? 1 : 0;
    return kSuccess;
}
int nvmlDeviceGetNvLinkVersion(Device, unsigned, unsigned *version)
{
    *version = 4;
    return kSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo *info)
{
    std::strcpy(info->busId, link < 3 ? "00000000:10:00.0" : "00000000:A0:00.0"); // each other, and a switch
    if (link < 3)
        info->busId[10] = indexOf(device) == 0 ? '1' : '0';
    return kSuccess;
}

int ncclGetVersion(int *version)
{
    *version = 22809;
    return 0;
}
std::size_t cublasLtGetVersion()
{
    return 130100;
}
int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}
}
