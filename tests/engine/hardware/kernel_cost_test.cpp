#include "engine/hardware/kernel_cost.h"

#include "engine/graph/operators/catalogue.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

DeviceModel h100()
{
    return clusterNamed("dgx-h100:1")->device;
}

TEST(ProductShape, LosesNothingOnWholeWavesAndMuchOnThinProducts)
{
    // 132 tiles of 256 x 128: one whole wave.
    EXPECT_GT(productShapeEfficiency({256 * 12, 128 * 11, 16384, 1}, 132), 0.95);
    // One tile more begins a second wave of which nearly all is empty.
    EXPECT_LT(productShapeEfficiency({256 * 12 + 1, 128 * 11, 512, 1}, 132), 0.9);
    EXPECT_LT(productShapeEfficiency({1, 8192, 8192, 1}, 132), 0.05);
    EXPECT_LT(productShapeEfficiency({8192, 8192, 64, 1}, 132), 0.3);
    EXPECT_EQ(productShapeEfficiency({1, 1, 1, 1}, 0), 1);
}

TEST(ProductShape, IsAShareForEveryShape)
{
    std::mt19937 random(11);
    const auto extent = [&] { return static_cast<double>(1 + random() % (1u << (1 + random() % 15))); };
    for (int i = 0; i < 2000; ++i) {
        const MatrixProduct product{extent(), extent(), extent(), static_cast<double>(1 + random() % 64)};
        const double share = productShapeEfficiency(product, 132);
        EXPECT_GT(share, 0);
        EXPECT_LE(share, 1);
    }
}

/// TFLOP/s of cuDNN on an H100, forward, 16 bit (FlashAttention-3, arXiv:2407.08608, figure 5).
struct Measured {
    double head;
    bool causal;
    double keys;
    double teraflops;
};

TEST(AttentionShape, IsWithinAFifthOfWhatWasMeasured)
{
    const DeviceModel device = h100();
    for (const Measured &row :
        {Measured{128, false, 512, 497}, {128, false, 2048, 617}, {128, false, 16384, 595},
            {128, true, 512, 315}, {128, true, 1024, 410}, {128, true, 4096, 518}, {128, true, 16384, 539},
            {64, false, 512, 335}, {64, false, 4096, 408}, {64, false, 16384, 413}}) {
        const double share = attentionShapeEfficiency(device, false, row.causal, row.head, row.keys);
        const double predicted = share * device.float16Flops.value / 1e12;
        EXPECT_NEAR(predicted / row.teraflops, 1, 0.2) << row.head << " " << row.causal << " " << row.keys;
    }
}

TEST(AttentionShape, PlainOnesPayForDroppingProbabilitiesOut)
{
    const DeviceModel device = h100();
    Operator op;
    op.kind = OperatorKind::Attention;
    op.inputs = {TensorId{0}, TensorId{1}, TensorId{2}};
    op.outputs = {TensorId{3}};
    const TensorType type{DataType::BFloat16, {4, 16, 2048, 128}};
    const std::vector<TensorType> inputs(3, type);
    const std::vector<TensorType> outputs(1, type);
    const auto seconds = [&](AttentionMode mode) {
        KernelQuery query{op, inputs, outputs, DataType::BFloat16};
        query.attention = mode;
        return kernelSeconds(device, query);
    };
    const double plain = seconds(AttentionMode::Plain);
    const double fused = seconds(AttentionMode::Fused);
    op.attributes.set("dropout", 0.1);
    // Read, written, and a byte for each two of them, in a kernel of its own.
    const double bytes = 2.5 * 2 * 4 * 16 * 2048.0 * 2048.0;
    EXPECT_NEAR(seconds(AttentionMode::Plain) - plain,
        bytes / (device.memoryBandwidth.value * device.memoryEfficiency.value) + device.launchLatency.value,
        1e-9);
    EXPECT_EQ(seconds(AttentionMode::Fused), fused);
}

Operator linear()
{
    Operator op;
    op.name = "linear";
    op.kind = OperatorKind::Linear;
    op.inputs = {TensorId{0}, TensorId{1}};
    op.outputs = {TensorId{2}};
    op.attributes.set("transposed", std::int64_t{1});
    return op;
}

double secondsOf(const DeviceModel &device, std::int64_t m, std::int64_t n, std::int64_t k, DataType type)
{
    const Operator op = linear();
    const std::vector<TensorType> inputs{{type, {m, k}}, {type, {n, k}}};
    const std::vector<TensorType> outputs{{type, {m, n}}};
    return kernelSeconds(device, {op, inputs, outputs, type});
}

TEST(Kernels, OfLargeProductsRunAtTheRateOfTheirType)
{
    const DeviceModel device = h100();
    const double flops = 2.0 * 8192 * 8192 * 8192;
    const double half = flops / secondsOf(device, 8192, 8192, 8192, DataType::BFloat16);
    EXPECT_NEAR(half / device.float16Flops.value, device.productEfficiency.value, 0.06);
    const double single = flops / secondsOf(device, 8192, 8192, 8192, DataType::Float32);
    EXPECT_NEAR(half / single, device.float16Flops.value / device.float32Flops.value, 0.3);
}

TEST(Kernels, PartsTakeTogetherAtLeastTheLeast)
{
    const DeviceModel device = h100();
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        const std::int64_t parts = std::int64_t{1} << random() % 4;
        const std::int64_t m = parts * (1 + static_cast<std::int64_t>(random() % 600));
        const std::int64_t n = 1 + static_cast<std::int64_t>(random() % 5000);
        const std::int64_t k = 1 + static_cast<std::int64_t>(random() % 5000);
        const Operator op = linear();
        const std::vector<TensorType> inputs{{DataType::BFloat16, {m, k}}, {DataType::BFloat16, {n, k}}};
        const std::vector<TensorType> outputs{{DataType::BFloat16, {m, n}}};
        const double least = leastKernelSeconds(device, {op, inputs, outputs, DataType::BFloat16});
        EXPECT_GE(static_cast<double>(parts) * secondsOf(device, m / parts, n, k, DataType::BFloat16),
            least * (1 - 1e-9));
    }
}

TEST(Kernels, JoinedOnesPayNoLaunchAndMoveLess)
{
    const DeviceModel device = h100();
    Operator op;
    op.kind = OperatorKind::Gelu;
    op.inputs = {TensorId{0}};
    op.outputs = {TensorId{1}};
    const std::vector<TensorType> types{{DataType::BFloat16, {1 << 24}}};
    const double alone = kernelSeconds(device, {op, types, types, DataType::BFloat16});
    const double joined =
        kernelSeconds(device, {op, types, types, DataType::BFloat16, true, Bytes{std::int64_t{2} << 24}});
    EXPECT_NEAR(joined, (alone - device.launchLatency.value) / 2, 1e-9);
}

} // namespace
} // namespace planloom
