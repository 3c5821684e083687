#include "engine/plan/precision_rule.h"

#include "engine/table/table_text.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Completion completed(const std::string &text, PrecisionPreset usual = PrecisionPreset::Float32)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << text;
    auto completion = completePlan(tinyMlp(), 2, *table, nullptr, UseUnits::WhereLarge, usual);
    EXPECT_TRUE(completion) << describe(completion.error());
    return *std::move(completion);
}

const OperatorDecision &decisionOf(const Completion &completion, std::string_view name)
{
    const auto &operators = completion.plan.graph->operators;
    for (std::size_t i = 0; i < operators.size(); ++i)
        if (operators[i].name == name)
            return completion.plan.decisions[i];
    ADD_FAILURE() << "no operator " << name;
    return completion.plan.decisions.front();
}

TEST(PrecisionRows, AreFollowedBySingleSettingsWhateverTheirOrder)
{
    for (const char *text : {"precision all : bf16\nprecision name:a : storage=fp32 scale=8",
             "precision name:a : storage=fp32 scale=8\nprecision all : bf16"}) {
        SCOPED_TRACE(text);
        const Completion completion = completed(text);
        ASSERT_FALSE(firstError(completion)) << describe(*firstError(completion));
        const Precision bf16 = precisionOf(PrecisionPreset::BFloat16);
        Precision mixed = bf16;
        mixed.storage = DataType::Float32;
        mixed.lossScale = 8;
        EXPECT_EQ(decisionOf(completion, "a").precision, mixed);
        EXPECT_EQ(decisionOf(completion, "a'").precision, mixed);
        EXPECT_EQ(decisionOf(completion, "a").precisionRows.size(), 2u);
        EXPECT_EQ(decisionOf(completion, "b").precision, bf16);
        EXPECT_EQ(decisionOf(completion, "b").precisionRows.size(), 1u);
    }
}

TEST(PrecisionRows, ThatDisagreeAreBlamedOnEachOther)
{
    struct Case {
        const char *text;
        int first;
        int second;
    };
    for (const Case &each : {Case{"precision all : bf16\nprecision name:a : fp16", 0, 1},
             {"precision all : storage=bf16\nprecision all : compute=tf32\nprecision name:b : storage=fp16",
                 0, 2},
             {"precision name:b : scale=8\nprecision name:a : scale=8\nprecision all : scale=16", 1, 2}}) {
        SCOPED_TRACE(each.text);
        const Completion completion = completed(each.text);
        for (std::size_t row = 0; row < completion.rows.size(); ++row) {
            const bool blamed = static_cast<int>(row) == each.first || static_cast<int>(row) == each.second;
            ASSERT_EQ(completion.rows[row].error.has_value(), blamed) << row;
            if (blamed) {
                EXPECT_EQ(completion.rows[row].error->code, ErrorCode::Conflict);
                EXPECT_NE(
                    completion.rows[row].error->message.find("different precisions"), std::string::npos);
            }
        }
    }
    EXPECT_FALSE(firstError(completed("precision all : bf16\nprecision name:a : bf16 compute=bf16")));
}

TEST(PrecisionRows, ReachOptimizersByTheOperatorThatReadsTheirWeight)
{
    const Completion completion = completed("precision name:a : fp16");
    const Graph &graph = *completion.plan.graph;
    std::int32_t followed = 0;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Optimizer)
            continue;
        const auto reader =
            std::find_if(graph.operators.begin(), graph.operators.end(), [&](const Operator &o) {
                return std::find(o.inputs.begin(), o.inputs.end(), op.inputs[0]) != o.inputs.end();
            });
        const bool ofA = reader->name == "a";
        EXPECT_EQ(completion.plan.decisions[i].precision,
            precisionOf(ofA ? PrecisionPreset::Float16 : PrecisionPreset::Float32));
        followed += ofA ? 1 : 0;
    }
    EXPECT_GT(followed, 0);
}

TEST(PrecisionRows, LeaveTheRestToTheDefaultWhichIsSaid)
{
    const Completion completion = completed("precision name:a : storage=fp32", PrecisionPreset::BFloat16);
    Precision mixed = precisionOf(PrecisionPreset::BFloat16);
    mixed.storage = DataType::Float32;
    EXPECT_EQ(decisionOf(completion, "a").precision, mixed);
    EXPECT_EQ(decisionOf(completion, "b").precision, precisionOf(PrecisionPreset::BFloat16));
    EXPECT_NE(decisionOf(completion, "b").why.find("bf16"), std::string::npos);
    EXPECT_EQ(decisionOf(completion, "a").why.find("bf16"), std::string::npos);
    EXPECT_EQ(precisionSummary(completed("", PrecisionPreset::BFloat16).plan), "bf16 by default");
    EXPECT_EQ(precisionSummary(completed("precision all : fp8").plan), "fp8");
    EXPECT_NE(precisionSummary(completion.plan).find("fp32 compute=bf16 ("), std::string::npos);
}

} // namespace
} // namespace planloom
