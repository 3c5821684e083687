#include "widgets/common/palette.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QPalette>
#include <QtWidgets/QWidget>

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom {

namespace {

/// Okabe and Ito, "Color Universal Design" (2008), in an order that keeps neighbours far apart, each moved to
/// where it stands out from the surfaces (light themes: darker, dark themes: lighter) and stays apart from
/// the others in simulated colour blindness. Black, their eighth, cannot be told from text and borders; a
/// slate takes its place.
constexpr std::array<QRgb, 8> kOnLight{
    0xff115e9a, 0xffb17e00, 0xff008352, 0xffc76798, 0xff1c90ce, 0xffab4000, 0xff94893f, 0xff61666d};
constexpr std::array<QRgb, 8> kOnDark{
    0xff0e81d5, 0xffe8a000, 0xff00a275, 0xffdc83b9, 0xff3ab7ee, 0xffd65d01, 0xfff2e643, 0xff767f8a};

Palette makeLight()
{
    Palette p;
    p.theme = Theme::Light;
    p.dark = false;
    p.canvas = QColor(0xf6, 0xf7, 0xf9);
    p.surface = QColor(0xff, 0xff, 0xff);
    p.surfaceRaised = QColor(0xeb, 0xee, 0xf2);
    p.border = QColor(0x8a, 0x95, 0xa3);
    p.grid = QColor(0xdc, 0xe1, 0xe7);
    p.text = QColor(0x1b, 0x22, 0x2c);
    p.textMuted = QColor(0x55, 0x60, 0x6e);
    p.accent = QColor(0x0b, 0x5f, 0xd7);
    p.hover = QColor(0x3d, 0x85, 0xe8);
    p.match = QColor(0xb3, 0x4a, 0x00);
    p.edge = QColor(0x7d, 0x88, 0x96);
    p.edgeStrong = QColor(0x0b, 0x5f, 0xd7);
    p.warning = QColor(0x9a, 0x5b, 0x00);
    p.error = QColor(0xb8, 0x22, 0x22);
    p.success = QColor(0x12, 0x74, 0x4b);
    p.neutral = QColor(0x80, 0x8a, 0x96);
    return p;
}

Palette makeDark()
{
    Palette p;
    p.theme = Theme::Dark;
    p.dark = true;
    p.canvas = QColor(0x16, 0x1a, 0x20);
    p.surface = QColor(0x22, 0x28, 0x31);
    p.surfaceRaised = QColor(0x2c, 0x34, 0x3f);
    p.border = QColor(0x74, 0x80, 0x8f);
    p.grid = QColor(0x2f, 0x37, 0x42);
    p.text = QColor(0xec, 0xf0, 0xf5);
    p.textMuted = QColor(0xa6, 0xb1, 0xbf);
    p.accent = QColor(0x63, 0xa8, 0xff);
    p.hover = QColor(0x8d, 0xbf, 0xff);
    p.match = QColor(0xff, 0xb4, 0x5c);
    p.edge = QColor(0x7f, 0x8b, 0x9a);
    p.edgeStrong = QColor(0x63, 0xa8, 0xff);
    p.warning = QColor(0xf2, 0xb8, 0x4b);
    p.error = QColor(0xff, 0x82, 0x7a);
    p.success = QColor(0x5f, 0xd0, 0x9b);
    p.neutral = QColor(0x76, 0x81, 0x8f);
    return p;
}

Palette makeHighContrast(bool dark)
{
    const QColor ink = dark ? Qt::white : Qt::black;
    Palette p;
    p.theme = dark ? Theme::HighContrastDark : Theme::HighContrastLight;
    p.dark = dark;
    p.highContrast = true;
    p.canvas = dark ? Qt::black : Qt::white;
    p.surface = p.canvas;
    p.surfaceRaised = dark ? QColor(0x12, 0x12, 0x12) : QColor(0xf2, 0xf2, 0xf2);
    p.border = ink;
    p.grid = dark ? QColor(0x8c, 0x8c, 0x8c) : QColor(0x70, 0x70, 0x70);
    p.text = ink;
    p.textMuted = dark ? QColor(0xd8, 0xd8, 0xd8) : QColor(0x2e, 0x2e, 0x2e);
    p.accent = dark ? QColor(0x5c, 0xd0, 0xff) : QColor(0x00, 0x33, 0xa8);
    p.hover = dark ? QColor(0xff, 0xff, 0x70) : QColor(0x6a, 0x00, 0x9a);
    p.match = dark ? QColor(0xff, 0xc2, 0x3d) : QColor(0x7a, 0x2e, 0x00);
    p.edge = dark ? QColor(0xc4, 0xc4, 0xc4) : QColor(0x4a, 0x4a, 0x4a);
    p.edgeStrong = p.accent;
    p.warning = dark ? QColor(0xff, 0xd0, 0x4a) : QColor(0x6b, 0x3c, 0x00);
    p.error = dark ? QColor(0xff, 0x80, 0x78) : QColor(0x96, 0x00, 0x00);
    p.success = dark ? QColor(0x62, 0xf0, 0xa8) : QColor(0x00, 0x54, 0x2e);
    p.neutral = dark ? QColor(0x9a, 0x9a, 0x9a) : QColor(0x66, 0x66, 0x66);
    return p;
}

double linear(double channel)
{
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

/// Relative luminance (WCAG 2.1).
double luminance(const QColor &colour)
{
    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF())
        + 0.0722 * linear(colour.blueF());
}

} // namespace

const Palette &lightPalette()
{
    static const Palette kPalette = makeLight();
    return kPalette;
}

const Palette &darkPalette()
{
    static const Palette kPalette = makeDark();
    return kPalette;
}

const Palette &paletteOf(Theme theme)
{
    static const Palette kHighContrastLight = makeHighContrast(false);
    static const Palette kHighContrastDark = makeHighContrast(true);
    switch (theme) {
    case Theme::Light:
        break;
    case Theme::Dark:
        return darkPalette();
    case Theme::HighContrastLight:
        return kHighContrastLight;
    case Theme::HighContrastDark:
        return kHighContrastDark;
    }
    return lightPalette();
}

const Palette &paletteFor(const QWidget &widget)
{
    const QColor window = widget.palette().color(QPalette::Window);
    for (const Theme theme : kThemes) {
        if (window.rgb() == paletteOf(theme).surfaceRaised.rgb())
            return paletteOf(theme);
    }
    return window.lightnessF() < 0.5 ? darkPalette() : lightPalette();
}

QPalette applicationPalette(const Palette &palette)
{
    QPalette result;
    result.setColor(QPalette::Window, palette.surfaceRaised);
    result.setColor(QPalette::WindowText, palette.text);
    result.setColor(QPalette::Base, palette.surface);
    result.setColor(QPalette::AlternateBase, mixed(palette.surface, palette.surfaceRaised, 0.5));
    result.setColor(QPalette::Text, palette.text);
    result.setColor(QPalette::PlaceholderText, palette.textMuted);
    result.setColor(QPalette::Button, palette.surfaceRaised);
    result.setColor(QPalette::ButtonText, palette.text);
    result.setColor(QPalette::BrightText, palette.error);
    result.setColor(QPalette::ToolTipBase, palette.surface);
    result.setColor(QPalette::ToolTipText, palette.text);
    result.setColor(QPalette::Highlight, palette.accent);
    result.setColor(QPalette::HighlightedText, readableOn(palette.accent));
    result.setColor(QPalette::Link, palette.accent);
    result.setColor(QPalette::LinkVisited, palette.accent);
    result.setColor(QPalette::Light, mixed(palette.surfaceRaised, Qt::white, palette.dark ? 0.1 : 0.6));
    result.setColor(QPalette::Midlight, mixed(palette.surfaceRaised, Qt::white, palette.dark ? 0.05 : 0.3));
    result.setColor(QPalette::Mid, mixed(palette.surfaceRaised, Qt::black, 0.2));
    result.setColor(QPalette::Dark, mixed(palette.surfaceRaised, Qt::black, 0.35));
    result.setColor(QPalette::Shadow, mixed(palette.surfaceRaised, Qt::black, 0.7));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        result.setColor(QPalette::Disabled, role,
            mixed(palette.surfaceRaised, palette.text, palette.highContrast ? 0.65 : 0.45));
    return result;
}

QColor categoricalColour(const Palette &palette, int index)
{
    if (index < 0)
        return palette.neutral;
    const auto &bases = palette.dark ? kOnDark : kOnLight;
    const auto count = static_cast<int>(bases.size());
    const QColor base = QColor::fromRgb(bases[static_cast<std::size_t>(index % count)]);
    // Away from the surface, so that every round stands out from it at least as well as the first.
    static constexpr std::array<double, 5> kShares{0, 0.2, 0.35, 0.48, 0.6};
    const double share = kShares[static_cast<std::size_t>(index / count) % kShares.size()];
    return share == 0 ? base : mixed(base, palette.dark ? QColor(Qt::white) : QColor(Qt::black), share);
}

QColor deviceColour(const Palette &palette, DeviceId device)
{
    return categoricalColour(palette, device.index);
}

QColor stageColour(const Palette &palette, StageId stage)
{
    return categoricalColour(palette, stage.index);
}

QColor microBatchColour(const Palette &palette, int microBatch)
{
    return categoricalColour(palette, microBatch);
}

QColor categoryColour(const Palette &palette, OperatorCategory category)
{
    switch (category) {
    case OperatorCategory::Product:
        return categoricalColour(palette, 0);
    case OperatorCategory::Attention:
        return categoricalColour(palette, 11);
    case OperatorCategory::Normalization:
        return categoricalColour(palette, 2);
    case OperatorCategory::Activation:
        return categoricalColour(palette, 1);
    case OperatorCategory::Elementwise:
        return categoricalColour(palette, 4);
    case OperatorCategory::Reduction:
        return categoricalColour(palette, 3);
    case OperatorCategory::Movement:
        return categoricalColour(palette, 7);
    case OperatorCategory::Loss:
        return categoricalColour(palette, 5);
    case OperatorCategory::Recurrent:
        return categoricalColour(palette, 8);
    case OperatorCategory::Optimizer:
        return categoricalColour(palette, 6);
    case OperatorCategory::Other:
        break;
    }
    return palette.neutral;
}

QColor directionColour(const Palette &palette, Direction direction)
{
    switch (direction) {
    case Direction::Forward:
        return categoricalColour(palette, 0);
    case Direction::Backward:
        return categoricalColour(palette, 2);
    case Direction::Optimizer:
        return categoricalColour(palette, 1);
    }
    return palette.neutral;
}

QColor decidedByColour(const Palette &palette, DecidedBy decidedBy)
{
    return categoricalColour(palette, static_cast<int>(decidedBy) - 1);
}

QColor heatColour(const Palette &palette, double share)
{
    // Five stops of one warm scale, lightness falling (light theme) or rising (dark theme) throughout.
    static constexpr std::array<QRgb, 5> kLight{0xffb58026, 0xffb6621c, 0xffab4419, 0xff84261c, 0xff56101c};
    static constexpr std::array<QRgb, 5> kDark{0xffb5586b, 0xffd5644f, 0xfff08345, 0xfffbb45c, 0xfffdeaa0};
    const auto &stops = palette.dark ? kDark : kLight;
    if (!std::isfinite(share))
        return palette.neutral;
    const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
    return mixed(QColor::fromRgb(stops[low]), QColor::fromRgb(stops[low + 1]), at - static_cast<double>(low));
}

QColor mixed(const QColor &under, const QColor &over, double share)
{
    const auto channel = [share](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * share)); };
    return QColor(channel(under.red(), over.red()), channel(under.green(), over.green()),
        channel(under.blue(), over.blue()));
}

QColor readableOn(const QColor &background)
{
    return contrastRatio(background, Qt::black) >= contrastRatio(background, Qt::white) ? Qt::black
                                                                                        : Qt::white;
}

double contrastRatio(const QColor &a, const QColor &b)
{
    const double first = luminance(a);
    const double second = luminance(b);
    return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

QString nameOfCategory(OperatorCategory category)
{
    const char *context = "OperatorCategory";
    switch (category) {
    case OperatorCategory::Product:
        return QCoreApplication::translate(context, "Product");
    case OperatorCategory::Attention:
        return QCoreApplication::translate(context, "Attention");
    case OperatorCategory::Normalization:
        return QCoreApplication::translate(context, "Normalisation");
    case OperatorCategory::Activation:
        return QCoreApplication::translate(context, "Activation");
    case OperatorCategory::Elementwise:
        return QCoreApplication::translate(context, "Elementwise");
    case OperatorCategory::Reduction:
        return QCoreApplication::translate(context, "Reduction");
    case OperatorCategory::Movement:
        return QCoreApplication::translate(context, "Movement");
    case OperatorCategory::Loss:
        return QCoreApplication::translate(context, "Loss");
    case OperatorCategory::Recurrent:
        return QCoreApplication::translate(context, "Recurrent");
    case OperatorCategory::Optimizer:
        return QCoreApplication::translate(context, "Optimizer");
    case OperatorCategory::Other:
        break;
    }
    return QCoreApplication::translate(context, "Other");
}

QString nameOfDirection(Direction direction)
{
    switch (direction) {
    case Direction::Forward:
        return QCoreApplication::translate("Direction", "Forward");
    case Direction::Backward:
        return QCoreApplication::translate("Direction", "Backward");
    case Direction::Optimizer:
        return QCoreApplication::translate("Direction", "Optimizer");
    }
    return {};
}

QString nameOfDecidedBy(DecidedBy decidedBy)
{
    switch (decidedBy) {
    case DecidedBy::Default:
        return QCoreApplication::translate("DecidedBy", "default");
    case DecidedBy::Implied:
        return QCoreApplication::translate("DecidedBy", "implied by rows");
    case DecidedBy::Row:
        return QCoreApplication::translate("DecidedBy", "held by a row");
    }
    return {};
}

QString nameOfTheme(Theme theme)
{
    switch (theme) {
    case Theme::Light:
        return QCoreApplication::translate("Theme", "Light");
    case Theme::Dark:
        return QCoreApplication::translate("Theme", "Dark");
    case Theme::HighContrastLight:
        return QCoreApplication::translate("Theme", "High Contrast Light");
    case Theme::HighContrastDark:
        return QCoreApplication::translate("Theme", "High Contrast Dark");
    }
    return {};
}

} // namespace planloom
