// Sequences in zigzags over an axis: the first and the last of twice as many parts on its first device.

#include "tests/engine/runtime/like_the_model.h"

#include <algorithm>
#include <string>

namespace planloom {
namespace {

constexpr const char *kZigzagGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=16&batch=4&vocab=24";
constexpr const char *kZigzagLlama =
    "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&ffn=32&seq=24&batch=4&vocab=24";

struct ZigzagCase {
    const char *name;
    const char *model;
    std::string rows;
    std::int32_t devices;
};

class Zigzags : public testing::TestWithParam<ZigzagCase>
{
};

TEST_P(Zigzags, RunLikeTheModel)
{
    const auto &[name, model, rows, devices] = GetParam();
    const GraphSnapshot graph = trainingStep(model);
    const auto plan = loweredRows(graph, rows, devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
}

INSTANTIATE_TEST_SUITE_P(Meshes, Zigzags,
    testing::Values(ZigzagCase{"Alone", kZigzagGpt, "mesh cp=2\nsplit all : sequence over cp zigzag", 2},
        ZigzagCase{"OfThree", kZigzagLlama, "mesh cp=3\nsplit all : sequence over cp zigzag", 3},
        ZigzagCase{"InsideReplicas", kZigzagLlama,
            "mesh dp=2 cp=2\nmicro-batches 2\nsplit all : batch over dp\nsplit all : sequence over cp "
            "zigzag\n"
            "zero1 weight:* over dp and cp",
            4},
        ZigzagCase{"AroundTensors", kZigzagGpt,
            "mesh cp=2 tp=2\nsplit all : sequence over cp zigzag\nsplit kind:Attention : heads over tp", 4},
        ZigzagCase{"InStages", kZigzagGpt,
            "mesh pp=2 cp=2\nmicro-batches 2\nschedule 1f1b\nstage layer:0 : 0\nstage layer:1 : 1\n"
            "place layer:0 : pp=0\nplace layer:1 : pp=1\nsplit all : sequence over cp zigzag",
            4}),
    [](const auto &info) { return std::string(info.param.name); });

/// Of a causal mask every device sees as much: the work of its parts of an attention.
TEST(Zigzags, GiveEveryDeviceAsManyKeys)
{
    const GraphSnapshot graph = trainingStep(kZigzagGpt);
    const auto table = parseTable("mesh cp=4\nsplit all : sequence over cp zigzag");
    ASSERT_TRUE(table);
    const auto completion = completePlan(graph, 4, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    for (std::size_t o = 0; o < graph->operators.size(); ++o) {
        const Operator &op = graph->operators[o];
        const auto axes = attentionAxes(op);
        if (!axes)
            continue;
        const OperatorDecision &decision = completion->plan.decisions[o];
        std::map<DeviceId, double> seen;
        for (std::size_t p = 0; p < decision.devices.size(); ++p) {
            const PartBox box = partBox(op, decision.partition, static_cast<std::int32_t>(p));
            const Range &queries = box.ranges[at(axes->query)];
            seen[decision.devices[p]] += static_cast<double>(queries.size())
                * attentionReach(op.attributes).meanKeys(queries, box.ranges[at(axes->key)]);
        }
        ASSERT_EQ(seen.size(), 4U);
        for (const auto &[device, keys] : seen)
            EXPECT_DOUBLE_EQ(keys, seen.begin()->second) << op.name;
    }
}

TEST(Zigzags, ADimensionThatDoesNotDivideIsRefused)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=1&hidden=16&heads=4&seq=6&batch=4&vocab=24");
    EXPECT_NE(refusalOf(graph, "mesh cp=2\nsplit all : sequence over cp zigzag", 2), "");
    EXPECT_EQ(refusalOf(graph, "mesh cp=2\nsplit all : sequence over cp", 2), "");
}

} // namespace
} // namespace planloom
