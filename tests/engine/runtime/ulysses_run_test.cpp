// Sequences in parts, whose attentions have the whole sequence of a part of the heads: what lies between is
// exchanged all to all (DeepSpeed-Ulysses, arXiv:2309.14509), alone and beside rings, gathers and tensor
// parallelism (arXiv:2405.07719).

#include "engine/gallery/gallery.h"
#include "engine/graph/operators/attention.h"
#include "tests/engine/runtime/like_the_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace planloom {
namespace {

constexpr const char *kUlyssesGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=16&batch=4&vocab=24";
constexpr const char *kUlyssesLlama =
    "zoo:llama?layers=2&hidden=32&heads=8&kv_heads=2&ffn=32&seq=16&batch=4&vocab=24";

struct UlyssesCase {
    const char *name;
    const char *model;
    const char *gallery;
    std::int32_t devices;
};

class Ulysses : public testing::TestWithParam<UlyssesCase>
{
};

TEST_P(Ulysses, RunsLikeTheModel)
{
    const auto &[name, model, gallery, devices] = GetParam();
    const GraphSnapshot graph = trainingStep(model);
    expectLikeTheModel(graph, galleryPlan(graph, gallery, devices));
}

INSTANTIATE_TEST_SUITE_P(Meshes, Ulysses,
    testing::Values(UlyssesCase{"Alone", kUlyssesGpt, "context-parallel:ulysses=4", 4},
        UlyssesCase{"SharedKeyHeads", kUlyssesLlama, "context-parallel:ulysses=4", 4},
        UlyssesCase{"OneQueryHeadEach", kUlyssesLlama, "context-parallel:ulysses=8", 8},
        UlyssesCase{"InRings", kUlyssesLlama, "context-parallel:cp=2,ulysses=2", 4},
        UlyssesCase{"InGathers", kUlyssesGpt, "context-parallel:cp=2,ulysses=2,ring=0", 4},
        UlyssesCase{"InZigzags", kUlyssesGpt, "context-parallel:cp=2,ulysses=2,zigzag=1", 4},
        UlyssesCase{"InReplicas", kUlyssesLlama, "3d:dp=2,ulysses=2,zero=1,micro-batches=2", 4},
        UlyssesCase{"WithCutWeights", kUlyssesGpt, "3d:ulysses=4,zero=3", 4},
        UlyssesCase{"AroundTensors", kUlyssesLlama, "3d:ulysses=2,tp=2", 4},
        UlyssesCase{"AroundTensorsAndSequences", kUlyssesLlama, "3d:ulysses=2,tp=2,sequence=1", 4},
        UlyssesCase{"MoreTensorsThanKeyHeads", kUlyssesLlama, "3d:ulysses=2,tp=4", 8},
        UlyssesCase{"InRingsAroundTensors", kUlyssesGpt, "3d:cp=2,ulysses=2,tp=2,sequence=1", 8},
        UlyssesCase{"InStages", kUlyssesGpt, "3d:pp=2,ulysses=2,schedule=1f1b,micro-batches=2", 4},
        UlyssesCase{"Recomputed", kUlyssesGpt, "3d:ulysses=2,recompute=core_attn", 2},
        UlyssesCase{"OfTwoSequences",
            "zoo:t5?layers=1&hidden=16&heads=4&d_kv=4&ffn=16&src=8&tgt=8&vocab=24&batch=2",
            "context-parallel:ulysses=2", 2}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(UlyssesPlans, RunInEveryOrderOfTheMesh)
{
    const GraphSnapshot graph = trainingStep(kUlyssesLlama);
    std::vector<std::string> axes{"cp", "sp", "tp"};
    do {
        const std::string mesh = "mesh " + axes[0] + "=2 " + axes[1] + "=2 " + axes[2] + "=2\n";
        SCOPED_TRACE(mesh);
        const auto plan = loweredRows(graph,
            mesh
                + "split !kind:Attention : sequence over cp\nring kind:Attention : over cp\n"
                  "split !kind:Attention : sequence over sp\nsplit kind:Attention : heads over sp\n"
                  "split !kind:Attention : heads over tp\n",
            8);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    } while (std::next_permutation(axes.begin(), axes.end()));
}

/// Kinds of the communication before attentions and behind them, of both passes, with the devices of each.
std::map<InstructionKind, std::set<std::vector<DeviceId>>> aroundAttentions(const ExecutionPlan &plan)
{
    std::map<InstructionKind, std::set<std::vector<DeviceId>>> found;
    const auto isOfHeads = [&](const DeviceProgram &program, std::int32_t buffer) {
        return plan.graph->at(program.buffers[static_cast<std::size_t>(buffer)].tensor).type.shape.size()
            == 4;
    };
    for (const DeviceProgram &program : plan.devices)
        for (const Segment &segment : program.segments)
            for (const Instruction &instruction : segment.instructions)
                if (isCommunication(instruction.kind) && isOfHeads(program, instruction.inputs.front()))
                    found[instruction.kind].insert(instruction.group < 0
                            ? std::vector<DeviceId>{}
                            : plan.groups[static_cast<std::size_t>(instruction.group)]);
    return found;
}

using Groups = std::set<std::vector<DeviceId>>;

std::vector<DeviceId> devicesNumbered(std::initializer_list<std::int32_t> numbers)
{
    std::vector<DeviceId> devices;
    for (const std::int32_t number : numbers)
        devices.push_back({number});
    return devices;
}

TEST(UlyssesPlans, ExchangeHeadsForTokensAllToAll)
{
    const GraphSnapshot graph = trainingStep(kUlyssesGpt);
    const auto around = aroundAttentions(galleryPlan(graph, "context-parallel:ulysses=4", 4));
    ASSERT_EQ(around.size(), 1U);
    EXPECT_EQ(around.begin()->first, InstructionKind::AllToAll);
    EXPECT_EQ(around.begin()->second, (Groups{devicesNumbered({0, 1, 2, 3})}));
}

/// Heads that tensor parallelism has cut are cut further: nobody exchanges anything with another column.
TEST(UlyssesPlans, ExchangeWithinTheHeadsOfTensorParallelism)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=2&hidden=16&heads=8&seq=16&batch=4&vocab=24");
    for (const char *gallery : {"3d:ulysses=2,tp=4", "3d:ulysses=2,tp=4,sequence=1"}) {
        SCOPED_TRACE(gallery);
        const auto around = aroundAttentions(galleryPlan(graph, gallery, 8));
        ASSERT_EQ(around.size(), 1U);
        EXPECT_EQ(around.begin()->first, InstructionKind::AllToAll);
        EXPECT_EQ(around.begin()->second,
            (Groups{devicesNumbered({0, 4}), devicesNumbered({1, 5}), devicesNumbered({2, 6}),
                devicesNumbered({3, 7})}));
    }
}

/// All-to-all inside of the groups, a ring across them.
TEST(UlyssesPlans, GoRoundFromGroupToGroup)
{
    const GraphSnapshot graph = trainingStep(kUlyssesGpt);
    const auto around = aroundAttentions(galleryPlan(graph, "context-parallel:cp=2,ulysses=2", 4));
    ASSERT_EQ(around.size(), 2U);
    EXPECT_EQ(
        around.at(InstructionKind::AllToAll), (Groups{devicesNumbered({0, 1}), devicesNumbered({2, 3})}));
    EXPECT_EQ(around.at(InstructionKind::Shift), (Groups{devicesNumbered({0, 2}), devicesNumbered({1, 3})}));
}

/// Every device has all tokens of its own heads, and what lies between attentions is cut along the sequence.
TEST(UlyssesPlans, GiveAttentionsWholeSequences)
{
    const GraphSnapshot graph = trainingStep(kUlyssesGpt);
    const ExecutionPlan plan = galleryPlan(graph, "context-parallel:ulysses=4", 4);
    std::int32_t attentions = 0;
    for (std::size_t o = 0; o < graph->operators.size(); ++o) {
        const Operator &op = graph->operators[o];
        const auto axes = attentionAxes(op);
        if (!axes || op.direction != Direction::Forward)
            continue;
        ++attentions;
        for (std::int32_t p = 0; p < partCount(plan.partitions[o]); ++p) {
            const PartBox box = partBox(op, plan.partitions[o], p);
            EXPECT_EQ(box.ranges[at(axes->query)].size(), 16);
            EXPECT_EQ(box.ranges[at(axes->key)].size(), 16);
        }
        EXPECT_EQ(partCount(plan.partitions[o]), 4);
    }
    EXPECT_EQ(attentions, 2);
}

TEST(UlyssesPlans, OfHeadsThatDoNotDivideAreRefused)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=1&hidden=24&heads=3&seq=8&batch=2&vocab=24");
    const auto table = galleryTable("context-parallel:ulysses=2", graph, 2);
    ASSERT_FALSE(table);
    EXPECT_NE(
        table.error().message.find("no operator has a dimension 'heads' that 2 divides"), std::string::npos)
        << describe(table.error());
}

} // namespace
} // namespace planloom
