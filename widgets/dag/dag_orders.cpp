#include "widgets/dag/dag_orders.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

QPointF borderOf(const QRectF &rect, QPointF towards)
{
    const QPointF off = towards - rect.center();
    const double scale = std::min(rect.width() / 2 / std::max(1e-6, std::abs(off.x())),
        rect.height() / 2 / std::max(1e-6, std::abs(off.y())));
    return rect.center() + off * std::min(1.0, scale);
}

} // namespace

QLineF orderLine(const QRectF &from, const QRectF &to)
{
    return {borderOf(from, to.center()), borderOf(to, from.center())};
}

OrderGrip gripAt(const std::vector<OrderArrow> &arrows, const std::function<QRectF(std::int32_t)> &rectOf,
    QPointF place, double reach, std::int32_t preferred)
{
    OrderGrip nearest;
    double best = reach;
    for (std::size_t i = 0; i < arrows.size(); ++i) {
        const QLineF line = orderLine(rectOf(arrows[i].from), rectOf(arrows[i].to));
        if (line.length() < 1)
            continue;
        for (const OrderEnd end : {OrderEnd::First, OrderEnd::Second}) {
            double distance = QLineF(place, end == OrderEnd::First ? line.p1() : line.p2()).length();
            if (static_cast<std::int32_t>(i) == preferred && distance <= reach)
                distance = std::min(distance, 0.001);
            if (distance < best) {
                best = distance;
                nearest = {static_cast<std::int32_t>(i), end};
            }
        }
    }
    return nearest;
}

} // namespace planloom
