#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

/// Such a row says all by its word: there is one value.
CellEditor *newFollowEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty())
        return nullptr;
    return newChoiceEditor(parent, {{"", RuleTexts::tr("as their producer cuts what it makes")}});
}

} // namespace

constinit const RuleCells kFollowCells{
    .word = {.word = "follow", .shape = RuleTraits<FollowRule>::shape, .needsValue = false, .value = ""},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "cut them as their producer is: nothing is sent (op-trans)"),
    .newEditor = newFollowEditor,
};

} // namespace planloom
