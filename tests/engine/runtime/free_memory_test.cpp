// Runs that need more memory than there is are refused before they start.

#include "engine/runtime/machine/free_memory.h"

#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// A system that says what a test writes.
class FakeSystem
{
public:
    FakeSystem()
        : m_root(std::filesystem::path(testing::TempDir())
            / ("planloom_free_memory_"
                + std::string(testing::UnitTest::GetInstance()->current_test_info()->name())))
    {
        std::filesystem::remove_all(m_root);
    }
    ~FakeSystem() { std::filesystem::remove_all(m_root); }
    FakeSystem(const FakeSystem &) = delete;
    FakeSystem &operator=(const FakeSystem &) = delete;

    void write(const std::string &path, const std::string &text) const
    {
        const auto file = m_root / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    std::string root() const { return m_root.string(); }

private:
    std::filesystem::path m_root;
};

TEST(FreeMemory, IsWhatIsAvailableWithoutLimits)
{
    const FakeSystem system;
    EXPECT_FALSE(freeMemory(system.root()));
    system.write("proc/meminfo", "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   8388608 kB\n");
    EXPECT_EQ(freeMemory(system.root()), Bytes{8 * kGiB});
    system.write("proc/self/cgroup", "0::/\n");
    system.write("sys/fs/cgroup/memory.max", "max\n");
    system.write("sys/fs/cgroup/memory.current", "12345\n");
    EXPECT_EQ(freeMemory(system.root()), Bytes{8 * kGiB});
}

TEST(FreeMemory, LimitsOfAllGroupsAroundHold)
{
    const FakeSystem system;
    system.write("proc/meminfo", "MemAvailable: 8388608 kB\n");
    system.write("proc/self/cgroup", "0::/a/b\n");
    system.write("sys/fs/cgroup/a/b/memory.max", std::to_string(6 * kGiB));
    system.write("sys/fs/cgroup/a/b/memory.current", std::to_string(2 * kGiB));
    EXPECT_EQ(freeMemory(system.root()), Bytes{4 * kGiB});
    // The kernel gives file caches up.
    system.write("sys/fs/cgroup/a/b/memory.stat",
        "anon 5\ninactive_file " + std::to_string(kGiB) + "\nactive_file 7\n");
    EXPECT_EQ(freeMemory(system.root()), Bytes{5 * kGiB});
    system.write("sys/fs/cgroup/a/memory.max", std::to_string(3 * kGiB));
    system.write("sys/fs/cgroup/a/memory.current", std::to_string(2 * kGiB));
    EXPECT_EQ(freeMemory(system.root()), Bytes{kGiB});
}

TEST(FreeMemory, ReadsControlGroupsOfVersion1)
{
    const FakeSystem system;
    system.write("proc/meminfo", "MemAvailable: 8388608 kB\n");
    system.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n");
    system.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", std::to_string(2 * kGiB));
    system.write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", std::to_string(3 * kGiB));
    EXPECT_EQ(freeMemory(system.root()), Bytes{0});
}

TEST(FreeMemory, ARefusalNamesDeviceNeedAndWhatIsFree)
{
    EXPECT_TRUE(requireMemory({{0, {kGiB}, {0}}, {1, {kGiB}, {0}}}, Bytes{2 * kGiB}));
    EXPECT_TRUE(requireMemory({{0, {kGiB}, {0}}}, std::nullopt));
    const auto refused = requireMemory({{0, {kGiB}, {0}}, {3, {kGiB}, {kGiB / 2}}}, Bytes{2 * kGiB});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::ResourceLimit);
    EXPECT_EQ(refused.error().message,
        "device 3 needs 1.5 GiB (0.5 GiB of it on its host), all 2 devices need 2.5 GiB; this machine has "
        "2.0 GiB "
        "of memory free");
    EXPECT_NE(refused.error().advice.find("fewer devices"), std::string::npos);
    EXPECT_EQ(refused.error().where, "device:3");
}

TEST(FreeMemory, AModelWithATensorOf400GigabytesIsRefused)
{
    GraphBuilder builder;
    const TensorId x = builder.input("x", {DataType::Float32, {100'000, 1'000'000}});
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {x},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "total");
    PlanWriter writer{*builder.finish({}, loss), 1};
    const auto bx = writer.buffer(0, x);
    const auto bl = writer.buffer(0, writer.plan.graph->loss);
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
    writer.emit(0, {.op = {0}, .inputs = {bx}, .outputs = {bl}, .deaths = {bx}});
    writer.emit(0, {.kind = InstructionKind::Store, .op = {0}, .inputs = {bl}, .deaths = {bl}});
    const auto outcome = runOnCpu(writer.plan, {});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::ResourceLimit);
    EXPECT_NE(outcome.error().message.find("device 0 needs 372.5 GiB"), std::string::npos)
        << outcome.error().message;
}

} // namespace
} // namespace planloom
