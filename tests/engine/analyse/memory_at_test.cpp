#include "engine/analyse/memory_at.h"

#include "tests/engine/simulate/gallery_plans.h"

namespace planloom {
namespace {

std::array<std::int64_t, kMemoryKindCount> sumsOf(const std::vector<BufferLifetime> &alive)
{
    std::array<std::int64_t, kMemoryKindCount> sums{};
    for (const BufferLifetime &buffer : alive)
        sums[static_cast<std::size_t>(buffer.kind)] += buffer.bytes.count;
    return sums;
}

TEST(MemoryAt, LiveBuffersSumToTheCurveAtEveryTime)
{
    auto plans = galleryPlans();
    for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=3&hidden=12&batch=8", 40))
        plans.push_back(std::move(plan));
    std::mt19937 random(9);
    for (const SimulatedPlan &plan : plans) {
        SCOPED_TRACE(plan.name);
        for (std::size_t d = 0; d < plan.plan.devices.size(); ++d) {
            const DeviceId device{static_cast<std::int32_t>(d)};
            const MemoryCurve &curve = plan.timeline.memory[d];
            const auto lifetimes = lifetimesOf(plan.plan, plan.timeline, device);
            std::vector<std::int64_t> times{0, plan.timeline.step.count()};
            for (int i = 0; i < 20; ++i)
                times.push_back(
                    std::uniform_int_distribution<std::int64_t>(0, plan.timeline.step.count())(random));
            for (int i = 0; i < 20 && !curve.time.empty(); ++i) // where it changes, and just before
                for (const std::int64_t before : {0, 1})
                    times.push_back(
                        std::max<std::int64_t>(curve.time[std::uniform_int_distribution<std::size_t>(
                                                   0, curve.time.size() - 1)(random)]
                                - before,
                            0));
            for (const std::int64_t time : times)
                ASSERT_EQ(sumsOf(aliveAt(lifetimes, Nanoseconds{time})), bytesAt(curve, Nanoseconds{time}))
                    << "device " << d << " at " << time;
        }
    }
}

TEST(MemoryAt, NamesTheBuffersLargestFirst)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto plan = simulated("pipeline", galleryPlan(graph, "pipeline:schedule=1f1b,micro-batches=4", 2));
    const MemoryCurve &curve = plan.timeline.memory[0];
    std::size_t peak = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < curve.bytes.size(); ++i) {
        std::int64_t sum = 0;
        for (const std::int64_t bytes : curve.bytes[i])
            sum += bytes;
        if (sum > most) {
            most = sum;
            peak = i;
        }
    }
    const auto alive = memoryAt(plan.plan, plan.timeline, DeviceId{0}, Nanoseconds{curve.time[peak]});
    std::int64_t sum = 0;
    bool activation = false;
    for (std::size_t i = 0; i < alive.size(); ++i) {
        sum += alive[i].bytes.count;
        EXPECT_TRUE(alive[i].tensor.valid());
        if (i > 0) {
            EXPECT_LE(alive[i].bytes, alive[i - 1].bytes);
        }
        if (alive[i].kind == MemoryKind::Activation && alive[i].microBatch >= 0) {
            activation = true;
            EXPECT_TRUE(alive[i].maker.valid() || alive[i].made != InstructionKind::Kernel);
        }
    }
    EXPECT_EQ(sum, curve.peak.count);
    EXPECT_TRUE(activation);
}

TEST(MemoryAt, OfNoDeviceIsEmpty)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=2&hidden=8&batch=4");
    const auto plan = simulated("single", galleryPlan(graph, "single", 1));
    EXPECT_TRUE(memoryAt(plan.plan, plan.timeline, DeviceId{3}, Nanoseconds{0}).empty());
    EXPECT_TRUE(memoryAt(plan.plan, plan.timeline, DeviceId{}, Nanoseconds{0}).empty());
    EXPECT_TRUE(aliveAt(lifetimesOf(plan.plan, plan.timeline, DeviceId{0}), Nanoseconds{-1}).empty());
}

TEST(MemoryAt, OfNarrowBuffersIsThatOfTheCurve)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    auto plan = simulated("single", galleryPlan(graph, "single", 1));
    for (BufferInfo &buffer : plan.plan.devices[0].buffers.edit())
        if (buffer.memory == MemoryKind::Activation)
            buffer.dataType = DataType::Float16;
    const auto half = simulate(plan.plan, plan.cluster);
    ASSERT_TRUE(half);
    const auto lifetimes = lifetimesOf(plan.plan, *half, DeviceId{0});
    for (const std::int64_t time : half->memory[0].time)
        ASSERT_EQ(sumsOf(aliveAt(lifetimes, Nanoseconds{time})), bytesAt(half->memory[0], Nanoseconds{time}));
}

} // namespace
} // namespace planloom
