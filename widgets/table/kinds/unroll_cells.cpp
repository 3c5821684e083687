#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/table_text.h"

namespace planloom {

namespace {

void suggestRecurrences(const ValueChoices &choices, std::vector<std::string> &texts)
{
    if (choices.recurrences.empty())
        return;
    texts.push_back(print(Rule{UnrollRule{"all"}}));
    for (const std::string &name : choices.recurrences)
        texts.push_back(print(Rule{UnrollRule{name}}));
}

} // namespace

constinit const RuleCells kUnrollCells{
    .word = {.word = "unroll", .shape = RuleTraits<UnrollRule>::shape, .value = "all"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable",
        "open the model with an LSTM, GRU or RNN as the operators of its steps, whose hidden dimension "
        "splits"),
    .suggest = suggestRecurrences,
};

} // namespace planloom
