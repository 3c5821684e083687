#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newAttentionEditor(const std::string &, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return newChoiceEditor(parent,
        {{"fused", RuleTexts::tr("scores a tile at a time: no memory for them")},
            {"plain", RuleTexts::tr("probabilities in memory, kept for the backward pass")}});
}

} // namespace

constinit const RuleCells kAttentionCells{
    .word = {.word = "attention", .shape = RuleTraits<AttentionRule>::shape, .value = "plain"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "whether attention keeps its probabilities"),
    .newEditor = newAttentionEditor,
};

} // namespace planloom
