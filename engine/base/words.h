#pragma once

#include "engine/base/ids.h"
#include "engine/base/units.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace planloom {

// Numbers as every view, message and command writes them. Thread-safe.

/// "0 B", "512 B", "1.50 KiB", "63.2 GiB": with so many significant digits (at least 1), always with their
/// unit; negative sizes keep their sign.
std::string formatBytes(Bytes bytes, int digits = 3);

/// "0 s", "850 ns", "41.2 ms", "1.25 s", "312 s". `seconds` may be negative or not finite ("-").
std::string formatSeconds(double seconds, int digits = 3);

/// As `formatSeconds`.
std::string formatNanoseconds(std::int64_t nanoseconds, int digits = 3);

/// "12", "1,538", "16,956": every digit, grouped by thousands.
std::string formatCount(std::int64_t count);

/// "124 M", "1.56 B", "83.3 k": three significant digits with a decimal prefix (k, M, B, T).
std::string formatQuantity(double quantity);

constexpr std::size_t kFewRuns = 4; ///< For titles and lines of tooltips.
/// "0", "0-3", "0, 2-3, 7": indices in their order, those that follow one another as ranges, which can be
/// typed where places are read; of more than `mostRuns` of them the first ones and "...".
std::string rangesOf(
    const std::vector<std::int32_t> &indices, std::size_t mostRuns = std::numeric_limits<std::size_t>::max());
std::string rangesOf(
    const std::vector<DeviceId> &devices, std::size_t mostRuns = std::numeric_limits<std::size_t>::max());

/// "1 (0-3)": which one of `count` things that are counted from 0, a micro-batch for one. `count` is at
/// least 1.
std::string indexAmong(std::int32_t index, std::int32_t count);

// What sentences say in the same words wherever they stand.

/// "samples", "micro-batches", "processes", "entries": several of what `noun` names, by the rule of English.
std::string pluralOf(const std::string &noun);
/// "1 sample", "8 samples": a number with its noun.
inline std::string counted(std::int64_t count, const std::string &noun)
{
    return std::to_string(count) + " " + (count == 1 ? noun : pluralOf(noun));
}

/// "row 6" for row 5: people count the rows of a table from 1.
inline std::string rowWords(std::int32_t row)
{
    return "row " + std::to_string(row + 1);
}

} // namespace planloom
