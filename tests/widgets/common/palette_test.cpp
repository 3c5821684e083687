#include "widgets/common/palette.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

TEST(Palette, TextsAndMarksContrastWithWhatTheyAreDrawnOn)
{
    for (const Palette *palette : {&lightPalette(), &darkPalette()}) {
        SCOPED_TRACE(palette->dark ? "dark" : "light");
        for (const QColor &ground : {palette->canvas, palette->surface, palette->surfaceRaised}) {
            for (const QColor &text : {palette->text, palette->textMuted, palette->warning, palette->error,
                     palette->success, palette->match})
                EXPECT_GE(contrastRatio(text, ground), 4.5) << text.name().toStdString();
            EXPECT_GE(contrastRatio(palette->accent, ground), 3.0);
        }
        EXPECT_GE(contrastRatio(palette->edge, palette->canvas), 3.0);
        EXPECT_GE(contrastRatio(palette->border, palette->surface), 3.0);
    }
}

TEST(Palette, FortyDevicesHaveDifferentColours)
{
    std::set<QRgb> seen;
    for (int device = 0; device < 40; ++device)
        seen.insert(deviceColour(lightPalette(), DeviceId {device}).rgb());
    EXPECT_EQ(seen.size(), 40U);
    EXPECT_EQ(deviceColour(lightPalette(), DeviceId {}), lightPalette().neutral);
}

TEST(Palette, HeatIsMonotoneInLightness)
{
    for (const Palette *palette : {&lightPalette(), &darkPalette()}) {
        double last = contrastRatio(heatColour(*palette, 0), palette->canvas);
        for (int step = 1; step <= 20; ++step) {
            const double now = contrastRatio(heatColour(*palette, step / 20.0), palette->canvas);
            EXPECT_GE(now, last) << step;
            last = now;
        }
    }
}

TEST(Palette, TextOnAnyCategoricalColourReads)
{
    for (int index = 0; index < 40; ++index) {
        const QColor ground = categoricalColour(lightPalette(), index);
        EXPECT_GE(contrastRatio(readableOn(ground), ground), 4.5) << index;
    }
}

} // namespace
} // namespace planloom
