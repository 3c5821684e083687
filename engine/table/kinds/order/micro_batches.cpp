#include "engine/table/kinds/order/micro_batches.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<MicroBatchesRule>::describe(RuleForm &form, MicroBatchesRule &rule)
{
    form.number("count", rule.count, {"a number of micro-batches", 1});
    form.flag("whole", rule.whole);
    if (form.has("update", "update_every", rule.updateEvery > 0)) {
        form.word("every", "every");
        form.number("update_every", rule.updateEvery, {"a number of micro-batches", 1});
    }
}

} // namespace planloom
