// Attention split along its keys: means over parts of them are weighed by their log-sum-exps and added up.

#include "engine/frontend/zoo/zoo.h"
#include "tests/engine/runtime/attention_models.h"

namespace planloom {
namespace {

void expectWeighed(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    expectLikeTheModel(graph, rows, devices, InstructionKind::Weigh);
}

TEST(KeySplit, GivesTheModelsNumbersForwardAndBackward)
{
    const AttentionForm forms[] = {{}, {.causal = true}, {.keyHeads = 2, .causal = true}, {.keyHeads = 1},
        {.causal = true, .window = 3}, {.keyHeads = 2, .dropout = 0.25}};
    for (const AttentionForm &form : forms) {
        const GraphSnapshot graph = attentionModel(form);
        for (const std::int32_t parts : {2, 4}) {
            SCOPED_TRACE(textOf(form));
            expectWeighed(
                graph, "mesh cp=" + std::to_string(parts) + "\nsplit name:attention : t over cp\n", parts);
        }
    }
}

TEST(KeySplit, GoesWithOtherSplitsUnevenPartsMicroBatchesAndRecomputation)
{
    const GraphSnapshot graph = attentionModel({.keyHeads = 2, .causal = true});
    for (const char *rows :
        {"mesh cp=2 tp=2\nsplit name:attention : t over cp\nsplit name:attention : heads over tp\n",
            "mesh cp=2 sp=2\nsplit name:attention : t over cp\nsplit name:attention : s over sp\n",
            "mesh cp=2 dp=2\nsplit all : batch over dp\nsplit name:attention : t over cp\n",
            "mesh cp=4\nmicro-batches 2\nsplit name:attention : t over cp\nrecompute all\n"})
        expectWeighed(graph, rows, 4);
    expectWeighed(graph, "split name:attention : t into 5,1,2\nplace all : devices 0,1,2\n", 3);
    expectWeighed(graph, "coshard name:attention : t by 4\n", 1);
}

TEST(KeySplit, ContextParallelKeepsTheSequenceInParts)
{
    // Everything but the attention along the sequence: keys and values stay where they are made, queries come
    // together, and what is made of them is scattered again.
    const auto model = buildZooModel("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24");
    ASSERT_TRUE(model);
    auto training = buildTrainingStep(*model, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training);
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    for (const std::int32_t parts : {2, 4})
        expectWeighed(graph,
            "mesh cp=" + std::to_string(parts)
                + "\nsplit !kind:Attention : sequence over cp\nsplit kind:Attention : t over cp\n",
            parts);
}

TEST(KeySplit, ProbabilitiesAreNotKeptInPartsOfTheKeys)
{
    const GraphSnapshot graph = attentionModel({});
    const auto plan =
        planOfRows(graph, "mesh cp=2\nsplit name:attention : t over cp\nattention all : plain\n", 2);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().where, "operator:attention");
}

} // namespace
} // namespace planloom
