#include "widgets/memory/treemap.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace planloom {

namespace {

/// The longest of length over width and width over length in a row of surfaces that sum to `sum` along
/// `side`.
double worstRatio(double largest, double smallest, double sum, double side)
{
    const double square = side * side;
    return std::max(square * largest / (sum * sum), sum * sum / (square * smallest));
}

} // namespace

std::vector<QRectF> treemapOf(const std::vector<double> &weights, const QRectF &area)
{
    std::vector<QRectF> result;
    result.reserve(weights.size());
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!(total > 0) || area.width() <= 0 || area.height() <= 0) {
        result.assign(weights.size(), QRectF(area.topLeft(), QSizeF(0, 0)));
        return result;
    }
    const double perWeight = area.width() * area.height() / total;
    QRectF rest = area;
    std::size_t begin = 0;
    while (begin < weights.size()) {
        const double side = std::max(std::min(rest.width(), rest.height()), 1e-9);
        double sum = 0;
        double ratio = std::numeric_limits<double>::infinity();
        std::size_t end = begin;
        while (end < weights.size()) {
            const double surface = weights[end] * perWeight;
            const double next = worstRatio(weights[begin] * perWeight, surface, sum + surface, side);
            if (next > ratio)
                break;
            ratio = next;
            sum += surface;
            ++end;
        }
        const bool across =
            rest.width() >= rest.height(); // the row stands at the left, its members below one another
        const double thickness = end == weights.size() ? (across ? rest.width() : rest.height()) : sum / side;
        double at = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const double length = sum > 0 ? weights[i] * perWeight / sum * side : 0;
            result.push_back(across ? QRectF(rest.left(), rest.top() + at, thickness, length)
                                    : QRectF(rest.left() + at, rest.top(), length, thickness));
            at += length;
        }
        across ? rest.setLeft(rest.left() + thickness) : rest.setTop(rest.top() + thickness);
        begin = end;
    }
    return result;
}

} // namespace planloom
