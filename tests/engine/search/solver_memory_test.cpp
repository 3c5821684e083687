#include "engine/search/solver.h"

#include "engine/gallery/gallery.h"
#include "engine/search/time/step_estimate.h"
#include "tests/engine/search/search_site.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

namespace planloom {
namespace {

TEST(SolverMemory, FitsALimitThatTheFastestPlanBreaks)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"), 4);
    const auto fastest = site.search("");
    ASSERT_TRUE(fastest);
    const std::int64_t limit = fastest->best.simulatedPeak * 3 / 4;
    const std::string rows = "limit memory " + std::to_string(limit) + "B\n";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_TRUE(found->fits) << found->best.simulatedPeak << " of " << limit;
    EXPECT_GE(found->best.simulatedSeconds, fastest->best.simulatedSeconds);
    site.expectHolds(rows, *found);
}

/// What the search says that any plan needs, plans of its own simulated take; and what it prices is near.
TEST(SolverMemory, CountsTheMemoryThatPlansTakeInSimulation)
{
    for (const char *spec : {"zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8",
             "zoo:moe?layers=2&hidden=256&heads=4&seq=128&vocab=512&batch=8&experts=8",
             "zoo:resnet?depth=18&batch=8&image=64"})
        for (const char *rows :
            {"", "precision all : fp16\n", "precision all : fp32\n", "mesh dp=4\nzero3 all\n",
                "mesh pp=2 tp=2\nrecompute layer:* per layer\nmicro-batches 4\n"}) {
            SCOPED_TRACE(std::string(spec) + " " + rows);
            const Site site(zooTraining(spec), 4);
            const auto found = site.search(rows);
            ASSERT_TRUE(found) << describe(found.error());
            const Result<ConstraintTable> table = parseTable(rows);
            const auto space = searchSpaceOf(site.model, site.cluster, site.devices, *table);
            ASSERT_TRUE(space);
            const auto estimator = StepEstimator::make(
                site.model, site.cluster, site.devices, *table, *space, site.costs, PrecisionPreset::Float32);
            ASSERT_TRUE(estimator);
            for (const SearchedPlan &plan : found->seen) {
                if (plan.simulatedPeak == 0)
                    continue;
                SCOPED_TRACE(toString(plan.configuration));
                EXPECT_LE(found->leastNeeded, plan.simulatedPeak);
                if (!plan.configuration.isUnequal()) {
                    EXPECT_LE(*(*estimator)->leastPeakOf(plan.configuration), plan.simulatedPeak);
                }
                EXPECT_LT(static_cast<double>(plan.peakBytes), 1.3 * static_cast<double>(plan.simulatedPeak));
                EXPECT_GT(static_cast<double>(plan.peakBytes), 0.8 * static_cast<double>(plan.simulatedPeak));
            }
        }
}

/// Where something is known to fit something is found that does, however little room it leaves.
TEST(SolverMemory, FindsWhatFitsWhereLittleDoes)
{
    for (const char *spec : {"zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8",
             "zoo:llama?layers=4&hidden=256&heads=8&kv_heads=2&seq=256&batch=16&vocab=512",
             "zoo:resnet?depth=18&batch=8&image=64"}) {
        const Site site(zooTraining(spec), 4);
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const char *rows : {"limit memory 1KiB\n", "mesh tp=4\nlimit memory 1KiB\n",
                 "mesh dp=4\nzero3 all\nlimit memory 1KiB\n", "mesh pp=4\nlimit memory 1KiB\n"})
            if (const auto found = site.search(rows))
                least = std::min(least, found->best.simulatedPeak);
        for (const double room : {1.02, 1.2}) {
            SCOPED_TRACE(std::string(spec) + " " + std::to_string(room));
            const auto limit = static_cast<std::int64_t>(static_cast<double>(least) * room);
            const auto found = site.search("limit memory " + std::to_string(limit) + "B\n");
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_FALSE(found->cannotFit());
            EXPECT_TRUE(found->fits) << found->best.simulatedPeak << " of " << limit;
        }
    }
}

/// The first rank of a pipeline keeps the most micro-batches: it does with fewer layers where that is what
/// fits, also where nothing but the stages is left to decide.
TEST(SolverMemory, MovesStagesToWhereThereIsRoom)
{
    const Site site(zooTraining("zoo:gpt?layers=12&hidden=128&heads=4&seq=128&vocab=64&batch=16"), 4);
    for (const char *mesh : {"mesh pp=4\n", "mesh pp=2 tp=2\n"})
        for (const auto &[schedule, room] : {std::pair{"1f1b", 0.93}, {"interleaved", 0.95}}) {
            const std::string base =
                std::string(mesh) + "schedule " + schedule + "\nmicro-batches 8\nrecompute all never\n";
            SCOPED_TRACE(base);
            const auto fastest = site.search(base);
            ASSERT_TRUE(fastest) << describe(fastest.error());
            const auto limit =
                static_cast<std::int64_t>(static_cast<double>(fastest->best.simulatedPeak) * room);
            const std::string rows = base + "limit memory " + std::to_string(limit) + "B\n";
            const auto found = site.search(rows);
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_TRUE(found->fits) << found->best.simulatedPeak << " of " << limit;
            EXPECT_FALSE(found->cannotFit());
            EXPECT_NE(print(fastest->rows), print(found->rows));
            site.expectHolds(rows, *found);
        }
}

/// What it costs to fit is in the bound, beside the bubble and what else no partition gets around.
TEST(SolverMemory, BoundsWhatFitsWhereMemoryIsDear)
{
    const Site site(
        zooTraining("zoo:moe?layers=6&hidden=512&heads=8&seq=256&vocab=1024&batch=16&experts=16"), 8);
    for (const char *mesh : {"mesh pp=2 tp=4\n", "mesh pp=2 cp=2 tp=2\n"}) {
        const std::string base =
            std::string(mesh) + "schedule interleaved\nmicro-batches 4\nrecompute all never\nzero0 all\n";
        const auto fastest = site.search(base);
        ASSERT_TRUE(fastest) << describe(fastest.error());
        const SearchedPlan priced = *std::min_element(fastest->seen.begin(), fastest->seen.end(),
            [](const SearchedPlan &a, const SearchedPlan &b) { // what the model itself has priced
                return std::pair(a.seconds == a.simulatedSeconds, a.seconds)
                    < std::pair(b.seconds == b.simulatedSeconds, b.seconds);
            });
        for (const double room : {0.55, 0.5}) {
            const auto limit = static_cast<std::int64_t>(static_cast<double>(priced.peakBytes) * room);
            const std::string rows = base + "limit memory " + std::to_string(limit) + "B\n";
            SCOPED_TRACE(rows);
            const auto found = site.search(rows);
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_TRUE(found->fits);
            EXPECT_GT(found->modelBound, 1.01 * fastest->modelBound);
            EXPECT_LT(found->gap(), 0.05);
            site.expectHolds(rows, *found);
        }
    }
}

/// Where the model takes plans for larger than they are, others of the best one's configuration are tried
/// that it would refuse.
TEST(SolverMemory, TriesWhatIsTakenForTooLarge)
{
    const Site site(
        zooTraining("zoo:llama?layers=8&hidden=1024&heads=16&kv_heads=4&seq=512&batch=32&vocab=4096"), 8);
    const std::string base =
        "mesh dp=4 tp=2\nmicro-batches 2\nzero3 all\nrecompute all never\nprecision all : bf16\n";
    const auto fastest = site.search(base);
    ASSERT_TRUE(fastest) << describe(fastest.error());
    const auto limit = static_cast<std::int64_t>(1.01 * static_cast<double>(fastest->best.simulatedPeak));
    const std::string rows = base + "limit memory " + std::to_string(limit) + "B\n";
    const auto found = site.search(rows);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_TRUE(found->fits);
    EXPECT_GT(found->best.peakBytes, limit);
    EXPECT_LT(found->best.simulatedSeconds, 1.1 * fastest->best.simulatedSeconds);
    site.expectHolds(rows, *found);
}

TEST(SolverMemory, SaysWhatIsLeastWhereNothingFits)
{
    const Site site(tinyGpt(8), 4);
    const auto found = site.search("limit memory 1KiB\n");
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_FALSE(found->fits);
    EXPECT_GT(found->leastPeak, 1024);
    EXPECT_EQ(found->memoryLimit, 1024);
}

/// What is shown where nothing fits is worth a look: nothing people would try needs less and is faster.
TEST(SolverMemory, ShowsWhatIsFastOfWhatNeedsLeastWhereNothingFits)
{
    for (const char *spec : {"zoo:moe?layers=4&hidden=256&heads=4&seq=128&vocab=512&batch=8&experts=16",
             "zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=2048&batch=8"}) {
        SCOPED_TRACE(spec);
        const Site site(zooTraining(spec), 4);
        const std::string limit = "limit memory 1MiB\n";
        const auto found = site.search(limit);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_TRUE(found->cannotFit());
        EXPECT_EQ(found->memoryLimit, 1 << 20);
        EXPECT_FALSE(found->fits);
        int compared = 0;
        for (const char *usual : {"data-parallel", "zero1", "zero2", "zero3", "tensor-parallel",
                 "tensor-parallel:sequence=1", "expert-parallel", "1f1b", "1f1b:tp=2",
                 "1f1b:recompute=1,zero=3,micro-batches=1", "3d:tp=4,zero1=1", "pipeline", "gpipe"}) {
            const auto rows = galleryTable(usual, site.model, site.devices, site.costs);
            const auto plan = rows ? site.carriedOut(*rows) : rows.error();
            const auto summary = plan ? site.timed(*plan) : plan.error();
            if (!summary)
                continue;
            ++compared;
            EXPECT_TRUE(summary->stepSeconds >= found->best.simulatedSeconds
                || summary->largestPeak.count >= found->best.simulatedPeak)
                << usual << " takes " << summary->stepSeconds << " s, not " << found->best.simulatedSeconds;
        }
        EXPECT_GT(compared, 8);
        // Nor would a little more room have brought much.
        const std::int64_t more = found->best.simulatedPeak + found->best.simulatedPeak / 20;
        const auto roomier = site.search("limit memory " + std::to_string(more) + "B\n");
        ASSERT_TRUE(roomier);
        EXPECT_GT(roomier->best.simulatedSeconds, 0.8 * found->best.simulatedSeconds);
    }
}

/// What did not fit before a row has something computed again is asked for again, as far as that may help.
TEST(SolverMemory, RowsThatRecomputeMakeRoomForWhatDidNotFit)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=256&vocab=1024&batch=8"), 2);
    const std::string base = "mesh dp=2\nmicro-batches 1\nzero0 all\n";
    int helped = 0;
    for (const char *row :
        {"recompute kind:Gelu\n", "recompute layer:1\nrecompute layer:2\n", "recompute layer:*\n"}) {
        SCOPED_TRACE(row);
        const auto roomy = site.search(base + row);
        ASSERT_TRUE(roomy && roomy->fits);
        const std::string limited =
            base + "limit memory " + std::to_string(roomy->best.simulatedPeak * 105 / 100 >> 10) + "KiB\n";
        SearchOptions options;
        options.mostSeconds = 1000;
        options.memory = std::make_shared<SearchMemory>();
        const auto searchWith = [&](const std::string &rows) {
            return searchPlan(site.model, site.cluster, 2, *parseTable(rows), site.costs, options);
        };
        const auto before = searchWith(limited);
        ASSERT_TRUE(before);
        const auto after = searchWith(limited + row);
        const auto anew = site.search(limited + row);
        ASSERT_TRUE(after && anew);
        EXPECT_TRUE(after->fits);
        EXPECT_EQ(print(after->rows), print(anew->rows));
        EXPECT_EQ(after->best.simulatedSeconds, anew->best.simulatedSeconds);
        helped += before->best.configuration.recompute != after->best.configuration.recompute ? 1 : 0;
    }
    EXPECT_GT(helped, 0);
}

/// On one device nothing can be cut over others: what a long sequence's layers hold for a moment takes turns
/// (coshard), where rows leave it to the search what is computed again.
TEST(SolverMemory, LayersTakeTurnsWhereNothingElseFits)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=4096&vocab=512&batch=1"), 1);
    const auto turns = [](const SearchResult &found) {
        return std::count_if(found.rows.rows.begin(), found.rows.rows.end(), [](const Row &row) {
            return std::holds_alternative<CoshardRule>(row.rule) && row.origin == RowOrigin::Solver;
        });
    };
    const auto atOnce = site.search("recompute layer:* per layer\n");
    ASSERT_TRUE(atOnce) << describe(atOnce.error());
    EXPECT_EQ(turns(*atOnce), 0);
    const auto limit = static_cast<std::int64_t>(static_cast<double>(atOnce->best.simulatedPeak) * 0.9);
    for (const char *base : {"", "recompute layer:* per layer\n"}) {
        const std::string rows = base + ("limit memory " + std::to_string(limit)) + "B\n";
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_TRUE(found->fits) << found->best.simulatedPeak << " of " << limit;
        EXPECT_GT(turns(*found), 0);
        EXPECT_TRUE(found->best.configuration.inTurns);
        EXPECT_GT(found->best.simulatedSeconds, atOnce->best.simulatedSeconds);
        EXPECT_NEAR(found->best.seconds, found->best.simulatedSeconds, 0.05 * found->best.simulatedSeconds);
        EXPECT_NEAR(static_cast<double>(found->best.peakBytes),
            static_cast<double>(found->best.simulatedPeak),
            0.08 * static_cast<double>(found->best.simulatedPeak));
        site.expectHolds(rows, *found);
    }
    // Rows of one's own decide it.
    for (const char *own : {"recompute all never\n", "coshard layer:0 : heads by 2\n"}) {
        SCOPED_TRACE(own);
        const auto found = site.search(own + ("limit memory " + std::to_string(limit)) + "B\n");
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_EQ(turns(*found), 0);
    }
}

} // namespace
} // namespace planloom
