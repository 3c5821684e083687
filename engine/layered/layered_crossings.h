#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// Pairs whose order differs in the two coordinates; equal ones do not count. Sorts `ends`. O(ends log)
std::int64_t inversions(std::vector<std::pair<double, double>> &ends);

} // namespace planloom
