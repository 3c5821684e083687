#pragma once

#include <QtCore/QLineF>
#include <QtCore/QRectF>

#include "widgets/dag/dag_decor.h"

#include "engine/gesture/gesture.h"

#include <functional>
#include <vector>

namespace planloom {

// The arrows of order rows on the canvas: where they run, and which end the pointer is at. In pixels of the
// canvas.

/// From border to border of two boxes along the line between their middles; of no length where the middles
/// are one.
QLineF orderLine(const QRectF &from, const QRectF &to);

/// An end of an arrow.
struct OrderGrip {
    std::int32_t arrow = -1; ///< Index into the arrows; -1 for none.
    OrderEnd end = OrderEnd::Second;
    friend bool operator==(const OrderGrip &, const OrderGrip &) = default;
};
/// The end nearest to a place and within `reach` of it. Where arrows share an end the first one, or
/// `preferred`, has it.
/// @param rectOf  where a box is
OrderGrip gripAt(const std::vector<OrderArrow> &arrows, const std::function<QRectF(std::int32_t)> &rectOf,
    QPointF place, double reach, std::int32_t preferred = -1);

} // namespace planloom
