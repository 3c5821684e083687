// Stages in slices: proven, run, and compared with the model on one device.

#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <ostream>
#include <random>

namespace planloom {
namespace {

std::int32_t mostSlices(const ExecutionPlan &plan)
{
    std::int32_t most = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            most = std::max(most, segment.slice + 1);
    return most;
}

struct SlicedRun {
    const char *model;
    const char *rows;
    std::int32_t devices;
    std::int32_t slices;
};

std::ostream &operator<<(std::ostream &out, const SlicedRun &run)
{
    return out << run.model << " " << run.rows;
}

class SlicedRuns : public testing::TestWithParam<SlicedRun>
{
};

TEST_P(SlicedRuns, AreLikeTheModelOnOneDevice)
{
    const SlicedRun &given = GetParam();
    const GraphSnapshot graph = trainingStep(given.model);
    const auto plan = loweredRows(graph, given.rows, given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_EQ(mostSlices(*plan), given.slices);
    expectLikeTheModel(graph, *plan);
}

constexpr const char *kGptInSlices = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";
constexpr const char *kLlamaInSlices =
    "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&seq=8&batch=4&vocab=24";
constexpr const char *kT5InSlices = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=4&vocab=24";

#define TWO_STAGES                                                                                           \
    "micro-batches 4\nstage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"

const SlicedRun kSlicedRuns[] = {{kGptInSlices, "slice all : sequence by 2", 1, 2},
    {kGptInSlices, "slice all : sequence by 8\nmicro-batches 2", 1, 8},
    {kLlamaInSlices, "slice all : sequence by 4\nmicro-batches 2", 1, 4},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 4\nschedule gpipe", 2, 4},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule 1f1b", 2, 2},
    {kLlamaInSlices, TWO_STAGES "slice all : sequence by 2\nschedule 1f1b", 2, 2},
    {kGptInSlices, TWO_STAGES "slice layer:1 : sequence by 2\nschedule 1f1b", 2, 2},
    {kGptInSlices, TWO_STAGES "slice layer:0 : sequence by 4\nslice layer:1 : sequence by 2", 2, 4},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule zb-h1", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule combined-1f1b", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule interleaved", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule 1f1b\nrecompute layer:* per layer", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule 1f1b\nrecompute layer:* per operator", 2,
        2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nschedule gpipe\nin-flight 1 stage 0", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\noffload all : activations", 2, 2},
    {kGptInSlices, TWO_STAGES "slice all : sequence by 2\nattention all : plain", 2, 2},
    {kGptInSlices, "slice all : sequence by 2\nmesh x=2\nsplit all : heads over x", 2, 2},
    {kGptInSlices, "slice all : sequence by 2\nmesh x=2\nsplit all : sequence over x\nmicro-batches 2", 2, 2},
    {kLlamaInSlices, "slice all : sequence by 4\nmesh x=2\nsplit all : sequence over x", 2, 4},
    {kGptInSlices, "slice all : sequence by 2\nmesh x=2\nsplit kind:Attention : t by 2 over x", 2, 2},
    {kGptInSlices, "slice all : sequence by 2\nmesh x=2\nsplit all : hidden over x", 2, 2},
    {kGptInSlices, "slice all : sequence by 2\nmesh dp=2\nsplit all : batch over dp\nzero1 all over dp", 2,
        2},
    {kGptInSlices,
        "slice all : sequence by 2\nmesh dp=2\nsplit all : batch over dp\nzero2 all over dp\nmicro-batches 2",
        2, 2},
    {kGptInSlices,
        "slice all : sequence by 2\nmesh dp=2\nsplit all : batch over dp\nzero3 all over dp\nmicro-batches 2",
        2, 2},
    {kGptInSlices,
        "slice all : sequence by 2\nmesh dp=2\nsplit all : batch over dp\nzero3 all over dp keep\n"
        "recompute layer:* per layer\nsplit-backward all\nmicro-batches 2",
        2, 2},
    {kGptInSlices,
        "slice all : sequence by 2\nmesh dp=2 tp=2 pp=2\nsplit all : batch over dp\nsplit all : heads over "
        "tp\n"
        "stage layer:1 : 1\nplace layer:1 : pp=1\nplace layer:0 : pp=0\nschedule 1f1b\nmicro-batches 2",
        8, 2},
    {kGptInSlices,
        "slice all : sequence by 2\nmicro-batches 2\nsplit all : batch by 2\nstage layer:0 : 0\n"
        "place layer:0 : devices 0,1\nstage layer:1 : 1\nplace layer:1 : devices 1,0\nschedule chimera",
        2, 2},
    {kT5InSlices, "slice in:decoder.block.0.feed_forward : sequence by 2\nmicro-batches 2", 1, 2},
    {kGptInSlices, "slice in:h.0 : sequence by 2\ncoshard in:h.1.mlp : batch by 2", 1, 2}};

#undef TWO_STAGES

INSTANTIATE_TEST_SUITE_P(Plans, SlicedRuns, testing::ValuesIn(kSlicedRuns),
    [](const auto &info) { return std::to_string(info.index); });

TEST(SlicedRuns, OfWindowsAreLikeTheModel)
{
    for (const std::int64_t window : {1, 2, 3, 6}) {
        SCOPED_TRACE(window);
        const GraphSnapshot graph = attentionOverSequence(true, window);
        const auto plan = loweredRows(graph, "slice all : sequence by 4", 1);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    }
}

/// A tensor of the first stage that the second one reads both slice by slice and whole: its gradient is
/// summed up of slices and of one that is made at once.
TEST(SlicedRuns, OfAValueThatIsReadWholeTooAreLikeTheModel)
{
    GraphBuilder builder{"two readers"};
    const TensorId x = builder.input("x", {DataType::Float32, {4, 8, 6}});
    const TensorId y = builder.one(OperatorKind::MatMul, {x, builder.weight("w0", {6, 6})}, {}, "first");
    const TensorId z = builder.one(OperatorKind::MatMul, {y, builder.weight("w1", {6, 6})}, {}, "pieces");
    const auto sumOf = [&](TensorId of, const char *name) {
        return builder.one(
            OperatorKind::ReduceSumSquare, {of}, attributesOf({{"keepdims", std::int64_t{0}}}), name);
    };
    const TensorId flat =
        builder.add(OperatorKind::Reshape, {y}, {}, "flat", {{DataType::Float32, {4, 48}}})[0];
    const TensorId whole =
        builder.one(OperatorKind::MatMul, {flat, builder.weight("w2", {48, 3})}, {}, "whole");
    const TensorId loss =
        builder.one(OperatorKind::Add, {sumOf(z, "sum_of_pieces"), sumOf(whole, "sum_of_whole")}, {}, "loss");
    auto forward = builder.finish({loss}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    const std::string later =
        "name:pieces | name:flat | name:whole | name:sum_of_pieces | name:sum_of_whole | name:loss";
    const std::string stages =
        "stage " + later + " : 1\nplace " + later + " : devices 1\nplace name:first : devices 0\n";
    for (const char *rows : {"slice name:first | name:pieces : b by 4\n",
             "slice name:first | name:pieces : b by 2\nmicro-batches 2\nschedule 1f1b\n"}) {
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, stages + rows, 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    }
}

TEST(SlicedRuns, OfScaleUnitsAreLikeTheModel)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=16&vocab=24");
    const auto table =
        parseTable("mesh dp=4\nsplit all : batch over dp\nslice all : sequence by 2\nmicro-batches 2");
    CompletionOptions options;
    options.units = UseUnits::WherePossible;
    const auto completion = completePlan(graph, 4, *table, options);
    ASSERT_TRUE(completion && !firstError(*completion));
    ASSERT_EQ(completion->plan.units.count, 4);
    const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_EQ(mostSlices(*plan), 2);
    expectLikeTheModel(graph, *plan);
}

/// Any size, any number of slices, any schedule, with and without splits over devices: accepted, and equal.
TEST(SlicedRuns, OfAnySizeAreLikeTheModel)
{
    constexpr int kPlans = 60;
    for (std::uint32_t seed = 0; seed < kPlans; ++seed) {
        std::mt19937 random(seed);
        const auto oneOf = [&random](std::initializer_list<std::int32_t> values) {
            return *(
                values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
        };
        const std::int32_t layers = oneOf({1, 2, 3});
        const std::int32_t slices = oneOf({2, 3, 4});
        const std::int32_t microBatches = oneOf({1, 2, 4});
        const std::int32_t shards = oneOf({1, 1, 2});
        const std::string model = std::string(seed % 2 == 0 ? "zoo:gpt" : "zoo:llama")
            + "?layers=" + std::to_string(layers)
            + "&hidden=8&heads=2&seq=" + std::to_string(slices * shards * oneOf({1, 2}))
            + "&batch=" + std::to_string(microBatches * shards * oneOf({1, 2})) + "&vocab=12"
            + (seed % 2 == 0 ? "" : "&kv_heads=2");
        std::string rows = "slice all : sequence by " + std::to_string(slices) + "\nmicro-batches "
            + std::to_string(microBatches) + "\nmesh x=" + std::to_string(shards)
            + " pp=" + std::to_string(layers) + "\n";
        for (std::int32_t s = 0; layers > 1 && s < layers; ++s)
            rows += "stage layer:" + std::to_string(s) + " : " + std::to_string(s)
                + "\nplace layer:" + std::to_string(s) + " : pp=" + std::to_string(s) + "\n";
        constexpr const char *kSplits[] = {"batch", "heads", "sequence"};
        if (shards > 1)
            rows += std::string("split all : ") + kSplits[oneOf({0, 1, 2})] + " over x\n";
        constexpr const char *kSchedules[] = {"gpipe", "1f1b", "sequential", "zb-h1", "combined-1f1b"};
        rows += std::string("schedule ") + kSchedules[oneOf({0, 1, 2, 3, 4})] + "\n";
        if (oneOf({0, 0, 1}) > 0)
            rows += "recompute layer:* per layer\n";
        if (oneOf({0, 0, 1}) > 0)
            rows += "split-backward all\n";
        SCOPED_TRACE(model + "\n" + rows + "seed " + std::to_string(seed));
        const GraphSnapshot graph = trainingStep(model);
        const auto plan = loweredRows(graph, rows, shards * layers);
        ASSERT_TRUE(plan) << describe(plan.error());
        EXPECT_EQ(mostSlices(*plan), slices);
        expectLikeTheModel(graph, *plan);
        if (HasFatalFailure() || HasNonfatalFailure())
            return;
    }
}

} // namespace
} // namespace planloom
