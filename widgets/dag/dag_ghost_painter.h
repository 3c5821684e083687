#pragma once

#include <QtGui/QFont>
#include <QtGui/QPainter>

#include "widgets/common/palette.h"
#include "widgets/dag/dag_chips.h"
#include "widgets/dag/device_shelf.h"

#include <vector>

namespace planloom {

// Painting of what gestures show over the canvas. Holds no logic: where things are was decided before. All in
// pixels.

/// Sizes that follow the font.
struct GhostMetrics {
    explicit GhostMetrics(const QFont &font);
    ChipMetrics chips{};
    double lockWidth = 0;
    double cellWidth = 0; ///< Of a slice's ghost.
    double cellHeight = 0;
    double tileWidth = 0;
    double shelfHeight = 0;
};
/// Width of a chip's text with its lock.
double chipWidth(const DimensionChip &chip, const QFont &font);

struct ChipsPaint {
    const std::vector<DimensionChip> &chips;
    const std::vector<PlacedChip> &placed;
    SceneRect node{}; ///< Theirs: lines lead there.
    std::int32_t lit = -1; ///< Under the pointer, or pulled.
};
void paintChips(QPainter &painter, const ChipsPaint &chips, const QFont &font, const Palette &palette);

/// The arrow at a node's side that an order is pulled from.
void paintHandle(QPainter &painter, const QRectF &place, bool lit, const Palette &palette);

/// Translucent slices with their texts.
void paintSlices(QPainter &painter, const std::vector<SceneRect> &cells, const std::vector<QString> &texts,
    bool refused, const QFont &font, const Palette &palette);

struct ShelfPaint {
    const std::vector<ShelfTile> &tiles;
    const std::vector<std::int32_t> &counts; ///< Operators on each; may be empty.
    const std::vector<ShelfLoad> &loads; ///< By tile.
    const ShelfLayout &layout;
    std::int32_t lit = -1;
    bool refused = false;
};
void paintShelf(QPainter &painter, const ShelfPaint &shelf, const QFont &font, const Palette &palette);

/// A dashed arrow, red if refused.
void paintOrderGhost(QPainter &painter, QPointF from, QPointF to, bool refused, const Palette &palette);
/// A thin arrow between two boxes' borders: an order that rows ask for.
void paintOrderArrow(QPainter &painter, const QRectF &from, const QRectF &to, const Palette &palette);

/// What a tag says of its proposal, apart from its words.
enum class TagMark : std::uint8_t { None, Legal, Yielding, Refused };
/// Lays the text out in lines so that it fits the window, paints it, and says where it stands.
QRectF paintTag(QPainter &painter, const QString &text, TagMark mark, QPointF pointer, QSizeF window,
    const QFont &font, const Palette &palette);

} // namespace planloom
