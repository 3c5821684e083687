#pragma once

#include "widgets/dag/dag_painter.h"

#include <QtCore/QRectF>
#include <QtCore/QSizeF>

#include <memory>
#include <mutex>
#include <vector>

namespace planloom {

struct OrderArrow;

/// What of the canvas a picture shows.
enum class DagExtent : std::uint8_t {
    InSight, ///< What the window shows, as large as it shows it.
    Selection, ///< Around what is selected, at zoom 1.
    WholeModel, ///< Everything that is open, at zoom 1.
};

/// What `DagStill` is made of.
struct DagStillParts {
    DagPictureSnapshot picture{}; ///< Null paints nothing but the ground.
    std::shared_ptr<const DagLabels> labels{};
    std::shared_ptr<const OperatorFacts> facts{};
    std::shared_ptr<const std::vector<OrderArrow>> orders{};
    std::shared_ptr<const std::vector<TrafficBadge>> traffic{}; ///< Null leaves communication out.
    ColourBy colourBy = ColourBy::Kind;
    Palette palette{};
    QFont font{};
    DagCamera camera{}; ///< From where: (0, 0, size) of the still.
    QSizeF size{};
    std::vector<std::uint8_t> marks{}; ///< By box; may be empty.
};

/// The canvas at one moment, to be painted elsewhere at any size: whole, or in tiles, so that no picture is
/// too large. Shares what it shows; making one costs next to nothing. Immutable; may be painted by any
/// thread, one at a time each painter.
class DagStill
{
public:
    explicit DagStill(DagStillParts parts)
        : m_parts(std::move(parts))
    {
    }

    /// In device-independent pixels, texts at the size they are read at; empty if there is nothing to show.
    QSizeF size() const { return m_parts.size; }
    bool isEmpty() const { return m_parts.size.isEmpty(); }
    /// All of it, as large as fits into `target`, in its middle.
    void paint(QPainter &painter, const QRectF &target) const;
    /// `tile` of (0, 0, size) alone, its top left corner at (0, 0) of the painter; scale the painter for more
    /// pixels. Tiles side by side are the same picture as one. O(boxes + what is in the tile)
    void paintTile(QPainter &painter, const QRectF &tile) const;

private:
    const DagColours &colours() const;

    DagStillParts m_parts;
    mutable std::once_flag m_coloured;
    mutable DagColours m_colours{};
};

} // namespace planloom
