// What rows of precision make of a plan: types of buffers, casts, and what travels.

#include "engine/lowering/program/execution_plan_json.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/precise_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace planloom {
namespace {

const char *const kMlp = "zoo:mlp?layers=2&hidden=8&batch=8";
const char *const kGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";

struct Place {
    const DeviceProgram &device;
    SegmentKind segment;
    const Instruction &instruction;
    const BufferInfo &in(std::size_t i = 0) const
    {
        return device.buffers[static_cast<std::size_t>(instruction.inputs[i])];
    }
    const BufferInfo &out() const { return device.buffers[static_cast<std::size_t>(instruction.outputs[0])]; }
};

std::vector<Place> placesOf(const ExecutionPlan &plan, InstructionKind kind)
{
    std::vector<Place> places;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.kind == kind)
                    places.push_back({device, segment.kind, instruction});
    return places;
}

bool isWeightGradient(const ExecutionPlan &plan, const BufferInfo &buffer)
{
    const Tensor &tensor = plan.graph->at(buffer.tensor);
    return tensor.role == TensorRole::Gradient && plan.graph->at(tensor.of).role == TensorRole::Weight;
}

TEST(PrecisionPlan, OfFloat32IsThatWithoutRows)
{
    const GraphSnapshot graph = trainingStep(kGpt);
    const ExecutionPlan bare = galleryPlan(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8);
    const ExecutionPlan said =
        precisePlan(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8, "precision all : fp32");
    EXPECT_EQ(said.devices, bare.devices);
    EXPECT_TRUE(said.precisions.empty());
    EXPECT_TRUE(placesOf(bare, InstructionKind::Cast).empty());
    EXPECT_EQ(toJson(said), toJson(bare));
}

TEST(PrecisionPlan, OfBFloat16KeepsAMasterForTheOptimizerAndSendsTheNewWeightNarrow)
{
    const GraphSnapshot graph = trainingStep(kMlp);
    const ExecutionPlan plan = precisePlan(graph, "zero1", 2, "precision all : bf16");
    std::int64_t masters = 0;
    std::int64_t copies = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const BufferInfo &buffer : device.buffers) {
            if (!buffer.persistent || graph->at(buffer.tensor).role != TensorRole::Weight)
                continue;
            const std::int64_t elements = elementCount(shapeOf(buffer.index));
            const bool master = buffer.memory == MemoryKind::OptimizerState;
            EXPECT_EQ(buffer.dataType, master ? DataType::Float32 : DataType::BFloat16);
            (master ? masters : copies) += elements;
        }
    EXPECT_EQ(copies, 2 * masters); // each device has half of the masters and all of the copies
    // accumulators -> fp32 all the way to the optimizer; new weight -> cast -> all-gather -> update
    std::int64_t gathered = 0;
    for (const InstructionKind kind :
        {InstructionKind::AllGather, InstructionKind::AllReduce, InstructionKind::ReduceScatter})
        for (const Place &place : placesOf(plan, kind)) {
            if (isWeightGradient(plan, place.in())) {
                EXPECT_EQ(place.in().dataType, DataType::Float32);
            }
            if (place.segment != SegmentKind::Optimizer)
                continue;
            ++gathered;
            EXPECT_EQ(place.in().dataType, DataType::BFloat16) << nameOf(kind);
        }
    EXPECT_GT(gathered, 0);
    for (const Place &place : placesOf(plan, InstructionKind::Update))
        EXPECT_EQ(place.out().dataType, DataType::BFloat16);
    for (const Place &place : placesOf(plan, InstructionKind::Accumulate)) {
        EXPECT_EQ(place.in().dataType, DataType::BFloat16);
        EXPECT_EQ(place.out().dataType, DataType::Float32);
    }
    for (const Place &place : placesOf(plan, InstructionKind::Cast)) // only the new weights
        EXPECT_EQ(place.segment, SegmentKind::Optimizer);
}

TEST(PrecisionPlan, KeepsLossesAndStatisticsInFloat32)
{
    const GraphSnapshot graph = trainingStep(kGpt);
    const ExecutionPlan plan = precisePlan(graph, "single", 1, "precision all : fp16");
    std::set<DataType> types;
    const Uses uses = usesOf(*graph);
    for (const BufferInfo &buffer : plan.devices[0].buffers) {
        const Tensor &tensor = graph->at(buffer.tensor);
        const bool loss = buffer.tensor == graph->loss || tensor.of == graph->loss;
        const auto &makers = uses.producers[static_cast<std::size_t>(buffer.tensor.index)];
        const bool statistics = !makers.empty()
            && (graph->at(makers[0]).kind == OperatorKind::Attention
                    ? graph->at(makers[0]).outputs[1] == buffer.tensor
                    : graph->at(makers[0]).kind == OperatorKind::ClassStatistics)
            && graph->at(makers[0]).direction == Direction::Forward;
        if (loss || statistics || tensor.type.dataType != DataType::Float32 || tensor.type.shape.empty()) {
            EXPECT_EQ(buffer.dataType, tensor.type.dataType) << tensor.name;
        } else if (tensor.role == TensorRole::Activation) {
            types.insert(buffer.dataType);
        }
    }
    EXPECT_EQ(types, (std::set<DataType>{DataType::Float16}));
}

TEST(PrecisionPlan, CastsAroundOperatorsOfAnotherTypeAndKeepsTheNarrowCopy)
{
    const GraphSnapshot graph = trainingStep(kGpt);
    const ExecutionPlan plan =
        precisePlan(graph, "single", 1, "precision all : bf16\nprecision kind:Gelu : storage=fp32");
    std::map<std::pair<DataType, DataType>, std::int64_t> forward;
    for (const Place &place : placesOf(plan, InstructionKind::Cast)) {
        if (place.segment != SegmentKind::Optimizer) { // there a master has become the new weight
            EXPECT_EQ(place.in().tensor, place.out().tensor);
        }
        if (place.segment == SegmentKind::Forward)
            ++forward[{place.in().dataType, place.out().dataType}];
    }
    // Two of them: one cast into each, one out of it, for the product behind it and its backward pass.
    EXPECT_EQ(forward,
        (std::map<std::pair<DataType, DataType>, std::int64_t>{
            {{DataType::BFloat16, DataType::Float32}, 2}, {{DataType::Float32, DataType::BFloat16}, 2}}));
    for (const Place &place : placesOf(plan, InstructionKind::Kernel))
        if (graph->at(place.instruction.op).kind == OperatorKind::Gelu)
            for (const BufferList *list : {&place.instruction.inputs, &place.instruction.outputs})
                for (const std::int32_t buffer : *list) {
                    EXPECT_TRUE(buffer < 0
                        || place.device.buffers[static_cast<std::size_t>(buffer)].dataType
                            == DataType::Float32);
                }
}

TEST(PrecisionPlan, ReducesGradientsInTheTypeAskedForAndSendsActivationsNarrow)
{
    const GraphSnapshot graph = trainingStep(kGpt);
    const ExecutionPlan parallel =
        precisePlan(graph, "data-parallel", 2, "precision all : fp32 reduction=bf16");
    std::int64_t reduced = 0;
    for (const Place &place : placesOf(parallel, InstructionKind::AllReduce)) {
        if (!isWeightGradient(parallel, place.in()))
            continue;
        EXPECT_EQ(place.in().dataType, DataType::BFloat16);
        ++reduced;
    }
    EXPECT_GT(reduced, 0);
    // One cast before each, one behind it.
    EXPECT_EQ(static_cast<std::int64_t>(placesOf(parallel, InstructionKind::Cast).size()), 2 * reduced);

    // What a stage of wide operators makes for one of narrow ones is cast before it is sent.
    const ExecutionPlan stages = precisePlan(graph, "pipeline:schedule=1f1b,micro-batches=2", 2,
        "precision layer:0 : fp32\nprecision !layer:0 : bf16");
    std::int64_t sent = 0;
    for (const Place &place : placesOf(stages, InstructionKind::Send))
        if (graph->at(place.in().tensor).type.dataType == DataType::Float32 && place.in().perMicroBatch) {
            EXPECT_EQ(place.in().dataType, DataType::BFloat16) << graph->at(place.in().tensor).name;
            ++sent;
        }
    EXPECT_GT(sent, 0);
}

TEST(PrecisionPlan, TakesTheSettingsOfAnOptimizerFromTheOperatorThatReadsItsWeight)
{
    const GraphSnapshot graph = trainingStep(kMlp);
    const ExecutionPlan plan = precisePlan(graph, "single", 1, "precision kind:Linear : bf16 optimizer=bf16");
    for (const BufferInfo &buffer : plan.devices[0].buffers) {
        if (buffer.persistent && graph->at(buffer.tensor).role != TensorRole::Buffer) {
            EXPECT_EQ(buffer.dataType, DataType::BFloat16) << graph->at(buffer.tensor).name;
        }
        EXPECT_FALSE(graph->at(buffer.tensor).role == TensorRole::Weight
            && buffer.memory == MemoryKind::OptimizerState); // one copy serves both
    }
}

TEST(PrecisionPlan, RoundTrips)
{
    const GraphSnapshot graph = trainingStep(kGpt);
    const ExecutionPlan plan =
        precisePlan(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8, "precision all : fp16 scale=64");
    const std::string text = toJson(plan);
    EXPECT_NE(text.find("\"version\":5"), std::string::npos); // of what its stages send back
    const auto back = executionPlanFromJson(text);
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(back->devices, plan.devices);
    EXPECT_EQ(back->precisions, plan.precisions);
    EXPECT_EQ(toJson(*back), text);
    EXPECT_NE(toJson(galleryPlan(graph, "single", 1)).find("\"version\":1"), std::string::npos);
}

} // namespace
} // namespace planloom
