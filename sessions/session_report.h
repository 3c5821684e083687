#pragma once

#include "engine/report/report.h"

#include <filesystem>
#include <string>

namespace planloom {

/// What a report says of a plan file: simulated on the cluster that it was made for, with its rows.
/// @param cluster  in place of that one; empty: as the plan remembers it
/// @return as `readFile`, `executionPlanFromJson`, `resolve` and `simulate`. Waits for the disk.
Result<ReportedPlan> reportedPlanFile(const std::string &path, const std::string &cluster = {});

/// What a report says of the step that a session stands at; what its rows leave open is decided by the
/// default rule.
/// @param tables  takes the session's history, where it has one
/// @return as `SessionStore::openToLook`, `requestOf` and `planOf`. Waits for the disk.
Result<ReportedPlan> reportedSession(const std::string &path, std::vector<ReportTable> &tables);

/// The report of one file, or of two, each a plan or a session.
/// @param other  empty: there is none
/// @param cluster  in place of the plans' own; sessions keep theirs, which is an error
Result<Report> reportOfFiles(const std::string &path, const std::string &other, const std::string &cluster);

} // namespace planloom
