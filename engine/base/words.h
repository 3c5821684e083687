#pragma once

#include <cstdint>
#include <string>

namespace planloom {

// What sentences say in the same words wherever they stand.

/// "1 sample", "8 samples": a number with its noun, which takes an s where there are several.
inline std::string counted(std::int64_t count, const std::string &noun)
{
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// "row 6" for row 5: people count the rows of a table from 1.
inline std::string rowWords(std::int32_t row)
{
    return "row " + std::to_string(row + 1);
}

/// An error's place as people read it: "row 6" for "row:5/rule", all others as they are.
inline std::string placeWords(const std::string &where)
{
    constexpr std::size_t kPrefix = 4; // "row:"
    constexpr std::size_t kMostDigits = 8;
    if (where.rfind("row:", 0) != 0)
        return where;
    std::size_t end = kPrefix;
    std::int32_t row = 0;
    for (; end < where.size() && end < kPrefix + kMostDigits && where[end] >= '0' && where[end] <= '9'; ++end)
        row = row * 10 + (where[end] - '0');
    return end > kPrefix && (end == where.size() || where[end] == '/') ? rowWords(row) : where;
}

} // namespace planloom
