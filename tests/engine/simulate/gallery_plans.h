#pragma once

#include "engine/simulate/simulate.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_tables.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace planloom {

/// A lowered plan, its simulated step, and its name for messages.
struct SimulatedPlan {
    std::string name{};
    ExecutionPlan plan{};
    Cluster cluster{};
    Timeline timeline{};
};

inline SimulatedPlan simulated(std::string name, ExecutionPlan plan)
{
    SimulatedPlan made{std::move(name), std::move(plan), {}, {}};
    made.cluster = *clusterNamed("dgx-a100:" + std::to_string(made.plan.devices.size()));
    auto timeline = simulate(made.plan, made.cluster);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    made.timeline = *std::move(timeline);
    return made;
}

/// Every gallery plan, of two small models; three-dimensional ones over two nodes.
inline std::vector<SimulatedPlan> galleryPlans()
{
    const std::pair<const char *, std::int32_t> galleries[] = {{"single", 1}, {"data-parallel", 2},
        {"tensor-parallel", 4}, {"pipeline:schedule=gpipe,micro-batches=4", 2},
        {"pipeline:schedule=1f1b,micro-batches=4", 4}, {"zero1", 2}, {"3d:dp=2,tp=2,pp=2,micro-batches=2", 8},
        {"3d:dp=4,tp=2,pp=2", 16}};
    std::vector<SimulatedPlan> plans;
    for (const char *model : {"zoo:gpt?layers=4&hidden=32&heads=4&seq=8&batch=8&vocab=24",
             "zoo:mlp?layers=4&hidden=16&batch=16"}) {
        const GraphSnapshot graph = trainingStep(model);
        for (const auto &[gallery, devices] : galleries)
            plans.push_back(
                simulated(std::string(model) + " " + gallery, galleryPlan(graph, gallery, devices)));
    }
    return plans;
}

/// Plans of random tables that can be carried out.
inline std::vector<SimulatedPlan> randomPlans(const std::string &model, std::uint32_t seeds)
{
    const GraphSnapshot graph = trainingStep(model);
    std::vector<SimulatedPlan> plans;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        std::mt19937 random(seed);
        const std::int32_t devices = 1 + static_cast<std::int32_t>(seed % 5);
        const auto completion = completePlan(graph, devices, randomTable(*graph, devices, random));
        if (!completion || firstError(*completion))
            continue;
        auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
        if (plan)
            plans.push_back(simulated(model + " seed " + std::to_string(seed), *std::move(plan)));
    }
    return plans;
}

/// Of the gallery and of random tables.
inline const std::vector<SimulatedPlan> &allPlans()
{
    static const std::vector<SimulatedPlan> plans = [] {
        auto all = galleryPlans();
        for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=3&hidden=12&batch=8", 40))
            all.push_back(std::move(plan));
        return all;
    }();
    return plans;
}

} // namespace planloom
