#pragma once

#include "engine/traces/trace_analysis.h"
#include "engine/traces/trace_difference.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

// What `trace` says, for people in at most 40 lines, and whole for scripts.

nlohmann::json traceToJson(const Trace &trace, const TraceAnalysis &analysis);
/// @param isBrief  something else follows: ranks alone
void printTrace(const Trace &trace, const TraceAnalysis &analysis, bool isBrief);
/// Ranks, times and collectives as rows of a CSV file.
std::string traceCsv(const Trace &trace, const TraceAnalysis &analysis);

nlohmann::json differenceToJson(const TraceDifference &difference);
void printDifference(const TraceDifference &difference);

/// What could not be read, the most frequent first; no more than a few lines, all to standard error.
void printRemarks(const Trace &trace);

} // namespace planloom::cli
