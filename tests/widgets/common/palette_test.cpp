#include "widgets/common/palette.h"

#include "tests/widgets/common/colour_vision.h"

#include <gtest/gtest.h>

#include <QtGui/QPalette>

#include <set>

namespace planloom {
namespace {

constexpr int kBases = 8; ///< Categorical colours before they repeat.

std::vector<QColor> groundsOf(const Palette &palette)
{
    return {palette.canvas, palette.surface, palette.surfaceRaised};
}

class EveryTheme : public testing::TestWithParam<Theme>
{
protected:
    const Palette &palette() const { return paletteOf(GetParam()); }
};

TEST_P(EveryTheme, TextsReadOnWhatTheyAreDrawnOn)
{
    const double least = palette().highContrast ? 7 : 4.5;
    for (const QColor &ground : groundsOf(palette())) {
        for (const QColor &text : {palette().text, palette().textMuted, palette().accent, palette().warning,
                 palette().error, palette().success, palette().match})
            EXPECT_GE(contrastRatio(text, ground), least)
                << text.name().toStdString() << " on " << ground.name().toStdString();
    }
}

TEST_P(EveryTheme, MarksStandOutFromWhatTheyAreDrawnOn)
{
    for (const QColor &ground : groundsOf(palette())) {
        for (const QColor &mark : {palette().accent, palette().hover, palette().edgeStrong, palette().match})
            EXPECT_GE(contrastRatio(mark, ground), 3.0) << mark.name().toStdString();
    }
    for (const QColor &ground : {palette().canvas, palette().surface}) {
        EXPECT_GE(contrastRatio(palette().edge, ground), 3.0);
        EXPECT_GE(contrastRatio(palette().border, ground), palette().highContrast ? 4.5 : 2.8);
        EXPECT_GE(contrastRatio(palette().neutral, ground), 3.0);
        for (int index = 0; index < 5 * kBases; ++index) {
            const QColor colour = categoricalColour(palette(), index);
            EXPECT_GE(contrastRatio(colour, ground), 3.0) << index << " " << colour.name().toStdString();
        }
        for (int step = 0; step <= 20; ++step)
            EXPECT_GE(contrastRatio(heatColour(palette(), step / 20.0), ground), 3.0) << step;
    }
    EXPECT_GE(contrastRatio(palette().border, palette().surface), 3.0);
    if (palette().highContrast) {
        EXPECT_GE(contrastRatio(palette().grid, palette().surface), 3.0);
    }
}

TEST_P(EveryTheme, TextOnAnyFillReads)
{
    for (int index = -1; index < 5 * kBases; ++index) {
        const QColor ground = categoricalColour(palette(), index);
        EXPECT_GE(contrastRatio(readableOn(ground), ground), 4.5) << index;
    }
    for (int step = 0; step <= 20; ++step) {
        const QColor ground = heatColour(palette(), step / 20.0);
        EXPECT_GE(contrastRatio(readableOn(ground), ground), 4.5) << step;
    }
}

TEST_P(EveryTheme, WidgetsOfQtReadToo)
{
    const QPalette widgets = applicationPalette(palette());
    for (const auto &[text, ground] :
        {std::pair{QPalette::WindowText, QPalette::Window}, {QPalette::Text, QPalette::Base},
            {QPalette::Text, QPalette::AlternateBase}, {QPalette::ButtonText, QPalette::Button},
            {QPalette::PlaceholderText, QPalette::Base}, {QPalette::ToolTipText, QPalette::ToolTipBase},
            {QPalette::HighlightedText, QPalette::Highlight}, {QPalette::Link, QPalette::Base}})
        EXPECT_GE(contrastRatio(widgets.color(text), widgets.color(ground)), 4.5) << text << " on " << ground;
    EXPECT_GE(contrastRatio(widgets.color(QPalette::Highlight), widgets.color(QPalette::Base)), 3.0);
}

TEST_P(EveryTheme, CategoriesAreToldApartByAllEyes)
{
    // About six times what can just be told side by side.
    constexpr double kLeast = 13;
    for (const ColourVision vision : kColourVisions) {
        for (int a = 0; a < kBases; ++a) {
            for (int b = 0; b < a; ++b) {
                EXPECT_GE(
                    colourDistance(categoricalColour(palette(), a), categoricalColour(palette(), b), vision),
                    kLeast)
                    << a << " and " << b << ", vision " << static_cast<int>(vision);
            }
        }
    }
}

TEST_P(EveryTheme, StatesAreToldApartByAllEyesOrHaveALabel)
{
    // Errors and what is well must differ even where red and green look alike.
    for (const ColourVision vision : kColourVisions)
        EXPECT_GE(colourDistance(palette().error, palette().success, vision), 10) << static_cast<int>(vision);
}

TEST_P(EveryTheme, FortyDevicesHaveDifferentColours)
{
    std::set<QRgb> seen;
    for (int device = 0; device < 40; ++device)
        seen.insert(deviceColour(palette(), DeviceId{device}).rgb());
    EXPECT_EQ(seen.size(), 40U);
    EXPECT_EQ(deviceColour(palette(), DeviceId{}), palette().neutral);
}

TEST_P(EveryTheme, HeatIsMonotoneInLightness)
{
    double last = contrastRatio(heatColour(palette(), 0), palette().canvas);
    for (int step = 1; step <= 20; ++step) {
        const double now = contrastRatio(heatColour(palette(), step / 20.0), palette().canvas);
        EXPECT_GE(now, last) << step;
        last = now;
    }
}

INSTANTIATE_TEST_SUITE_P(Palette, EveryTheme, testing::ValuesIn(kThemes),
    [](const auto &info) { return nameOfTheme(info.param).remove(QLatin1Char(' ')).toStdString(); });

TEST(Palette, ThemesAreToldApartByTheWindowsColour)
{
    std::set<QRgb> windows;
    for (const Theme theme : kThemes) {
        EXPECT_EQ(paletteOf(theme).theme, theme);
        windows.insert(applicationPalette(paletteOf(theme)).color(QPalette::Window).rgb());
    }
    EXPECT_EQ(windows.size(), kThemes.size());
}

} // namespace
} // namespace planloom
