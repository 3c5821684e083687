#pragma once

#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {

/// The training step of a model (`trainingStepOf`) under a plan of the gallery, on devices of the CPU.
inline ExecutionPlan trainingPlanOf(const std::string &model, const std::string &gallery,
    std::int32_t devices, OperatorKind optimizer = OperatorKind::AdamWStep)
{
    const GraphSnapshot graph = trainingStepOf(model, optimizer);
    const auto table = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(table) << describe(table.error());
    auto plan = loweredRows(graph, print(*table), devices);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

} // namespace planloom
