// What stands between the program and the CUDA plugin: every way in which it is not there has its reason.

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/cuda/backend/cuda_plugin.h"
#include "engine/cuda/nccl/nccl_devices.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

const std::string kBuilt = std::string{PLANLOOM_BINARY_DIR} + "/bin/" + kCudaPluginFile;

TEST(CudaPlugin, ThatIsNotThereIsNamedWithAllPlaces)
{
    const auto opened = openCudaPlugin({"/nowhere/a.so", "/nowhere/b.so"});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::NotFound);
    EXPECT_NE(opened.error().message.find("/nowhere/a.so, /nowhere/b.so"), std::string::npos);
    EXPECT_FALSE(openCudaPlugin({}));
}

TEST(CudaPlugin, ThatIsNoLibraryIsRefusedWithTheLoadersReason)
{
    const auto path = std::filesystem::temp_directory_path() / "planloom-no-plugin.so";
    std::ofstream(path) << "this is no library";
    const auto opened = openCudaPlugin({path.string()});
    std::filesystem::remove(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::NotSupported);
    EXPECT_NE(opened.error().message.find("cannot be used"), std::string::npos);
    EXPECT_EQ(opened.error().where, path.string());
}

TEST(CudaPlugin, OpensAndSaysWhatItFinds)
{
    if (!std::filesystem::exists(kBuilt))
        GTEST_SKIP() << "the CUDA toolkit was not found: there is no plugin";
    const auto cuda = openCudaPlugin({kBuilt});
    ASSERT_TRUE(cuda) << describe(cuda.error());
    std::int32_t runtime = 0;
    EXPECT_EQ((*cuda)->runtimeVersion(runtime), kCudaSuccess);
    EXPECT_GE(runtime, 12000);
    EXPECT_FALSE((*cuda)->architectures().empty());
    const auto usable = checkCuda(**cuda, 0);
    EXPECT_TRUE(usable || !usable.error().advice.empty());
    std::int32_t driver = 0;
    ASSERT_EQ((*cuda)->driverVersion(driver), kCudaSuccess);
    if (driver == 0) {
        EXPECT_EQ(usable.error().message, "no NVIDIA driver is installed on this machine");
    }
    EXPECT_EQ(usable ? (*cuda)->whyNoProducts() : "", "");
}

TEST(CudaPlugin, OpensNcclOrSaysWhyNot)
{
    if (!std::filesystem::exists(kBuilt))
        GTEST_SKIP() << "the CUDA toolkit was not found: there is no plugin";
    const auto nccl = openNcclPlugin({kBuilt});
    if (!nccl) {
        EXPECT_NE(nccl.error().message.find("libnccl.so.2"), std::string::npos) << nccl.error().message;
        EXPECT_FALSE(nccl.error().advice.empty());
        return;
    }
    EXPECT_TRUE(checkNccl(**nccl));
    NcclId id;
    EXPECT_EQ((*nccl)->uniqueId(id), kNcclSuccess) << (*nccl)->lastError(nullptr);
    EXPECT_FALSE((*nccl)->errorText(kNcclInProgress).empty());
}

TEST(CudaPlugin, GpusAreAskedForInAProcessOfTheirOwn)
{
    const auto usable = requireGpus(4096); // nobody has as many
    ASSERT_FALSE(usable);
    EXPECT_FALSE(usable.error().advice.empty()) << usable.error().message;
    RunRequest request;
    request.backend = "cuda";
    request.plan.devices.resize(3);
    request.plan.units.count = 2;
    ASSERT_TRUE(openBackend(request, false));
    EXPECT_EQ(request.ranks, 6);
    EXPECT_TRUE(request.options.devices);
}

TEST(CudaPlugin, UnknownBackendsAreNamedWithThoseThatAreKnown)
{
    ASSERT_TRUE(devicesOfBackend("cpu"));
    EXPECT_FALSE(*devicesOfBackend("cpu"));
    ASSERT_TRUE(devicesOfBackend("cuda-emulated"));
    EXPECT_TRUE(*devicesOfBackend("cuda-emulated"));
    ASSERT_TRUE(devicesOfBackend("cuda"));
    EXPECT_TRUE(*devicesOfBackend("cuda"));
    const auto unknown = devicesOfBackend("tpu");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().where, "--backend");
    EXPECT_NE(unknown.error().advice.find("cuda-emulated"), std::string::npos);
}

} // namespace
} // namespace planloom
