#pragma once

#include <QtGui/QColor>

#include "engine/base/ids.h"
#include "engine/graph/operator.h"

#include <QtCore/QString>

class QPalette;
class QWidget;

namespace planloom {

/// Every colour the canvases draw with; no view has a colour literal of its own.
///
/// Texts reach a contrast of 4.5:1 on the surfaces they are drawn on, marks 3:1 (checked by a test).
struct Palette {
    bool dark = false;
    QColor canvas; ///< Behind everything.
    QColor surface; ///< Bodies of nodes, lane headers, tooltips.
    QColor surfaceRaised; ///< Headers of groups, stacks, tool strips.
    QColor border; ///< Outlines of surfaces.
    QColor grid; ///< Hairlines and separators.
    QColor text;
    QColor textMuted; ///< Secondary words: kinds, shapes, units.
    QColor accent; ///< Selection and focus.
    QColor hover;
    QColor match; ///< Find hits.
    QColor edge; ///< Data flow.
    QColor edgeStrong; ///< Data flow of what is selected.
    QColor warning;
    QColor error;
    QColor success;
    QColor neutral; ///< Fill of what has no value in the current colouring.
};

const Palette &lightPalette();
const Palette &darkPalette();
/// Light or dark after the widget's own window colour, so that views follow the desktop's theme.
const Palette &paletteFor(const QWidget &widget);

/// The QPalette that makes Qt's own widgets agree with `palette`.
QPalette applicationPalette(const Palette &palette);

/// Colours of things that are told apart, made from Okabe and Ito's eight (safe for colour-blind eyes); from
/// the ninth on they repeat, lighter and darker by turns, so draw the number beside the colour. Negative:
/// neutral.
QColor categoricalColour(const Palette &palette, int index);
QColor deviceColour(const Palette &palette, DeviceId device);
QColor stageColour(const Palette &palette, StageId stage);
QColor microBatchColour(const Palette &palette, int microBatch);
QColor categoryColour(const Palette &palette, OperatorCategory category);
/// Forward, backward, optimizer: the blue, green and orange of pipeline papers.
QColor directionColour(const Palette &palette, Direction direction);
/// Sequential scale from `share` 0 (pale) to 1 (strong), monotone in lightness; for times and sizes.
QColor heatColour(const Palette &palette, double share);

/// `share` of `over` on `under`, opaque.
QColor mixed(const QColor &under, const QColor &over, double share);
/// Black or white, whichever reads better on `background`.
QColor readableOn(const QColor &background);
/// WCAG contrast ratio, 1 to 21.
double contrastRatio(const QColor &a, const QColor &b);

/// Words for legends: "Product", "Normalisation" ...
QString nameOfCategory(OperatorCategory category);
QString nameOfDirection(Direction direction);

} // namespace planloom
