// The CPU's devices pass the suite of all backends.

#include "engine/runtime/communication/thread_communicator.h"
#include "engine/runtime/devices/cpu_backend.h"

#include "tests/engine/runtime/backend_suite.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Devices of one process on the CPU. Another backend joins by a class like this.
class CpuDevices
{
public:
    CpuDevices(std::int32_t devices, std::vector<std::vector<DeviceId>> groups, std::int32_t threads = 3)
        : m_pool(threads)
        , m_world(devices, std::move(groups))
    {
        for (std::int32_t d = 0; d < devices; ++d)
            m_backends.push_back(cpuBackend(m_pool, m_world.communicator(DeviceId{d})));
    }

    DeviceBackend &device(std::size_t d) { return *m_backends[d]; }
    void abort() { m_world.abort(); }

private:
    WorkPool m_pool;
    ThreadWorld m_world;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
};

PLANLOOM_BACKEND_TESTS(CpuDevices)

} // namespace
} // namespace planloom
