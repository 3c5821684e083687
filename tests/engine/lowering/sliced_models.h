#pragma once

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {

/// The training step of `layers` products of [batch sequence 4] with a square weight, and a sum of squares.
inline GraphSnapshot sequenceMlp(std::int32_t layers, std::int64_t batch, std::int64_t sequence)
{
    GraphBuilder builder{"sequence-mlp"};
    TensorId x = builder.input("x", {DataType::Float32, {batch, sequence, 4}});
    for (std::int32_t layer = 0; layer < layers; ++layer) {
        const auto scope = builder.scope("h." + std::to_string(layer));
        x = builder.one(OperatorKind::MatMul, {x, builder.weight("w", {4, 4})}, {}, "product");
    }
    const TensorId loss = builder.one(
        OperatorKind::ReduceSumSquare, {x}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

/// One attention of a head over [batch 2, sequence 8], with a window if not 0, and a sum of squares.
inline GraphSnapshot attentionOverSequence(bool causal, std::int64_t window = 0)
{
    GraphBuilder builder{"attention"};
    const TensorId x = builder.input("x", {DataType::Float32, {2, 1, 8, 4}});
    const auto made = [&](const char *name) {
        return builder.one(
            OperatorKind::MatMul, {x, builder.weight(std::string(name) + ".w", {4, 4})}, {}, name);
    };
    const TensorId q = made("q");
    const TensorId k = made("k");
    const TensorId v = made("v");
    Attributes attributes = attributesOf({{"scale", 0.5}});
    attributes.set("causal", std::int64_t{causal ? 1 : 0});
    attributes.set("window", window);
    const TensorId y = builder.add(OperatorKind::Attention, {q, k, v}, attributes, "attention")[0];
    const TensorId loss = builder.one(
        OperatorKind::ReduceSumSquare, {y}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

/// Rows that put layer i, of several, in stage i, on device i.
inline std::string stageRowsOf(std::int32_t stages)
{
    std::string text;
    for (std::int32_t s = 0; stages > 1 && s < stages; ++s)
        text += "stage layer:" + std::to_string(s) + " : " + std::to_string(s)
            + "\nplace layer:" + std::to_string(s) + " : devices " + std::to_string(s) + "\n";
    return text;
}

} // namespace planloom
