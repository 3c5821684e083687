#pragma once

// What is used of NVIDIA's management library (NVML): its own declarations are not needed to build. Names,
// numbers and layouts as in nvml.h, where they are stable from driver 450 on.

#include "engine/base/result.h"

#include <memory>
#include <string>

namespace planloom::nvml {

using Device = struct DeviceRecord *;

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kTemperatureOfGpu = 0;
constexpr int kProhibited = 2; ///< Compute mode: no program may use the GPU.
constexpr unsigned kMostLinks = 18;

struct Memory {
    unsigned long long total = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;
};

struct PciInfo {
    char busIdLegacy[16] = {};
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;
    unsigned pciDeviceId = 0;
    unsigned pciSubSystemId = 0;
    char busId[32] = {};
};

/// The library's functions; the first block is in all drivers, others may be null.
struct Functions {
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    const char *(*errorString)(int) = nullptr;
    int (*deviceCount)(unsigned *) = nullptr;
    int (*deviceByIndex)(unsigned, Device *) = nullptr;
    int (*name)(Device, char *, unsigned) = nullptr;
    int (*memory)(Device, Memory *) = nullptr;

    int (*driverVersion)(char *, unsigned) = nullptr;
    int (*cudaVersion)(int *) = nullptr;
    int (*computeCapability)(Device, int *, int *) = nullptr;
    int (*pciInfo)(Device, PciInfo *) = nullptr;
    int (*temperature)(Device, int, unsigned *) = nullptr;
    int (*computeMode)(Device, int *) = nullptr;
    int (*pcieGeneration)(Device, unsigned *) = nullptr;
    int (*pcieWidth)(Device, unsigned *) = nullptr;
    int (*linkState)(Device, unsigned, int *) = nullptr;
    int (*linkVersion)(Device, unsigned, unsigned *) = nullptr;
    int (*linkRemote)(Device, unsigned, PciInfo *) = nullptr;
};

/// The library, opened; stays open as long as this lives.
class Library
{
public:
    /// @param name  as dlopen takes it
    /// @return NotFound if there is no such library, NotSupported if it lacks what is needed
    static Result<std::unique_ptr<Library>> open(const std::string &name);
    ~Library();
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    const Functions &functions() const { return m_functions; }
    /// The library's own words for an error.
    std::string describe(int error) const;

private:
    explicit Library(void *handle)
        : m_handle(handle)
    {
    }
    void *m_handle;
    Functions m_functions{};
};

} // namespace planloom::nvml
