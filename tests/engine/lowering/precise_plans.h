#pragma once

#include "engine/table/table_text.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <string>

namespace planloom {

/// `graph` lowered under a gallery plan with the rows of `text` before its own.
inline ExecutionPlan precisePlan(
    const GraphSnapshot &graph, const std::string &gallery, std::int32_t devices, const std::string &text)
{
    auto table = parseTable(text);
    EXPECT_TRUE(table) << text;
    const auto rows = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(rows) << describe(rows.error());
    table->rows.insert(table->rows.end(), rows->rows.begin(), rows->rows.end());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

} // namespace planloom
