#pragma once

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {

inline GraphSnapshot shared(Graph graph)
{
    return std::make_shared<const Graph>(std::move(graph));
}

/// The training step of a zoo model.
inline GraphSnapshot zooTraining(std::string_view spec)
{
    const auto forward = buildZooModel(spec);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(graph) << describe(graph.error());
    return shared(*std::move(graph));
}

inline GraphSnapshot tinyGpt(int batch = 4)
{
    return zooTraining("zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=160&batch=" + std::to_string(batch));
}

/// x [batch 8] -> a (Linear 12) -> r (Relu) -> b (Linear 6) -> loss (ReduceSum of squares), with its training
/// step.
inline GraphSnapshot tinyMlp(std::int64_t batch = 4, std::int64_t inner = 12)
{
    GraphBuilder builder("mlp");
    const TensorId x = builder.input("x", {DataType::Float32, {batch, 8}});
    const TensorId w1 = builder.weight("w1", {8, inner});
    const TensorId w2 = builder.weight("w2", {inner, 6});
    const TensorId a = builder.one(OperatorKind::Linear, {x, w1, {}}, {}, "a");
    const TensorId r = builder.one(OperatorKind::Relu, {a}, {}, "r");
    const TensorId b = builder.one(OperatorKind::Linear, {r, w2, {}}, {}, "b");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {b},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto forward = builder.finish({}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward);
    EXPECT_TRUE(graph) << describe(graph.error());
    return shared(*std::move(graph));
}

inline OperatorId operatorNamed(const Graph &graph, std::string_view name)
{
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].name == name)
            return {static_cast<std::int32_t>(i)};
    }
    ADD_FAILURE() << "no operator " << name;
    return {0};
}

/// "k+:2 replicate:2 @ 0,1,2,3 stage 0" of an operator in a plan.
inline std::string decisionText(const Plan &plan, std::string_view name)
{
    const OperatorId id = operatorNamed(*plan.graph, name);
    const OperatorDecision &decision = plan.decisions[static_cast<std::size_t>(id.index)];
    std::string text = toString(plan.graph->at(id).annotation, decision.partition) + " @ ";
    for (std::size_t i = 0; i < decision.devices.size(); ++i)
        text += (i > 0 ? "," : "") + std::to_string(decision.devices[i].index);
    return text + " stage " + std::to_string(decision.stage.index);
}

/// The plan of a table in text form; fails the test if it has errors.
inline Plan planOf(const GraphSnapshot &graph, std::int32_t devices, std::string_view text)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    if (const auto error = firstError(*completion))
        ADD_FAILURE() << describe(*error);
    return completion->plan;
}

} // namespace planloom
