// Split backward passes: what runs in which block, and in which order.

#include "engine/graph/operators/gradient_flow.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/block_text.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace planloom {
namespace {

Plan splitPlanOf(const GraphSnapshot &graph, std::int32_t devices, const std::string &rows)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
    return std::move(completion->plan);
}

ExecutionPlan loweredSplit(const GraphSnapshot &graph, std::int32_t devices, const std::string &rows)
{
    auto plan =
        lower(splitPlanOf(graph, devices, rows), *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// Of every backward operator's kernels: the segments that they run in, and how many gradients each makes.
std::map<std::string, std::string> kernelsOf(const ExecutionPlan &plan)
{
    std::map<std::string, std::string> kernels;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions) {
                if (instruction.kind != InstructionKind::Kernel
                    || plan.graph->at(instruction.op).direction != Direction::Backward)
                    continue;
                std::string &text = kernels[plan.graph->at(instruction.op).name];
                text += (text.empty() ? "" : ", ") + std::string(nameOf(segment.kind));
                for (const std::int32_t output : instruction.outputs)
                    text += output < 0 ? " -" : " +";
            }
    return kernels;
}

TEST(SplitBackward, RunsProductsTwiceAndOthersOnce)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8");
    const auto kernels = kernelsOf(loweredSplit(graph, 1, "split-backward all"));
    std::set<std::string> seen;
    for (const auto &[name, text] : kernels) {
        SCOPED_TRACE(name);
        const Operator &op = graph->operators[static_cast<std::size_t>(
            std::find_if(graph->operators.begin(), graph->operators.end(),
                [&, &name = name](const Operator &each) { return each.name == name; })
            - graph->operators.begin())];
        if (op.kind == OperatorKind::Linear && op.outputs[0] && op.outputs.size() == 3 && op.outputs[2]) {
            EXPECT_EQ(text, "input-gradient + - -, weight-gradient - + +");
            seen.insert("linear");
        } else if (op.kind == OperatorKind::LayerNorm) {
            EXPECT_EQ(text, "input-gradient + + +");
            seen.insert("norm");
        } else if (op.kind == OperatorKind::Embedding) {
            EXPECT_EQ(text.rfind("weight-gradient +", 0), 0U) << text;
            seen.insert("embedding");
        } else if (op.kind == OperatorKind::Attention) {
            EXPECT_EQ(text.rfind("input-gradient", 0), 0U) << text;
            seen.insert("attention");
        }
    }
    EXPECT_EQ(seen, (std::set<std::string>{"attention", "embedding", "linear", "norm"}));
}

TEST(SplitBackward, HalvesReadWhatTheyNeed)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=2&input=8&hidden=16&classes=4&batch=8");
    const ExecutionPlan plan = loweredSplit(graph, 1, "split-backward all");
    int halves = 0;
    for (const Segment &segment : plan.devices[0].segments)
        for (const Instruction &instruction : segment.instructions) {
            if (instruction.kind != InstructionKind::Kernel)
                continue;
            const Operator &op = graph->at(instruction.op);
            if (op.direction != Direction::Backward || op.kind != OperatorKind::Linear || !op.outputs[0])
                continue;
            // dy, x, w, bias, y
            const bool ofWeights = segment.kind == SegmentKind::WeightGradient;
            EXPECT_GE(instruction.inputs[0], 0);
            EXPECT_EQ(instruction.inputs[1] >= 0, ofWeights);
            EXPECT_EQ(instruction.inputs[2] >= 0, !ofWeights);
            ++halves;
        }
    EXPECT_EQ(halves, 2); // the first layer's input needs no gradient
}

TEST(SplitBackward, OnlySelectedOperatorsRunSo)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24");
    for (const auto &[name, text] : kernelsOf(loweredSplit(graph, 1, "split-backward layer:1"))) {
        if (name.find("h.0.") != std::string::npos) {
            EXPECT_EQ(text.rfind("input-gradient", 0), 0U) << name << " " << text;
        }
    }
    for (const auto &[name, text] : kernelsOf(loweredSplit(graph, 1, "")))
        EXPECT_EQ(text.rfind("backward", 0), 0U) << name << " " << text;
}

constexpr const char *kFourStages = "zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24";

std::string fourStages(const std::string &rows)
{
    std::string text = "micro-batches 8\n";
    for (int s = 0; s < 4; ++s)
        text += "stage layer:" + std::to_string(s) + " : " + std::to_string(s)
            + "\nplace layer:" + std::to_string(s) + " : devices " + std::to_string(s) + "\n";
    return text + rows;
}

TEST(SplitBackward, OfAPipelineRunsInThePapersOrder)
{
    const GraphSnapshot graph = trainingStep(kFourStages);
    const ExecutionPlan plan = loweredSplit(graph, 4, fourStages("schedule zb-h1"));
    ASSERT_EQ(plan.stageCount, 4);
    EXPECT_EQ(blocksOn(plan, 0), "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
    EXPECT_EQ(blocksOn(plan, 3), "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7");
    EXPECT_EQ(mostInFlight(plan), (std::vector<std::int32_t>{4, 4, 4, 4}));
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(SplitBackward, HoldsNoMoreThan1F1BDoes)
{
    const GraphSnapshot graph = trainingStep(kFourStages);
    const ExecutionPlan plan = loweredSplit(graph, 4, fourStages("schedule 1f1b\nsplit-backward all"));
    EXPECT_EQ(mostInFlight(plan), (std::vector<std::int32_t>{4, 3, 2, 1}));
    EXPECT_EQ(blocksOn(plan, 3).substr(0, 17), "F0 B0 W0 F1 B1 W1");
    const ExecutionPlan gpipe = loweredSplit(graph, 4, fourStages("schedule gpipe\nsplit-backward all"));
    EXPECT_EQ(blocksOn(gpipe, 3).substr(0, 26), "F0 F1 F2 F3 F4 F5 F6 F7 B0");
    const ExecutionPlan single = loweredSplit(graph, 1, "micro-batches 2\nsplit-backward all");
    EXPECT_EQ(blocksOn(single, 0), "F0 B0 W0 F1 B1 W1");
}

TEST(SplitBackward, ReducesGradientsBehindTheLastOfTheirPass)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=3&hidden=12&batch=8");
    const ExecutionPlan plan =
        loweredSplit(graph, 2, "mesh dp=2\nsplit all : batch over dp\nmicro-batches 2\nsplit-backward all");
    const DeviceProgram &device = plan.devices[0];
    std::size_t reductions = 0;
    std::string text;
    for (const ScheduleEntry &entry : device.schedule) {
        const Segment &segment = device.segments[static_cast<std::size_t>(entry.segment)];
        if (segment.kind == SegmentKind::Reduce)
            ++reductions;
        text += std::string(nameOf(segment.kind)) + std::to_string(entry.microBatch) + " ";
    }
    EXPECT_GT(reductions, 0U);
    EXPECT_LT(text.find("weight-gradient1"), text.find("reduce0")) << text;
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(SplitBackward, RecomputesOnceAheadOfItsFirstReader)
{
    const GraphSnapshot graph = trainingStep(kFourStages);
    const ExecutionPlan plan =
        loweredSplit(graph, 4, fourStages("schedule zb-h1\nrecompute layer:* per layer"));
    int again = 0;
    for (const DeviceProgram &device : plan.devices) {
        std::set<OperatorId> once;
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.kind == InstructionKind::Kernel && instruction.recompute) {
                    EXPECT_EQ(segment.kind, SegmentKind::InputGradient);
                    EXPECT_TRUE(once.insert(instruction.op).second);
                    ++again;
                }
    }
    EXPECT_GT(again, 0);
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

/// By brute force: some way back through forward operators begins at an input of the model.
bool comesFromInput(const Graph &graph, TensorId tensor)
{
    if (graph.at(tensor).role == TensorRole::Input)
        return true;
    for (const Operator &op : graph.operators) {
        if (op.direction != Direction::Forward
            || std::find(op.outputs.begin(), op.outputs.end(), tensor) == op.outputs.end())
            continue;
        for (const TensorId input : op.inputs)
            if (input && comesFromInput(graph, input))
                return true;
    }
    return false;
}

TEST(GradientFlow, TellsGradientsOfWeightsFromThoseOfInputs)
{
    for (const char *model : {"zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8",
             "zoo:t5?layers=1&hidden=8&heads=2&src=4&tgt=4&batch=2&vocab=8", "zoo:mlp?layers=2&batch=8"}) {
        const GraphSnapshot graph = trainingStep(model);
        const std::vector<bool> ofWeights = gradientsOfWeights(*graph);
        int both = 0;
        for (std::size_t t = 0; t < graph->tensors.size(); ++t) {
            if (graph->tensors[t].role != TensorRole::Gradient) {
                EXPECT_FALSE(ofWeights[t]) << graph->tensors[t].name;
                continue;
            }
            EXPECT_EQ(ofWeights[t], !comesFromInput(*graph, graph->tensors[t].of)) << graph->tensors[t].name;
            both |= ofWeights[t] ? 1 : 2;
        }
        EXPECT_EQ(both, 3);
    }
}

} // namespace
} // namespace planloom
