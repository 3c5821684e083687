#include "engine/table/layer_layout.h"

#include "tests/engine/table/models.h"

namespace planloom {
namespace {

/// "E2 0 3L": of each stage the embedding, how many layers, how many modules, the loss.
std::string stagesIn(std::string_view layout)
{
    const auto stages = parseLayout(layout);
    if (!stages)
        return stages.error().message;
    std::string text;
    for (const LayoutStage &stage : *stages)
        text += (text.empty() ? "" : " ") + std::string(stage.embedding ? "E" : "")
            + std::to_string(stage.layers) + (stage.modules > 0 ? "m" + std::to_string(stage.modules) : "")
            + (stage.loss ? "L" : "");
    return text;
}

TEST(LayerLayout, IsReadAsMegatronWritesIt)
{
    EXPECT_EQ(stagesIn("EtL"), "E1L");
    EXPECT_EQ(stagesIn("Et*4|(t*4|)*3tmL"), "E4 4 4 4 1m1L");
    EXPECT_EQ(stagesIn("E|t*3|t*3|L"), "E0 3 3 0L");
    EXPECT_EQ(stagesIn("E|(t|)*3,m|m|L"), "E0 1 1 1 0m1 0m1 0L");
    EXPECT_EQ(stagesIn("Et | (t, (t)*2 |)*2 L"), "E1 3 3 0L");
    EXPECT_EQ(stagesIn("E t*12 L"), "E12L");
}

TEST(LayerLayout, SaysThePlaceWhatWasFoundAndWhatWasExpected)
{
    EXPECT_EQ(stagesIn("Et*4|x*2L"), "expected E, t, m, L, '|' or '(' at place 6 of the layout, found 'x'");
    EXPECT_EQ(stagesIn("Et*|L"), "expected a number from 1 to 4096 at place 4 of the layout, found '|L'");
    EXPECT_EQ(stagesIn("t*4L"), "expected E, the embedding, at place 1 of the layout, found 't'");
    EXPECT_EQ(stagesIn("Et||L"), "expected something that stage 1 runs at place 4 of the layout, found '|'");
    EXPECT_EQ(stagesIn("EmtL"), "expected what comes behind m at place 3 of the layout, found 't'");
    EXPECT_EQ(stagesIn("EtLt"), "expected nothing more behind L at place 4 of the layout, found 't'");
    EXPECT_EQ(stagesIn("EtE|L"), "expected what comes behind t at place 3 of the layout, found 'E'");
    EXPECT_EQ(stagesIn("Et|t"), "expected L, the loss, at the end of the layout, found 't'");
    EXPECT_EQ(stagesIn("E(t"), "expected ')' at the end of the layout, found nothing");
    EXPECT_EQ(stagesIn("Et)L"), "expected E, t, m, L, '|' or '(' at place 3 of the layout, found ')'");
    EXPECT_EQ(stagesIn("E((t*4096)*4096)*4096L"),
        "expected at most 65536 layers and stages in a layout, found more");
    EXPECT_EQ(stagesIn(""), "expected L, the loss, at the end of the layout, found nothing");
}

/// The stage of an operator.
std::int32_t stageAt(const SelectorIndex &index, const std::vector<std::int32_t> &stages, const char *name)
{
    const OperatorId op = index.findOperator(name);
    EXPECT_TRUE(op.valid()) << name;
    return op.valid() ? stages[at(op)] : -2;
}

TEST(LayerLayout, GivesLayersAndWhatIsAroundThemTheirStages)
{
    const SelectorIndex index(zooTraining("zoo:gpt?layers=4&hidden=16&heads=2&seq=8&vocab=24&batch=2"));
    for (const auto &[layout, first, behind, last] :
        {std::tuple{"Et|t*2|tL", 0, 1, 2}, {"E|t*3|t|L", 1, 1, 3}, {"E|tttt|L", 1, 1, 2}}) {
        SCOPED_TRACE(layout);
        const auto stages = stagesOfLayout(index, *parseLayout(layout));
        ASSERT_TRUE(stages) << describe(stages.error());
        EXPECT_EQ(stageAt(index, *stages, "wte"), 0);
        EXPECT_EQ(stageAt(index, *stages, "h.0.mlp.c_fc"), first);
        EXPECT_EQ(stageAt(index, *stages, "h.1.attn.c_attn"), behind);
        EXPECT_EQ(stageAt(index, *stages, "ln_f"), last);
        EXPECT_EQ(stageAt(index, *stages, "lm_head"), last);
        for (std::size_t i = 0; i < index.graph().operators.size(); ++i)
            for (const TensorId output : index.graph().operators[i].outputs)
                if (output && i < index.forwardCount())
                    for (const OperatorId user : index.uses().consumers[at(output)])
                        if (at(user) < index.forwardCount()) {
                            EXPECT_LE((*stages)[i], (*stages)[at(user)]) << index.graph().operators[i].name;
                        }
    }
    const auto more = stagesOfLayout(index, *parseLayout("Et*5|L"));
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().message, "the layout has 5 layers (t), the model has 4");
    const auto module = stagesOfLayout(index, *parseLayout("Et*4|mL"));
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().message, "the layout has 1 MTP layer (m), the model has 0");
}

TEST(LayerLayout, KnowsModulesThatPredictFurtherTokens)
{
    for (const int modules : {1, 2}) {
        const SelectorIndex index(zooTraining("zoo:deepseek?layers=3&dense=1&hidden=32&heads=2&seq=8&vocab="
                                              "24&batch=2&experts=4&top_k=2&groups=1"
                                              "&top_groups=1&mtp="
            + std::to_string(modules)));
        const auto stages = stagesOfLayout(index, *parseLayout(modules == 1 ? "Et|tt|m|L" : "Et|tt|mm|L"));
        ASSERT_TRUE(stages) << describe(stages.error());
        for (std::size_t i = 0; i < index.forwardCount(); ++i) {
            const std::string &name = index.graph().operators[i].name;
            if (name.find("mtp.") == 0 && name.find(".layer.") != std::string::npos) {
                EXPECT_EQ((*stages)[i], 2) << name;
            }
            if (name.find("lm_head") != std::string::npos) {
                EXPECT_EQ((*stages)[i], 3) << name;
            }
        }
    }
}

} // namespace
} // namespace planloom
