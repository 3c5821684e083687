#include "widgets/timeline/timeline_lane_cache.h"

#include <QtGui/QPainter>

#include <cmath>

namespace planloom {

namespace {

bool isSame(const std::weak_ptr<const void> &a, const std::weak_ptr<const void> &b)
{
    return !a.owner_before(b) && !b.owner_before(a);
}

} // namespace

bool operator==(const TimelineLanesKey &a, const TimelineLanesKey &b)
{
    return isSame(a.scene, b.scene) && isSame(a.outlines, b.outlines) && isSame(a.would, b.would)
        && a.rows == b.rows && a.selected == b.selected && a.taken == b.taken && a.axis == b.axis
        && a.size == b.size && a.scroll == b.scroll && a.phases == b.phases && a.font == b.font
        && a.colouring == b.colouring && a.focus == b.focus && a.focused == b.focused && a.stale == b.stale
        && a.ghost == b.ghost && a.palette == b.palette && a.ratio == b.ratio;
}

void TimelineLaneCache::paint(
    QPainter &painter, const TimelineLanesKey &key, const std::function<void(QPainter &)> &paint)
{
    if (!m_key || !(*m_key == key)) {
        m_key = key;
        m_picture = {};
        paint(painter);
        return;
    }
    if (m_picture.isNull()) {
        m_picture = QPixmap(static_cast<int>(std::ceil(key.size.width() * key.ratio)),
            static_cast<int>(std::ceil(key.size.height() * key.ratio)));
        m_picture.setDevicePixelRatio(key.ratio);
        m_picture.fill(key.palette->canvas); // opaque: copied without blending
        QPainter inner(&m_picture);
        inner.setFont(painter.font());
        paint(inner);
    }
    painter.drawPixmap(0, 0, m_picture);
}

} // namespace planloom
