#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Tables for spreadsheets: CSV (RFC 4180), lines end with CR LF. Thread-safe.

/// One cell, quoted where it must be.
std::string csvCell(std::string_view text);

/// One line of cells, with its end.
std::string csvLine(const std::vector<std::string> &cells);

} // namespace planloom
