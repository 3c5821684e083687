#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/text_cursor.h"

namespace planloom {

namespace {

void suggestLayout(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const MeshAxis &axis : choices.mesh)
        texts.push_back("\"Et*4|(t*4|)*6t*4L\" over " + asWord(axis.name));
}

} // namespace

constinit const RuleCells kLayoutCells{
    .word = {.word = "layout", .shape = RuleTraits<LayoutRule>::shape, .value = "\"Et*4|t*4L\" over pp"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "layers in stages, in Megatron-LM's notation (op-assign)"),
    .suggest = suggestLayout,
};

} // namespace planloom
