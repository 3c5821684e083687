#pragma once

#include <QtGui/QColor>

#include "engine/base/ids.h"
#include "engine/graph/operator.h"
#include "engine/plan/decided_by.h"

#include <QtCore/QString>

#include <array>
#include <cstdint>

class QPalette;
class QWidget;

namespace planloom {

/// What a window can look like.
enum class Theme : std::uint8_t { Light, Dark, HighContrastLight, HighContrastDark };
constexpr std::array<Theme, 4> kThemes{
    Theme::Light, Theme::Dark, Theme::HighContrastLight, Theme::HighContrastDark};

/// Every colour the canvases draw with; no view has a colour literal of its own.
///
/// Texts reach a contrast of 4.5:1 on the surfaces they are drawn on (7:1 in high contrast), marks 3:1, in
/// all themes (checked by a test).
struct Palette {
    Theme theme = Theme::Light;
    bool dark = false;
    bool highContrast = false;
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
const Palette &paletteOf(Theme theme);
/// The theme of the widget's own window colour, so that views follow what the application is set to.
const Palette &paletteFor(const QWidget &widget);

/// The QPalette that makes Qt's own widgets agree with `palette`.
QPalette applicationPalette(const Palette &palette);

/// Colours of things that are told apart: Okabe and Ito's eight, moved as little as it takes to stand out
/// from the theme's surfaces (3:1) and from one another for protan, deutan and tritan eyes too. From the
/// ninth on they repeat, further from the surface each round, so draw the number beside the colour. Negative:
/// neutral.
QColor categoricalColour(const Palette &palette, int index);
QColor deviceColour(const Palette &palette, DeviceId device);
QColor stageColour(const Palette &palette, StageId stage);
QColor microBatchColour(const Palette &palette, int microBatch);
QColor categoryColour(const Palette &palette, OperatorCategory category);
/// Forward, backward, optimizer: the blue, green and orange of pipeline papers.
QColor directionColour(const Palette &palette, Direction direction);
/// Default: neutral.
QColor decidedByColour(const Palette &palette, DecidedBy decidedBy);
/// Sequential scale from `share` 0 (near the surface, still 3:1) to 1 (strong), monotone in lightness; for
/// times and sizes.
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
QString nameOfDecidedBy(DecidedBy decidedBy); ///< "default", "implied by rows", "held by a row"
/// "Light", "Dark", "High Contrast Light" ...
QString nameOfTheme(Theme theme);

} // namespace planloom
