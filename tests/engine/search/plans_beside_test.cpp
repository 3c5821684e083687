// What is looked at beside the search's space, and when the best of it is known.

#include "engine/search/stages/stage_rows.h"
#include "tests/engine/search/search_site.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

constexpr const char *kLongContext =
    "zoo:llama?layers=4&hidden=4096&heads=32&kv_heads=8&ffn=14336&seq=32768&batch=1&vocab=8000";

double secondsByHand(const Site &site, const std::string &rows)
{
    const auto plan = site.carriedOut(*parseTable(rows));
    EXPECT_TRUE(plan) << describe(plan.error());
    const auto summary = plan ? site.timed(*plan) : Result<TimelineSummary>{plan.error()};
    EXPECT_TRUE(summary);
    return summary ? summary->stepSeconds : 0;
}

/// As Ring Attention has it, one sample over all devices: its weights are replicas there.
TEST(PlansBeside, LongContextsKeepNoWeightTwiceWhereMemoryIsDear)
{
    const Site site(zooTraining(kLongContext), 8, "rtx4090");
    const std::string rows = "limit memory 12GiB\n";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    ASSERT_TRUE(found->fits);
    site.expectHolds(rows, *found);
    const double byHand = secondsByHand(site,
        "mesh cp=8\nsplit all : sequence over cp\nring kind:Attention : over cp\nzero3 weight:*\n"
        "recompute layer:* per layer\n");
    EXPECT_LE(found->best.simulatedSeconds, byHand * 1.001);
    EXPECT_LE(found->bound, found->best.simulatedSeconds);
}

TEST(PlansBeside, KeysGoRoundWhereThatIsFaster)
{
    const Site site(zooTraining(kLongContext), 8, "rtx4090");
    const std::string rows = "limit memory 1000GiB\n";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    site.expectHolds(rows, *found);
    EXPECT_LE(found->best.simulatedSeconds,
        1.001
            * secondsByHand(
                site, "mesh cp=8\nsplit all : sequence over cp\nring kind:Attention : over cp\n"));
}

/// Under a causal mask the last part of a sequence has the most to do: all devices wait for the last one,
/// unless each has an early and a late part. No such plan is priced, and what is said to bound plans is not
/// of them.
TEST(PlansBeside, CausalSequencesLieInZigzags)
{
    const Site site(
        zooTraining("zoo:llama?layers=3&hidden=512&heads=4&kv_heads=1&ffn=2048&seq=65536&batch=1&vocab=8000"),
        16, "dgx-h100");
    for (const std::string rows : {"", "mesh cp=16\n"}) {
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        const double inParts = secondsByHand(site, "mesh cp=16\nsplit all : sequence over cp\n");
        const double inZigzags = secondsByHand(site, "mesh cp=16\nsplit all : sequence over cp zigzag\n");
        EXPECT_LT(inZigzags, 0.9 * inParts);
        EXPECT_LE(found->best.simulatedSeconds, 1.001 * inZigzags);
        EXPECT_TRUE(found->best.isBeside);
        EXPECT_TRUE(found->isOfOthers());
        EXPECT_LE(found->bound, found->best.simulatedSeconds);
    }
}

/// Attentions that cost little beside what is sent exchange heads for tokens, all to all, which sends least.
TEST(PlansBeside, HeadsAreExchangedWhereThatIsFaster)
{
    const Site site(zooTraining(kLongContext), 8, "dgx-h100");
    const std::string byHand = "mesh cp=8\nsplit !kind:Attention : sequence over cp\n";
    const auto found = site.search(byHand);
    ASSERT_TRUE(found) << describe(found.error());
    site.expectHolds(byHand, *found);
    const double exchanged = secondsByHand(site, byHand + "split kind:Attention : heads over cp\n");
    EXPECT_LT(exchanged, secondsByHand(site, byHand + "ring kind:Attention : over cp\n"));
    EXPECT_LT(exchanged, secondsByHand(site, byHand + "split kind:Attention : sequence over cp\n"));
    EXPECT_LE(found->best.simulatedSeconds, 1.001 * exchanged);
    // Weights are replicas there, too.
    const std::string dear = "limit memory 12GiB\n";
    const auto fits = site.search(dear);
    ASSERT_TRUE(fits) << describe(fits.error());
    ASSERT_TRUE(fits->fits);
    site.expectHolds(dear, *fits);
    EXPECT_LE(fits->best.simulatedSeconds,
        1.001
            * secondsByHand(site,
                byHand
                    + "split kind:Attention : heads over cp\nzero3 weight:*\n"
                      "recompute layer:* per layer\n"));
}

/// With few micro-batches it is not the slowest stage alone that makes a step long.
TEST(Solver, MovesStagesWhereThatMakesThePlanFaster)
{
    const Site site(
        zooTraining("zoo:gpt?layers=3&hidden=128&batch=12&heads=8&vocab=512&seq=32"), 2, "rtx4090");
    const auto found = site.search("schedule zb-h1\n");
    ASSERT_TRUE(found) << describe(found.error());
    const auto given =
        site.search("schedule zb-h1\nstage layer:0 : 0\nstage layer:1 : 1\nstage layer:2 : 1\n");
    ASSERT_TRUE(given) << describe(given.error());
    EXPECT_LE(found->best.simulatedSeconds, given->best.simulatedSeconds * (1 + 1e-9));
    site.expectHolds("schedule zb-h1\n", *found);
}

TEST(StagesMoved, ALayerAtATimeAndNeverAgainstTheData)
{
    for (const char *spec : {"zoo:gpt?layers=6&hidden=32&heads=4&seq=16&vocab=64&batch=4",
             "zoo:t5?layers=3&hidden=32&heads=4&d_kv=8&ffn=64&src=8&tgt=8&vocab=96&batch=8"}) {
        const Model model(zooTraining(spec));
        const SelectorIndex &index = *model.index;
        const auto layers = static_cast<std::int32_t>(index.layers().scopes.size());
        constexpr std::int32_t kStages = 3;
        std::vector<std::int32_t> stageOf;
        std::int32_t stage = 0;
        for (std::size_t i = 0; i < index.forwardCount(); ++i) {
            const std::int32_t layer = index.layerOf({static_cast<std::int32_t>(i)});
            stage = layer < 0 ? stage : std::max(stage, layer * kStages / layers);
            stageOf.push_back(stage);
        }
        const auto all = stagesMoved(index, stageOf, kStages);
        EXPECT_GE(all.size(), 2u) << spec;
        for (const auto &other : all) {
            std::set<std::int32_t> moved;
            std::set<std::int32_t> left;
            for (std::size_t i = 0; i < other.size(); ++i) {
                left.insert(other[i]);
                if (other[i] == stageOf[i])
                    continue;
                EXPECT_EQ(std::abs(other[i] - stageOf[i]), 1);
                if (const std::int32_t layer = index.layerOf({static_cast<std::int32_t>(i)}); layer >= 0)
                    moved.insert(layer);
                for (const TensorId output : model.graph->operators[i].outputs)
                    for (const OperatorId user : index.uses().consumers[at(output)])
                        if (at(user) < other.size()) {
                            EXPECT_LE(other[i], other[at(user)]);
                        }
            }
            EXPECT_EQ(moved.size(), 1u);
            EXPECT_EQ(left.size(), static_cast<std::size_t>(kStages));
        }
    }
}

} // namespace
} // namespace planloom
