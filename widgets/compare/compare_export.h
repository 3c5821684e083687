#pragma once

#include "widgets/compare/metric_table.h"

#include <string>
#include <vector>

namespace planloom {

// The table of differences for spreadsheets and scripts. `titles` are those of the plans; seconds and bytes
// are written in full, as numbers.

/// Comma-separated: figure, unit, a value for each plan, and for each but the first its difference and share
/// of the first. Texts with commas or quotation marks are quoted.
std::string metricsAsCsv(const std::vector<PlanMetric> &metrics, const std::vector<std::string> &titles);

/// {"plans": ["A", ...], "figures": [{"name": ..., "unit": ..., "values": [...], "delta": [...], "percent":
/// [...]}]}
std::string metricsAsJson(const std::vector<PlanMetric> &metrics, const std::vector<std::string> &titles);

} // namespace planloom
