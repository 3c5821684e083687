#include "engine/search/memory/held_limits.h"

#include "engine/search/bounds/least_stages.h"
#include "engine/search/time/step_estimate.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace planloom {
namespace {

/// Partitions of a configuration, at random but for what must go together.
std::vector<StepEstimate> randomPartitions(
    StepEstimator &estimator, const Configuration &configuration, std::mt19937 &random, std::size_t count)
{
    const PartitionProblem &problem = estimator.problemOf(configuration);
    std::vector<StepEstimate> found;
    for (int times = 0; times < 20000 && found.size() < count; ++times) {
        std::vector<std::int32_t> choice;
        for (std::size_t i = 0; i < problem.operatorCount(); ++i)
            choice.push_back(static_cast<std::int32_t>(random() % problem.choiceCount(i)));
        if (!std::isfinite(problem.costOf({}, choice)))
            continue;
        auto estimate = estimator.estimateWith(configuration, std::move(choice));
        EXPECT_TRUE(estimate);
        if (estimate)
            found.push_back(*std::move(estimate));
    }
    return found;
}

/// A limit says no more of any partition than what it holds at its fullest, and of the one that it was added
/// for nearly that.
TEST(HeldLimits, AreOfNoMoreThanWhatPartitionsHold)
{
    const Model model(tinyGpt(8)); // its embeddings are read in the first stage and in the last one
    const Cluster cluster = *clusterNamed("dgx2-v100:8");
    const CostModel costs = costModelOf(cluster);
    const auto space = searchSpaceOf(model, cluster, 8, {});
    ASSERT_TRUE(space);
    auto estimator = StepEstimator::make(model, cluster, 8, {}, *space, costs, PrecisionPreset::Float32);
    ASSERT_TRUE(estimator);
    std::mt19937 random(7);
    using enum ScheduleKind;
    using enum RecomputeWord;
    for (const Configuration &configuration :
        {Configuration{.ranks = 2, .shards = 4, .microBatches = 4, .schedule = OneFOneB},
            Configuration{.ranks = 2,
            .shards = 2,
            .stagesPerRank = 2,
            .microBatches = 2,
            .schedule = Interleaved,
            .recompute = Selective},
            Configuration{
                .ranks = 2, .shards = 2, .microBatches = 4, .schedule = ZeroBubbleH1, .recompute = Full},
            Configuration{.ranks = 4, .shards = 2, .microBatches = 8, .schedule = GPipe}}) {
        SCOPED_TRACE(toString(configuration));
        ASSERT_TRUE((*estimator)->boundOf(configuration, {}));
        const PartitionProblem &problem = (*estimator)->problemOf(configuration);
        const auto partitions = randomPartitions(**estimator, configuration, random, 12);
        ASSERT_EQ(partitions.size(), 12U);
        const auto &plan = partitions.front().stages;
        HeldPricing held(problem, plan, true);
        constexpr double kRoom = 1e6;
        HeldLimits::Room room{kRoom, {}, std::vector<double>(4, std::numeric_limits<double>::infinity())};
        for (const LeastStage &stage : leastHeld(problem, *plan))
            room.beside.push_back(stage.madeBytes);
        HeldLimits limits(problem, std::move(held), 1, configuration.ranks, std::move(room));
        std::vector<std::size_t> rankOf;
        for (const StepEstimate &own : partitions)
            for (std::size_t rank = 0; rank < own.rankPeaks.size(); ++rank)
                if (limits.add(rank, own.partition->choice, own.heldBy)) {
                    rankOf.push_back(rank);
                    const auto peak = static_cast<double>(own.rankPeaks[rank]);
                    EXPECT_GT(limits.beyond(limits.count() - 1, own.partition->choice) + kRoom, 0.85 * peak);
                    EXPECT_FALSE(limits.add(rank, own.partition->choice, own.heldBy)); // it is there
                }
        EXPECT_GE(limits.count(), static_cast<std::size_t>(configuration.ranks));
        for (std::size_t l = 0; l < limits.count(); ++l)
            for (const StepEstimate &other : partitions)
                EXPECT_LE(limits.beyond(l, other.partition->choice) + kRoom,
                    static_cast<double>(other.rankPeaks[rankOf[l]]) * (1 + 1e-9));
        // Prices of several are the sum of each.
        const std::vector<double> prices(limits.count(), 0.25);
        const HeldLimits::Prices all = limits.at(prices);
        double seconds = -all.room;
        double sum = 0;
        const std::vector<std::int32_t> &choice = partitions.back().partition->choice;
        for (std::size_t i = 0; i < choice.size(); ++i)
            seconds += limits.seconds(i, problem.choiceOf(i, choice[i]), all);
        for (std::size_t l = 0; l < limits.count(); ++l)
            sum += 0.25 * limits.beyond(l, choice);
        EXPECT_NEAR(seconds, sum, 1e-9 * all.room);
    }
}

} // namespace
} // namespace planloom
