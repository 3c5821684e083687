#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

/// As text; what comes before which is completed as selectors are.
CellEditor *newOrderEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    auto *editor = new TextCellEditor(parent);
    editor->setSuggest(
        [completions](const std::string &typed) {
            return typed == "b" || typed == "be" ? std::vector<std::string>{"before"}
                : completions                    ? completions->find(typed, kMostCompletions)
                                                 : std::vector<std::string>{};
        },
        true);
    return editor;
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
