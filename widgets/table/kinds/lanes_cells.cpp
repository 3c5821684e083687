#include "engine/table/text_cursor.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestLanes(const ValueChoices &choices, std::vector<std::string> &texts)
{
    texts.push_back("2");
    for (const MeshAxis &axis : choices.mesh)
        texts.push_back("over " + asWord(axis.name));
}

} // namespace

constinit const RuleCells kLanesCells{
    .word = {.word = "lanes", .shape = RuleTraits<LanesRule>::shape, .value = "2"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "copies of the pipeline, each with a share of every micro-batch"),
    .suggest = suggestLanes,
};

} // namespace planloom
