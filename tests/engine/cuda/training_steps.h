#pragma once

#include "engine/runtime/run.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace planloom {

/// Steps that are alike but for what a graph must read anew: batches of their own, and a rate that changes.
inline RunOptions trainingSteps(std::int32_t steps)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = steps;
    options.training.batches = BatchSource::Drawn;
    options.training.learningRate = 0.05;
    options.training.schedule = RateSchedule{.warmup = 4};
    return options;
}

inline void expectSameBits(const NamedArrays &a, const NamedArrays &b)
{
    ASSERT_EQ(a.size(), b.size());
    for (const auto &[name, array] : a)
        EXPECT_TRUE(b.count(name) != 0 && b.at(name).bytes == array.bytes) << name;
}

} // namespace planloom
