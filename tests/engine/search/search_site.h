#pragma once

#include "engine/graph/operators/weight_update.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/search/solver.h"
#include "engine/simulate/simulate.h"
#include "engine/verify/verify.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {

/// A model on H100s, with what rows come to there.
struct Site {
    Model model{};
    Cluster cluster{};
    std::int32_t devices = 4;
    CostModel costs{};

    Site(GraphSnapshot graph, std::int32_t count, const std::string &profile = "dgx-h100")
        : model(std::move(graph))
        , cluster(*clusterNamed(profile + ":" + std::to_string(count)))
        , devices(count)
        , costs(costModelOf(cluster))
    {
    }

    Result<SearchResult> search(std::string_view rows) const
    {
        TRY(const ConstraintTable table, parseTable(rows));
        SearchOptions options;
        options.mostSeconds = 1000; // machines are slow at times: what is found must not depend on it
        return searchPlan(model, cluster, devices, table, costs, options);
    }

    Result<ExecutionPlan> carriedOut(const ConstraintTable &table) const
    {
        TRY(const Completion completion, completePlan(model, devices, table));
        if (auto error = firstError(completion))
            return *std::move(error);
        return lower(completion.plan, cluster, costs);
    }

    Result<TimelineSummary> timed(const ExecutionPlan &plan) const
    {
        SimulateOptions options;
        options.spans = false;
        TRY(const Timeline timeline, simulate(plan, cluster, costs, options));
        return summaryOf(timeline);
    }

    /// Rows asked for and rows found make a plan that is proven, takes what was said, and fits where it was
    /// said to.
    void expectHolds(std::string_view rows, const SearchResult &found) const
    {
        ConstraintTable all = *parseTable(rows);
        all.rows.insert(all.rows.end(), found.rows.rows.begin(), found.rows.rows.end());
        SCOPED_TRACE(print(all));
        const auto plan = carriedOut(all);
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto proof = verify(*plan);
        ASSERT_TRUE(proof);
        EXPECT_TRUE(proof->ok());
        const auto summary = timed(*plan);
        ASSERT_TRUE(summary);
        EXPECT_DOUBLE_EQ(summary->stepSeconds, found.best.simulatedSeconds);
        EXPECT_EQ(summary->largestPeak.count, found.best.simulatedPeak);
        EXPECT_EQ(found.fits, found.best.simulatedPeak <= found.memoryLimit);
        EXPECT_LE(found.bound, found.best.simulatedSeconds);
        EXPECT_LE(found.modelBound, found.best.seconds);
        // It is among those that were seen, once.
        EXPECT_EQ(std::count_if(found.seen.begin(), found.seen.end(),
                      [&](const SearchedPlan &plan) {
                          return plan.rows && print(*plan.rows) == print(found.rows)
                              && plan.simulatedSeconds == found.best.simulatedSeconds;
                      }),
            1);
        EXPECT_GT(found.bound, 0);
    }
};

} // namespace planloom
