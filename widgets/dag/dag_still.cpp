#include "widgets/dag/dag_still.h"

#include "widgets/dag/dag_decor.h"
#include "widgets/dag/dag_ghost_painter.h"

#include <algorithm>

namespace planloom {

const DagColours &DagStill::colours() const
{
    std::call_once(m_coloured, [this] {
        m_colours = coloursOf(*m_parts.picture->outline, m_parts.picture->visible, *m_parts.facts,
            m_parts.colourBy, m_parts.palette);
    });
    return m_colours;
}

void DagStill::paint(QPainter &painter, const QRectF &target) const
{
    painter.save();
    painter.setClipRect(target, Qt::IntersectClip);
    painter.fillRect(target, m_parts.palette.canvas);
    if (m_parts.picture && !isEmpty()) {
        const double share = std::min(target.width() / size().width(), target.height() / size().height());
        painter.translate(target.center() - QPointF(size().width(), size().height()) * share / 2);
        painter.scale(share, share);
        paintTile(painter, QRectF(QPointF(), size()));
    }
    painter.restore();
}

void DagStill::paintTile(QPainter &painter, const QRectF &tile) const
{
    painter.save();
    painter.setClipRect(QRectF(QPointF(), tile.size()), Qt::IntersectClip);
    painter.translate(-tile.topLeft());
    painter.fillRect(tile, m_parts.palette.canvas);
    if (m_parts.picture && m_parts.labels) {
        const DagPaint paint{.picture = *m_parts.picture,
            .labels = *m_parts.labels,
            .colours = colours(),
            .palette = m_parts.palette,
            .camera = m_parts.camera,
            .width = size().width(),
            .height = size().height(),
            .font = m_parts.font,
            .marks = m_parts.marks,
            .part = tile};
        paintDag(painter, paint);
        const auto mapped = [this](std::int32_t box) {
            const auto &rect = m_parts.picture->scene.rects[static_cast<std::size_t>(box)];
            const auto &camera = m_parts.camera;
            return QRectF(camera.viewX(rect.x), camera.viewY(rect.y), rect.width * camera.scale,
                rect.height * camera.scale);
        };
        for (const auto &order : m_parts.orders ? *m_parts.orders : std::vector<OrderArrow>{})
            paintOrderArrow(painter, mapped(order.from), mapped(order.to), m_parts.palette);
        if (m_parts.traffic)
            paintTraffic(painter, *m_parts.picture, m_parts.camera, m_parts.palette, *m_parts.traffic,
                m_parts.font, size(), m_parts.traffic->size());
    }
    painter.restore();
}

} // namespace planloom
