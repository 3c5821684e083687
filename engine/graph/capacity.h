#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace planloom {

/// How much room there is in every sample for what data choose (engine/graph/operators/places.h): the tokens
/// that go to one expert, say. "1.25x" is 1.25 times what is to be expected, "128" so many, "all" as many as
/// there can be.
struct Capacity {
    enum class Kind : std::uint8_t { Expected, Rows, All };
    Kind kind = Kind::Expected;
    double factor = 1; ///< Expected: in (0, 1e6].
    std::int64_t rows = 0; ///< Rows: at least 1.
    friend bool operator==(const Capacity &, const Capacity &) = default;
};

/// The text that `capacityNamed` reads.
std::string toString(const Capacity &capacity);
/// @return InvalidInput, `where` "--capacity"
Result<Capacity> capacityNamed(std::string_view text);

/// Capacities by the name of the operator that finds the places; "*" is that of all others.
using Capacities = std::map<std::string, Capacity, std::less<>>;

/// That of operator `name`; `usual` where nobody said one.
Capacity capacityOf(const Capacities &capacities, std::string_view name, const Capacity &usual = {});

/// Places in one sample.
///
/// Of the expected load, rounded up, there are at least 64: a matrix unit takes as long for fewer rows.
/// @param expected  how many elements data are to be expected to choose
/// @param most  how many there are
std::int64_t roomOf(const Capacity &capacity, double expected, std::int64_t most);

} // namespace planloom
