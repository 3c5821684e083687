#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newOffloadEditor(const std::string &, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return newChoiceEditor(parent,
        {{"states", RuleTexts::tr("optimizer states and master weights: fetched for each update")},
            {"activations", RuleTexts::tr("what the backward pass reads: fetched when it does")},
            {"states never", RuleTexts::tr("optimizer states stay on their devices")},
            {"activations never", RuleTexts::tr("what the backward pass reads stays on its devices")},
            {"activations solver", RuleTexts::tr("as the search for schedules finds best")}});
}

} // namespace

constinit const RuleCells kOffloadCells{
    .word = {.word = "offload", .shape = RuleTraits<OffloadRule>::shape, .value = "states"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "what waits in host memory"),
    .newEditor = newOffloadEditor,
};

} // namespace planloom
