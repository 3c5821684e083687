#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newScheduleEditor(const std::string &, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return newChoiceEditor(parent,
        {{"1f1b", RuleTexts::tr("one forward, one backward: little memory")},
            {"gpipe", RuleTexts::tr("all forward blocks, then all backward ones")},
            {"interleaved", RuleTexts::tr("1f1b over several stages on each rank")},
            {"sequential", RuleTexts::tr("each micro-batch forward and backward before the next")}});
}

} // namespace

constinit const RuleCells kScheduleCells{
    .word = {.word = "schedule", .shape = RuleTraits<ScheduleRule>::shape, .value = "1f1b"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the order of a pipeline's blocks"),
    .newEditor = newScheduleEditor,
};

} // namespace planloom
