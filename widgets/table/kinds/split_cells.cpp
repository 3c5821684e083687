#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/kinds/split_cell_editor.h"

#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

namespace {

CellEditor *newSplitEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return SplitCellEditor::canShow("split", value) ? new SplitCellEditor("split", parent) : nullptr;
}

void suggestSplit(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const DimensionChoice &dimension : choices.dimensions) {
        for (const MeshAxis &axis : choices.mesh) {
            if (std::find(dimension.counts.begin(), dimension.counts.end(), axis.size)
                != dimension.counts.end())
                texts.push_back(dimension.name + " over " + asWord(axis.name));
        }
        for (const std::int32_t count : dimension.counts) {
            if (count <= choices.deviceCount)
                texts.push_back(dimension.name + " by " + std::to_string(count));
        }
    }
    if (choices.valueSplit)
        texts.push_back("value by 2");
}

} // namespace

constinit const RuleCells kSplitCells{
    .word = {.word = "split", .shape = RuleTraits<OpTransRule>::shape, .value = "batch by 2"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut operators along a dimension (op-trans)"),
    .newEditor = newSplitEditor,
    .suggest = suggestSplit,
};

constinit const RuleCells kReplicateCells{
    .word = {.word = "replicate", .shape = RuleTraits<OpTransRule>::shape, .value = "by 2"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run the same operators several times"),
    .suggest = suggestReplicas,
};

} // namespace planloom
