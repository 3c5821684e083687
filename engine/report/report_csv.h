#pragma once

#include "engine/analyse/communication_lines.h"
#include "engine/analyse/memory_fit.h"

#include <string>
#include <vector>

namespace planloom {

// Tables of reports for spreadsheets: CSV (RFC 4180) with a line of headings, numbers in base units with all
// digits. O(rows written). Thread-safe.

/// kind, queue, link, groups, group_size, members, algorithm, protocol, bytes, count, alone_ns, time_ns,
/// exposed_ns, bus_bandwidth, first_start_ns, passes. `members` are those of every group of a unit; algorithm
/// and protocol are empty where NCCL has no choice.
std::string communicationCsv(const std::vector<CommunicationLine> &lines);

/// rank, peak_bytes, limit_bytes, fits, and bytes by what they are held as.
std::string ranksCsv(const std::vector<RankMemory> &ranks);

} // namespace planloom
