#pragma once

#include "engine/table/rule_form.h"

#include <cstdint>

namespace planloom {

// The parts of rules that pair a micro-batch of one selection with that of another.

/// "at +1", which text leaves out where it is 0.
inline void microBatchOffset(
    RuleForm &form, std::int32_t &offset, const char *what = "a micro-batch offset as +1")
{
    if (form.has("at", "micro_batch_offset", !form.isText() || offset != 0))
        form.number("micro_batch_offset", offset, {what, -kMostCount, kMostCount, true});
}

/// "at +1 of 3", either of which may be missing: of any rule with the members `microBatchOffset` (0 for none)
/// and `microBatch` (-1 for all).
template<typename RuleType> void microBatchPair(RuleForm &form, RuleType &rule)
{
    microBatchOffset(form, rule.microBatchOffset);
    form.numberAfter("of", "micro_batch", rule.microBatch, {"the number of a micro-batch"});
}

} // namespace planloom
