#pragma once

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QColor>
#include <QtGui/QFont>

#include "engine/analyse/edge_communication.h"
#include "widgets/dag/dag_camera.h"
#include "widgets/dag/layout_service.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

class QPainter;

namespace planloom {

struct Palette;

/// What is communicated on a line between two boxes, or within one: of closed groups all that passes between
/// them, or happens inside.
struct TrafficBadge {
    enum class Place : std::uint8_t {
        Line, ///< Before the box where the line between the two ends, whichever way the data goes.
        Leaving, ///< Behind the box that makes the data, for all who use it.
        Inside, ///< On the border of the box in which it happens.
    };
    Place place = Place::Line;
    std::int32_t from = -1; ///< Box.
    std::int32_t to = -1; ///< Box.
    /// Bytes by kind, the most first; all devices, one step.
    std::vector<std::pair<InstructionKind, std::int64_t>> kinds{};
    std::vector<std::uint32_t> edges{}; ///< Which of the scene's `EdgeCommunication`s, ascending.
    std::int64_t bytes() const;
    std::int64_t count = 0; ///< Sends, or ends of collectives.
    QPointF anchor{}; ///< In scene coordinates: where the badge points to.
};

/// O(edges + paths).
std::vector<TrafficBadge> trafficBadges(
    const DagPicture &picture, const std::vector<EdgeCommunication> &edges);

/// "all-reduce 32 MiB", "all-reduce, send 48 MiB".
QString textOf(const TrafficBadge &badge);
/// One line for each kind, then the whole.
QString tooltipOf(const TrafficBadge &badge);

/// Badges as painted, for clicks: each with its place in widget coordinates.
using PaintedBadges = std::vector<std::pair<QRectF, std::uint32_t>>;

/// Paints those in sight: with kind and bytes from the zooms at which there is room for words, as marks
/// further away; where two would overlap, the later one as a mark.
/// @param lit  one that is outlined; the number of badges for none
PaintedBadges paintTraffic(QPainter &painter, const DagPicture &picture, const DagCamera &camera,
    const Palette &palette, const std::vector<TrafficBadge> &badges, const QFont &font, const QSizeF &canvas,
    std::size_t lit);

} // namespace planloom
