// What ring attention holds and exposes, counted by hand, beside gathering all keys and values.

#include "engine/analyse/memory_at.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {
namespace {

constexpr const char *kRingLayer = "zoo:gpt?layers=1&hidden=64&heads=4&seq=64&batch=4&vocab=24";
constexpr std::int64_t kKeysBytes = 4LL * 64 * 64 * 4; ///< Of the whole sequence, or of its values.

std::string axisOf(std::int32_t devices)
{
    return "mesh cp=" + std::to_string(devices) + "\n";
}
std::string ringRow(std::int32_t devices)
{
    return axisOf(devices) + "split !kind:Attention : sequence over cp\nring kind:Attention : over cp\n";
}
std::string gatherRow(std::int32_t devices)
{
    return axisOf(devices) + "split all : sequence over cp\n";
}

ExecutionPlan contextPlan(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

const Operator &attentionOf(const Graph &graph, Direction direction)
{
    return *std::find_if(graph.operators.begin(), graph.operators.end(),
        [&](const Operator &op) { return op.kind == OperatorKind::Attention && op.direction == direction; });
}

constexpr double kSecondsPerKey = 1e-9; ///< Seconds of a query and a key, all heads and samples together.

/// Attention takes `kSecondsPerKey` for each query and key, twice that in the backward pass; keys and values
/// take `perByte` to pass. All else takes no time.
CostModel costsOf(double perByte)
{
    CostModel costs;
    costs.kernel = [](const KernelQuery &query) {
        if (query.op.kind != OperatorKind::Attention)
            return 0.0;
        const bool backward = query.op.direction == Direction::Backward;
        const Shape &q = query.inputs[backward ? 3 : 0].shape;
        const Shape &k = query.inputs[backward ? 4 : 1].shape;
        return kSecondsPerKey * static_cast<double>(q[q.size() - 2] * k[k.size() - 2]) * (backward ? 2 : 1);
    };
    costs.collective = [perByte](CollectiveKind kind, Bytes bytes, GroupShape shape) {
        const double n = shape.ranks;
        const auto count = static_cast<double>(bytes.count);
        switch (kind) {
        case CollectiveKind::Shift:
            return perByte * count;
        case CollectiveKind::AllGather:
        case CollectiveKind::ReduceScatter:
            if (bytes.count != kKeysBytes)
                return 0.0; // of the logits
            return perByte * count * (n - 1) / n;
        default:
            return 0.0; // of weights' gradients and the loss
        }
    };
    costs.copy = [](Bytes, std::int32_t) { return 0.0; };
    return costs;
}

/// The most bytes that buffers of `tensors` take at any time on one of the devices.
std::int64_t peakOf(const ExecutionPlan &plan, const std::set<TensorId> &tensors)
{
    const CostModel costs = costsOf(1e-15); // what passes is there long before its turn
    const auto timeline =
        simulate(plan, *clusterNamed("dgx-a100:" + std::to_string(plan.devices.size())), costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    std::int64_t most = 0;
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(plan.devices.size()); ++d) {
        std::vector<std::pair<std::int64_t, std::int64_t>> changes; // time, bytes; deaths first
        for (const BufferLifetime &life : lifetimesOf(plan, *timeline, DeviceId{d}))
            if (tensors.count(life.tensor) > 0) {
                changes.emplace_back(life.birth, life.bytes.count);
                changes.emplace_back(life.death, -life.bytes.count);
            }
        std::sort(changes.begin(), changes.end());
        std::int64_t now = 0;
        for (const auto &[time, bytes] : changes)
            most = std::max(most, now += bytes);
    }
    return most;
}

/// A device's own part, that at work and the next; all of them where they are gathered, beside its own. In
/// the backward pass they come again. Of their gradients it has what arrived and what it makes itself; where
/// all are made at once, all of them. (Sums take no time here, and what they replace is gone at once.)
TEST(RingMemory, HoldsThreePartsOfKeysAndValuesAtMost)
{
    const GraphSnapshot graph = trainingStep(kRingLayer, OperatorKind::SgdStep);
    const Operator &forward = attentionOf(*graph, Direction::Forward);
    const Operator &backward = attentionOf(*graph, Direction::Backward);
    const std::set<TensorId> inputs{forward.inputs[1], forward.inputs[2]};
    const std::set<TensorId> gradients{backward.outputs[1], backward.outputs[2]};
    for (const std::int32_t n : {2, 4, 8}) {
        const std::int64_t part = 2 * kKeysBytes / n;
        const ExecutionPlan ring = contextPlan(graph, ringRow(n), n);
        EXPECT_EQ(peakOf(ring, inputs), std::min(n, 3) * part) << n;
        EXPECT_EQ(peakOf(ring, gradients), 2 * part) << n;
        const ExecutionPlan gathered = contextPlan(graph, gatherRow(n), n);
        EXPECT_EQ(peakOf(gathered, inputs), (n + 1) * part) << n;
        EXPECT_EQ(peakOf(gathered, gradients), n * part) << n;
    }
}

double makespanOf(const ExecutionPlan &plan, const CostModel &costs)
{
    const auto timeline =
        simulate(plan, *clusterNamed("dgx-a100:" + std::to_string(plan.devices.size())), costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return std::chrono::duration<double>(timeline->step).count();
}

/// Forward, n turns of A each, between which S passes: n A where A hides S, else n - 1 of S and the last
/// turn. All-gather passes the same before it computes.
TEST(RingOverlap, ExposesForwardWhatTurnsDoNotHide)
{
    const auto model = buildZooModel(kRingLayer);
    ASSERT_TRUE(model);
    const auto graph = std::make_shared<const Graph>(*model);
    for (const std::int32_t n : {2, 4}) {
        const double turn = kSecondsPerKey * (64.0 / n) * (64.0 / n);
        for (const double ratio : {0.25, 1.0, 3.0}) { // of S to A
            const double part = 2.0 * static_cast<double>(kKeysBytes) / n;
            const CostModel costs = costsOf(ratio * turn / part);
            const double shift = ratio * turn;
            SCOPED_TRACE(testing::Message() << n << " devices, " << ratio);
            EXPECT_NEAR(makespanOf(contextPlan(graph, ringRow(n), n), costs),
                (n - 1) * std::max(turn, shift) + turn, 1e-8);
            EXPECT_NEAR(
                makespanOf(contextPlan(graph, gatherRow(n), n), costs), (n - 1) * shift + n * turn, 1e-8);
        }
    }
}

/// Backward, turns take 2 A, and both keys and values and their gradients pass in one: hidden if 2 S is no
/// more than 2 A, but for the gradients' last step home. All-gather exposes its n - 1 parts, and as many
/// again of gradients that are reduced and scattered.
TEST(RingOverlap, ExposesOneStepOfABackwardPass)
{
    const GraphSnapshot graph = trainingStep(kRingLayer, OperatorKind::SgdStep);
    for (const std::int32_t n : {2, 4}) {
        const double turn = kSecondsPerKey * (64.0 / n) * (64.0 / n);
        const double shift = 0.5 * turn;
        const double part = 2.0 * static_cast<double>(kKeysBytes) / n;
        const CostModel costs = costsOf(shift / part);
        SCOPED_TRACE(n);
        EXPECT_NEAR(
            makespanOf(contextPlan(graph, ringRow(n), n), costs), n * turn + n * 2 * turn + shift, 1e-8);
        EXPECT_NEAR(makespanOf(contextPlan(graph, gatherRow(n), n), costs),
            n * turn + n * 2 * turn + 3 * (n - 1) * shift, 1e-8);
    }
}

/// Of a causal attention device i sees i + 1 of the parts: half of its own, all of those before.
TEST(RingOverlap, PricesPartsByTheKeysTheySee)
{
    const auto model = buildZooModel(kRingLayer);
    ASSERT_TRUE(model);
    const auto graph = std::make_shared<const Graph>(*model);
    const std::int32_t n = 4;
    for (const bool ring : {true, false}) {
        const ExecutionPlan plan = contextPlan(graph, ring ? ringRow(n) : gatherRow(n), n);
        for (std::int32_t d = 0; d < n; ++d) {
            double seen = 0; // queries x keys
            for (const Segment &segment : plan.devices[static_cast<std::size_t>(d)].segments)
                for (const Instruction &instruction : segment.instructions)
                    if (instruction.kind == InstructionKind::Kernel
                        && graph->at(instruction.op).kind == OperatorKind::Attention)
                        seen += 16 * seenKeysOf(plan, instruction);
            EXPECT_DOUBLE_EQ(seen, 16 * 16 * (d + 0.5)) << d << (ring ? " of a ring" : " of all");
        }
    }
}

} // namespace
} // namespace planloom
