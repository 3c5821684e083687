#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestDegrees(const ValueChoices &, std::vector<std::string> &texts)
{
    for (const char *text : {"data at least 2", "tensor at most 8", "pipeline at most 4", "stages at most 8",
             "micro-batches one of 4 8 16"})
        texts.emplace_back(text);
}

} // namespace

constinit const RuleCells kDegreeCells{
    .word = {.word = "degree", .shape = RuleTraits<DegreeRule>::shape, .value = "tensor at most 8"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "what the search may choose of a degree"),
    .suggest = suggestDegrees,
};

} // namespace planloom
