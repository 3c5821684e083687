#include "engine/lowering/kept_weights.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/lowering/work_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(KeptWeights, ADeviceKeepsOneBufferForAllThatItsOperatorsRead)
{
    WorkForTests tests(sequenceMlp(1, 2, 8), "", 1);
    KeptWeights kept(tests.work, tests.blocks);
    const TensorId weight = tests.weights().front();
    const IndexMask whole = tests.wholeOf(weight);
    ASSERT_EQ(kept.boxesOf(weight).size(), 1U) << "forward and backward pass and update read the same";
    EXPECT_TRUE(kept.held(weight).empty());
    const std::int32_t buffer = kept.buffer(weight, DeviceId{0}, whole, DataType::Float32);
    IndexMask half = whole;
    half.ranges[0].end /= 2;
    EXPECT_EQ(kept.largestBox(weight, DeviceId{0}, half, DataType::Float32), whole);
    EXPECT_EQ(kept.buffer(weight, DeviceId{0}, half, DataType::Float32), buffer);
    EXPECT_EQ(kept.held(weight).size(), 1U);
    const BufferInfo &info = tests.work.builder.buffer(DeviceId{0}, buffer);
    EXPECT_TRUE(info.persistent);
    EXPECT_EQ(info.index, whole);
    EXPECT_EQ(kept.oldestVersion(DeviceId{0}, buffer), buffer);
}

TEST(KeptWeights, VersionsFollowOneAnotherAndTheOldestIsWrittenOver)
{
    WorkForTests tests(sequenceMlp(1, 2, 8), "weight-versions all : 3", 1);
    ASSERT_FALSE(tests.versioned.versions.empty());
    KeptWeights kept(tests.work, tests.blocks);
    const TensorId version{static_cast<std::int32_t>(tests.work.firstVersion())};
    const auto [weight, staleness] = tests.work.versionOf(version);
    EXPECT_EQ(staleness, 2) << "operators of the passes read the oldest of three";
    const IndexMask whole = tests.wholeOf(weight);
    const std::int32_t newest = kept.buffer(weight, DeviceId{0}, whole, DataType::Float32);
    EXPECT_EQ(kept.buffer(version, DeviceId{0}, whole, DataType::Float32), newest + staleness);
    EXPECT_EQ(kept.oldestVersion(DeviceId{0}, newest), newest + 2);
    EXPECT_EQ(kept.held(weight).size(), 1U) << "under the weight";
}

} // namespace
} // namespace planloom
