#include "engine/frontend/onnx/import_onnx.h"
#include "engine/gallery/tensor_parallel_region.h"
#include "engine/table/selector_index.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/table/models.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

namespace planloom {
namespace {

/// What is split along which kind of identifier: "c_fc" -> Spatial, "c_proj" -> Reduce; by last part of the
/// name.
std::map<std::string, std::set<DimensionMark>> productCuts(const Plan &plan)
{
    std::map<std::string, std::set<DimensionMark>> cuts;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        if (op.direction != Direction::Forward || op.kind != OperatorKind::Linear)
            continue;
        for (const Split &split : plan.decisions[i].partition.splits) {
            if (split.kind == SplitKind::Dimension && split.axis == "tp")
                cuts[op.name.substr(op.name.rfind('.') + 1)].insert(
                    op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark);
        }
    }
    return cuts;
}

Plan galleryPlan(const GraphSnapshot &graph, std::string_view spec, std::int32_t devices)
{
    const auto table = galleryTable(spec, graph, devices);
    EXPECT_TRUE(table) << spec << ": " << describe(table.error());
    if (!table)
        return {};
    const std::string text = print(*table);
    const auto again = parseTable(text);
    EXPECT_TRUE(again) << text;
    EXPECT_EQ(*again, *table);
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion);
    EXPECT_TRUE(completion->plan.graph);
    for (const RowReport &report : completion->rows)
        EXPECT_EQ(report.warning, "") << text;
    return completion->plan;
}

const std::set<DimensionMark> kColumn{DimensionMark::Spatial};
const std::set<DimensionMark> kRow{DimensionMark::Reduce};

TEST(Gallery, TensorParallelFindsColumnAndRowPairsOfGpt)
{
    const auto cuts = productCuts(galleryPlan(tinyGpt(), "tensor-parallel", 2));
    EXPECT_EQ(cuts.at("c_fc"), kColumn);
    EXPECT_EQ(cuts.at("c_proj"), kRow); // of the MLP, and of the attention behind a fused projection
    EXPECT_EQ(cuts.at("c_attn"), kColumn); // of queries, keys and values alike
    EXPECT_EQ(cuts.at("lm_head"), kColumn); // up to the loss's statistics of the vocabulary
}

TEST(Gallery, TensorParallelSplitsTheVocabulary)
{
    // By name: the meaning of what is cut over tp.
    const auto cutsOf = [](std::int64_t vocabulary, std::int32_t devices) {
        const auto graph = zooTraining(
            "zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=4&vocab=" + std::to_string(vocabulary));
        const Plan plan = galleryPlan(graph, "tensor-parallel", devices);
        std::map<std::string, std::string> cuts;
        for (std::size_t i = 0; i < graph->operators.size(); ++i)
            for (const Split &split : plan.decisions[i].partition.splits)
                if (graph->operators[i].direction == Direction::Forward && split.kind == SplitKind::Dimension)
                    cuts[graph->operators[i].name] =
                        graph->operators[i]
                            .annotation.dimensions[static_cast<std::size_t>(split.dimension)]
                            .name;
        return cuts;
    };
    for (const auto &[vocabulary, devices] : {std::pair{24, 2}, {24, 4}, {23, 2}, {23, 4}}) {
        const auto cuts = cutsOf(vocabulary, devices);
        EXPECT_EQ(cuts.at("wte"), "v");
        EXPECT_EQ(cuts.at("lm_head"), "n");
        EXPECT_EQ(cuts.at("loss.statistics"), "c");
        EXPECT_FALSE(cuts.contains("wpe")); // a table of positions stays on every device
        EXPECT_FALSE(cuts.contains("loss.cross_entropy")); // a few numbers an item
    }
    const auto whole = cutsOf(3, 4);
    EXPECT_EQ(whole.at("h.0.mlp.c_fc"), "n");
    for (const char *name : {"wte", "lm_head", "loss.statistics"})
        EXPECT_FALSE(whole.contains(name)) << name;
}

TEST(Gallery, TensorParallelFindsSeparateProjectionsAndGates)
{
    const auto graph = zooTraining("zoo:llama?layers=2&hidden=64&heads=4&kv_heads=2&seq=16&vocab=96&batch=2");
    const auto cuts = productCuts(galleryPlan(graph, "tensor-parallel", 2));
    for (const char *name : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"})
        EXPECT_EQ(cuts.at(name), kColumn) << name;
    for (const char *name : {"o_proj", "down_proj"})
        EXPECT_EQ(cuts.at(name), kRow) << name;
}

TEST(Gallery, SpatialCutsVolumesAndImagesAlongTheirOutermostDimension)
{
    const auto volumes = zooTraining("zoo:unet3d?levels=3&width=2&volume=8&channels=1&classes=3&batch=2");
    const auto table = galleryTable("spatial:dp=2", volumes, 4);
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table),
        "mesh dp=2 depth=2  @template\nsplit all : batch over dp  @template\n"
        "split all : depth over depth  @template\n");
    const auto images = zooTraining("zoo:resnet?depth=18&width=2&image=64&classes=5&batch=2");
    const auto rows = galleryTable("spatial:height=2,width=2", images, 4);
    ASSERT_TRUE(rows) << describe(rows.error());
    EXPECT_NE(print(*rows).find("mesh height=2 width=2"), std::string::npos) << print(*rows);
    EXPECT_NE(print(*rows).find("width over width"), std::string::npos) << print(*rows);

    const auto refusal = [](const GraphSnapshot &graph, std::string_view spec, std::int32_t devices) {
        const auto refused = galleryTable(spec, graph, devices);
        return refused ? std::string("none") : refused.error().message;
    };
    EXPECT_NE(refusal(tinyGpt(), "spatial", 2).find("no images or volumes"), std::string::npos);
    EXPECT_NE(
        refusal(images, "spatial:depth=2", 2).find("nothing in the model has a depth"), std::string::npos);
    EXPECT_NE(refusal(images, "spatial:height=5", 5).find("that 5 divides"), std::string::npos);
    EXPECT_NE(refusal(images, "spatial:dp=2", 2).find("cuts every sample in 1"), std::string::npos);
    EXPECT_NE(refusal(images, "spatial:dp=2,height=2", 8).find("the cluster has 8"), std::string::npos);
}

/// Attentions of the forward pass that are rings, and those that are not.
std::pair<std::int32_t, std::int32_t> ringsAndOthers(const Plan &plan)
{
    std::pair<std::int32_t, std::int32_t> counts;
    for (std::size_t i = 0; plan.graph && i < plan.graph->operators.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        if (op.kind == OperatorKind::Attention && op.direction == Direction::Forward)
            ++(plan.decisions[i].ringSplit >= 0 ? counts.first : counts.second);
    }
    return counts;
}

TEST(Gallery, ContextParallelSplitsSequencesAndPassesKeysRound)
{
    using Counts = std::pair<std::int32_t, std::int32_t>;
    const auto table = galleryTable("context-parallel", tinyGpt(), 2);
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table),
        "mesh cp=2  @template\nsplit all : sequence over cp  @template\n"
        "ring kind:Attention : over cp  @template\n");
    EXPECT_EQ(ringsAndOthers(galleryPlan(tinyGpt(), "context-parallel", 4)), Counts(2, 0));
    EXPECT_EQ(ringsAndOthers(galleryPlan(tinyGpt(), "context-parallel:ring=0", 4)), Counts(0, 2));
    // Positions are added to the scores of T5's own attentions, not to those of the other sequence.
    const auto t5 = zooTraining("zoo:t5?layers=2&hidden=16&heads=4&d_kv=4&src=8&tgt=8&batch=2&vocab=24");
    EXPECT_EQ(ringsAndOthers(galleryPlan(t5, "context-parallel", 2)), Counts(2, 4));
    EXPECT_FALSE(galleryTable("context-parallel", tinyGpt(), 3));
    const auto swin = zooTraining("zoo:swin");
    const auto none = galleryTable("context-parallel", swin, 2);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().where == "gallery" || none.error().where.starts_with("gallery/"))
        << describe(none.error());
}

TEST(Gallery, UlyssesExchangesHeadsForTokens)
{
    const auto table = galleryTable("context-parallel:ulysses=2", tinyGpt(), 4);
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table),
        "mesh cp=2 ulysses=2  @template\nsplit all : sequence over cp  @template\n"
        "ring kind:Attention : over cp  @template\n"
        "split !kind:Attention : sequence over ulysses  @template\n"
        "split kind:Attention : heads over ulysses  @template\n");
    const auto alone = galleryTable("context-parallel:ulysses=4", tinyGpt(), 4);
    ASSERT_TRUE(alone) << describe(alone.error());
    EXPECT_EQ(print(*alone).find("over cp"), std::string::npos) << print(*alone);
    const auto states = galleryTable("3d:dp=2,ulysses=2,zero=1", tinyGpt(), 4);
    ASSERT_TRUE(states) << describe(states.error());
    EXPECT_NE(print(*states).find("zero1 weight:* over dp and ulysses"), std::string::npos) << print(*states);
    const auto tooMany = galleryTable("context-parallel:ulysses=8", tinyGpt(), 8);
    ASSERT_FALSE(tooMany);
    EXPECT_NE(
        tooMany.error().message.find("no operator has a dimension 'heads' that 8 divides"), std::string::npos)
        << describe(tooMany.error());
}

TEST(Gallery, ContextParallelGoesWithTheOtherKinds)
{
    const auto graph = zooTraining("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24");
    const Plan plan = galleryPlan(graph, "3d:dp=2,pp=2,cp=2,tp=2,sequence=1,zero=1,micro-batches=2", 16);
    for (std::size_t i = 0; plan.graph && i < graph->operators.size(); ++i) {
        if (graph->operators[i].kind != OperatorKind::Attention)
            continue;
        std::set<std::string> axes;
        for (const Split &split : plan.decisions[i].partition.splits)
            axes.insert(split.axis);
        EXPECT_EQ(axes, (std::set<std::string>{"", "cp", "dp", "tp"})) << graph->operators[i].name;
        EXPECT_GE(plan.decisions[i].ringSplit, 0);
    }
}

TEST(Gallery, RowOperatorsAloneCommunicateUnderTensorParallelism)
{
    // Every operator that reads a cut tensor takes it as it lies: only summands have to be joined.
    const auto graph = tinyGpt();
    const SelectorIndex index(graph);
    const auto cut = findTensorParallel(index, 2);
    EXPECT_EQ(
        cut.regions, 4); // attention and MLP of two layers; the tokens' table and the loss come with them
    const Plan plan = galleryPlan(graph, "tensor-parallel", 2);
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const auto &splits = plan.decisions[i].partition.splits;
        if (graph->operators[i].direction != Direction::Forward)
            continue;
        ASSERT_EQ(splits.size(), 1u);
        EXPECT_EQ(splits[0].kind == SplitKind::Dimension ? splits[0].dimension : -1, cut.identifier[i])
            << graph->operators[i].name;
    }
}

/// By name: the sizes of the parts that a forward operator is cut into over tp, where they are not equal.
std::map<std::string, std::vector<std::int64_t>> unevenSizes(const Plan &plan)
{
    std::map<std::string, std::vector<std::int64_t>> sizes;
    for (std::size_t i = 0; plan.graph && i < plan.decisions.size(); ++i)
        for (const Split &split : plan.decisions[i].partition.splits)
            if (plan.graph->operators[i].direction == Direction::Forward && !split.sizes.empty())
                sizes[plan.graph->operators[i].name] = split.sizes;
    return sizes;
}

TEST(Gallery, WhatDoesNotDivideIsCutInRoundedSharesAndAllOfItsRegionAlike)
{
    using Sizes = std::vector<std::int64_t>;
    const auto gpt = zooTraining("zoo:gpt?layers=1&hidden=40&heads=5&seq=8&vocab=33&batch=4");
    auto sizes = unevenSizes(galleryPlan(gpt, "tensor-parallel", 2));
    EXPECT_EQ(sizes["wte"], (Sizes{17, 16}));
    EXPECT_EQ(sizes["lm_head"], (Sizes{17, 16}));
    EXPECT_EQ(sizes["h.0.attn.c_proj"], (Sizes{24, 16})); // 3 and 2 heads of 8
    EXPECT_EQ(sizes.count("h.0.mlp.c_fc"), 0u); // 160 divide
    sizes = unevenSizes(galleryPlan(gpt, "tensor-parallel", 4));
    EXPECT_EQ(sizes["wte"], (Sizes{9, 9, 9, 6}));
    EXPECT_EQ(sizes["h.0.attn.c_proj"], (Sizes{16, 8, 8, 8})); // rounded up, one would have none
    sizes = unevenSizes(galleryPlan(gpt, "3d:tp=3", 3));
    EXPECT_EQ(sizes["h.0.mlp.c_fc"], (Sizes{54, 54, 52}));
    EXPECT_EQ(sizes.count("wte"), 0u);
    // Key heads and the query heads that share them.
    const auto llama =
        zooTraining("zoo:llama?layers=1&hidden=40&heads=10&kv_heads=5&ffn=48&seq=8&vocab=32&batch=4");
    sizes = unevenSizes(galleryPlan(llama, "tensor-parallel", 2));
    EXPECT_EQ(sizes["layers.0.self_attn.q_proj"], (Sizes{24, 16}));
    EXPECT_EQ(sizes["layers.0.self_attn.k_proj"], (Sizes{12, 8}));
    EXPECT_EQ(sizes["layers.0.self_attn.o_proj"], (Sizes{24, 16}));
    EXPECT_EQ(sizes.count("lm_head"), 0u);
    const auto two = zooTraining("zoo:gpt?layers=2&hidden=40&heads=5&seq=8&vocab=33&batch=4");
    EXPECT_EQ(unevenSizes(galleryPlan(two, "interlaced:micro-batches=2", 2))["lm_head"], (Sizes{17, 16}));
}

TEST(Gallery, DataParallelSplitsTheBatchOfEveryOperatorThatHasOne)
{
    const auto graph = tinyGpt();
    const BatchInfo batch = analyseBatch(*graph);
    const Plan plan = galleryPlan(graph, "data-parallel", 4);
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        if (graph->operators[i].direction != Direction::Forward)
            continue;
        const auto &splits = plan.decisions[i].partition.splits;
        ASSERT_EQ(splits.size(), 1u);
        EXPECT_EQ(
            splits[0].kind == SplitKind::Dimension ? splits[0].dimension : -1, batch.operatorDimension[i]);
    }
}

TEST(Gallery, ThreeDimensionsUseEveryDeviceAndTwoStages)
{
    const auto graph = tinyGpt(8);
    const Plan plan = galleryPlan(graph, "3d:dp=2,tp=2,pp=2,zero1=1,schedule=gpipe,micro-batches=4", 8);
    EXPECT_EQ(plan.stageCount, 2);
    EXPECT_EQ(plan.microBatches, 4);
    EXPECT_EQ(plan.schedule, ScheduleKind::GPipe);
    std::vector<std::set<DeviceId>> devices(2);
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const auto &decision = plan.decisions[i];
        if (graph->operators[i].direction == Direction::Forward)
            devices[static_cast<std::size_t>(decision.stage.index)].insert(
                decision.devices.begin(), decision.devices.end());
    }
    EXPECT_EQ(devices[0], (std::set<DeviceId>{{0}, {1}, {4}, {5}}));
    EXPECT_EQ(devices[1], (std::set<DeviceId>{{2}, {3}, {6}, {7}}));
}

TEST(Gallery, EveryPlanOfEveryFamilyIsCompleteOrRefusedWithAReason)
{
    for (const char *model : {"zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=4",
             "zoo:t5?layers=2&hidden=32&heads=4&vocab=32&batch=4", "zoo:mlp?batch=8",
             "zoo:moe?layers=2&hidden=32&heads=4&seq=8&vocab=32&batch=4", "zoo:evoformer?layers=1"}) {
        const auto graph = zooTraining(model);
        for (const char *spec : {"single", "data-parallel", "tensor-parallel", "pipeline", "zero1",
                 "pipeline:schedule=gpipe,micro-batches=2", "3d:dp=2,pp=2", "3d:tp=2,pp=2"}) {
            SCOPED_TRACE(std::string(model) + " " + spec);
            const auto table = galleryTable(spec, graph, 4);
            if (!table) {
                EXPECT_GT(table.error().message.size(), 20u);
                continue;
            }
            galleryPlan(graph, spec, 4);
        }
    }
}

TEST(Gallery, AModelWithoutABackwardPassIsAPipelineOfItsOwn)
{
    auto forward = buildZooModel("zoo:gpt?layers=4&hidden=32&heads=4&seq=8&vocab=32&batch=8");
    ASSERT_TRUE(forward) << describe(forward.error());
    const Plan plan = galleryPlan(shared(*std::move(forward)), "inference:stages=2,dp=2,micro-batches=4", 4);
    EXPECT_EQ(plan.stageCount, 2);
    EXPECT_EQ(plan.microBatches, 4);
    EXPECT_EQ(plan.schedule, ScheduleKind::GPipe);
}

TEST(Gallery, WhatDoesNotFitIsRefusedWithTheReason)
{
    struct Case {
        const char *spec;
        std::int32_t devices;
        const char *mentions;
    };
    const Case cases[] = {
        {"data-parallel", 3, "4 samples, which 3 does not divide"},
        {"tensor-parallel", 300, "300 ways"},
        {"zero1", 8, "does not divide"},
        {"pipeline:micro-batches=3", 2, "does not divide"},
        {"pipeline:micro-batches=8", 2, "no more than 4"},
        {"pipeline:stages=3", 2, "3 devices"},
        {"pipeline:schedule=zigzag", 2, "zigzag"},
        {"pipeline:depth=3", 2, "no parameter"},
        {"pipeline:stages=x", 2, "a number"},
        {"pipeline:stages=0", 2, "at least 1"},
        {"3d:dp=2,tp=2", 8, "the cluster has 8"},
        {"inference", 2, "it has a backward pass"},
        {"terapipe:slices=3", 2, "3 equal parts"},
        {"4d", 8, "no gallery plan '4d'"},
        {"", 8, "no gallery plan"},
    };
    const auto graph = tinyGpt();
    for (const Case &one : cases) {
        const auto table = galleryTable(one.spec, graph, one.devices);
        ASSERT_FALSE(table) << one.spec;
        EXPECT_NE(table.error().message.find(one.mentions), std::string::npos)
            << one.spec << ": " << table.error().message;
    }
}

TEST(Gallery, ALayoutGivesLayersTheirStagesAndRanksTheirShare)
{
    const auto graph = zooTraining("zoo:gpt?layers=6&hidden=16&heads=2&seq=8&vocab=24&batch=8");
    const auto table = galleryTable("3d:pp=2,layout=Et|tt,|tt|tL,micro-batches=4", graph, 2);
    ASSERT_TRUE(table) << describe(table.error());
    const std::string text = print(*table);
    EXPECT_NE(text.find("layout all : \"Et|tt,|tt|tL\" over pp"), std::string::npos) << text;
    EXPECT_NE(text.find("schedule interleaved"), std::string::npos) << text;
    const Plan plan = galleryPlan(graph, "3d:pp=2,layout=Et|tt|tt|tL,micro-batches=4", 2);
    ASSERT_TRUE(plan.graph);
    EXPECT_EQ(plan.stageCount, 4);
    const SelectorIndex index(graph);
    for (const auto &[name, stage] : {std::pair{"wte", 0}, {"h.0.mlp.c_fc", 0}, {"h.2.mlp.c_fc", 1},
             {"h.3.mlp.c_fc", 2}, {"h.5.mlp.c_fc", 3}, {"lm_head", 3}}) {
        const auto &decision = plan.decisions[at(index.findOperator(name))];
        EXPECT_EQ(decision.stage.index, stage) << name;
        EXPECT_EQ(decision.devices, std::vector<DeviceId>{DeviceId{stage % 2}}) << name;
    }
    const Plan ends = galleryPlan(graph, "3d:pp=4,dp=2,layout=E|t*3|t*3|L,micro-batches=2", 8);
    ASSERT_TRUE(ends.graph);
    EXPECT_EQ(ends.stageCount, 4);
    EXPECT_EQ(ends.decisions[at(index.findOperator("ln_f"))].stage.index, 3);
    struct Case {
        const char *spec;
        const char *mentions;
    };
    for (const Case &one : {Case{"3d:pp=2,layout=Et*7|L", "the layout has 7 layers (t), the model has 6"},
             {"3d:pp=2,layout=Et|tt|tttL", "the layout has 3 stages, the pipeline 2 ranks"},
             {"3d:dp=2,layout=Ettt|tttL", "the layout has 2 stages, the pipeline 1 rank"},
             {"3d:pp=2,layout=Ettt|tttL,interleave=2", "2 stages for 2 ranks, not 2 for each"},
             {"3d:pp=2,layout=Et|tt|tt|tL,schedule=zb-v", "schedule zb-v runs them in waves"},
             {"3d:pp=2,layout=Ettt|ttxL", "at place 8 of the layout, found 'x'"}}) {
        const auto wrong = galleryTable(one.spec, graph, 2);
        ASSERT_FALSE(wrong) << one.spec;
        EXPECT_NE(wrong.error().message.find(one.mentions), std::string::npos) << describe(wrong.error());
    }
}

/// The names of what a plan recomputes in a layer, without the layer's.
std::set<std::string> recomputedIn(const Plan &plan, const std::string &layer)
{
    std::set<std::string> names;
    for (std::size_t i = 0; plan.graph && i < plan.decisions.size(); ++i)
        if (const std::string &name = plan.graph->operators[i].name;
            plan.decisions[i].recomputeGroup >= 0 && name.starts_with(layer))
            names.insert(name.substr(layer.size()));
    return names;
}

TEST(Gallery, RecomputationIsSaidByTheModulesOfTrainers)
{
    using Names = std::set<std::string>;
    const auto gpt = zooTraining("zoo:gpt?layers=2&hidden=16&heads=2&seq=8&vocab=24&batch=4");
    EXPECT_EQ(recomputedIn(galleryPlan(gpt, "3d:recompute=core_attn", 1), "h.1."), (Names{"attn.attention"}));
    EXPECT_EQ(recomputedIn(galleryPlan(gpt, "3d:recompute=layernorm,core_attn", 1), "h.0."),
        (Names{"attn.attention", "ln_1", "ln_2"}));
    const Names mlp = recomputedIn(galleryPlan(gpt, "3d:recompute=mlp", 1), "h.0.");
    EXPECT_EQ(mlp.count("mlp.c_fc") + mlp.count("mlp.c_proj"), 2u);
    EXPECT_TRUE(std::all_of(
        mlp.begin(), mlp.end(), [](const std::string &name) { return name.starts_with("mlp."); }));
    EXPECT_GT(recomputedIn(galleryPlan(gpt, "3d:recompute=full", 1), "h.0.").size(), 10u);
    EXPECT_TRUE(recomputedIn(galleryPlan(gpt, "3d", 1), "h.").empty());

    const auto deepseek = zooTraining("zoo:deepseek?layers=2&dense=1&hidden=32&heads=2&q_lora=12&kv_lora=8"
                                      "&nope=8&rope=4&v_head=8&ffn=24&dense_ffn=40&seq=8&vocab=24&batch=2"
                                      "&experts=4&top_k=2&groups=1&top_groups=1");
    const Names up = recomputedIn(galleryPlan(deepseek, "3d:recompute=mla_up_proj", 1), "layers.1.");
    EXPECT_TRUE(up.contains("self_attn.q_b_proj") && up.contains("self_attn.kv_b_proj"));
    EXPECT_FALSE(up.contains("self_attn.o_proj") || up.contains("self_attn.q_a_proj"));
    const Plan both = galleryPlan(deepseek, "3d:recompute=moe_act+shared_experts+mlp", 1);
    const Names dense = recomputedIn(both, "layers.0.");
    const Names mixture = recomputedIn(both, "layers.1.");
    EXPECT_TRUE(dense.contains("mlp.down_proj"));
    EXPECT_TRUE(mixture.contains("mlp.shared_experts.down_proj") && mixture.contains("mlp.experts.act"));
    EXPECT_FALSE(mixture.contains("mlp.experts.down_proj"));
    EXPECT_TRUE(recomputedIn(galleryPlan(deepseek, "3d:recompute=moe", 1), "layers.1.")
                    .contains("mlp.experts.down_proj"));

    const auto none = galleryTable("3d:recompute=moe_act", gpt, 1);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("no layer of the model has what moe_act names"), std::string::npos)
        << describe(none.error());
    const auto wrong = galleryTable("3d:recompute=core_attn+heads", gpt, 1);
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("found 'heads'"), std::string::npos) << describe(wrong.error());
}

TEST(Gallery, OffloadingIsSaidByTheSameModules)
{
    using Names = std::set<std::string>;
    const auto gpt = zooTraining("zoo:gpt?layers=2&hidden=16&heads=2&seq=8&vocab=24&batch=4");
    const auto offloadedIn = [&](const std::string &spec, const std::string &layer) {
        const Plan plan = galleryPlan(gpt, spec, 1);
        Names names;
        for (std::size_t i = 0; plan.graph && i < plan.decisions.size(); ++i)
            if (const std::string &name = plan.graph->operators[i].name;
                plan.decisions[i].offloaded && name.starts_with(layer))
                names.insert(name.substr(layer.size()));
        return names;
    };
    EXPECT_EQ(offloadedIn("3d:offload=core_attn", "h.1."), (Names{"attn.attention"}));
    EXPECT_EQ(
        offloadedIn("3d:offload=layernorm+core_attn", "h.0."), (Names{"attn.attention", "ln_1", "ln_2"}));
    EXPECT_GT(offloadedIn("3d:offload=full", "h.0.").size(), 10U);
    EXPECT_TRUE(offloadedIn("3d", "h.").empty());
    const auto none = galleryTable("3d:offload=moe_act", gpt, 1);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("no layer of the model has what moe_act names"), std::string::npos)
        << describe(none.error());
    EXPECT_FALSE(galleryTable("3d:offload=everything", gpt, 1));
}

/// Weights of two dimensions and more that every device of the axis "tp" holds whole, by name.
std::set<std::string> matricesLeftWhole(const Plan &plan)
{
    std::set<std::string> cut;
    std::set<std::string> matrices;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        if (op.direction != Direction::Forward)
            continue;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot] || plan.graph->at(op.inputs[slot]).role != TensorRole::Weight
                || plan.graph->at(op.inputs[slot]).type.shape.size() < 2)
                continue;
            const std::string &name = plan.graph->at(op.inputs[slot]).name;
            matrices.insert(name);
            for (const Split &split : plan.decisions[i].partition.splits) {
                if (split.kind == SplitKind::Dimension && split.axis == "tp" && split.parts > 1
                    && mentions(op.annotation.inputs[slot], split.dimension))
                    cut.insert(name);
            }
        }
    }
    std::set<std::string> whole;
    std::set_difference(
        matrices.begin(), matrices.end(), cut.begin(), cut.end(), std::inserter(whole, whole.end()));
    return whole;
}

TEST(Gallery, TensorParallelismLeavesNoMatrixOfAttentionOrMlpWhole)
{
    const std::filesystem::path folder = modelFolder();
    struct Case {
        std::string model;
        std::int32_t ways;
        std::set<std::string> whole; ///< Of positions, of image patches and their merging.
    };
    const Case cases[] = {
        {"gpt2_tiny.onnx", 2, {"transformer.wpe.weight"}},
        {"gpt2_tiny.onnx", 4, {"transformer.wpe.weight"}},
        // Its first layers have two heads.
        {"swin_tiny.onnx", 2, {"layers.0.downsample.reduction.weight", "patch_embed.proj.weight"}},
        {"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=96&batch=4", 2, {"wpe.weight"}},
        {"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=96&batch=4", 4, {"wpe.weight"}},
    };
    for (const Case &one : cases) {
        SCOPED_TRACE(one.model);
        GraphSnapshot graph;
        if (one.model.rfind("zoo:", 0) == 0) {
            graph = zooTraining(one.model);
        } else if (std::filesystem::exists(folder / one.model)) {
            const auto forward = importOnnxFile(folder / one.model);
            ASSERT_TRUE(forward) << describe(forward.error());
            auto training = buildTrainingStep(*forward);
            ASSERT_TRUE(training) << describe(training.error());
            graph = shared(*std::move(training));
        }
        if (!graph)
            continue;
        EXPECT_EQ(matricesLeftWhole(galleryPlan(graph, "tensor-parallel", one.ways)), one.whole);
    }
}

/// By stage: the versions that its operators keep of their weights, where they read any.
std::map<std::int32_t, std::set<std::int32_t>> versionsByStage(const Plan &plan)
{
    std::map<std::int32_t, std::set<std::int32_t>> versions;
    for (std::size_t o = 0; o < plan.decisions.size(); ++o)
        for (const TensorId input : plan.graph->operators[o].inputs)
            if (plan.graph->operators[o].direction != Direction::Optimizer && input
                && plan.graph->at(input).role == TensorRole::Weight)
                versions[plan.decisions[o].stage.index].insert(plan.decisions[o].weightVersions);
    return versions;
}

TEST(Gallery, PipeDreamKeepsAsManyVersionsAsMicroBatchesAreInFlight)
{
    const auto graph = zooTraining("zoo:llama?layers=4&hidden=16&heads=4&seq=8&batch=16&vocab=24");
    const Plan stashing = galleryPlan(graph, "pipedream:micro-batches=8", 4);
    EXPECT_EQ(stashing.updates, 8);
    EXPECT_EQ(versionsByStage(stashing),
        (std::map<std::int32_t, std::set<std::int32_t>>{{0, {4}}, {1, {3}}, {2, {2}}, {3, {1}}}));
    const Plan doubled = galleryPlan(graph, "pipedream-2bw:micro-batches=16", 4);
    EXPECT_EQ(doubled.updates, 4); // each of as many micro-batches as there are stages
    EXPECT_EQ(versionsByStage(doubled),
        (std::map<std::int32_t, std::set<std::int32_t>>{{0, {2}}, {1, {2}}, {2, {2}}, {3, {2}}}));
    EXPECT_EQ(galleryPlan(graph, "pipedream-2bw:micro-batches=16,update-every=8", 4).updates, 2);
    EXPECT_FALSE(galleryTable("pipedream-2bw:micro-batches=16,update-every=3", graph, 4));
    EXPECT_FALSE(galleryTable("pipedream:update-every=2", graph, 4));
}

TEST(Gallery, RealModelsGetTheirPairs)
{
    const std::filesystem::path folder = modelFolder();
    struct Case {
        const char *file;
        std::vector<const char *> columns;
        std::vector<const char *> rows;
    };
    const Case cases[] = {
        {"gpt2_tiny.onnx", {"c_attn", "c_fc", "lm_head"}, {"c_proj"}},
        {"bert_tiny.onnx", {"query", "key", "value"}, {}},
        {"t5_tiny.onnx", {"q", "k", "v", "wi"}, {"o", "wo"}},
        {"swin_tiny.onnx", {"qkv", "fc1"}, {"fc2", "proj"}},
        {"evoformer_tiny.onnx", {"linear_q", "linear_g"}, {"linear_o", "linear_2"}},
    };
    int found = 0;
    for (const Case &one : cases) {
        if (!std::filesystem::exists(folder / one.file))
            continue;
        ++found;
        const auto forward = importOnnxFile(folder / one.file);
        ASSERT_TRUE(forward) << describe(forward.error());
        auto training = buildTrainingStep(*forward);
        ASSERT_TRUE(training) << describe(training.error());
        const auto cuts = productCuts(galleryPlan(shared(*std::move(training)), "tensor-parallel", 2));
        for (const char *name : one.columns)
            EXPECT_EQ(cuts.at(name), kColumn) << one.file << " " << name;
        for (const char *name : one.rows)
            EXPECT_EQ(cuts.at(name), kRow) << one.file << " " << name;
    }
    if (found == 0)
        GTEST_SKIP() << "no models in " << folder;
}

} // namespace
} // namespace planloom
