#pragma once

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {

/// The training step of a small zoo model.
inline GraphSnapshot trainingStep(const std::string &spec, OperatorKind optimizer = OperatorKind::AdamWStep)
{
    auto forward = buildZooModel(spec);
    EXPECT_TRUE(forward) << describe(forward.error());
    TrainingOptions options;
    options.optimizer = optimizer;
    auto step = buildTrainingStep(*forward, options);
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

/// Small models of different shapes: chains, residuals, heads, several consumers, tied weights, batch norm.
inline const std::vector<std::string> &smallModels()
{
    static const std::vector<std::string> models{"zoo:mlp?layers=3&hidden=12&batch=8",
        "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24",
        "zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=2&vocab=24"};
    return models;
}

/// `graph` lowered under rows on CPU devices.
/// @return the first error of a row, or of lowering
inline Result<ExecutionPlan> loweredRows(
    const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    TRY(const auto table, parseTable(rows));
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    return lower(completion.plan, *clusterNamed("cpu:" + std::to_string(devices)));
}

/// What is wrong with rows that cannot be carried out; empty if they can.
inline std::string refusalOf(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices = 1)
{
    const auto plan = loweredRows(graph, rows, devices);
    return plan ? "" : describe(plan.error());
}

/// `graph` lowered under a gallery plan.
inline ExecutionPlan galleryPlan(const GraphSnapshot &graph, const std::string &gallery, std::int32_t devices)
{
    const auto table = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    const auto cluster = clusterNamed("dgx-a100:" + std::to_string(devices));
    EXPECT_TRUE(cluster) << describe(cluster.error());
    auto plan = lower(completion->plan, *cluster);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

} // namespace planloom
