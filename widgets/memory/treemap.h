#pragma once

#include <QtCore/QRectF>

#include <vector>

namespace planloom {

/// Rectangles for `weights` (each > 0, descending) that fill `area` with surfaces in their proportions, each
/// as near to a square as can be (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000, section 3). O(n).
std::vector<QRectF> treemapOf(const std::vector<double> &weights, const QRectF &area);

} // namespace planloom
