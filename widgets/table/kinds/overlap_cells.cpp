#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newOverlapEditor(const std::string &, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return newChoiceEditor(parent,
        {{"tensor", RuleTexts::tr("collectives run chunk by chunk with the product beside them")},
            {"none", RuleTexts::tr("a collective waits for its product, and the next product for it")}});
}

} // namespace

constinit const RuleCells kOverlapCells{
    .word = {.word = "overlap", .shape = RuleTraits<OverlapRule>::shape, .value = "tensor"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "whether collectives overlap products"),
    .newEditor = newOverlapEditor,
};

} // namespace planloom
