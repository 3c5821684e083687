#pragma once

#include "engine/base/result.h"
#include "engine/table/kinds/partition/limit.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace planloom {

/// An amount of memory or time at the start of a text.
struct Quantity {
    std::int64_t value = 0; ///< Bytes or nanoseconds.
    std::size_t length = 0; ///< Bytes of text it takes.
    friend bool operator==(const Quantity &, const Quantity &) = default;
};

/// The most that a limit can be: 1 PiB, or 13 days.
constexpr std::int64_t kMostQuantity = kMostExtent;

/// Reads "40GiB", "1.5 GB" or "50ms": a decimal number of a unit, whole in bytes or nanoseconds. Memory takes
/// B, KiB, MiB, GiB, TiB and KB, MB, GB, TB; time ns, us (also with the letter mu), ms and s.
/// @return InvalidInput saying what was expected with an example; its `where` is empty
Result<Quantity> readQuantity(LimitRule::Kind kind, std::string_view text);

/// The same amount in the unit that gives the smallest whole number: "40GiB", "1500MiB", "50ms".
/// `readQuantity(kind, printQuantity(kind, v))` is v.
std::string printQuantity(LimitRule::Kind kind, std::int64_t value);

} // namespace planloom
