#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

class RuleForm;

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

/// "at most 4", "at least 2", "one of 2 4 8", or, where it is read, "exactly 4", which is "one of 4"; in JSON
/// the member `at_most`, `at_least` or `one_of`.
void countBound(RuleForm &form, CountBound &bound);
std::string print(const CountBound &bound);

} // namespace planloom
