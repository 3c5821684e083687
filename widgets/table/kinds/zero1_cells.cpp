#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

constinit const RuleCells kZero1Cells{
    .word = {.word = "zero1",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .needsValue = false,
        .value = "over dp",
        .valueStart = "over|by"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut the optimizer's state over replicas"),
    .suggest = suggestReplicas,
};

constinit const RuleCells kZero2Cells{
    .word = {.word = "zero2",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .needsValue = false,
        .value = "over dp",
        .valueStart = "over|by"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "cut the optimizer's state and the gradients over replicas"),
    .suggest = suggestReplicas,
};

constinit const RuleCells kZero3Cells{
    .word = {.word = "zero3",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .needsValue = false,
        .value = "over dp",
        .valueStart = "over|by|keep|prefetch"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "cut weights, gradients and the optimizer's state over replicas"),
    .suggest = suggestReplicas,
};

namespace {

/// Such a row says all by its word: there is one value.
CellEditor *newZero0Editor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty())
        return nullptr;
    return newChoiceEditor(parent, {{"", RuleTexts::tr("nothing is cut over replicas")}});
}

} // namespace

constinit const RuleCells kZero0Cells{
    .word = {.word = "zero0",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .needsValue = false,
        .value = ""},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "every replica keeps all of the optimizer's state"),
    .newEditor = newZero0Editor,
};

namespace {

CellEditor *newZeroEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty() && value != "solver" && value != "never")
        return nullptr;
    return newChoiceEditor(parent,
        {{"solver", RuleTexts::tr("as the search finds best")},
            {"never", RuleTexts::tr("nothing is cut over replicas")}});
}

} // namespace

constinit const RuleCells kZeroCells{
    .word = {.word = "zero",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .value = "solver",
        .valueStart = "solver|never"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "the search chooses what is cut over replicas, of these weights alone"),
    .newEditor = newZeroEditor,
};

} // namespace planloom
