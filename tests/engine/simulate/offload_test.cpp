#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/summary.h"
#include "engine/table/table_text.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace planloom {
namespace {

GraphSnapshot adamStep(const std::string &model)
{
    const auto forward = buildZooModel(model);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

struct Offloaded {
    ExecutionPlan plan{};
    Timeline timeline{};
    const MemoryCurve &memory() const { return timeline.memory.front(); }
};

/// On one device whose copies take `hostSeconds` each, whatever their size, and no latency: so each stands
/// alone, and what is counted does not depend on it.
Offloaded offloaded(const GraphSnapshot &graph, const std::string &rows, double hostSeconds = 1e-7)
{
    const auto table = parseTable("precision all : fp32\n" + rows);
    EXPECT_TRUE(table) << describe(table.error());
    const Cluster cluster = *clusterNamed("dgx-a100:1");
    CostModel costs = costModelOf(cluster);
    costs.hostCopy = [hostSeconds](Bytes bytes, std::int32_t) { return bytes.count > 0 ? hostSeconds : 0; };
    const auto completion = completePlan(graph, 1, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    auto plan = lower(completion->plan, cluster, costs);
    EXPECT_TRUE(plan) << describe(plan.error());
    auto timeline = simulate(*plan, cluster, costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return {*std::move(plan), *std::move(timeline)};
}

TEST(OffloadedMemory, Prints)
{
    for (const char *model : {"zoo:mlp?layers=4&input=8&hidden=16&classes=4&batch=8",
             "zoo:gpt?layers=2&hidden=16&heads=2&seq=8&batch=2&vocab=16"})
        for (const char *rows : {"", "offload all : states", "offload all : activations"}) {
            const auto graph = adamStep(model);
            const Offloaded result = offloaded(graph, rows);
            std::printf("== %s %s peak %lld act %lld state %lld host %lld\n", model, rows,
                (long long)result.memory().peak.count,
                (long long)most(result.memory(), MemoryKind::Activation),
                (long long)most(result.memory(), MemoryKind::OptimizerState),
                (long long)result.timeline.hostPeak[0].count);
            const auto &dev = result.plan.devices[0];
            for (const Segment &segment : dev.segments)
                for (const Instruction &i : segment.instructions) {
                    std::printf("  %s %s %s%s%s:", nameOf(segment.kind), nameOf(i.kind),
                        i.op.valid() ? graph->at(i.op).name.c_str() : "", i.waits ? " waits" : "",
                        i.joined ? " joined" : "");
                    for (auto *l : {&i.inputs, &i.outputs, &i.deaths}) {
                        std::printf(" |");
                        for (auto b : *l)
                            if (b >= 0)
                                std::printf(" %d%s(%s,%lld)", b,
                                    dev.buffers[b].place == MemoryPlace::Host ? "H" : "",
                                    graph->at(dev.buffers[b].tensor).name.c_str(),
                                    (long long)sizeOf(dev.buffers[b]).count);
                    }
                    std::printf("\n");
                }
        }
}

} // namespace
} // namespace planloom
