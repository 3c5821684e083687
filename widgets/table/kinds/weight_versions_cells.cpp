#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newWeightVersionsEditor(
    const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return value.empty() || ruleOf("weight-versions", value)
        ? new CountCellEditor(1, RuleTexts::tr("Versions of the weights"), parent)
        : nullptr;
}

} // namespace

constinit const RuleCells kWeightVersionsCells{
    .word = {.word = "weight-versions", .shape = RuleTraits<WeightVersionsRule>::shape, .value = "2"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "gradients at weights of earlier updates"),
    .newEditor = newWeightVersionsEditor,
};

} // namespace planloom
