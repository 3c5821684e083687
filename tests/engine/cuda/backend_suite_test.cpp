// Devices of the fake pass the suite of all backends.

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/emulated_world.h"

#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/runtime/backend_suite.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

class FakeCudaDevices
{
public:
    FakeCudaDevices(std::int32_t devices, std::vector<std::vector<DeviceId>> groups)
        : m_shared(m_cuda, 2)
        , m_world(m_shared, devices, std::move(groups))
    {
        for (std::int32_t d = 0; d < devices; ++d)
            if (auto backend = cudaBackend(m_shared, m_world.communicator(DeviceId{d}), {}))
                m_backends.push_back(*std::move(backend));
    }

    DeviceBackend &device(std::size_t d) { return *m_backends.at(d); }
    void abort() { m_world.abort(); }

private:
    FakeCuda m_cuda{};
    CudaShared m_shared;
    EmulatedWorld m_world;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
};

PLANLOOM_BACKEND_TESTS(FakeCudaDevices)

} // namespace
} // namespace planloom
