#pragma once

#include <QtGui/QFont>
#include <QtGui/QPainter>

#include "widgets/common/palette.h"
#include "widgets/dag/dag_camera.h"
#include "widgets/dag/dag_colours.h"
#include "widgets/dag/dag_text.h"
#include "widgets/dag/layout_service.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Marks of boxes, combined as bits.
enum BoxMark : std::uint8_t {
    kMarkSelected = 1, ///< All its operators are selected.
    kMarkPartly = 2, ///< Some are.
    kMarkMatch = 4, ///< Found, or something inside is.
    kMarkCurrent = 8, ///< The match that find stands at.
    kMarkDimmed = 16, ///< Not of what the legend's filter shows.
    kMarkConflict = 32, ///< Rows about it cannot hold together, or about something inside.
};

/// Everything a frame of the canvas is painted from. References must outlive the call.
struct DagPaint {
    const DagPicture &picture;
    const DagLabels &labels;
    const DagColours &colours;
    const Palette &palette;
    DagCamera camera{};
    double width = 0; ///< Of the canvas, in device-independent pixels.
    double height = 0;
    QFont font{};
    const std::vector<std::uint8_t> &marks; ///< By box; may be empty.
    std::int32_t hovered = -1; ///< Box, or -1.
    std::int32_t focused = -1; ///< Box with the keyboard focus, or -1.
    bool hasFocus = false; ///< The canvas itself has it.
    const DagScene *scene =
        nullptr; ///< Takes the place of the picture's own, on the way from one layout to the next.
    QRectF part{}; ///< Of the canvas: only what meets it need be painted; null paints all. Places do not
                   ///< depend on it.
};

/// Places on frames and nodes that can be clicked, in scene coordinates; empty where a box has none.
SceneRect toggleRect(const DagPicture &picture, std::int32_t box); ///< Opens or closes.
SceneRect copiesRect(
    const DagPicture &picture, std::int32_t box); ///< Shows one copy or all of an open stack.

/// Paints the canvas, level of detail by zoom: blocks when far, names from the middle zooms, everything near
/// by. Does nothing else: no layout, no measuring of texts.
void paintDag(QPainter &painter, const DagPaint &paint);

/// Paints the whole picture small, as blocks, for the overview.
void paintOverview(QPainter &painter, const DagPicture &picture, const DagColours &colours,
    const Palette &palette, const DagCamera &camera);

} // namespace planloom
