#pragma once

#include "engine/design/make_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A row behind the decision of an operator, in a line.
struct RowReason {
    RowId row{};
    std::int32_t line = 0; ///< 0-based, in the document.
    /// The row as it reads; where it names its operators at length, "place stage 3 (47 operators) on pp=3".
    std::string words{};
    bool isShortened = false; ///< `RowLine::text` says more.
};

/// The rows that decide an operator, each once: first those that say where it runs, then how it is cut, then
/// its stage, then all else; its number formats last.
/// @param answer  with a plan
/// O(rows of the operator x operators).
std::vector<RowReason> rowReasons(const PlanAnswer &answer, OperatorId op);

} // namespace planloom
