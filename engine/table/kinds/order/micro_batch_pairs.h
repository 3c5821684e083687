#pragma once

#include "engine/table/kinds/rule_traits.h"
#include "engine/table/text_cursor.h"

#include <cstdint>
#include <string>

namespace planloom {

// The text of rules that pair a micro-batch of one selection with that of another, `at +1 of 3`: of any
// rule with the members `microBatchOffset` (0 for none) and `microBatch` (-1 for all).

/// Reads "at +1" and "of 3", either of which may be missing.
template<typename RuleType> Result<void> parseMicroBatches(TextCursor &cursor, RuleType &rule)
{
    if (cursor.takeWord("at")) {
        TRY(const auto offset, cursor.integer("a micro-batch offset as +1", -kMostCount, kMostCount));
        rule.microBatchOffset = static_cast<std::int32_t>(offset);
    }
    if (cursor.takeWord("of")) {
        TRY(const auto microBatch, cursor.integer("the number of a micro-batch", 0, kMostCount));
        rule.microBatch = static_cast<std::int32_t>(microBatch);
    }
    return {};
}

/// " at +1 of 3", or what is said of it.
template<typename RuleType> std::string printMicroBatches(const RuleType &rule)
{
    std::string text;
    if (rule.microBatchOffset != 0)
        text += std::string(" at ") + (rule.microBatchOffset > 0 ? "+" : "")
            + std::to_string(rule.microBatchOffset);
    if (rule.microBatch >= 0)
        text += " of " + std::to_string(rule.microBatch);
    return text;
}

} // namespace planloom
