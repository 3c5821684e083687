#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

#include <algorithm>

namespace planloom {

namespace {

CellEditor *newStageEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    const auto rule = ruleOf("stage", value);
    if (!value.empty() && (!rule || std::get<StageRule>(*rule).count > 0)) // "1 of 4" is text
        return nullptr;
    return new CountCellEditor(0, RuleTexts::tr("Number of the stage"), parent);
}

void suggestStage(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (std::int32_t stage = 0; stage < std::min(choices.deviceCount, 64); ++stage)
        texts.push_back(std::to_string(stage));
}

} // namespace

constinit const RuleCells kStageCells{
    .word = {.word = "stage", .shape = RuleTraits<StageRule>::shape, .value = "0"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "make them a pipeline stage"),
    .newEditor = newStageEditor,
    .suggest = suggestStage,
};

} // namespace planloom
