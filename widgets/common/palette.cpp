#include "widgets/common/palette.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QPalette>
#include <QtWidgets/QWidget>

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom {

namespace {

/// Okabe and Ito, "Color Universal Design" (2008), in an order that keeps neighbours far apart. Black, their
/// eighth, cannot be told from text and borders; a slate takes its place.
constexpr std::array<QRgb, 8> kOkabeIto {
    0xff0072b2, 0xffe69f00, 0xff009e73, 0xffcc79a7, 0xff56b4e9, 0xffd55e00, 0xfff0e442, 0xff7a8794};

Palette makeLight()
{
    Palette p;
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
    p.neutral = QColor(0xa9, 0xb2, 0xbd);
    return p;
}

Palette makeDark()
{
    Palette p;
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
    p.neutral = QColor(0x5a, 0x65, 0x73);
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

const Palette &paletteFor(const QWidget &widget)
{
    return widget.palette().color(QPalette::Window).lightnessF() < 0.5 ? darkPalette() : lightPalette();
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
        result.setColor(QPalette::Disabled, role, mixed(palette.surfaceRaised, palette.text, 0.45));
    return result;
}

QColor categoricalColour(const Palette &palette, int index)
{
    if (index < 0)
        return palette.neutral;
    const auto count = static_cast<int>(kOkabeIto.size());
    const QColor base = QColor::fromRgb(kOkabeIto[static_cast<std::size_t>(index % count)]);
    const int round = index / count % 5;
    if (round == 0)
        return base;
    const double share = 0.2 + 0.14 * ((round - 1) / 2);
    return mixed(base, round % 2 == 1 ? QColor(Qt::black) : QColor(Qt::white), share);
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

QColor heatColour(const Palette &palette, double share)
{
    // Five stops of one warm scale, lightness falling (light theme) or rising (dark theme) throughout.
    static constexpr std::array<QRgb, 5> kLight {0xfffdf0d5, 0xfff9cf8f, 0xfff09a55, 0xffcf5a35, 0xff8f2222};
    static constexpr std::array<QRgb, 5> kDark {0xff3a2a3f, 0xff7a3550, 0xffc24f4a, 0xfff08f45, 0xfffbe08a};
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

} // namespace planloom
