// Parts that are combined otherwise than by summing: by that kind alone, weighed by what belongs to them, and
// never as shares of a value.

#include "engine/verify/verify.h"
#include "tests/engine/verify/verified_plans.h"

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/table/table_text.h"

#include <functional>
#include <map>

namespace planloom {
namespace {

ExecutionPlan rowsOf(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// Classes over two devices.
ExecutionPlan classPlan()
{
    return rowsOf(
        gpt(), "mesh tp=2\nsplit name:lm_head : n over tp\nsplit kind:ClassStatistics : c over tp\n", 2);
}

/// Keys over two devices.
ExecutionPlan keyPlan()
{
    return rowsOf(gpt(), "mesh cp=2\nsplit kind:Attention : t over cp\n", 2);
}

/// Changes every instruction that `picks` on every device; how many there were.
int changeAll(ExecutionPlan &plan, const std::function<bool(const Instruction &)> &picks,
    const std::function<void(DeviceProgram &, Instruction &)> &change)
{
    int changed = 0;
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (picks(instruction)) {
                    change(device, instruction);
                    ++changed;
                }
    return changed;
}

bool combinesLogarithms(const Instruction &instruction)
{
    return instruction.combination == Combination::LogSumExp;
}

bool weighs(const Instruction &instruction)
{
    return instruction.kind == InstructionKind::Weigh;
}

TEST(Combinations, PlansOfClassesAndKeysAreProven)
{
    EXPECT_EQ(reasonOf(classPlan()), "");
    EXPECT_EQ(reasonOf(keyPlan()), "");
}

TEST(Combinations, LogarithmsAreNeverSummed)
{
    for (const Combination wrong : {Combination::Sum, Combination::Max, Combination::Weighted}) {
        ExecutionPlan plan = classPlan();
        EXPECT_EQ(changeAll(plan, combinesLogarithms,
                      [wrong](DeviceProgram &, Instruction &i) { i.combination = wrong; }),
            2);
        EXPECT_NE(reasonOf(plan).find("which are combined by log-sum-exp"), std::string::npos)
            << reasonOf(plan);
    }
}

TEST(Combinations, SumsAreNeverTakenForLargestOnes)
{
    ExecutionPlan plan = classPlan();
    EXPECT_GT(changeAll(
                  plan,
                  [](const Instruction &i) {
                      return i.kind == InstructionKind::AllReduce && i.combination == Combination::Sum;
                  },
                  [](DeviceProgram &, Instruction &i) { i.combination = Combination::Max; }),
        0);
    EXPECT_NE(reasonOf(plan).find("takes the max"), std::string::npos) << reasonOf(plan);
}

TEST(Combinations, WhatCombinesNothingSaysNoneOfIt)
{
    ExecutionPlan plan = classPlan();
    int left = 1;
    changeAll(
        plan, [&](const Instruction &i) { return i.kind == InstructionKind::Kernel && left-- > 0; },
        [](DeviceProgram &, Instruction &i) { i.combination = Combination::Max; });
    EXPECT_EQ(reasonOf(plan), "kernel combines nothing, by no max");
}

TEST(Combinations, APartIsWeighedByItsOwnLogarithms)
{
    // Its own for that of all, that of all for its own, both swapped.
    const std::function<void(DeviceProgram &, Instruction &)> changes[] = {
        [](DeviceProgram &, Instruction &i) { i.inputs[2] = i.inputs[1]; },
        [](DeviceProgram &, Instruction &i) { i.inputs[1] = i.inputs[2]; },
        [](DeviceProgram &, Instruction &i) { std::swap(i.inputs[1], i.inputs[2]); },
        [](DeviceProgram &, Instruction &i) { i.inputs[1] = i.inputs[0]; },
        [](DeviceProgram &device, Instruction &i) {
            BufferInfo &own = device.buffers.edit()[static_cast<std::size_t>(i.inputs[1])];
            own.summands = {1 - own.summands[0]};
        },
        [](DeviceProgram &device, Instruction &i) {
            device.buffers.edit()[static_cast<std::size_t>(i.outputs[0])].summands.clear();
        },
        [](DeviceProgram &device, Instruction &i) {
            device.buffers.edit()[static_cast<std::size_t>(i.outputs[0])].unweighed = true;
        },
        [](DeviceProgram &device, Instruction &i) {
            device.buffers.edit()[static_cast<std::size_t>(i.inputs[0])].unweighed = false;
        },
    };
    for (const auto &change : changes) {
        ExecutionPlan plan = keyPlan();
        EXPECT_EQ(changeAll(plan, weighs, change), 2);
        EXPECT_NE(reasonOf(plan), "");
    }
}

TEST(Combinations, WhatWasNotWeighedIsNoSummand)
{
    // The reductions read the kernels' parts.
    ExecutionPlan plan = keyPlan();
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit()) {
            std::map<std::int32_t, std::int32_t> rawOf;
            for (Instruction &instruction : segment.instructions) {
                if (weighs(instruction))
                    rawOf[instruction.outputs[0]] = instruction.inputs[0];
                if (instruction.kind == InstructionKind::AllReduce && rawOf.count(instruction.inputs[0]))
                    instruction.inputs[0] = rawOf[instruction.inputs[0]];
                BufferList deaths; // the part lives on
                for (const std::int32_t buffer : instruction.deaths)
                    if (!weighs(instruction) || buffer != instruction.inputs[0])
                        deaths.push_back(buffer);
                instruction.deaths = deaths;
            }
        }
    EXPECT_NE(reasonOf(plan).find("was not weighed"), std::string::npos) << reasonOf(plan);
}

/// Keys that go round four devices, in parts of one token.
ExecutionPlan ringPlan()
{
    return rowsOf(gpt(), "mesh cp=4\nring kind:Attention : over cp\n", 4);
}

bool merges(const Instruction &instruction)
{
    return instruction.kind == InstructionKind::Merge;
}

bool shifts(const Instruction &instruction)
{
    return instruction.kind == InstructionKind::Shift;
}

BufferInfo &bufferOf(DeviceProgram &device, std::int32_t index)
{
    return device.buffers.edit()[static_cast<std::size_t>(index)];
}

TEST(Combinations, PartsAreMergedOnceEachByTheirOwnLogarithms)
{
    EXPECT_EQ(reasonOf(ringPlan()), "");
    const std::pair<const char *, std::function<void(DeviceProgram &, Instruction &)>> changes[] = {
        {"log-sum-exp of another part",
            [](DeviceProgram &, Instruction &i) { std::swap(i.inputs[1], i.inputs[3]); }},
        {"twice",
            [](DeviceProgram &, Instruction &i) {
                i.inputs[2] = i.inputs[0];
                i.inputs[3] = i.inputs[1];
            }},
        {"was not weighed", [](DeviceProgram &, Instruction &i) { std::swap(i.inputs[0], i.inputs[1]); }},
        {"expects two parts", [](DeviceProgram &, Instruction &i) { i.inputs.pop_back(); }},
        {"expects two parts", [](DeviceProgram &, Instruction &i) { i.outputs.pop_back(); }},
        {"was not weighed", [](DeviceProgram &, Instruction &i) { std::swap(i.outputs[0], i.outputs[1]); }},
        {"something else",
            [](DeviceProgram &device, Instruction &i) {
                BufferInfo &both = bufferOf(device, i.outputs[0]);
                both.unweighed = !both.unweighed;
            }},
        {"something else",
            [](DeviceProgram &device, Instruction &i) {
                BufferInfo &ofBoth = bufferOf(device, i.outputs[1]);
                ofBoth.summands = ofBoth.summands.empty() ? SummandSet{0} : SummandSet{};
            }},
        {"do not belong together",
            [](DeviceProgram &device, Instruction &i) {
                bufferOf(device, i.outputs[0]).valuePart = ValueMask{0, 2};
            }},
    };
    for (const auto &[reason, change] : changes) {
        ExecutionPlan plan = ringPlan();
        EXPECT_EQ(changeAll(plan, merges, change), 1 + 2 + 3);
        EXPECT_NE(reasonOf(plan).find(reason), std::string::npos) << reason << ": " << reasonOf(plan);
    }
}

TEST(Combinations, WhatSeesNothingMayBeLeftOutAndNothingElse)
{
    // The last device sees all keys, the first its own alone.
    ExecutionPlan plan = ringPlan();
    const auto claim = [](ExecutionPlan &changed, std::size_t device, std::int32_t summand) {
        int left = 1;
        for (Segment &segment : changed.devices[device].segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (merges(instruction) && left-- > 0)
                    for (const std::size_t slot : {2, 3})
                        bufferOf(changed.devices[device], instruction.inputs[slot]).summands = {summand};
    };
    // Device 1 says that its second part is one that device 1 need not make.
    claim(plan, 1, 3);
    EXPECT_NE(reasonOf(plan).find("makes"), std::string::npos) << reasonOf(plan);
    // A kernel that is left out although it sees keys.
    ExecutionPlan less = ringPlan();
    int removed = 0;
    for (Segment &segment : less.devices[3].segments.edit())
        std::erase_if(segment.instructions, [&](const Instruction &instruction) {
            return instruction.kind == InstructionKind::Kernel
                && less.graph->at(instruction.op).kind == OperatorKind::Attention && removed++ == 1;
        });
    EXPECT_GT(removed, 1);
    EXPECT_NE(reasonOf(less), "");
    // Without causality those that were left out are missing.
    ExecutionPlan open = ringPlan();
    auto graph = std::make_shared<Graph>(*open.graph);
    for (Operator &op : graph->operators)
        if (op.kind == OperatorKind::Attention)
            op.attributes.set("causal", std::int64_t{0});
    open.graph = graph;
    EXPECT_NE(reasonOf(open).find("makes"), std::string::npos) << reasonOf(open);
}

TEST(Combinations, WhatGoesRoundArrivesAsItWasSent)
{
    const std::pair<const char *, std::function<void(DeviceProgram &, Instruction &)>> changes[] = {
        {"shift of",
            [](DeviceProgram &device, Instruction &i) {
                for (Range &range : bufferOf(device, i.outputs[0]).index.ranges)
                    if (range.size() == 1 && range.begin > 0)
                        range = {range.begin - 1, range.end - 1};
            }},
        {"lacks a buffer", [](DeviceProgram &, Instruction &i) { i.outputs.clear(); }},
        {"lacks a buffer", [](DeviceProgram &, Instruction &i) { i.inputs.clear(); }},
        {"", [](DeviceProgram &, Instruction &i) { i.inputs[0] = i.outputs[0]; }},
    };
    for (const auto &[reason, change] : changes) {
        ExecutionPlan plan = ringPlan();
        EXPECT_EQ(changeAll(plan, shifts, change), 4 * (2 * 3 + 2 * 3 + 2 * 4));
        EXPECT_NE(reasonOf(plan), "");
        EXPECT_NE(reasonOf(plan).find(reason), std::string::npos) << reason << ": " << reasonOf(plan);
    }
    // The other way round, each gets what it did not expect.
    ExecutionPlan turned = ringPlan();
    for (auto &group : turned.groups)
        std::reverse(group.begin(), group.end());
    EXPECT_NE(reasonOf(turned), "");
}

TEST(Combinations, AreReadAndWritten)
{
    for (const ExecutionPlan &plan : {classPlan(), keyPlan(), ringPlan()}) {
        const std::string text = toJson(plan);
        EXPECT_NE(text.find("\"version\":3"), std::string::npos);
        const auto read = executionPlanFromJson(text);
        ASSERT_TRUE(read) << describe(read.error());
        EXPECT_EQ(read->devices, plan.devices);
        EXPECT_EQ(reasonOf(*read), "");
        EXPECT_EQ(toJson(*read), text);
    }
    // What sums everything is of the version before.
    EXPECT_NE(toJson(rowsOf(gpt(), "", 1)).find("\"version\":1"), std::string::npos);
}

} // namespace
} // namespace planloom
