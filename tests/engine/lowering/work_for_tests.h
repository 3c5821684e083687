#pragma once

#include "engine/lowering/lowered_blocks.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// The plan of a graph under rows, written out device by device.
inline Plan planUnder(
    const GraphSnapshot &graph, const std::string &rows, std::int32_t devices, UseUnits units)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    auto completion = completePlan(graph, devices, *table, {.units = units});
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    return std::move(completion->plan);
}

/// What the owners of lowering work on, for a graph under rows on CPU devices; with its blocks, filled.
struct WorkForTests {
    WorkForTests(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices,
        UseUnits units = UseUnits::Never)
        : plan(planUnder(graph, rows, devices, units))
        , versioned(withWeightVersions(plan))
        , cluster(*clusterNamed("cpu:" + std::to_string(devices)))
        , costs(costModelOf(cluster))
        , work(versioned, cluster, costs, *transform(versioned.plan), nullptr, {})
        , blocks(work)
    {
        const auto assigned = blocks.assign();
        EXPECT_TRUE(assigned) << describe(assigned.error());
    }

    OperatorId operatorNamed(const std::string &name) const
    {
        const auto &all = work.graph.operators;
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const Operator &op) { return op.name == name; });
        EXPECT_NE(found, all.end()) << name;
        return OperatorId{static_cast<std::int32_t>(found - all.begin())};
    }
    /// Weights as they are kept, in the order of the graph.
    std::vector<TensorId> weights() const
    {
        std::vector<TensorId> all;
        for (std::size_t t = 0; t < work.graph.tensors.size(); ++t)
            if (const TensorId tensor{static_cast<std::int32_t>(t)};
                work.isPersistent(tensor) && work.graph.at(tensor).role == TensorRole::Weight)
                all.push_back(tensor);
        return all;
    }
    TensorId gradientOf(TensorId weight) const
    {
        for (std::size_t t = 0; t < work.graph.tensors.size(); ++t)
            if (const TensorId tensor{static_cast<std::int32_t>(t)};
                work.isWeightGradient(tensor) && work.graph.at(tensor).of == weight)
                return tensor;
        ADD_FAILURE() << "no gradient of " << work.graph.at(weight).name;
        return {};
    }
    IndexMask wholeOf(TensorId tensor) const { return wholeMask(work.graph.at(tensor).type.shape); }
    std::vector<InstructionKind> emitted(DeviceId device, std::int32_t block)
    {
        std::vector<InstructionKind> kinds;
        for (const Instruction &instruction : work.builder.instructions(device, block))
            kinds.push_back(instruction.kind);
        return kinds;
    }

    Plan plan;
    VersionedPlan versioned;
    Cluster cluster;
    CostModel costs;
    LoweringWork work;
    LoweredBlocks blocks;
};

} // namespace planloom
