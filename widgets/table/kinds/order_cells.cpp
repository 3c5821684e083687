#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/kinds/second_selector_editor.h"

namespace planloom {

namespace {

CellEditor *newOrderEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    return newSecondSelectorEditor("before", completions, parent);
}

} // namespace

constinit const RuleCells kOrderCells{
    .word = {.word = "order",
        .shape = RuleTraits<OpOrderRule>::shape,
        .value = "before layer:1",
        .valueStart = "before"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run some before others (op-order)"),
    .newEditor = newOrderEditor,
};

} // namespace planloom
