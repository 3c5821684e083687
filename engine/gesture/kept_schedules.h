#pragma once

#include "engine/gesture/gesture.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

// Schedules that a table keeps for numbers of micro-batches: rows `schedule ... at N micro-batches`.

/// One of them.
struct KeptSchedule {
    std::int32_t line = 0; ///< Of the document.
    ScheduleRule rule{}; ///< Its number of micro-batches is above 0.
    bool enabled = true; ///< Among those of one number, one is on at most.
    std::string note{}; ///< Of its row.
    friend bool operator==(const KeptSchedule &, const KeptSchedule &) = default;
};

/// All of them, by micro-batches, then in the order of the rows. O(lines)
std::vector<KeptSchedule> keptSchedules(const TableDocument &document);

/// The number of micro-batches of a design: what a row gives, else its plan's; 1 without both.
std::int32_t microBatchesOf(const GestureContext &context);

/// Gives the mini-batch this many micro-batches: in the row that does so, or behind the last row. Updates
/// within the step that would not divide them are dropped.
TableEdit withMicroBatches(const TableDocument &document, std::int32_t count);

/// Takes the schedule kept at `line`, and its number of micro-batches: others for that number go off.
/// @return refused if no schedule is kept there
Proposal proposeKeptSchedule(const GestureContext &context, std::int32_t line);

} // namespace planloom
