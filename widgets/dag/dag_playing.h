#pragma once

#include <QtCore/QPointF>
#include <QtCore/QString>
#include <QtGui/QColor>

#include "widgets/dag/dag_camera.h"
#include "widgets/dag/layout_service.h"

#include <vector>

class QPainter;

namespace planloom {

struct Palette;

/// An operator that computes at the moment that is played.
struct PlayedOperator {
    OperatorId op{};
    QString block{}; ///< In which: "F2".
    QColor colour{};
};

/// Data that moves at that moment from the operator that makes it to the one that uses it.
struct PlayedMove {
    OperatorId from{}; ///< Invalid for what no operator makes, as weights.
    OperatorId to{}; ///< Invalid for what nobody in particular uses.
    double share = 0; ///< How far it is, in [0, 1].
    QColor colour{};
};

/// What a moment of a step looks like on the graph.
struct DagMoment {
    std::vector<PlayedOperator> operators{};
    std::vector<PlayedMove> moves{};
    bool empty() const { return operators.empty() && moves.empty(); }
};

/// The way of data from one box to another along the lines that are drawn, in scene coordinates, from the
/// inside of frames out and in again; a straight line where no line is drawn; empty for one box. O(log paths
/// + paths of the source)
std::vector<QPointF> routeBetween(const DagPicture &picture, std::int32_t from, std::int32_t to);

/// The place at `share` of a route's length.
QPointF pointAlong(const std::vector<QPointF> &route, double share);

/// Lights the boxes of what computes, with the blocks' names above, and lets data move along the lines.
void paintMoment(QPainter &painter, const DagPicture &picture, const DagCamera &camera,
    const Palette &palette, const DagMoment &moment, const QFont &font);

} // namespace planloom
