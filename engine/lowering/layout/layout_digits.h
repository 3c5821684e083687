#pragma once

#include "engine/lowering/layout/layout.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace planloom {

/// Digits of a group's numbering, outermost first.
using Digits = std::vector<std::int8_t>;

/// How many numbers `digits` spell.
inline std::int64_t partsOf(const Digits &digits, const std::vector<std::int32_t> &radices)
{
    std::int64_t parts = 1;
    for (const std::int8_t digit : digits)
        parts *= radices[static_cast<std::size_t>(digit)];
    return parts;
}

/// `digit` numbers parts of some dimension.
inline bool cuts(const Layout &layout, std::int8_t digit)
{
    return std::any_of(
        layout.dimensionDigits.begin(), layout.dimensionDigits.end(), [digit](const Digits &digits) {
            return std::find(digits.begin(), digits.end(), digit) != digits.end();
        });
}

} // namespace planloom
