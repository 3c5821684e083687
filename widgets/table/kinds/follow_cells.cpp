#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

constinit const RuleCells kFollowCells{
    .word = {.word = "follow", .shape = RuleTraits<FollowRule>::shape, .needsValue = false, .value = ""},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "cut them as their producer is: nothing is sent (op-trans)"),
};

} // namespace planloom
