#pragma once

#include "engine/runtime/run.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace planloom {

/// A small model, made once.
inline GraphSnapshot gpt()
{
    static const GraphSnapshot graph =
        trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8", OperatorKind::SgdStep);
    return graph;
}

/// Where the proof breaks; empty if it holds.
inline std::string reasonOf(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    if (!report)
        return describe(report.error());
    return report->ok() ? std::string{} : report->failure->reason;
}

/// What a plan computes from random weights.
inline RunOutcome outcomeOf(const ExecutionPlan &plan)
{
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.steps = 3; // what a step leaves behind wrongly shows in the next, or where a version is read late
    auto outcome = runOnCpu(plan, options);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return outcome ? *std::move(outcome) : RunOutcome{};
}

} // namespace planloom
