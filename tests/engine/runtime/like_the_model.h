#pragma once

#include "engine/runtime/training/check.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {

/// The plan is proven, runs two steps, and its loss, outputs, gradients and weights are those of the model on
/// one device: under `rows`, where they say when and of what weights gradients are.
inline void expectLikeTheModel(
    const GraphSnapshot &graph, const ExecutionPlan &plan, const std::string &rows = {})
{
    const auto report = verify(plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = 2;
    const auto outcome = runOnCpu(plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto reference = loweredRows(graph, rows, 1);
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto check = checkAgainst(*reference, plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

} // namespace planloom
