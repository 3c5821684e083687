#include "widgets/compare/pareto.h"

#include <algorithm>
#include <numeric>

namespace planloom {

std::vector<std::size_t> paretoFront(const std::vector<ParetoPoint> &points)
{
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&points](std::size_t a, std::size_t b) {
        return points[a].x < points[b].x || (points[a].x == points[b].x && points[a].y < points[b].y);
    });
    std::vector<std::size_t> front;
    for (const std::size_t i : order) {
        if (front.empty() || points[i].y < points[front.back()].y)
            front.push_back(i);
    }
    return front;
}

} // namespace planloom
