#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/kinds/split_cell_editor.h"

namespace planloom {

namespace {

CellEditor *newSliceEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return SplitCellEditor::canShow("slice", value) ? new SplitCellEditor("slice", parent) : nullptr;
}

void suggestSlices(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const DimensionChoice &dimension : choices.dimensions)
        if (!dimension.counts.empty() && dimension.name != nameOf(DimensionMeaning::Batch))
            texts.push_back(dimension.name + " by " + std::to_string(dimension.counts.front()));
}

} // namespace

constinit const RuleCells kSliceCells{
    .word = {.word = "slice", .shape = RuleTraits<SliceRule>::shape, .value = "sequence by 2"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable",
        "in slices of the sequence, which run through the stages one behind another"),
    .newEditor = newSliceEditor,
    .suggest = suggestSlices,
};

} // namespace planloom
