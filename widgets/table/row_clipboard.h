#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What a pasted text holds.
struct PastedRows {
    std::vector<std::string>
        lines{}; ///< To be put into the table: rows, remarks, and lines that could not be read.
    std::int32_t rows = 0; ///< Lines that are rows.
    std::int32_t unreadable = 0; ///< Lines that are kept though they are no rows.
    bool fromSpreadsheet = false;
};

/// Most lines of a paste.
constexpr std::size_t kMostPastedLines = 100'000;
constexpr std::size_t kMostPastedBytes = 32u << 20;

/// Reads rows as text, or the cells of a spreadsheet with tabs between them (with or without a line of
/// headers; the columns may stand in any order if there are headers, else rules are found by their words).
/// What can't be read is kept as a line of its own, so that nothing is lost.
/// @return InvalidInput if not one line is a row: then it was something else, and nothing should change.
/// ResourceLimit for texts beyond `kMostPastedLines`. O(length).
Result<PastedRows> readPastedRows(std::string_view text);

} // namespace planloom
