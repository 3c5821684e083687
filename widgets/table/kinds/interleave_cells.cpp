#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestInterleaved(const ValueChoices &, std::vector<std::string> &texts)
{
    texts.insert(texts.end(),
        {"forward with backward at -1", "forward stage 0 with backward at -2",
            "forward with weight-gradient at -1", "forward stage 0 with forward stage 1 at -1"});
}

} // namespace

constinit const RuleCells kInterleaveCells{
    .word = {.word = "interleave",
        .shape = RuleTraits<InterleaveRule>::shape,
        .value = "forward stage 0 with backward at -2"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable",
        "two blocks of a pipeline side by side: one computes while the other communicates"),
    .suggest = suggestInterleaved,
};

} // namespace planloom
