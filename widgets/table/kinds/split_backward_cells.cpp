#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

/// Such a row says all by its word: there is one value.
CellEditor *newSplitBackwardEditor(
    const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty())
        return nullptr;
    return newChoiceEditor(parent, {{"", RuleTexts::tr("gradients of weights behind those of inputs")}});
}

} // namespace

constinit const RuleCells kSplitBackwardCells{
    .word = {.word = "split-backward",
        .shape = RuleTraits<SplitBackwardRule>::shape,
        .needsValue = false,
        .value = ""},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "gradients of weights in a pass of their own: nobody waits for them"),
    .newEditor = newSplitBackwardEditor,
};

} // namespace planloom
