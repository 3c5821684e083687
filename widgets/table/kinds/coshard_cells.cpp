#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/kinds/split_cell_editor.h"

namespace planloom {

namespace {

CellEditor *newCoshardEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return SplitCellEditor::canShow("coshard", value) ? new SplitCellEditor("coshard", parent) : nullptr;
}

void suggestCoshard(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const DimensionChoice &dimension : choices.dimensions) {
        if (!dimension.counts.empty())
            texts.push_back(dimension.name + " by " + std::to_string(dimension.counts.front()));
    }
}

} // namespace

constinit const RuleCells kCoshardCells{
    .word = {.word = "coshard", .shape = RuleTraits<CoshardRule>::shape, .value = "batch by 2"},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut further, on the same device, one after another"),
    .newEditor = newCoshardEditor,
    .suggest = suggestCoshard,
};

} // namespace planloom
