#include "engine/design/models/target.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace planloom {
namespace {

/// A cluster that is no profile, and its description.
std::string ownCluster()
{
    Cluster cluster = *clusterNamed("dgx-a100:8");
    cluster.name = "ours";
    return toJson(cluster);
}

TEST(Target, TakesProfilesWithAndWithoutASize)
{
    const auto bare = resolve({"dgx-a100", {}, 4});
    ASSERT_TRUE(bare) << describe(bare.error());
    EXPECT_EQ(bare->cluster, *clusterNamed("dgx-a100:4"));
    EXPECT_EQ(bare->deviceCount, 4);

    const auto sized = resolve({"dgx-a100:16", {}, 4});
    ASSERT_TRUE(sized) << describe(sized.error());
    EXPECT_EQ(sized->cluster.deviceCount, 16);
    EXPECT_EQ(sized->deviceCount, 4);
    EXPECT_EQ(resolve({"dgx-a100:16", {}, 0})->deviceCount, 16);
}

TEST(Target, TakesFilesAndWhatTheyHeld)
{
    const std::string path = testing::TempDir() + "target_cluster.json";
    ASSERT_TRUE(writeFile(path, ownCluster()));
    EXPECT_EQ(resolve({path, {}, 2})->cluster.name, "ours");
    EXPECT_EQ(resolve({path, {}, 2})->deviceCount, 2);
    std::filesystem::remove(path);
    EXPECT_EQ(resolve({path, {}, 2}).error().code, ErrorCode::NotFound);
    const auto kept = resolve({path, ownCluster(), 2});
    ASSERT_TRUE(kept) << describe(kept.error());
    EXPECT_EQ(kept->cluster.name, "ours");
}

TEST(Target, TakesADescriptionByANameOfOnesOwn)
{
    const auto described = resolve({"dgx-h100", ownCluster(), 16});
    ASSERT_TRUE(described) << describe(described.error());
    EXPECT_EQ(described->cluster.name, "ours") << "a description goes before a profile of that name";
    EXPECT_EQ(described->deviceCount, 16);
    EXPECT_EQ(resolve({"ours", ownCluster(), 0})->deviceCount, 8);
}

TEST(Target, RefusesMoreDevicesThanThereAre)
{
    const auto many = resolve({"dgx-a100:8", {}, 9});
    ASSERT_FALSE(many);
    EXPECT_EQ(many.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(many.error().where, "--devices");
    EXPECT_EQ(resolve({"no-such-cluster", {}, 2}).error().code, ErrorCode::NotFound);
    EXPECT_EQ(resolve({"dgx-a100", {}, 0}).error().message, "the cluster has no size");
}

} // namespace
} // namespace planloom
