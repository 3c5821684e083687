#include "engine/runtime/run.h"

#include "engine/runtime/devices/box_copy.h"
#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

using namespace planloom;

TEST(Executor, OneDeviceComputesTheGraph)
{
    const auto x = drawn(16, 2);
    const auto expected = product(x, drawn(8, 1));
    for (const std::int32_t microBatches : {1, 2, 4}) {
        const PlanWriter writer = oneDevice(microBatches);
        RunOptions options;
        options.inputs["x"] = floats({4, 4}, x);
        options.steps = 2;
        const auto outcome = runOnCpu(writer.plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        ASSERT_EQ(outcome->losses.size(), 2U);
        EXPECT_EQ(outcome->losses[0], static_cast<double>(total(expected)));
        EXPECT_EQ(outcome->losses[1], outcome->losses[0]);
        const TensorId y = writer.plan.graph->at(OperatorId{0}).outputs[0];
        EXPECT_EQ(valuesOf(outcome->outputs.at(writer.plan.graph->at(y).name)), expected);
    }
}

TEST(Executor, MeasuresSpansAndMemoryOfTheLastStep)
{
    const PlanWriter writer = oneDevice(2);
    RunOptions options;
    options.steps = 2;
    const auto outcome = runOnCpu(writer.plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const Timeline &timeline = outcome->measured;
    EXPECT_EQ(timeline.spans.size(), 10U);
    EXPECT_EQ(timeline.deviceBegin, (std::vector<std::size_t>{0, 10}));
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
        EXPECT_GE(timeline.spans.duration[i], 0);
        EXPECT_LE(timeline.spans.start[i] + timeline.spans.duration[i], timeline.step.count());
        if (i > 0) {
            EXPECT_GE(timeline.spans.start[i], timeline.spans.start[i - 1] + timeline.spans.duration[i - 1]);
        }
    }
    // Weight 32 bytes, and at most x (32) and y (16) of one micro-batch.
    EXPECT_EQ(outcome->peak.at(0).count, 32 + 32 + 16);
    EXPECT_EQ(timeline.memory.at(0).peak.count, 80);
    EXPECT_EQ(timeline.memory.at(0).bytes.back()[static_cast<std::size_t>(MemoryKind::Weight)], 32);
    EXPECT_EQ(timeline.memory.at(0).bytes.back()[static_cast<std::size_t>(MemoryKind::Activation)], 0);
}

TEST(Executor, PartialProductsAreAllReduced)
{
    for (const bool dies : {false, true}) { // in place, or not
        PlanWriter writer{productGraph(), 2};
        ExecutionPlan &plan = writer.plan;
        const OperatorId matmul{0};
        const TensorId y = plan.graph->at(matmul).outputs[0];
        const auto k = findDimension(plan.graph->at(matmul).annotation, "k");
        ASSERT_TRUE(k) << toString(plan.graph->at(matmul).annotation);
        plan.partitions[0].splits = {{.kind = SplitKind::Dimension, .dimension = *k, .parts = 2}};
        plan.placement[0] = {{0}, {1}};
        plan.groups = {{{0}, {1}}};
        for (std::int32_t d = 0; d < 2; ++d) {
            const auto device = static_cast<std::size_t>(d);
            const auto bx = writer.buffer(device, writer.tensor("x"), box({{0, 4}, {2 * d, 2 * d + 2}}));
            const auto bw =
                writer.buffer(device, writer.tensor("w"), box({{2 * d, 2 * d + 2}, {0, 2}}), kPersistent);
            const auto partial = writer.buffer(device, y, {}, {.summands = {d}});
            const auto by = writer.buffer(device, y);
            writer.setup(device, bw);
            writer.emit(device, {.kind = InstructionKind::Load, .outputs = {bx}});
            writer.emit(
                device, {.op = matmul, .part = d, .inputs = {bx, bw}, .outputs = {partial}, .deaths = {bx}});
            Instruction &reduce = writer.emit(device,
                {.kind = InstructionKind::AllReduce,
                    .op = matmul,
                    .group = 0,
                    .inputs = {partial},
                    .outputs = {by}});
            if (dies)
                reduce.deaths = {partial};
            writer.emit(
                device, {.kind = InstructionKind::Store, .op = matmul, .inputs = {by}, .deaths = {by}});
        }
        const auto x = drawn(16, 3);
        RunOptions options;
        options.inputs["x"] = floats({4, 4}, x);
        options.steps = 3;
        const auto outcome = runOnCpu(plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        EXPECT_EQ(valuesOf(outcome->outputs.at(plan.graph->at(y).name)), product(x, drawn(8, 1)));
    }
}

TEST(Executor, MicroBatchesGoFromDeviceToDevice)
{
    for (const bool dies : {false, true}) {
        PlanWriter writer{productGraph(), 2, 2};
        const OperatorId matmul{0};
        const OperatorId sum{1};
        const TensorId y = writer.plan.graph->at(matmul).outputs[0];
        const auto bx = writer.buffer(0, writer.tensor("x"), box({{0, 2}, {0, 4}}));
        const auto bw = writer.buffer(0, writer.tensor("w"), {}, kPersistent);
        const auto by = writer.buffer(0, y, box({{0, 2}, {0, 2}}));
        writer.setup(0, bw);
        writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
        writer.emit(0, {.op = matmul, .inputs = {bx, bw}, .outputs = {by}, .deaths = {bx}});
        Instruction &send =
            writer.emit(0, {.kind = InstructionKind::Send, .op = sum, .peer = {1}, .tag = 5, .inputs = {by}});
        if (dies)
            send.deaths = {by};
        const auto received = writer.buffer(1, y, box({{0, 2}, {0, 2}}));
        const auto bl = writer.buffer(1, writer.plan.graph->loss);
        writer.emit(
            1, {.kind = InstructionKind::Recv, .op = sum, .peer = {0}, .tag = 5, .outputs = {received}});
        writer.emit(1, {.op = sum, .inputs = {received}, .outputs = {bl}, .deaths = {received}});
        writer.emit(1, {.kind = InstructionKind::Store, .op = sum, .inputs = {bl}, .deaths = {bl}});
        const auto x = drawn(16, 4);
        RunOptions options;
        options.inputs["x"] = floats({4, 4}, x);
        options.steps = 3;
        const auto outcome = runOnCpu(writer.plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        for (const double loss : outcome->losses)
            EXPECT_EQ(loss, static_cast<double>(total(product(x, drawn(8, 1)))));
        ASSERT_EQ(outcome->measured.traffic.size(), 1U);
        EXPECT_EQ(outcome->measured.traffic[0].bytes.count, 32);
        EXPECT_EQ(outcome->measured.traffic[0].count, 2);
    }
}

TEST(Executor, EveryMovementBringsTheTensorBack)
{
    PlanWriter writer{productGraph(), 2};
    writer.plan.groups = {{{0}, {1}}};
    const TensorId x = writer.tensor("x");
    for (std::int32_t d = 0; d < 2; ++d) {
        const auto device = static_cast<std::size_t>(d);
        const IndexMask rows = box({{2 * d, 2 * d + 2}, {0, 4}});
        const IndexMask columns = box({{0, 4}, {2 * d, 2 * d + 2}});
        const auto add = [&](InstructionKind kind, std::vector<std::int32_t> inputs, std::int32_t output,
                             std::int32_t dimension = -1, std::int32_t gather = -1) {
            writer.emit(device,
                {.kind = kind,
                    .group = isCommunication(kind) ? 0 : -1,
                    .dimension = dimension,
                    .gatherDimension = gather,
                    .inputs = inputs,
                    .outputs = {output},
                    .deaths = inputs});
            return output;
        };
        const auto loaded = add(InstructionKind::Load, {}, writer.buffer(device, x));
        const auto mine = add(InstructionKind::Select, {loaded}, writer.buffer(device, x, rows));
        const auto gathered = add(InstructionKind::AllGather, {mine}, writer.buffer(device, x), 0);
        const auto summand = add(InstructionKind::ValueSelect, {gathered},
            writer.buffer(device, x, {}, {.summands = {d}, .valuePart = {d, 2}}));
        const auto scattered =
            add(InstructionKind::ReduceScatter, {summand}, writer.buffer(device, x, columns), 1);
        const auto turned = add(InstructionKind::AllToAll, {scattered}, writer.buffer(device, x, rows), 0, 1);
        // turned: rows of all columns; cut in two and joined again.
        const IndexMask left = box({{2 * d, 2 * d + 2}, {0, 1}});
        const IndexMask right = box({{2 * d, 2 * d + 2}, {1, 4}});
        const auto a = writer.buffer(device, x, left);
        const auto b = writer.buffer(device, x, right);
        writer.emit(device, {.kind = InstructionKind::Select, .inputs = {turned}, .outputs = {a}});
        writer.emit(device,
            {.kind = InstructionKind::Select, .inputs = {turned}, .outputs = {b}, .deaths = {turned}});
        const auto joined = add(InstructionKind::Concat, {b, a}, writer.buffer(device, x, rows));
        // As two summands, added up again.
        const auto part0 = writer.buffer(device, x, rows, {.summands = {0}, .valuePart = {0, 2}});
        const auto part1 = writer.buffer(device, x, rows, {.summands = {1}, .valuePart = {1, 2}});
        writer.emit(device, {.kind = InstructionKind::ValueSelect, .inputs = {joined}, .outputs = {part0}});
        writer.emit(device,
            {.kind = InstructionKind::ValueSelect,
                .inputs = {joined},
                .outputs = {part1},
                .deaths = {joined}});
        const auto again = add(InstructionKind::Sum, {part1, part0}, writer.buffer(device, x, rows));
        writer.emit(device, {.kind = InstructionKind::Store, .inputs = {again}, .deaths = {again}});
    }
    const auto x0 = drawn(16, 5);
    RunOptions options;
    options.inputs["x"] = floats({4, 4}, x0);
    options.steps = 2;
    const auto outcome = runOnCpu(writer.plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_EQ(valuesOf(outcome->outputs.at("x")), x0);
    EXPECT_EQ(outcome->measured.memory.at(0).bytes.back(), (std::array<std::int64_t, kMemoryKindCount>{}));
}

TEST(Executor, BroadcastAndAccumulateOverMicroBatches)
{
    PlanWriter writer{productGraph(), 2, 2};
    writer.plan.groups = {{{1}, {0}}};
    const TensorId w = writer.tensor("w");
    // Device 1 has w; each micro-batch broadcasts it and adds it to a sum of the step.
    const auto held = writer.buffer(1, w, {}, kPersistent);
    writer.setup(1, held);
    for (const std::size_t device : {std::size_t{0}, std::size_t{1}}) {
        const auto copy = writer.buffer(device, w);
        const auto sum = writer.buffer(device, w, {}, {.perMicroBatch = false});
        writer.emit(device,
            {.kind = InstructionKind::Broadcast,
                .group = 0,
                .inputs = device == 1 ? std::vector<std::int32_t>{held} : std::vector<std::int32_t>{},
                .outputs = {copy}});
        writer.emit(device,
            {.kind = InstructionKind::Accumulate, .inputs = {copy}, .outputs = {sum}, .deaths = {copy}});
        Segment end{.kind = SegmentKind::Reduce, .stage = StageId{0}};
        end.instructions.push_back({.kind = InstructionKind::Store, .inputs = {sum}, .deaths = {sum}});
        writer.plan.devices[device].segments.push_back(end);
        writer.plan.devices[device].schedule.push_back({1, 0});
    }
    RunOptions options;
    options.steps = 2;
    const auto outcome = runOnCpu(writer.plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    auto expected = drawn(8, 1);
    for (float &value : expected)
        value *= 2;
    EXPECT_EQ(valuesOf(outcome->outputs.at("w")), expected);
}

TEST(Executor, AWeightThatWasUpdatedIsThereInTheNextStep)
{
    PlanWriter writer{productGraph(), 1};
    const TensorId w = writer.tensor("w");
    const auto held = writer.buffer(0, w, {}, kPersistent);
    const auto twice = writer.buffer(0, w);
    writer.setup(0, held);
    writer.emit(0, {.kind = InstructionKind::Sum, .inputs = {held, held}, .outputs = {twice}});
    writer.emit(0, {.kind = InstructionKind::Store, .inputs = {twice}});
    writer.emit(
        0, {.kind = InstructionKind::Update, .inputs = {twice}, .outputs = {held}, .deaths = {twice}});
    RunOptions options;
    options.steps = 3;
    const auto outcome = runOnCpu(writer.plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    auto expected = drawn(8, 1);
    for (float &value : expected)
        value *= 8;
    EXPECT_EQ(valuesOf(outcome->outputs.at("w")), expected);
}

TEST(Executor, DrawnValuesDoNotDependOnThePlan)
{
    // Without inputs x is drawn; each device loads another box of it.
    PlanWriter writer{productGraph(), 2};
    const TensorId x = writer.tensor("x");
    for (std::int32_t d = 0; d < 2; ++d) {
        const auto device = static_cast<std::size_t>(d);
        const auto part = writer.buffer(device, x, box({{0, 4}, {3 * d, 3 + d}}));
        writer.emit(device, {.kind = InstructionKind::Load, .outputs = {part}});
        writer.emit(device, {.kind = InstructionKind::Store, .inputs = {part}, .deaths = {part}});
    }
    PlanWriter whole{productGraph(), 1};
    const auto all = whole.buffer(0, x);
    whole.emit(0, {.kind = InstructionKind::Load, .outputs = {all}});
    whole.emit(0, {.kind = InstructionKind::Store, .inputs = {all}, .deaths = {all}});
    std::string warning;
    RunEvents events;
    events.warning = [&](const std::string &text) { warning = text; };
    const auto a = runOnCpu(writer.plan, {}, events);
    const auto b = runOnCpu(whole.plan, {});
    ASSERT_TRUE(a && b);
    EXPECT_EQ(valuesOf(a->outputs.at("x")), valuesOf(b->outputs.at("x")));
    EXPECT_NE(warning.find("x"), std::string::npos);
    RunOptions other;
    other.seed = 2;
    const auto c = runOnCpu(whole.plan, other);
    ASSERT_TRUE(c);
    EXPECT_NE(valuesOf(c->outputs.at("x")), valuesOf(b->outputs.at("x")));
}

TEST(Executor, WeightsWithoutValuesNeedASeed)
{
    GraphBuilder builder;
    const TensorId x = builder.input("x", {DataType::Float32, {2, 3}});
    const TensorId w = builder.weight("w", {3, 2});
    auto graph = builder.finish({builder.one(OperatorKind::MatMul, {x, w})});
    ASSERT_TRUE(graph);
    PlanWriter writer{*std::move(graph), 1};
    const auto held = writer.buffer(0, writer.tensor("w"), {}, kPersistent);
    writer.setup(0, held);
    writer.emit(0, {.kind = InstructionKind::Store, .inputs = {held}});
    const auto refused = runOnCpu(writer.plan, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(refused.error().advice.find("--random-weights"), std::string::npos);
    RunOptions options;
    options.randomWeights = true;
    const auto outcome = runOnCpu(writer.plan, options);
    ASSERT_TRUE(outcome);
    for (const float value : valuesOf(outcome->outputs.at("w")))
        EXPECT_LE(std::abs(value), 0.05F);
}

TEST(Executor, InputsOfTheWrongTypeAreRefused)
{
    const PlanWriter writer = oneDevice(1);
    for (const TensorData &array :
        {floats({4, 3}, std::vector<float>(12)), *integerData({4, 4}, std::vector<std::int64_t>(16))}) {
        RunOptions options;
        options.inputs["x"] = array;
        const auto outcome = runOnCpu(writer.plan, options);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(outcome.error().where, "input:x");
    }
}

TEST(Executor, DevicesThatWaitForEachOtherCanBeStopped)
{
    PlanWriter writer{productGraph(), 2};
    const auto never = writer.buffer(1, writer.tensor("x"));
    writer.emit(
        1, {.kind = InstructionKind::Recv, .peer = {0}, .tag = 1, .outputs = {never}}); // nobody sends
    std::stop_source source;
    RunEvents events;
    events.progress = [&](DeviceId device, std::int64_t issued, std::int64_t finished) {
        if (device.index == 1 && issued == 1) {
            EXPECT_EQ(finished, 0);
            source.request_stop();
        }
    };
    const auto outcome = runOnCpu(writer.plan, {}, events, source.get_token());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
}

TEST(Executor, ADeviceThatFailsWakesTheOthers)
{
    PlanWriter writer{productGraph(), 3};
    writer.plan.groups = {{{0}, {1}}};
    for (const std::size_t device : {std::size_t{0}, std::size_t{2}}) {
        const auto in = writer.buffer(device, writer.tensor("x"));
        const auto out = writer.buffer(device, writer.tensor("x"));
        writer.emit(device, {.kind = InstructionKind::Load, .outputs = {in}});
        if (device == 0)
            writer.emit(
                0, {.kind = InstructionKind::AllReduce, .group = 0, .inputs = {in}, .outputs = {out}});
        else
            writer.emit(2, {.kind = InstructionKind::Recv, .peer = {1}, .tag = 0, .outputs = {out}});
    }
    const auto missing = writer.buffer(1, writer.tensor("x"));
    writer.emit(1, {.kind = InstructionKind::Store, .inputs = {missing}}); // read before it is there
    const auto outcome = runOnCpu(writer.plan, {});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(outcome.error().message.find("device 1"), std::string::npos);
}

TEST(Executor, TheOperatorThatMakesNaNIsNamed)
{
    GraphBuilder builder;
    const TensorId x = builder.input("x", {DataType::Float32, {4}});
    const TensorId root = builder.one(OperatorKind::Sqrt, {x}, {}, "root");
    const TensorId twice = builder.one(OperatorKind::Add, {root, root}, {}, "twice");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {twice},
        attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}}), "total");
    auto graph = builder.finish({}, loss);
    ASSERT_TRUE(graph);
    PlanWriter writer{*std::move(graph), 1};
    const auto bx = writer.buffer(0, x);
    const auto br = writer.buffer(0, root);
    const auto bt = writer.buffer(0, twice);
    const auto bl = writer.buffer(0, loss);
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
    writer.emit(0, {.op = {0}, .inputs = {bx}, .outputs = {br}, .deaths = {bx}});
    writer.emit(0, {.op = {1}, .inputs = {br, br}, .outputs = {bt}, .deaths = {br}});
    writer.emit(0, {.op = {2}, .inputs = {bt}, .outputs = {bl}, .deaths = {bt}});
    writer.emit(0, {.kind = InstructionKind::Store, .op = {2}, .inputs = {bl}, .deaths = {bl}});
    RunOptions options;
    options.inputs["x"] = floats({4}, {1, -1, 4, 9});
    std::string warning;
    RunEvents events;
    events.warning = [&](const std::string &text) { warning = text; };
    const auto outcome = runOnCpu(writer.plan, options, events);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_TRUE(std::isnan(outcome->losses.at(0)));
    EXPECT_NE(warning.find("operator root made NaN"), std::string::npos) << warning;
}

TEST(BoxCopy, MovesEveryElementOfTheRegion)
{
    std::mt19937 random(9);
    for (int repeat = 0; repeat < 300; ++repeat) {
        const std::size_t rank = random() % 4;
        IndexMask from;
        IndexMask to;
        IndexMask region;
        for (std::size_t d = 0; d < rank; ++d) {
            const auto begin = static_cast<std::int64_t>(random() % 3);
            const auto end = begin + 1 + static_cast<std::int64_t>(random() % 4);
            region.ranges.push_back({begin, end});
            from.ranges.push_back({begin - static_cast<std::int64_t>(random() % 2),
                end + static_cast<std::int64_t>(random() % 2)});
            to.ranges.push_back({begin - static_cast<std::int64_t>(random() % 2),
                end + static_cast<std::int64_t>(random() % 2)});
        }
        const auto at = [&](const IndexMask &box, const std::vector<std::int64_t> &index) {
            std::int64_t place = 0;
            for (std::size_t d = 0; d < rank; ++d)
                place = place * box.ranges[d].size() + index[d] - box.ranges[d].begin;
            return static_cast<std::size_t>(place);
        };
        const auto source = drawn(elementCount(from), 10);
        std::vector<float> target(static_cast<std::size_t>(elementCount(to)), 100.0F);
        auto expected = target;
        auto added = target;
        std::vector<std::int64_t> index(rank);
        for (std::size_t d = 0; d < rank; ++d)
            index[d] = region.ranges[d].begin;
        for (std::int64_t left = elementCount(region); left > 0; --left) {
            expected[at(to, index)] = source[at(from, index)];
            added[at(to, index)] += source[at(from, index)];
            for (std::size_t d = rank; d-- > 0;) {
                if (++index[d] < region.ranges[d].end)
                    break;
                index[d] = region.ranges[d].begin;
            }
        }
        const auto *in = reinterpret_cast<const std::byte *>(source.data());
        auto sums = target;
        copyBox(in, from, reinterpret_cast<std::byte *>(target.data()), to, region, 4);
        EXPECT_EQ(target, expected);
        EXPECT_TRUE(
            addBox(in, from, reinterpret_cast<std::byte *>(sums.data()), to, region, DataType::Float32));
        EXPECT_EQ(sums, added);
    }
}
