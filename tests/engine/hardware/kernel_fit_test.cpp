#include "engine/hardware/kernel_fit.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/kernel_cost.h"
#include "tests/engine/hardware/profiles.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Times that a device of these rates would have.
KernelTimings timesOf(const Cluster &cluster)
{
    KernelTimings timings;
    timings.source = "a test";
    const double memory = cluster.device.memoryBandwidth.value * cluster.device.memoryEfficiency.value;
    for (const double m : {256, 1024, 4096, 16384})
        for (const double n : {1024, 4096, 16384})
            for (const double k : {1024, 4096, 16384}) {
                ProductTiming row;
                row.product = {m, n, k, 1};
                const double bytes = 2 * (m * k + n * k + m * n);
                row.seconds = 3e-6
                    + overlapped(cluster.device, productSeconds(cluster.device, row.product, row.format),
                        bytes / memory);
                timings.products.push_back(row);
            }
    for (const auto kind : {CollectiveKind::AllGather, CollectiveKind::AllToAll})
        for (const std::int32_t n : {2, 4, 8})
            for (std::int64_t bytes = 1 << 14; bytes <= 1 << 28; bytes *= 4) {
                CollectiveTiming row;
                row.kind = kind;
                row.shape.ranks = n;
                row.bytes = {bytes};
                row.seconds = collectiveSeconds(cluster.links, kind, row.bytes, row.shape);
                timings.collectives.push_back(row);
            }
    return timings;
}

TEST(FittedCluster, FindsTheRatesThatTimesWereMadeOf)
{
    Cluster made = cluster("dgx-h100:8");
    made.device.productEfficiency.value = 0.7;
    made.device.tileEfficiency.value = 0.85;
    made.links.startLatency.value = 9e-6;
    made.links.hopLatency.value = 1.5e-6;
    made.links.allToAllBandwidth.value = 250e9;
    const auto fitted = fittedCluster(cluster("dgx-h100:8"), timesOf(made));
    ASSERT_TRUE(fitted) << describe(fitted.error());
    const DeviceModel &device = fitted->cluster.device;
    EXPECT_NEAR(device.productEfficiency.value, 0.7, 0.01);
    EXPECT_NEAR(device.tileEfficiency.value, 0.85, 0.02);
    EXPECT_NEAR(fitted->overheads[0].product, 3e-6, 3e-7);
    EXPECT_NEAR(fitted->cluster.links.startLatency.value, 9e-6, 5e-7);
    EXPECT_NEAR(fitted->cluster.links.hopLatency.value, 1.5e-6, 1e-7);
    EXPECT_NEAR(fitted->cluster.links.allToAllBandwidth.value, 250e9, 5e9);
    EXPECT_EQ(fitted->cluster.links.intraBandwidth, made.links.intraBandwidth);
    for (const FitError &error : fitted->errors)
        EXPECT_LT(error.median, 0.02) << toString(error);
    // What was not measured stays, and what was says so.
    EXPECT_EQ(device.attentionEfficiency, made.device.attentionEfficiency);
    EXPECT_EQ(device.float16Flops, made.device.float16Flops);
    EXPECT_NE(device.productEfficiency.source.find("of 36 times"), std::string::npos)
        << device.productEfficiency.source;
    EXPECT_EQ(*clusterFromJson(toJson(fitted->cluster)), fitted->cluster);
}

TEST(FittedCluster, RefusesTimesThatTheDeviceCannotReach)
{
    KernelTimings timings = timesOf(cluster("hgx-b200:8"));
    timings.collectives.clear();
    for (std::size_t i = 0; i < timings.products.size(); ++i)
        timings.products[i].where = "/matmul/" + std::to_string(i);
    const auto fitted = fittedCluster(cluster("dgx-a100:8"), timings);
    ASSERT_FALSE(fitted);
    EXPECT_EQ(fitted.error().code, ErrorCode::InvalidInput);
    EXPECT_TRUE(fitted.error().where.starts_with("/matmul/"));
    EXPECT_NE(fitted.error().advice.find("--base"), std::string::npos);
}

/// What the profiles say of themselves, beside the published times that they are from.
TEST(Profiles, AreAsFarFromPublishedTimesAsTheySay)
{
    const auto path = modelFolder().parent_path() / "published" / "measured" / "kernels.json";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "the published figures are not beside this checkout";
    const auto text = readFile(path, {.mostBytes = 1 << 24});
    ASSERT_TRUE(text);
    for (const auto &[device, profile] : {std::pair("a100_sxm", "dgx-a100:8"), {"h100_sxm", "dgx-h100:8"},
             {"h200_sxm", "hgx-h200:8"}, {"b200_sxm", "hgx-b200:8"}, {"b300_sxm", "hgx-b300:8"},
             {"gb200", "gb200-nvl72:8"}, {"gb300", "gb300-nvl72:8"}}) {
        SCOPED_TRACE(profile);
        const auto timings = kernelTimings(*text, device);
        ASSERT_TRUE(timings) << describe(timings.error());
        const Cluster own = cluster(profile);
        const auto fitted = fittedCluster(own, *timings);
        ASSERT_TRUE(fitted) << describe(fitted.error());
        EXPECT_EQ(profileOfDevice(device) ? *profileOfDevice(device) + ":8" : "", profile);
        for (const FitError &error : errorsBeside(own, fitted->overheads, *timings)) {
            // A100's attention is that of training (FlashAttention-2), which is faster than these kernels.
            if (error.kind.starts_with("attention") && own.device.attentionKeysLost.value <= 0)
                continue;
            EXPECT_LT(error.median, error.kind == "alltoall" ? 0.16 : 0.1) << toString(error);
            EXPECT_LT(error.worst, error.kind == "alltoall" ? 0.7 : 0.45) << toString(error);
        }
    }
}

} // namespace
} // namespace planloom
