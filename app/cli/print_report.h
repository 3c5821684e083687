#pragma once

#include "engine/base/result.h"

#include <string>

namespace planloom::cli {

/// Has planloom-report, which has Qt, write a report as PDF: the one beside this program, or in
/// ../lib/planloom.
/// @param other  a second plan or session; empty: none
/// @return NotSupported where it is not installed; Io where it cannot be started; CheckFailed where it
/// failed, which it
///   has said on standard error
Result<void> printReport(
    const std::string &out, const std::string &cluster, const std::string &path, const std::string &other);

} // namespace planloom::cli
