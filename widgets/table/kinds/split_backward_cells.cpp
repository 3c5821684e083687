#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

constinit const RuleCells kSplitBackwardCells{
    .word = {.word = "split-backward",
        .shape = RuleTraits<SplitBackwardRule>::shape,
        .needsValue = false,
        .value = ""},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "gradients of weights in a pass of their own: nobody waits for them"),
};

} // namespace planloom
