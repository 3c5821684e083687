#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestParts(const ValueChoices &, std::vector<std::string> &texts)
{
    for (const char *text : {"in all at least 2", "batch at most 8", "heads one of 1 2 4",
             "sequence at most 1", "hidden at most 4", "feed-forward at least 2"})
        texts.emplace_back(text);
}

} // namespace

constinit const RuleCells kPartsCells{
    .word = {.word = "parts", .shape = RuleTraits<PartsRule>::shape, .value = "hidden at most 4"},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "into how many parts they may be cut (op-trans)"),
    .suggest = suggestParts,
};

} // namespace planloom
