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
            {"eager-1f1b", RuleTexts::tr("1f1b, with more forward blocks ahead: sends have time to arrive")},
            {"breadth-first", RuleTexts::tr("all micro-batches through each stage of a rank in turn")},
            {"1f1b-plus", RuleTexts::tr("1f1b, with stages on all devices in between")},
            {"3f1b", RuleTexts::tr("several forward passes and one backward pass in turn")},
            {"hanayo", RuleTexts::tr("waves of stages down the ranks and up again")},
            {"zb-h2", RuleTexts::tr("no idle time, for twice the activations of 1f1b")},
            {"zb-v", RuleTexts::tr("no idle time, with two stages on each rank")},
            {"v-half", RuleTexts::tr("half the activations of 1f1b, with two stages on each rank")},
            {"v-min", RuleTexts::tr("a third of the activations of 1f1b, with two stages on each rank")},
            {"dualpipe", RuleTexts::tr("pipelines in both directions, forward beside backward")},
            {"dualpipev", RuleTexts::tr("dualpipe folded in its middle, with two stages on each rank")},
            {"sequential", RuleTexts::tr("each micro-batch forward and backward before the next")},
            {"solver", RuleTexts::tr("as the search finds best")},
            {"solver among 1f1b, gpipe", RuleTexts::tr("the better of these")}});
}

} // namespace

constinit const RuleCells kScheduleCells{
    .word = {.word = "schedule", .shape = RuleTraits<ScheduleRule>::shape, .value = "1f1b"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the order of a pipeline's blocks"),
    .newEditor = newScheduleEditor,
};

} // namespace planloom
