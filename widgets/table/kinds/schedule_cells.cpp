#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newScheduleEditor(const std::string &, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return newChoiceEditor(parent,
        {{"1f1b", RuleTexts::tr("one forward, one backward: little memory")},
            {"gpipe", RuleTexts::tr("all forward blocks, then all backward ones")},
            {"interleaved", RuleTexts::tr("1f1b over several stages on each rank")},
            {"combined-1f1b", RuleTexts::tr("1f1b, a forward and a backward block side by side")},
            {"zb-h1", RuleTexts::tr("1f1b, with gradients of weights where ranks would wait")},
            {"chimera", RuleTexts::tr("pipelines in both directions, with a copy of the weights each")},
            {"sequential", RuleTexts::tr("each micro-batch forward and backward before the next")}});
}

} // namespace

constinit const RuleCells kScheduleCells{
    .word = {.word = "schedule", .shape = RuleTraits<ScheduleRule>::shape, .value = "1f1b"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the order of a pipeline's blocks"),
    .newEditor = newScheduleEditor,
};

} // namespace planloom
