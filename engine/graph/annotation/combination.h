#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace planloom {

/// How the parts of a value that operators make along a Reduce identifier make up the value.
///
/// All of them are associative and commutative, so parts may be combined in any order and in any groups. A
/// part that has nothing to add is 0, or minus infinity for Max and LogSumExp.
enum class Combination : std::uint8_t {
    Sum,
    Max, ///< The largest.
    LogSumExp, ///< log(exp(a) + exp(b) + ...): of logarithms of sums that of their sum.
    /// Means under a softmax, each over some of its elements: a sum once each part is multiplied by exp(l -
    /// L). l is the part's log-sum-exp and L that of all: the operator's output that is combined by
    /// LogSumExp, with whose dimensions this one's begin.
    Weighted,
};

constexpr int kCombinationCount = 4;

/// How parts are combined once they are weighed, where they have to be.
inline Combination onceWeighed(Combination combination)
{
    return combination == Combination::Weighted ? Combination::Sum : combination;
}

const char *nameOf(Combination combination); ///< "log-sum-exp"
std::optional<Combination> combinationNamed(std::string_view name); ///< Inverse of nameOf.

} // namespace planloom
