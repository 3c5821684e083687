#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

constinit const RuleCells kZero1Cells{
    .word = {.word = "zero1",
        .shape = RuleTraits<OptimizerShardingRule>::shape,
        .needsValue = false,
        .value = "over dp",
        .valueStart = "over|by"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut the optimizer's state over replicas"),
    .suggest = suggestReplicas,
};

} // namespace planloom
