#pragma once

// Small models with one attention, and plans of them against the model as it is.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace planloom {

struct AttentionForm {
    std::int64_t keyHeads = 4;
    bool causal = false;
    std::int64_t window = 0;
    double dropout = 0;
    std::int64_t memory =
        0; ///< Keys and values come from a sequence of this length of its own; 0: from the queries'.
    bool masked = false; ///< By an input of booleans.
};

inline std::string textOf(const AttentionForm &form)
{
    return std::to_string(form.keyHeads) + " key heads, causal " + std::to_string(form.causal) + ", window "
        + std::to_string(form.window) + ", dropout " + std::to_string(form.dropout) + ", memory "
        + std::to_string(form.memory) + ", masked " + std::to_string(form.masked);
}

/// Products that make queries, keys and values of four heads, their attention, and a sum of squares.
inline GraphSnapshot attentionModel(const AttentionForm &form)
{
    GraphBuilder builder{"attention"};
    const TensorId x = builder.input("x", {DataType::Float32, {2, 8, 6}});
    const std::int64_t length = form.memory > 0 ? form.memory : 8;
    const TensorId memory =
        form.memory > 0 ? builder.input("memory", {DataType::Float32, {2, length, 6}}) : x;
    const auto heads = [&](TensorId of, std::int64_t tokens, const std::string &name, std::int64_t count) {
        TensorId h =
            builder.one(OperatorKind::MatMul, {of, builder.weight(name + ".w", {6, count * 4})}, {}, name);
        h = builder.reshape(h, {2, tokens, count, 4}, name + ".heads");
        return builder.one(OperatorKind::Transpose, {h},
            attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), name + ".turned");
    };
    Attributes attributes = attributesOf({{"scale", 0.5}});
    if (form.causal)
        attributes.set("causal", std::int64_t{1});
    if (form.window > 0)
        attributes.set("window", form.window);
    if (form.dropout > 0) {
        attributes.set("dropout", form.dropout);
        attributes.set("seed", std::int64_t{7});
    }
    std::vector<TensorId> inputs{heads(x, 8, "q", 4), heads(memory, length, "k", form.keyHeads),
        heads(memory, length, "v", form.keyHeads)};
    if (form.masked)
        inputs.push_back(builder.input("mask", {DataType::Bool, {2, 1, 8, length}}));
    const TensorId y = builder.add(OperatorKind::Attention, inputs, attributes, "attention")[0];
    const TensorId loss = builder.one(
        OperatorKind::ReduceSumSquare, {y}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

/// Rows on devices of one node.
inline Result<ExecutionPlan> planOfRows(
    const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    TRY(const auto table, parseTable(rows));
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    return lower(completion.plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
}

/// Instructions for which `counts`, over all devices and segments.
template<typename Counts> std::int64_t countOf(const ExecutionPlan &plan, Counts counts)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            count += std::count_if(segment.instructions.begin(), segment.instructions.end(), counts);
    return count;
}

inline std::int64_t countOfKind(const ExecutionPlan &plan, InstructionKind kind)
{
    return countOf(plan, [&](const Instruction &instruction) { return instruction.kind == kind; });
}

/// The plan of `rows`, which has instructions of `kind`, is proven, and trains as the model does.
inline void expectLikeTheModel(
    const GraphSnapshot &graph, const std::string &rows, std::int32_t devices, InstructionKind kind)
{
    SCOPED_TRACE(rows);
    const auto plan = planOfRows(graph, rows, devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_GT(countOfKind(*plan, kind), 0);
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof) << describe(proof.error());
    ASSERT_TRUE(proof->ok()) << proof->failure->reason;
    const auto reference = planOfRows(graph, "", 1);
    ASSERT_TRUE(reference) << describe(reference.error());
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.steps = 2;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto check = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

} // namespace planloom
