#include "widgets/common/palette.h"
#include "widgets/common/themed_icon.h"

#include <QtGui/QImage>
#include <QtGui/QPalette>
#include <QtWidgets/QApplication>

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// The largest contrast that a pixel of the icon has on the window.
double strongest(const QIcon &icon, const QColor &ground, int size)
{
    const QImage image = icon.pixmap(size).toImage();
    double most = 1;
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
            const QColor pixel = image.pixelColor(x, y);
            if (pixel.alpha() > 128)
                most = std::max(most, contrastRatio(QColor(pixel.rgb()), ground));
        }
    }
    return most;
}

TEST(ThemedIcon, EveryIconStandsOutInEveryThemeAtEverySize)
{
    int count = 1;
    char name[] = "test";
    char *arguments[] = {name, nullptr};
    QApplication application(count, arguments);
    ASSERT_GE(iconNames().size(), 20);
    EXPECT_TRUE(themedIcon(QStringLiteral("no such icon")).isNull());
    for (const QString &icon : iconNames()) {
        SCOPED_TRACE(icon.toStdString());
        ASSERT_FALSE(themedIcon(icon).isNull());
        for (const Theme theme : kThemes) {
            QApplication::setPalette(applicationPalette(paletteOf(theme)));
            for (const int size : {16, 24, 48})
                EXPECT_GE(strongest(themedIcon(icon), paletteOf(theme).surfaceRaised, size), 3.0) << size;
        }
    }
}

} // namespace
} // namespace planloom
