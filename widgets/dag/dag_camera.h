#pragma once

#include "widgets/dag/dag_scene.h"

#include <algorithm>
#include <cmath>

namespace planloom {

/// From scene to widget: view = scene * scale + (x, y). No painter, no widget.
struct DagCamera {
    static constexpr double kLeastScale = 0.0005;
    static constexpr double kMostScale = 4;

    double scale = 1;
    double x = 0;
    double y = 0;

    double viewX(double sceneX) const { return sceneX * scale + x; }
    double viewY(double sceneY) const { return sceneY * scale + y; }
    double sceneX(double viewX) const { return (viewX - x) / scale; }
    double sceneY(double viewY) const { return (viewY - y) / scale; }

    /// The part of the scene that a widget of this size shows.
    SceneRect visible(double width, double height) const
    {
        return {sceneX(0), sceneY(0), width / scale, height / scale};
    }
    /// Zooms by `factor`; what is under the view point stays there.
    void zoomAt(double viewX, double viewY, double factor)
    {
        const double atX = sceneX(viewX);
        const double atY = sceneY(viewY);
        scale = std::clamp(scale * factor, kLeastScale, kMostScale);
        x = viewX - atX * scale;
        y = viewY - atY * scale;
    }
    /// Shows all of `rect`, centred, with a margin of pixels; never larger than `mostScale`.
    void fit(const SceneRect &rect, double width, double height, double margin, double mostScale)
    {
        const double across = std::max(1.0, width - 2 * margin) / std::max(1.0, rect.width);
        const double along = std::max(1.0, height - 2 * margin) / std::max(1.0, rect.height);
        scale = std::clamp(std::min(across, along), kLeastScale, mostScale);
        centreOn(rect, width, height);
    }
    void centreOn(const SceneRect &rect, double width, double height)
    {
        x = width / 2 - (rect.x + rect.width / 2) * scale;
        y = height / 2 - (rect.y + rect.height / 2) * scale;
    }
    /// Moves as little as needed so that `rect` shows with a margin of pixels, if it fits.
    void reveal(const SceneRect &rect, double width, double height, double margin)
    {
        const auto shift = [margin](double from, double to, double size) {
            if (to - from > size - 2 * margin)
                return size / 2 - (from + to) / 2;
            if (from < margin)
                return margin - from;
            return to > size - margin ? size - margin - to : 0.0;
        };
        x += shift(viewX(rect.x), viewX(rect.right()), width);
        y += shift(viewY(rect.y), viewY(rect.bottom()), height);
    }
    friend bool operator==(const DagCamera &, const DagCamera &) = default;
};

} // namespace planloom
