#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newRecomputeEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty() && !ruleOf("recompute", value))
        return nullptr;
    return newChoiceEditor(parent,
        {{"", RuleTexts::tr("all selected operators together")},
            {"per layer", RuleTexts::tr("each layer on its own")},
            {"per operator", RuleTexts::tr("each operator on its own")},
            {"never", RuleTexts::tr("never: what they make is kept")},
            {"solver", RuleTexts::tr("as the search finds best")}});
}

} // namespace

constinit const RuleCells kRecomputeCells{
    .word = {.word = "recompute",
        .shape = RuleTraits<RecomputeRule>::shape,
        .needsValue = false,
        .value = "per layer",
        .valueStart = "per|never|solver"},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "drop outputs, compute them again: less memory"),
    .newEditor = newRecomputeEditor,
};

} // namespace planloom
