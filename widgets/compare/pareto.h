#pragma once

#include <cstddef>
#include <vector>

namespace planloom {

/// A plan's two prices.
struct ParetoPoint {
    double x = 0;
    double y = 0;
    friend bool operator==(const ParetoPoint &, const ParetoPoint &) = default;
};

/// Indices of the points that no other beats: none is as good in both and better in one, where less is
/// better. Ascending in x, and so descending in y; of equal points the first alone. O(n log n)
std::vector<std::size_t> paretoFront(const std::vector<ParetoPoint> &points);

} // namespace planloom
