// Peaks of memory against counts by hand: ZeRO's stages, buckets, sequence parallelism.

#include "engine/simulate/simulate.h"

#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

Timeline timelineOf(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices, UseUnits units)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table, {.units = units});
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    // What is gathered ahead is there ahead: collectives of so few bytes begin at once.
    Cluster cluster = *clusterNamed("dgx-a100:" + std::to_string(devices));
    cluster.links.startLatency = cluster.links.hopLatency = {1e-9, "made up"};
    const auto plan = lower(completion->plan, cluster);
    EXPECT_TRUE(plan) << describe(plan.error());
    auto timeline = simulate(*plan, cluster);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return *std::move(timeline);
}

/// Six equal layers, 64 -> 64, of four bytes a number.
constexpr std::int64_t kLayers = 6;
constexpr std::int64_t kMatrix = 64 * 64 * 4;
constexpr std::int64_t kBias = 64 * 4;
constexpr std::int64_t kLayer = kMatrix + kBias;
constexpr std::int64_t kDevices = 4;
constexpr std::int64_t kBegin = 4; ///< The one scalar that the backward pass begins with counts as a weight.

struct Peaks {
    std::int64_t weight = 0;
    std::int64_t gradient = 0;
    std::int64_t state = 0;
    friend bool operator==(const Peaks &, const Peaks &) = default;
};

void PrintTo(const Peaks &peaks, std::ostream *out)
{
    *out << "weights " << peaks.weight << ", gradients " << peaks.gradient << ", states " << peaks.state;
}

/// Written out device by device, and once for all, which has to be the same.
Peaks peaksOf(const std::string &zero)
{
    static const GraphSnapshot graph =
        trainingStep("zoo:mlp?layers=6&input=64&hidden=64&classes=64&batch=1024");
    std::vector<Peaks> found;
    for (const UseUnits units : {UseUnits::Never, UseUnits::WherePossible}) {
        const Timeline timeline =
            timelineOf(graph, "mesh dp=4\nsplit all : batch over dp\n" + zero + "\n", kDevices, units);
        for (const MemoryCurve &curve : timeline.memory)
            found.push_back({most(curve, MemoryKind::Weight), most(curve, MemoryKind::Gradient),
                most(curve, MemoryKind::OptimizerState)});
    }
    for (const Peaks &each : found)
        EXPECT_EQ(each, found.front());
    return found.front();
}

TEST(ShardedMemory, OfZero2HoldsShardsAndOneLayersGradients)
{
    const Peaks peaks = peaksOf("zero2 weight:*");
    EXPECT_EQ(peaks.state, 2 * kLayers * kLayer / kDevices);
    // The last layer's as they were made, and its matrix cut, beside the shards of those behind it, of which
    // one is being added up.
    EXPECT_EQ(peaks.gradient, (kLayers - 1) * kLayer / kDevices + kLayer + 2 * kMatrix / kDevices);
}

TEST(ShardedMemory, OfZero3HoldsShardsAndTheLayersThatAreGatheredAhead)
{
    const std::int64_t shards = kBegin + kLayers * kLayer / kDevices;
    const Peaks ahead = peaksOf("zero3 weight:*");
    EXPECT_EQ(ahead.state, 2 * kLayers * kLayer / kDevices);
    EXPECT_EQ(ahead.gradient, (kLayers - 1) * kLayer / kDevices + kLayer + 2 * kMatrix / kDevices);
    // Nothing ahead: the layer that runs, alone.
    EXPECT_EQ(peaksOf("zero3 weight:* prefetch 0").weight, shards + kLayer);
    // At the end of the forward pass: the layer that runs and those ahead of it, and the first ones of the
    // backward pass, which reads matrices alone.
    EXPECT_EQ(ahead.weight, shards + 2 * kLayer + kMatrix);
    EXPECT_EQ(peaksOf("zero3 weight:* prefetch 2").weight, shards + 3 * kLayer + 2 * kMatrix);
    // Kept, at the end of the forward pass: all matrices but the first one's, which no gradient needs, and
    // the biases of the last two layers, one running and one ahead.
    EXPECT_EQ(peaksOf("zero3 weight:* keep").weight, shards + (kLayers - 1) * kMatrix + 2 * kBias);
}

/// What one more transformer layer adds to the peak of activations, tensor parallel over two devices.
std::int64_t layersActivations(bool sequence)
{
    std::int64_t most3 = 0;
    std::int64_t most2 = 0;
    for (const int layers : {2, 3}) {
        const GraphSnapshot graph = trainingStep(
            "zoo:gpt?hidden=64&heads=4&seq=32&batch=4&vocab=16&layers=" + std::to_string(layers));
        const auto table = galleryTable(std::string("3d:tp=2,sequence=") + (sequence ? "1" : "0"), graph, 2);
        EXPECT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, 2, *table);
        EXPECT_TRUE(completion && !firstError(*completion));
        const Cluster cluster = *clusterNamed("dgx-a100:2");
        const auto timeline = simulate(*lower(completion->plan, cluster), cluster);
        EXPECT_TRUE(timeline) << describe(timeline.error());
        (layers == 3 ? most3 : most2) = most(timeline->memory[0], MemoryKind::Activation);
    }
    return most3 - most2;
}

TEST(SequenceParallel, KeepsAShareOfWhatTensorParallelHoldsWhole)
{
    constexpr std::int64_t kTokens = 4 * 32;
    constexpr std::int64_t kWhole = kTokens * 64 * 4; // one activation as wide as the model
    // As Korthikanti et al. (arXiv:2205.05198, section 4) count them, without dropout and scores: both inputs
    // of layer norms and what they give are whole on each device; queries, keys, values, what attention gives
    // (by head, and again by token for the product behind it), and the wide layer before and behind its
    // activation are shared out. Attention keeps one number a head and token.
    constexpr std::int64_t kShared = (3 + 2 + 4 + 4) * kWhole / 2 + kTokens * 4 / 2 * 4;
    EXPECT_EQ(layersActivations(false), 4 * kWhole + kShared);
    EXPECT_EQ(layersActivations(true), 4 * kWhole / 2 + kShared);
}

/// Data parallel over 8 H100 of one node: what is left of the gradients' reduction behind the backward pass,
/// by hand from how long each product and each bucket takes alone.
TEST(Buckets, ExposeWhatIsLeftOfTheLastOnes)
{
    const GraphSnapshot graph =
        trainingStep("zoo:mlp?layers=2&input=4096&hidden=4096&classes=4096&batch=2048");
    constexpr std::int32_t kReplicas = 8;
    const auto table = parseTable("mesh dp=8\nsplit all : batch over dp\n");
    const auto completion = completePlan(graph, kReplicas, *table, {.units = UseUnits::Never});
    ASSERT_TRUE(completion && !firstError(*completion));
    const Cluster cluster = *clusterNamed("dgx-h100:8");
    const CostModel costs = costModelOf(cluster);
    const auto plan = lower(completion->plan, cluster);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto timeline = simulate(*plan, cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());

    std::vector<DeviceId> all;
    for (std::int32_t d = 0; d < kReplicas; ++d)
        all.push_back(DeviceId{d});
    const auto reduction = [&](std::int64_t bytes) {
        return static_cast<double>(std::llround(
            costs.collective(CollectiveKind::AllReduce, Bytes{bytes}, groupShape(cluster, all)) * 1e9));
    };
    // When each layer's gradients are there, last layer first: its weight's and its bias's.
    const SpanColumns &spans = timeline->spans;
    const auto [begin, end] = rowsOf(*timeline, 0, QueueKind::Compute);
    double reduced = 0; // when the links are done with the buckets so far
    double backwardEnd = 0;
    std::int64_t filled = 0;
    double bucketReady = 0;
    std::vector<std::int64_t> sizes;
    const auto close = [&] {
        reduced = std::max(reduced, bucketReady) + reduction(filled);
        sizes.push_back(filled);
        filled = 0;
    };
    for (std::size_t row = begin; row < end; ++row) {
        const Segment &segment = plan->devices[0].segments[static_cast<std::size_t>(spans.segment[row])];
        const Instruction &instruction =
            segment.instructions[static_cast<std::size_t>(spans.instruction[row])];
        const double done = static_cast<double>(spans.start[row] + spans.duration[row]);
        if (segment.kind != SegmentKind::Backward)
            continue;
        backwardEnd = done;
        if (instruction.kind != InstructionKind::Accumulate)
            continue;
        const std::int64_t bytes =
            sizeOf(plan->devices[0].buffers[static_cast<std::size_t>(instruction.outputs[0])]).count;
        filled += bytes;
        bucketReady = done;
        if (reduction(0) < 0.1 * reduction(filled))
            close();
    }
    if (filled > 0)
        close();
    // A matrix fills a bucket; a bias goes with what comes behind it.
    ASSERT_EQ(sizes.size(), 3U);
    EXPECT_EQ(sizes.front(), std::int64_t{4096} * 4096 * 4);
    EXPECT_EQ(sizes.back(), 4096 * 4);
    // Updates whose gradients are there run beside the last bucket.
    double beside = 0;
    for (std::size_t row = begin; row < end; ++row)
        if (static_cast<double>(spans.start[row]) >= backwardEnd)
            beside += std::max(0.0,
                std::min(reduced, static_cast<double>(spans.start[row] + spans.duration[row]))
                    - static_cast<double>(spans.start[row]));
    const double exposed = reduced - backwardEnd - beside;
    EXPECT_GT(exposed, 0);
    const double loss = reduction(4); // its sum over the replicas, which the backward pass waits for
    EXPECT_NEAR(static_cast<double>(timeline->exposedCommunication[0].count()), loss + exposed, 2);
    // Not the whole: one of two layers is reduced beside the backward pass, and updated beside the other.
    EXPECT_LT(exposed, 0.9 * reduction(std::int64_t{4096} * 4096 * 4));
}

} // namespace
} // namespace planloom
