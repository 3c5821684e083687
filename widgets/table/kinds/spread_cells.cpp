#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/text_cursor.h"

namespace planloom {

namespace {

void suggestSpread(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const MeshAxis &axis : choices.mesh)
        for (const char *by : {"", " by memory", " by count"})
            texts.push_back("over " + asWord(axis.name) + by);
}

} // namespace

constinit const RuleCells kSpreadCells{
    .word = {.word = "spread",
        .shape = RuleTraits<SpreadRule>::shape,
        .value = "over pp",
        .valueStart = "over"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "consecutive runs along an axis, balanced (op-assign)"),
    .suggest = suggestSpread,
};

} // namespace planloom
