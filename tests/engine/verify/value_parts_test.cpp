// Sums that pass through operators as they are: what the parts of a Value split may read.

#include "engine/verify/value_parts.h"

#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace planloom {
namespace {

/// a w + b v, each product cut along its sum, the addition by value.
ExecutionPlan sumOfSums()
{
    GraphBuilder builder{"sum of sums"};
    const TensorType type{DataType::Float32, {4, 4}};
    const TensorId a = builder.input("a", type);
    const TensorId b = builder.input("b", type);
    const TensorId left = builder.one(OperatorKind::MatMul, {a, builder.weight("w", {4, 4})}, {}, "left");
    const TensorId right = builder.one(OperatorKind::MatMul, {b, builder.weight("v", {4, 4})}, {}, "right");
    auto graph = builder.finish({builder.one(OperatorKind::Add, {left, right}, {}, "both")});
    EXPECT_TRUE(graph) << describe(graph.error());
    const auto snapshot = std::make_shared<const Graph>(*std::move(graph));
    const auto table =
        parseTable("split kind:MatMul : k by 2\nsplit name:both : value by 2\nplace all : devices 0,1\n");
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(snapshot, 2, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:2"));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

std::int64_t countOf(const ExecutionPlan &plan, InstructionKind kind)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            count += std::count_if(segment.instructions.begin(), segment.instructions.end(),
                [kind](const Instruction &instruction) { return instruction.kind == kind; });
    return count;
}

std::string reasonAgainst(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    EXPECT_TRUE(report);
    return report->ok() ? std::string{} : report->failure->reason;
}

TEST(ValueParts, ASumOfSumsIsAddedUpOnce)
{
    const ExecutionPlan plan = sumOfSums();
    EXPECT_EQ(reasonAgainst(plan), "");
    // Only what leaves the model is added up: on the host's device, or on both.
    EXPECT_LE(countOf(plan, InstructionKind::AllReduce) + countOf(plan, InstructionKind::Send), 2);
    EXPECT_EQ(countOf(plan, InstructionKind::ValueSelect), 0);
}

/// The kernel of the addition on a device, and the plan that it is in.
Instruction &additionOn(ExecutionPlan &plan, std::size_t device)
{
    for (Segment &segment : plan.devices[device].segments.edit())
        for (Instruction &instruction : segment.instructions)
            if (instruction.kind == InstructionKind::Kernel && plan.graph->at(instruction.op).name == "both")
                return instruction;
    std::abort();
}

TEST(ValueParts, ACompleteValueOnBothSidesIsCountedTwice)
{
    ExecutionPlan plan = sumOfSums();
    // Both products become complete where they are made: every part of the addition reads all of them.
    for (std::size_t d = 0; d < 2; ++d) {
        const BufferList inputs = additionOn(plan, d).inputs;
        for (const std::int32_t input : inputs) {
            DeviceProgram &device = plan.devices[d];
            BufferInfo whole = device.buffers[static_cast<std::size_t>(input)];
            whole.summands.clear();
            const auto added = static_cast<std::int32_t>(device.buffers.size());
            device.buffers.push_back(whole);
            for (Segment &segment : device.segments.edit())
                for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
                    Instruction &addition = segment.instructions[i];
                    if (addition.kind != InstructionKind::Kernel
                        || plan.graph->at(addition.op).name != "both")
                        continue;
                    std::replace(addition.inputs.begin(), addition.inputs.end(), input, added);
                    std::replace(addition.deaths.begin(), addition.deaths.end(), input, added);
                    Instruction reduce{.kind = InstructionKind::AllReduce,
                        .op = addition.op,
                        .group = 0,
                        .inputs = {input},
                        .outputs = {added},
                        .deaths = {input}};
                    segment.instructions.insert(
                        segment.instructions.begin() + static_cast<std::ptrdiff_t>(i), std::move(reduce));
                    ++i;
                }
        }
    }
    plan.groups = {{DeviceId{0}, DeviceId{1}}};
    EXPECT_NE(reasonAgainst(plan).find("does not add up"), std::string::npos) << reasonAgainst(plan);
}

/// What is wrong with these shares of two summands, by part.
std::string problemOf(const std::vector<std::pair<SummandSet, ValueMask>> &shares)
{
    const ExecutionPlan plan = sumOfSums();
    const Specification specification(plan);
    ValueParts parts;
    const OperatorId addition{2};
    EXPECT_EQ(plan.graph->at(addition).name, "both");
    EXPECT_EQ(specification.at(plan.graph->at(addition).inputs[0]).summandCount, 2);
    for (std::size_t i = 0; i < shares.size(); ++i)
        EXPECT_EQ(parts.note(plan, addition, 0, {},
                      {static_cast<std::int32_t>(i), static_cast<std::int32_t>(shares.size())},
                      shares[i].first, shares[i].second),
            "");
    return parts.problem(plan, specification);
}

TEST(ValueParts, AreSharesThatAddUp)
{
    const ValueMask whole{};
    const ValueMask half{0, 2};
    const ValueMask otherHalf{1, 2};
    EXPECT_EQ(problemOf({{{0}, whole}, {{1}, whole}}), "");
    EXPECT_EQ(problemOf({{{1}, whole}, {{0}, whole}}), "");
    EXPECT_EQ(problemOf({{{}, half}, {{}, otherHalf}}), "");
    EXPECT_EQ(problemOf({{{}, otherHalf}, {{}, half}}), "");
    EXPECT_EQ(problemOf({{{0}, half}, {{1}, whole}, {{0}, otherHalf}}), "");
    EXPECT_NE(problemOf({{{0}, whole}, {{0}, whole}}), ""); // one of them twice, the other never
    EXPECT_NE(problemOf({{{}, whole}, {{}, whole}}), "");
    EXPECT_NE(problemOf({{{}, whole}, {{1}, whole}}), "");
    EXPECT_NE(problemOf({{{}, half}, {{}, half}}), "");
    EXPECT_NE(problemOf({{{0}, half}, {{1}, whole}}), "");
    EXPECT_NE(problemOf({{{0}, half}, {{1}, otherHalf}}), "");
    EXPECT_NE(problemOf({{{}, {0, 4}}, {{}, {1, 4}}}), "");
    EXPECT_NE(problemOf({{{0, 1}, half}, {{1}, otherHalf}}), "");
}

TEST(ValueParts, AreTheSameWhereverAPartIsMade)
{
    const ExecutionPlan plan = sumOfSums();
    const OperatorId addition{2};
    const IndexMask box = wholeMask({4, 4});
    ValueParts parts;
    EXPECT_EQ(parts.note(plan, addition, 0, box, {0, 2}, {0}, {}), "");
    EXPECT_EQ(parts.note(plan, addition, 0, box, {0, 2}, {0}, {}), ""); // a replica, or run again
    EXPECT_NE(parts.note(plan, addition, 0, box, {0, 2}, {1}, {}), "");
    EXPECT_EQ(
        parts.note(plan, addition, 1, box, {0, 2}, {1}, {}), ""); // another input may be divided otherwise
}

} // namespace
} // namespace planloom
