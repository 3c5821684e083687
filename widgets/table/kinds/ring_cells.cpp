#include "engine/table/text_cursor.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestRing(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const MeshAxis &axis : choices.mesh)
        texts.push_back("over " + asWord(axis.name));
}

} // namespace

constinit const RuleCells kRingCells{
    .word = {.word = "ring", .shape = RuleTraits<RingRule>::shape, .value = "over cp"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "queries over the devices of an axis; keys and values go round them"),
    .suggest = suggestRing,
};

} // namespace planloom
