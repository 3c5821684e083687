#pragma once

#include <cstddef>
#include <cstdint>

namespace planloom {

/// How what is decided about an operator differs between two plans.
enum class OperatorChange : std::uint8_t { Same, Split, Placed, Ordered, Computed, Both };
constexpr std::size_t kOperatorChangeCount = 6;

} // namespace planloom
