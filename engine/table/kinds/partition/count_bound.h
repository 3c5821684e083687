#pragma once

#include "engine/base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

class TextCursor;

/// What a row allows of a number: "at most 4", "at least 2", "one of 2 4 8".
struct CountBound {
    enum class Kind : std::uint8_t { AtMost, AtLeast, OneOf };
    Kind kind = Kind::AtMost;
    std::vector<std::int32_t> values{1}; ///< One, or of OneOf at least one; ascending and distinct.

    bool allows(std::int64_t value) const;
    friend bool operator==(const CountBound &, const CountBound &) = default;
};

/// Some number from 1 that all of `bounds` allow. O(values of all of them, squared).
bool canAgree(const std::vector<CountBound> &bounds);

/// "exactly 4" is read, too; it is "one of 4".
Result<CountBound> parseCountBound(TextCursor &cursor);
std::string print(const CountBound &bound);
/// The member "at_most", "at_least" or "one_of".
void write(const CountBound &bound, nlohmann::json &json);
/// @param json  may have other members: who reads them refuses what is nobody's
Result<CountBound> countBoundAt(const nlohmann::json &json, const std::string &where);

} // namespace planloom
