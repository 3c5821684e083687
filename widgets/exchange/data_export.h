#pragma once

#include "engine/simulate/timeline.h"
#include "engine/table/table_document.h"
#include "widgets/design/plan_update.h"
#include "widgets/scene/timeline_scene.h"

#include <string>

namespace planloom {

// A plan as tables for spreadsheets: CSV (RFC 4180) with a line of headings, numbers in base units with all
// digits. For workers: O(rows written).

/// line, on, row, selects, binds, error. `update` may be null: then the last three are empty.
std::string rowsCsv(const TableDocument &table, const PlanUpdate *update);
/// device, queue, segment, micro_batch, operator, instruction, start_ns, duration_ns.
std::string spansCsv(const TimelineScene &scene);
/// device, time_ns, and bytes by kind.
std::string memoryCsv(const Timeline &timeline);
/// from, to, kind, bytes, count; `to` is empty for collectives.
std::string trafficCsv(const Timeline &timeline);

} // namespace planloom
