#include "widgets/dag/dag_gesture_layer.h"

#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

#include <algorithm>

namespace planloom {

void DagGestureLayer::refreshChips(std::int32_t box)
{
    const auto context = m_gestures.context();
    const OperatorId op = representative(box);
    m_chipBox = -1;
    m_hoveredChip = -1;
    m_chips.clear();
    m_laid = {};
    if (context && op.valid()
        && context->graph().operators.size() == m_view.picture()->outline->graph->operators.size()) {
        m_chipBox = box;
        m_chips = chipsOf(*context, op);
        for (const auto &chip : m_chips)
            m_laid.widths.push_back(chipWidth(chip, m_view.font()));
    }
    m_view.update();
}

/// What chips may not cover: nodes, the titles of frames, badges, and the handle at the node itself.
std::vector<SceneRect> DagGestureLayer::besideChips() const
{
    std::vector<SceneRect> taken;
    const auto picture = m_view.picture();
    for (std::size_t box = 1; picture && box < picture->visible.boxes.size(); ++box) {
        SceneRect rect = nodeRect(static_cast<std::int32_t>(box));
        if (picture->visible.boxes[box].frame) {
            const double scale = rect.width / std::max(1.0, picture->scene.rects[box].width);
            rect.width = std::min(rect.width, DagMetrics::kMostNodeWidth * scale);
            rect.height = DagMetrics::kFrameHeader * scale;
        } else {
            const double away = chipsAway(rect) / 2;
            rect = {rect.x, rect.y - away, rect.width, rect.height + 2 * away};
        }
        if (rect.intersects(
                {0, 0, static_cast<double>(m_view.width()), static_cast<double>(m_view.height())}))
            taken.push_back(rect);
    }
    for (const auto &[rect, badge] : m_view.paintedTraffic())
        taken.push_back({rect.x(), rect.y(), rect.width(), rect.height()});
    const QRectF handle = handleRect(m_chipBox);
    taken.push_back({handle.x(), handle.y(), handle.width(), handle.height()});
    return taken;
}

std::vector<PlacedChip> DagGestureLayer::placedChips() const
{
    if (m_chipBox < 0 || m_chips.empty())
        return {};
    const SceneRect node = nodeRect(m_chipBox);
    if (m_drag == Drag::None || m_laid.chips.empty() || m_laid.node.width != node.width) {
        m_laid.node = node;
        m_laid.chips = placeChips(m_chips, node, m_laid.widths, m_view.width(), m_view.height(),
            GhostMetrics(m_view.font()).chips, besideChips());
        return m_laid.chips;
    }
    std::vector<PlacedChip> placed = m_laid.chips; // what is in a hand stays where it was
    for (PlacedChip &chip : placed) {
        chip.rect.x += node.x - m_laid.node.x;
        chip.rect.y += node.y - m_laid.node.y;
    }
    return placed;
}

QRectF DagGestureLayer::chipRect(std::int32_t chip) const
{
    for (const auto &placed : placedChips()) {
        if (placed.index == chip)
            return {placed.rect.x, placed.rect.y, placed.rect.width, placed.rect.height};
    }
    return {};
}

} // namespace planloom
