#include "engine/hardware/kernel_timings.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

const std::string kTimings = R"({
    "source": "a test",
    "matmul_columns": ["device", "precision", "m", "n", "k", "microseconds"],
    "matmul": [["x", "bfloat16", 256, 512, 1024, 20.5], ["y", "fp8", 256, 512, 1024, 10], ["x", "nvfp4", 1, 1, 1, 1]],
    "attention_columns": ["device", "precision", "batch", "sequence", "heads", "kv_heads", "head_dim", "microseconds"],
    "attention": [["x", "bfloat16", 2, 1024, 16, 0, 128, 30]],
    "moe_columns": ["device", "precision", "tokens", "hidden", "expert_ffn", "experts_per_token", "experts",
        "tensor_parallel", "expert_parallel", "microseconds"],
    "moe": [["x", "fp8", 1024, 4096, 1536, 8, 128, 2, 8, 300]],
    "collective_columns": ["device", "operation", "devices", "bytes", "microseconds"],
    "collective": [["x", "alltoall", 8, 65536, 9]]
})";

std::string changed(std::string text, const std::string &from, const std::string &to)
{
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(KernelTimings, AreThoseOfTheDevice)
{
    const auto timings = kernelTimings(kTimings, "x");
    ASSERT_TRUE(timings) << describe(timings.error());
    EXPECT_EQ(timings->device, "x");
    EXPECT_EQ(timings->source, "a test");
    ASSERT_EQ(timings->products.size(), 1u);
    EXPECT_EQ(timings->products[0].product, (MatrixProduct{256, 512, 1024, 1}));
    EXPECT_DOUBLE_EQ(timings->products[0].seconds, 20.5e-6);
    EXPECT_EQ(timings->products[0].where, "/matmul/0");
    EXPECT_EQ(timings->unknown, (std::map<std::string, std::int32_t>{{"nvfp4", 1}}));
    ASSERT_EQ(timings->attentions.size(), 1u);
    EXPECT_EQ(timings->attentions[0].keyHeads, 16); // 0: as many as heads
    ASSERT_EQ(timings->experts.size(), 1u);
    EXPECT_EQ(timings->experts[0].width, 768);
    EXPECT_EQ(timings->experts[0].parts, 8);
    ASSERT_EQ(timings->collectives.size(), 1u);
    EXPECT_EQ(timings->collectives[0].kind, CollectiveKind::AllToAll);
    EXPECT_EQ(timings->collectives[0].shape, (GroupShape{.ranks = 8}));
    const auto other = kernelTimings(kTimings, "y");
    ASSERT_TRUE(other);
    EXPECT_EQ(other->products[0].format, DataType::Float8E4M3);
}

TEST(KernelTimings, OfSeveralDevicesAskForOne)
{
    const auto any = kernelTimings(kTimings);
    ASSERT_FALSE(any);
    EXPECT_EQ(any.error().where, "--device");
    EXPECT_NE(any.error().message.find("x, y"), std::string::npos) << any.error().message;
    const auto devices = timedDevices(kTimings);
    ASSERT_TRUE(devices);
    EXPECT_EQ(*devices, (std::vector<std::string>{"x", "y"}));
    EXPECT_FALSE(timedDevices("{"));
    const auto unknown = kernelTimings(kTimings, "z");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
    EXPECT_NE(unknown.error().advice.find("x, y"), std::string::npos);
}

TEST(KernelTimings, NameThePlaceOfWhatIsWrong)
{
    struct Case {
        const char *from;
        const char *to;
        const char *where;
    };
    const Case cases[]{{"256, 512, 1024, 20.5", "256, 512, 1024, -20.5", "/matmul/0/microseconds"},
        {"256, 512, 1024, 20.5", "256, 512, 1024, \"20\"", "/matmul/0/microseconds"},
        {"256, 512, 1024, 20.5", "256, 512, 1024, 0", "/matmul/0/microseconds"},
        {"256, 512, 1024, 20.5", "256, 512, 1024", "/matmul/0"},
        {"256, 512, 1024, 20.5", "256, 512.5, 1024, 20.5", "/matmul/0/n"},
        {"256, 512, 1024, 20.5", "0, 512, 1024, 20.5", "/matmul/0/m"},
        {"[\"x\", \"nvfp4\", 1, 1, 1, 1]", "[\"x\", \"bf16\", 256, 512, 1024, 50]", "/matmul/2"},
        {"\"matmul_columns\"", "\"columns\"", "/matmul_columns"},
        {"\"k\", \"microseconds\"", "\"k\", \"seconds\"", "/matmul_columns"},
        {"1024, 16, 0, 128", "1024, 16, 3, 128", "/attention/0/kv_heads"},
        {"1536, 8, 128, 2, 8", "1536, 8, 128, 2, 7", "/moe/0"},
        {"1536, 8, 128, 2, 8", "1536, 8, 4, 2, 4", "/moe/0"},
        {"\"alltoall\", 8", "\"gossip\", 8", "/collective/0/operation"},
        {"\"alltoall\", 8", "\"alltoall\", 1", "/collective/0/devices"}, {"65536, 9", "1e400, 9", "/"},
        {"{", "[", "/"}};
    for (const Case &c : cases) {
        SCOPED_TRACE(c.to);
        const auto timings = kernelTimings(changed(kTimings, c.from, c.to), "x");
        ASSERT_FALSE(timings);
        EXPECT_EQ(timings.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(timings.error().where, c.where) << describe(timings.error());
    }
    for (const char *text :
        {"", "[]", "null", "{}", "{\"matmul\": 3}", "{\"matmul\": [3], \"matmul_columns\": []}"})
        EXPECT_FALSE(kernelTimings(text)) << text;
}

const std::string kTable =
    R"(# nThread 1 nGpus 4 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
# Collective test starting: all_reduce_perf
# Using devices
#  Rank  0 Group  0 Pid   7141 on     node-a device  0 [0x07] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   7141 on     node-a device  1 [0x0a] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   7141 on     node-b device  0 [0x07] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   7141 on     node-b device  1 [0x0a] NVIDIA H100 80GB HBM3
NCCL version 2.27.3+cuda12.9
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     5.00    0.00    0.00      0     5.00    0.00    0.00      0
     1048576        262144     float     sum      -1    50.00   20.97   31.46      0    49.00   21.40   32.10      0
    67108864      16777216     float     sum      -1   500.00  134.22  201.33      0   499.00  134.49  201.73    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 116.40
)";

TEST(NcclTests, AreReadWithRanksAndNodes)
{
    KernelTimings timings;
    const auto added = addNcclTests(timings, kTable, "some/run.txt");
    ASSERT_TRUE(added) << describe(added.error());
    ASSERT_EQ(timings.collectives.size(), 2u);
    EXPECT_EQ(timings.collectives[1].kind, CollectiveKind::AllReduce);
    EXPECT_EQ(timings.collectives[1].shape, (GroupShape{.ranks = 4, .nodes = 2}));
    EXPECT_EQ(timings.collectives[1].bytes, Bytes{67108864});
    EXPECT_DOUBLE_EQ(timings.collectives[1].seconds, 500e-6);
    EXPECT_EQ(timings.collectives[1].where, "some/run.txt:14");
}

TEST(NcclTests, OfSeveralRunsStandOneAfterTheOther)
{
    const std::string gather =
        changed(changed(changed(changed(kTable, "all_reduce_perf", "all_gather_perf"), "node-b", "node-a"),
                    "node-b", "node-a"),
            "31.46", "15.73");
    KernelTimings timings;
    const auto added = addNcclTests(timings, kTable + changed(gather, "201.33", "100.66"), "all.txt");
    ASSERT_TRUE(added) << describe(added.error());
    ASSERT_EQ(timings.collectives.size(), 4u);
    EXPECT_EQ(timings.collectives[2].kind, CollectiveKind::AllGather);
    EXPECT_EQ(timings.collectives[2].shape, (GroupShape{.ranks = 4, .nodes = 1}));
}

TEST(NcclTests, MayBeNamedByTheirFile)
{
    const std::string silent = changed(kTable, "# Collective test starting: all_reduce_perf\n", "");
    KernelTimings timings;
    EXPECT_TRUE(addNcclTests(timings, silent, "all_reduce.txt"));
    const auto nameless = addNcclTests(timings, silent, "run.txt");
    ASSERT_FALSE(nameless);
    EXPECT_EQ(nameless.error().where, "run.txt:11");
}

TEST(NcclTests, ThatAreWrongAddNothing)
{
    struct Case {
        const char *from;
        const char *to;
        const char *where;
    };
    for (const Case &c :
        {Case{"500.00  134.22", "-5.00  134.22", "f:14"}, Case{"500.00  134.22", "250.00  134.22", "f:14"},
            Case{"  201.33      0", "  201.33      7", "f:14"}, Case{"201.33", "134.22", "f:14"},
            Case{"#  Rank  3", "#  Range 3", "f:13"}}) {
        SCOPED_TRACE(c.to);
        KernelTimings timings;
        const auto added = addNcclTests(timings, changed(kTable, c.from, c.to), "f");
        ASSERT_FALSE(added);
        EXPECT_EQ(added.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(added.error().where, c.where) << describe(added.error());
        EXPECT_TRUE(timings.collectives.empty());
    }
    KernelTimings timings;
    EXPECT_FALSE(addNcclTests(timings, "", "f"));
    EXPECT_FALSE(addNcclTests(timings, "nothing of the kind\n", "f"));
}

} // namespace
} // namespace planloom
