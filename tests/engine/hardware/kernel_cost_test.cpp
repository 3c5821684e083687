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

/// Share of a device's sustained rate that a product reaches.
double shareOf(const DeviceModel &device, const MatrixProduct &product)
{
    const double flops = 2 * product.m * product.n * product.k * product.count;
    const KernelRate rate = product.count > 1 ? KernelRate::Grouped : KernelRate::Product;
    const double peak = matrixFlopsOf(device, DataType::BFloat16);
    return flops / productSeconds(device, product, DataType::BFloat16)
        / (peak * efficiencyOf(device, rate, DataType::BFloat16).value);
}

TEST(ProductShape, LosesNothingOnWholeWavesAndMuchOnThinProducts)
{
    DeviceModel device = h100();
    // 132 tiles of 256 x 128: one whole wave.
    EXPECT_GT(shareOf(device, {256 * 12, 128 * 11, 16384, 1}), 0.95);
    // One tile more begins a second wave of which nearly all is empty.
    EXPECT_LT(shareOf(device, {256 * 12 + 1, 128 * 11, 512, 1}), 0.9);
    EXPECT_LT(shareOf(device, {1, 8192, 8192, 1}), 0.05);
    EXPECT_LT(shareOf(device, {8192, 8192, 64, 1}), 0.5);
    device.multiprocessors = {};
    EXPECT_EQ(shareOf(device, {1, 1, 1, 1}), 1);
}

TEST(ProductShape, IsAShareForEveryShape)
{
    const DeviceModel device = h100();
    std::mt19937 random(11);
    const auto extent = [&] { return static_cast<double>(1 + random() % (1u << (1 + random() % 15))); };
    for (int i = 0; i < 2000; ++i) {
        const MatrixProduct product{extent(), extent(), extent(), static_cast<double>(1 + random() % 64)};
        const double share = shareOf(device, product);
        EXPECT_GT(share, 0);
        EXPECT_LE(share, 1 + 1e-12);
    }
}

TEST(ProductShape, IsLimitedByPowerWhereAllMultiprocessorsWorkAndByTilesElsewhere)
{
    DeviceModel device = h100();
    device.productEfficiency.value = 0.5;
    device.tileEfficiency.value = 0.9;
    const auto reached = [&](const MatrixProduct &product) {
        return 2 * product.m * product.n * product.k / productSeconds(device, product, DataType::BFloat16)
            / matrixFlopsOf(device, DataType::BFloat16);
    };
    // A quarter of the multiprocessors have a tile, the smallest, whose k is too short to be cut: each at six
    // tenths of 0.9 of its part, whatever the limit of all.
    EXPECT_NEAR(reached({64 * 3, 64 * 11, 4000, 1}), 0.135, 0.02);
    EXPECT_NEAR(reached({256 * 12, 128 * 11, 65536, 1}), 0.5, 0.001);
}

TEST(Efficiency, IsThatOfTheFormatOrElseTheGeneralOne)
{
    DeviceModel device;
    device.productEfficiency.value = 0.8;
    const auto of = [&](KernelRate rate, DataType type) { return efficiencyOf(device, rate, type).value; };
    for (const auto rate : {KernelRate::Product, KernelRate::Tile, KernelRate::Grouped, KernelRate::Attention,
             KernelRate::AttentionBackward})
        EXPECT_EQ(of(rate, DataType::BFloat16), 0.8);
    device.tileEfficiency.value = 0.9;
    device.attentionEfficiency.value = 0.6;
    device.formats.push_back({.format = DataType::Float8E4M3, .product = {0.5, "x"}});
    EXPECT_EQ(of(KernelRate::Product, DataType::Float8E5M2), 0.5);
    EXPECT_EQ(of(KernelRate::Product, DataType::Float16), 0.8);
    EXPECT_EQ(of(KernelRate::Tile, DataType::Float16), 0.9);
    EXPECT_EQ(of(KernelRate::Tile, DataType::Float8E4M3), 0.5);
    EXPECT_EQ(of(KernelRate::Grouped, DataType::Float8E4M3), 0.5);
    EXPECT_EQ(of(KernelRate::Attention, DataType::Float8E4M3), 0.6);
    EXPECT_EQ(of(KernelRate::AttentionBackward, DataType::Float16), 0.8);
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
        const double share =
            attentionShapeEfficiency(device, DataType::Float16, false, row.causal, row.head, row.keys);
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

TEST(Kernels, InEightBitsPayForRoundingWhatIsWider)
{
    const DeviceModel device = h100();
    const Operator op = linear();
    const auto seconds = [&](DataType stored) {
        const std::vector<TensorType> inputs{{stored, {16384, 4096}}, {DataType::Float8E4M3, {8192, 4096}}};
        const std::vector<TensorType> outputs{{DataType::BFloat16, {16384, 8192}}};
        return kernelSeconds(device, {op, inputs, outputs, DataType::Float8E4M3});
    };
    const double rate = device.memoryBandwidth.value * device.memoryEfficiency.value;
    const double rounding = 16384.0 * 4096 * kRoundingBytes / rate + 2 * device.launchLatency.value;
    // The wider factor is also read by the product itself, which that makes little longer.
    EXPECT_NEAR(seconds(DataType::BFloat16) - seconds(DataType::Float8E4M3), rounding, 0.05 * rounding);
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
