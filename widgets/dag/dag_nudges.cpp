#include "widgets/dag/dag_nudges.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Offset = std::pair<double, double>;

/// The child of `frame` that `box` is or lies in; -1 if it lies elsewhere.
std::int32_t childOf(const VisibleGraph &visible, std::int32_t frame, std::int32_t box)
{
    while (box > 0 && visible.at(box).parent != frame)
        box = visible.at(box).parent;
    return box > 0 ? box : -1;
}

void grow(SceneRect &rect, const SceneRect &inner, double margin)
{
    const double right = std::max(rect.right(), inner.right() + margin);
    const double bottom = std::max(rect.bottom(), inner.bottom() + margin);
    rect.x = std::min(rect.x, inner.x - margin);
    rect.y = std::min(rect.y, inner.y - margin);
    rect.width = right - rect.x;
    rect.height = bottom - rect.y;
}

void refreshBounds(DagScene &scene, ScenePath &path)
{
    double minX = scene.points[path.begin].x;
    double maxX = minX;
    double minY = scene.points[path.begin].y;
    double maxY = minY;
    for (std::uint32_t i = path.begin; i < path.end; ++i) {
        minX = std::min(minX, scene.points[i].x);
        maxX = std::max(maxX, scene.points[i].x);
        minY = std::min(minY, scene.points[i].y);
        maxY = std::max(maxY, scene.points[i].y);
    }
    path.bounds = {minX - 1, minY - 1, maxX - minX + 2, maxY - minY + 2};
}

} // namespace

void nudge(DagScene &scene, const VisibleGraph &visible, const DagState &state)
{
    if (state.nudges.empty())
        return;
    // How far each box goes: its own way and that of the frames around it. Parents come before children.
    std::vector<Offset> offsets(visible.boxes.size());
    bool any = false;
    for (std::size_t box = 1; box < visible.boxes.size(); ++box) {
        offsets[box] = offsets[at(visible.boxes[box].parent)];
        const auto found = state.nudges.find(visible.boxes[box].item);
        if (found == state.nudges.end())
            continue;
        offsets[box].first += found->second.first;
        offsets[box].second += found->second.second;
        any = true;
    }
    if (!any)
        return;
    for (std::size_t box = 1; box < visible.boxes.size(); ++box) {
        scene.rects[box].x += offsets[box].first;
        scene.rects[box].y += offsets[box].second;
    }
    for (auto &path : scene.paths) {
        // Between two children the points are drawn along; ends at the frame's own border stay with the
        // frame.
        const Offset frame = offsets[at(path.frame)];
        const std::int32_t source = childOf(visible, path.frame, path.source);
        const Offset from = source > 0 ? offsets[at(source)] : frame;
        const Offset to = path.target > 0 ? offsets[at(path.target)] : frame;
        const std::uint32_t last = path.end - path.begin - 1;
        for (std::uint32_t i = 0; i <= last; ++i) {
            const double share = last == 0 ? 0 : static_cast<double>(i) / last;
            auto &point = scene.points[path.begin + i];
            point.x += from.first + (to.first - from.first) * share;
            point.y += from.second + (to.second - from.second) * share;
        }
        refreshBounds(scene, path);
    }
    for (auto &stub : scene.stubs) {
        stub.x += offsets[at(stub.box)].first;
        stub.y += offsets[at(stub.box)].second;
    }
    for (std::size_t box = visible.boxes.size(); box-- > 1;)
        grow(scene.rects[at(visible.boxes[box].parent)], scene.rects[box],
            visible.boxes[box].parent == 0 ? 0 : 4);
    scene.bounds = scene.rects.front();
}

} // namespace planloom
