// The second half of lowering alone gives what both halves give.

#include "engine/lowering/order/sequence.h"

#include "engine/lowering/layout/path_finder.h"
#include "engine/lowering/lower.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace planloom {
namespace {

Plan planWith(const GraphSnapshot &graph, const std::string &gallery, const std::string &rows)
{
    auto table = galleryTable(gallery, graph, 4);
    EXPECT_TRUE(table) << describe(table.error());
    const auto added = parseTable(rows);
    EXPECT_TRUE(added) << describe(added.error());
    table->rows.insert(table->rows.end(), added->rows.begin(), added->rows.end());
    auto completion = completePlan(graph, 4, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    return std::move(completion->plan);
}

/// Of equal plans, all that is in a file; devices share what the order leaves as it is.
void expectSame(const ExecutionPlan &a, const ExecutionPlan &b)
{
    EXPECT_EQ(a.groups, b.groups);
    EXPECT_EQ(a.partitions, b.partitions);
    ASSERT_EQ(a.devices.size(), b.devices.size());
    for (std::size_t d = 0; d < a.devices.size(); ++d)
        EXPECT_EQ(a.devices[d], b.devices[d]) << "device " << d;
}

TEST(Sequence, AnotherOrderIsThatOfLoweringAnew)
{
    const auto graph = trainingStep("zoo:mlp?layers=8&hidden=8&batch=16");
    const Cluster cluster = *clusterNamed("dgx-a100:4");
    const std::string pipeline = "pipeline:stages=4,micro-batches=8,schedule=";
    const Plan first = planWith(graph, pipeline + "1f1b", "");
    const auto materialized = materialize(first, cluster, costModelOf(cluster));
    ASSERT_TRUE(materialized) << describe(materialized.error());
    ExecutionPlan before;
    for (const auto &[schedule, rows] :
        std::vector<std::pair<std::string, std::string>>{{"1f1b", ""}, {"gpipe", ""}, {"sequential", ""},
            {"1f1b", "in-flight 6 stage 0"}, {"gpipe", "order forward before backward at -1 of 2"}}) {
        SCOPED_TRACE(schedule + ", " + rows);
        const Plan plan = planWith(graph, pipeline + schedule, rows);
        EXPECT_TRUE(isSameButForOrder(first, plan));
        const auto again = sequence(*materialized, plan);
        ASSERT_TRUE(again) << describe(again.error());
        ASSERT_TRUE(*again);
        const auto anew = lower(plan, cluster);
        ASSERT_TRUE(anew) << describe(anew.error());
        expectSame(**again, *anew);
        const auto report = verify(**again);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_FALSE(report->failure) << report->failure->reason;
        EXPECT_TRUE((*again)->devices[0].segments.sharesWith(materialized->programs.devices[0].segments));
    }
}

TEST(PathMemory, OfOtherPlansOfAClusterChangesNothing)
{
    const Model model(trainingStep("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&vocab=24&batch=8&fused=0"));
    std::vector<std::pair<Cluster, std::shared_ptr<PathMemory>>> known;
    int again = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 120);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = randomCase(*model.graph, seed, {.touched = 0.2});
        const RandomOutcome alone = carryOut(model, drawn);
        if (!alone.lowered)
            continue;
        auto found = std::find_if(
            known.begin(), known.end(), [&](const auto &each) { return each.first == drawn.cluster; });
        if (found == known.end())
            found = known.emplace(known.end(), drawn.cluster, std::make_shared<PathMemory>());
        else
            ++again;
        const auto materialized =
            materialize(alone.plan, drawn.cluster, costModelOf(drawn.cluster), {}, found->second);
        ASSERT_TRUE(materialized) << describe(materialized.error());
        const auto execution = sequence(*materialized, alone.plan);
        ASSERT_TRUE(execution && *execution);
        expectSame(**execution, *alone.lowered);
    }
    EXPECT_GT(again, 20);
}

TEST(Sequence, OrdersInsideABlockAreMadeAnew)
{
    const auto graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=2&seq=8&vocab=32&batch=4&fused=0");
    const Cluster cluster = *clusterNamed("dgx-a100:4");
    const Plan first = planWith(graph, "single", "");
    const auto materialized = materialize(first, cluster, costModelOf(cluster));
    ASSERT_TRUE(materialized) << describe(materialized.error());
    const Plan other = planWith(graph, "single", "order name:h.0.attn.v_attn* before name:h.0.attn.q_attn");
    const auto again = sequence(*materialized, other);
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_FALSE(*again);
}

TEST(Sequence, OtherSplitsAreNoMatterOfOrder)
{
    const auto graph = trainingStep("zoo:mlp?layers=8&hidden=8&batch=16");
    EXPECT_FALSE(isSameButForOrder(planWith(graph, "pipeline:stages=4,micro-batches=8", ""),
        planWith(graph, "pipeline:stages=4,micro-batches=4", "")));
    EXPECT_FALSE(
        isSameButForOrder(planWith(graph, "single", ""), planWith(graph, "single", "recompute all")));
}

} // namespace
} // namespace planloom
