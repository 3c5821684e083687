// The bug classes that were found in real parallelization systems (reference-systems.md, section 6.4;
// Verdict, SOSP '25), planted one by one in plans that are right.

#include "engine/verify/same_model.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace planloom {
namespace {

using InstructionEdit =
    std::function<bool(ExecutionPlan &, std::size_t device, Segment &, std::size_t instruction)>;

/// Applies `edit` to the first instruction where it says it applies.
bool applyFirst(ExecutionPlan &plan, const InstructionEdit &edit)
{
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (Segment &segment : plan.devices[d].segments.edit())
            for (std::size_t i = 0; i < segment.instructions.size(); ++i)
                if (edit(plan, d, segment, i))
                    return true;
    return false;
}

void applyAll(ExecutionPlan &plan, const InstructionEdit &edit)
{
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (Segment &segment : plan.devices[d].segments.edit())
            for (std::size_t i = 0; i < segment.instructions.size(); ++i)
                (void)edit(plan, d, segment, i);
}

void expectRejected(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    ASSERT_TRUE(report);
    ASSERT_FALSE(report->ok());
    EXPECT_FALSE(report->failure->reason.empty());
}

GraphSnapshot gptWithAdamW()
{
    static const GraphSnapshot graph =
        trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8");
    return graph;
}

ExecutionPlan tensorParallel()
{
    return galleryPlan(gptWithAdamW(), "tensor-parallel", 2);
}
ExecutionPlan pipeline()
{
    return galleryPlan(gptWithAdamW(), "pipeline:schedule=1f1b,micro-batches=2", 2);
}
ExecutionPlan zero()
{
    return galleryPlan(gptWithAdamW(), "zero1", 2);
}

/// `text` as the rows of a plan on two devices.
ExecutionPlan planOnTwoDevices(const GraphSnapshot &graph, const std::string &text)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 2, *table);
    EXPECT_TRUE(completion && !firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:2"));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

TEST(BugClasses, MissingAllReduceWithTheDataFlowIntact)
{
    ExecutionPlan plan = tensorParallel();
    std::int32_t group = -1;
    int changed = 0;
    applyAll(plan, [&](ExecutionPlan &, std::size_t, Segment &segment, std::size_t i) {
        Instruction &instruction = segment.instructions[i];
        if (instruction.kind != InstructionKind::AllReduce || changed >= 2)
            return false;
        group = instruction.group;
        instruction.kind =
            InstructionKind::Select; // the unreduced value goes on under the reduced one's name
        instruction.group = -1;
        ++changed;
        return true;
    });
    ASSERT_GE(group, 0);
    expectRejected(plan);
}

TEST(BugClasses, MissingAllReduceWithTheDataFlowBroken)
{
    ExecutionPlan plan = tensorParallel();
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            std::erase_if(segment.instructions, [](const Instruction &instruction) {
                return instruction.kind == InstructionKind::AllReduce;
            });
    expectRejected(plan);
}

TEST(BugClasses, AllReduceAndAllGatherSwapped)
{
    for (const bool toGather : {true, false}) {
        ExecutionPlan plan = toGather ? tensorParallel() : zero();
        int changed = 0;
        applyAll(plan, [&](ExecutionPlan &, std::size_t, Segment &segment, std::size_t i) {
            Instruction &instruction = segment.instructions[i];
            if (instruction.kind != (toGather ? InstructionKind::AllReduce : InstructionKind::AllGather))
                return false;
            instruction.kind = toGather ? InstructionKind::AllGather : InstructionKind::AllReduce;
            instruction.dimension = toGather ? 0 : -1;
            ++changed;
            return true;
        });
        ASSERT_GT(changed, 0);
        expectRejected(plan);
    }
}

TEST(BugClasses, MissingReduceInsideABackwardPass)
{
    ExecutionPlan plan = tensorParallel();
    ASSERT_TRUE(applyFirst(plan, [](ExecutionPlan &, std::size_t, Segment &segment, std::size_t i) {
        Instruction &instruction = segment.instructions[i];
        if (segment.kind != SegmentKind::Backward || instruction.kind != InstructionKind::Sum)
            return false;
        instruction.inputs.pop_back();
        return true;
    }));
    expectRejected(plan);
}

TEST(BugClasses, WrongSourceAndDestinationOfAMove)
{
    for (const InstructionKind kind : {InstructionKind::Send, InstructionKind::Recv}) {
        ExecutionPlan plan = galleryPlan(gptWithAdamW(), "pipeline:micro-batches=2,stages=3", 3);
        ASSERT_TRUE(applyFirst(plan, [&](ExecutionPlan &, std::size_t d, Segment &segment, std::size_t i) {
            Instruction &instruction = segment.instructions[i];
            if (instruction.kind != kind)
                return false;
            instruction.peer.index = 3 - static_cast<std::int32_t>(d) - instruction.peer.index;
            return instruction.peer.index != static_cast<std::int32_t>(d);
        }));
        expectRejected(plan);
    }
}

/// Where a queue has a communicator of its own, the two wait for ever.
TEST(BugClasses, EndsOfAMoveInDifferentQueues)
{
    for (const InstructionKind kind : {InstructionKind::Send, InstructionKind::Recv})
        for (const QueueKind queue : {QueueKind::Pipeline, QueueKind::PipelineBack}) {
            ExecutionPlan plan = galleryPlan(gptWithAdamW(), "pipeline:micro-batches=2,stages=3", 3);
            ASSERT_TRUE(applyFirst(plan, [&](ExecutionPlan &, std::size_t, Segment &segment, std::size_t i) {
                Instruction &instruction = segment.instructions[i];
                if (instruction.kind != kind || queueOf(instruction) == queue)
                    return false;
                instruction.queue = queue;
                return true;
            }));
            expectRejected(plan);
        }
}

TEST(BugClasses, ConstantChangedOnOneRank)
{
    for (const OperatorKind kind : {OperatorKind::Add, OperatorKind::Mul}) {
        // One rank runs another operator of the same kind: its constants, not the model's.
        ExecutionPlan plan = galleryPlan(
            trainingStep("zoo:t5?layers=1&hidden=8&heads=2&src=4&tgt=4&batch=2&vocab=8"), "data-parallel", 2);
        std::int32_t first = -1;
        const bool changed =
            applyFirst(plan, [&](ExecutionPlan &p, std::size_t d, Segment &segment, std::size_t i) {
                Instruction &instruction = segment.instructions[i];
                if (d != 1 || instruction.kind != InstructionKind::Kernel
                    || p.graph->at(instruction.op).kind != kind
                    || p.graph->at(instruction.op).direction != Direction::Forward)
                    return false;
                if (first < 0) {
                    first = instruction.op.index;
                    return false;
                }
                instruction.op.index = first;
                return true;
            });
        ASSERT_TRUE(changed) << nameOf(kind);
        expectRejected(plan);
    }
}

TEST(BugClasses, ConstantChangedOnAllRanks)
{
    const ExecutionPlan plan = tensorParallel();
    EXPECT_EQ(differenceOf(*plan.graph, *gptWithAdamW()), "");
    Graph changed = *plan.graph;
    const auto op = std::find_if(changed.operators.begin(), changed.operators.end(),
        [](const Operator &o) { return o.attributes.has("epsilon"); });
    ASSERT_NE(op, changed.operators.end());
    op->attributes.set("epsilon", 0.5);
    EXPECT_NE(differenceOf(changed, *gptWithAdamW()), "");
}

TEST(BugClasses, BackwardReadsTheWrongTensor)
{
    ExecutionPlan plan = tensorParallel();
    ASSERT_TRUE(applyFirst(plan, [](ExecutionPlan &p, std::size_t d, Segment &segment, std::size_t i) {
        Instruction &instruction = segment.instructions[i];
        if (segment.kind != SegmentKind::Backward || instruction.kind != InstructionKind::Kernel
            || instruction.inputs.empty() || instruction.inputs[0] < 0)
            return false;
        const auto &buffers = p.devices[d].buffers;
        const BufferInfo &read = buffers[static_cast<std::size_t>(instruction.inputs[0])];
        for (std::size_t j = 0; j < i; ++j)
            for (const std::int32_t other : segment.instructions[j].outputs)
                if (other >= 0 && other != instruction.inputs[0]
                    && buffers[static_cast<std::size_t>(other)].index == read.index
                    && buffers[static_cast<std::size_t>(other)].tensor != read.tensor) {
                    instruction.inputs[0] = other;
                    return true;
                }
        return false;
    }));
    expectRejected(plan);
}

TEST(BugClasses, BackwardOutputsSwapped)
{
    ExecutionPlan plan = tensorParallel();
    ASSERT_TRUE(applyFirst(plan, [](ExecutionPlan &, std::size_t, Segment &segment, std::size_t i) {
        Instruction &instruction = segment.instructions[i];
        if (segment.kind != SegmentKind::Backward || instruction.kind != InstructionKind::Kernel
            || instruction.outputs.size() < 2 || instruction.outputs[0] < 0 || instruction.outputs[1] < 0)
            return false;
        std::swap(instruction.outputs[0], instruction.outputs[1]);
        return true;
    }));
    expectRejected(plan);
}

TEST(BugClasses, InconsistentScalings)
{
    const GraphSnapshot mlp = trainingStep("zoo:mlp?layers=2&hidden=8&batch=4");
    ExecutionPlan plan = planOnTwoDevices(mlp, "split kind:Linear : value by 2\nplace all : devices 0,1\n");
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    bool changed = false;
    for (BufferInfo &buffer : plan.devices[1].buffers.edit())
        if (!changed && !buffer.valuePart.complete()) {
            buffer.valuePart = {1, 4}; // a quarter where the other device takes a half
            changed = true;
        }
    ASSERT_TRUE(changed);
    expectRejected(plan);
}

TEST(BugClasses, ReducerBeforeTheLastBackwardOfTheSecondMicroBatch)
{
    ExecutionPlan plan = galleryPlan(gptWithAdamW(), "data-parallel:micro-batches=2", 2);
    for (DeviceProgram &device : plan.devices) {
        auto &schedule = device.schedule;
        const auto kindOf = [&](const ScheduleEntry &entry) {
            return device.segments[static_cast<std::size_t>(entry.segment)].kind;
        };
        const auto reduce = std::find_if(schedule.begin(), schedule.end(),
            [&](const ScheduleEntry &entry) { return kindOf(entry) == SegmentKind::Reduce; });
        const auto backward = std::find_if(schedule.begin(), schedule.end(), [&](const ScheduleEntry &entry) {
            return kindOf(entry) == SegmentKind::Backward && entry.microBatch == 1;
        });
        ASSERT_LT(backward, reduce);
        std::rotate(backward, reduce, reduce + 1);
    }
    expectRejected(plan);
}

TEST(BugClasses, ProbabilitiesThatOnePassKeepsAndTheOtherDoesNot)
{
    const std::string rows = "mesh x=2\nsplit all : heads over x\n";
    const ExecutionPlan fused = planOnTwoDevices(gptWithAdamW(), rows);
    const ExecutionPlan plain = planOnTwoDevices(gptWithAdamW(), rows + "attention all : plain\n");
    for (const ExecutionPlan *plan : {&fused, &plain}) {
        const auto report = verify(*plan);
        ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    }
    const auto expectRefused = [](ExecutionPlan plan, const char *reason, const auto &edit) {
        ASSERT_TRUE(applyFirst(plan, edit));
        const auto report = verify(plan);
        ASSERT_TRUE(report && !report->ok());
        EXPECT_NE(report->failure->reason.find(reason), std::string::npos) << report->failure->reason;
    };
    const auto isPass = [](const ExecutionPlan &plan, const Instruction &instruction, Direction direction) {
        return instruction.kind == InstructionKind::Kernel
            && plan.graph->at(instruction.op).kind == OperatorKind::Attention
            && plan.graph->at(instruction.op).direction == direction;
    };
    // The backward pass does without what its forward keeps, or the forward makes none of it.
    expectRefused(
        plain, "is missing", [&](ExecutionPlan &plan, std::size_t, Segment &segment, std::size_t i) {
            Instruction &kernel = segment.instructions[i];
            if (!isPass(plan, kernel, Direction::Backward))
                return false;
            kernel.inputs[kernel.inputs.size() - 1] = -1;
            return true;
        });
    expectRefused(plain, "keeps its probabilities",
        [&](ExecutionPlan &plan, std::size_t, Segment &segment, std::size_t i) {
            Instruction &kernel = segment.instructions[i];
            if (!isPass(plan, kernel, Direction::Forward))
                return false;
            kernel.outputs[2] = -1;
            return true;
        });
    // The same instructions, said to be of the other mode.
    ExecutionPlan unsaid = plain;
    unsaid.attention.clear();
    expectRejected(unsaid);
    ExecutionPlan overstated = fused;
    overstated.attention = plain.attention;
    expectRejected(overstated);
    // One pass of each mode; and a mode for what is no attention.
    ExecutionPlan half = plain;
    ExecutionPlan other = plain;
    for (std::size_t o = 0; o < plain.graph->operators.size(); ++o) {
        const Operator &op = plain.graph->operators[o];
        if (op.direction == Direction::Backward)
            half.attention[o] = AttentionMode::Fused;
        if (op.kind != OperatorKind::Attention)
            other.attention[o] = AttentionMode::Plain;
    }
    expectRejected(half);
    expectRejected(other);
}

TEST(BugClasses, NoneOfThemIsInThePlansThemselves)
{
    for (const ExecutionPlan &plan : {tensorParallel(), pipeline(), zero()}) {
        const auto report = verify(plan);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->ok()) << report->failure->reason;
    }
}

} // namespace
} // namespace planloom
