// Devices of the fake pass the suite of all backends, and those of a GPU where there is one.

#include "engine/cuda/backend/cuda_backend.h"
#include "engine/cuda/backend/cuda_devices.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/nccl/emulated_world.h"

#include "planloom_paths.h"

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
    FakeCuda &cuda() { return m_cuda; }

private:
    FakeCuda m_cuda{};
    CudaShared m_shared;
    EmulatedWorld m_world;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
};

PLANLOOM_BACKEND_TESTS(FakeCudaDevices)

/// A device whose memory is pinned memory of the host, which both see.
class VisibleDevice final : public DeviceBackend
{
public:
    explicit VisibleDevice(std::unique_ptr<DeviceBackend> device)
        : m_device(std::move(device))
    {
    }
    Result<std::byte *> reserve(MemoryPlace, std::size_t bytes) override
    {
        return m_device->reserve(MemoryPlace::Host, bytes);
    }
    std::int64_t alignment() const override { return m_device->alignment(); }
    void begin(std::int32_t events, TaskListener &listener) override { m_device->begin(events, listener); }
    void issue(DeviceTask task) override { m_device->issue(std::move(task)); }
    void finish() override { m_device->finish(); }

private:
    std::unique_ptr<DeviceBackend> m_device;
};

class RealCudaDevices
{
public:
    RealCudaDevices(std::int32_t devices, std::vector<std::vector<DeviceId>> groups)
        : m_plugin(*openCudaPlugin({kBuiltPlugin}))
        , m_shared(*m_plugin, 2)
        , m_world(m_shared, devices, std::move(groups))
    {
        for (std::int32_t d = 0; d < devices; ++d)
            if (auto backend = cudaBackend(m_shared, m_world.communicator(DeviceId{d}), {}))
                m_backends.push_back(std::make_unique<VisibleDevice>(*std::move(backend)));
    }

    static std::string whyNot()
    {
        const auto plugin = openCudaPlugin({kBuiltPlugin});
        if (!plugin)
            return "no GPU: " + plugin.error().message;
        const auto usable = checkCuda(**plugin, 0);
        return usable ? std::string{} : "no GPU: " + usable.error().message;
    }
    DeviceBackend &device(std::size_t d) { return *m_backends.at(d); }
    void abort() { m_world.abort(); }

private:
    inline static const std::string kBuiltPlugin =
        std::string{PLANLOOM_BINARY_DIR} + "/bin/" + kCudaPluginFile;
    std::shared_ptr<CudaFunctions> m_plugin;
    CudaShared m_shared;
    EmulatedWorld m_world;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
};

PLANLOOM_BACKEND_TESTS(RealCudaDevices)

TEST(CudaBackend, CallsWhatThePlanSaysInItsOrder)
{
    FakeCudaDevices devices{1, {}};
    DeviceBackend &device = devices.device(0);
    const auto arena = device.reserve(MemoryPlace::Device, 1024);
    ASSERT_TRUE(arena);
    Told told;
    device.begin(3, told);
    devices.cuda().keepsCalls = true;
    device.issue({.event = 0, .work = [&](DeviceQueue &queue) -> Result<void> {
                      queue.fill(*arena, 0, 512);
                      return {};
                  }});
    device.issue(
        {.event = 1, .queue = QueueKind::Data, .waits = {0}, .work = [&](DeviceQueue &queue) -> Result<void> {
             queue.copy(*arena + 512, *arena, 256);
             return {};
         }});
    device.issue({.event = 2, .waits = {1}});
    devices.cuda().keepsCalls = false;
    device.finish();
    // e0 is the anchor; then come start and end of each event. Compute is the first stream, Data the third.
    const std::vector<std::string> expected{"record e1 s0", "fill 512 s0", "record e2 s0", "wait s2 e2",
        "record e3 s2", "copy 256 s2", "record e4 s2", "wait s0 e4", "record e5 s0", "record e6 s0"};
    EXPECT_EQ(devices.cuda().calls, expected);
}

} // namespace
} // namespace planloom
