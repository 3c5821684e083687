#include <QtCore/QObject>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QPicture>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/timeline/pixel_strip.h"

#include <random>
#include <utility>
#include <vector>

using namespace planloom;

/// What a strip fills looks as if a painter had filled it.
class PixelStripTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void looksAsIfPaintedRectangleByRectangle_data()
    {
        QTest::addColumn<double>("scale");
        QTest::addColumn<QPointF>("moved");
        QTest::newRow("plain") << 1.0 << QPointF(0, 0);
        QTest::newRow("moved") << 1.0 << QPointF(13, 7);
        QTest::newRow("twice") << 2.0 << QPointF(0, 0);
        QTest::newRow("one and a half") << 1.5 << QPointF(3, 1);
    }

    void looksAsIfPaintedRectangleByRectangle()
    {
        QFETCH(double, scale);
        QFETCH(QPointF, moved);
        QImage strip(400, 300, QImage::Format_RGB32);
        strip.fill(Qt::white);
        QImage plain = strip;
        QPainter onStrip(&strip);
        QPainter onPlain(&plain);
        for (QPainter *painter : {&onStrip, &onPlain}) {
            painter->scale(scale, scale);
            painter->translate(moved);
        }
        PixelStrip pixels(onStrip);
        for (const QRect &area : {QRect(10, 20, 120, 24), QRect(10, 60, 120, 9), QRect(0, 80, 150, 30)}) {
            pixels.begin(area);
            QCOMPARE(pixels.area(), area);
            onPlain.save();
            onPlain.setClipRect(area);
            for (const auto &[rect, colour] : rectangles(area)) {
                pixels.fill(rect, colour);
                onPlain.fillRect(rect, colour);
            }
            onPlain.restore();
        }
        QVERIFY(strip != plain); // the last strip is not finished yet
        pixels.finish();
        QCOMPARE(strip, plain);
        pixels.finish(); // there is nothing left
        QCOMPARE(strip, plain);
    }

    void areRectanglesWhereThereAreNoPixels()
    {
        const QRect area(10, 20, 120, 24);
        const auto played = [&](const auto &paint) { // a picture scales by itself: both are recorded
            QPicture picture;
            QPainter painter(&picture);
            paint(painter);
            painter.end();
            QImage image(200, 100, QImage::Format_RGB32);
            image.fill(Qt::white);
            QPainter player(&image);
            player.drawPicture(0, 0, picture);
            return image;
        };
        const QImage byStrip = played([&](QPainter &painter) {
            PixelStrip pixels(painter);
            pixels.begin(area);
            for (const auto &[rect, colour] : rectangles(area))
                pixels.fill(rect, colour);
            pixels.finish();
        });
        const QImage plain = played([&](QPainter &painter) {
            for (const auto &[rect, colour] : rectangles(area))
                if (rect.intersects(area))
                    painter.fillRect(rect & area, colour);
        });
        QCOMPARE(byStrip, plain);
    }

    void joinsWhatGoesOnWhereThereAreNoPixels()
    {
        const auto sizeOf = [](int pieces) {
            QPicture picture;
            QPainter painter(&picture);
            PixelStrip pixels(painter);
            pixels.begin(QRect(0, 0, 100, 10));
            for (int i = 0; i < pieces; ++i)
                pixels.fill(QRectF(i * 100.0 / pieces, 0, 100.0 / pieces, 10), Qt::blue);
            pixels.finish();
            painter.end();
            return picture.size();
        };
        QCOMPARE(sizeOf(50), sizeOf(1)); // halves of pixels add up exactly
    }

private:
    /// Some in the area, some beyond it, most of them narrow.
    static std::vector<std::pair<QRectF, QColor>> rectangles(const QRect &area)
    {
        std::mt19937 random(static_cast<std::mt19937::result_type>(area.height()));
        const auto below = [&random](int end) { return static_cast<double>(random() % 1000) * end / 1000; };
        std::vector<std::pair<QRectF, QColor>> made;
        for (int i = 0; i < 300; ++i)
            made.emplace_back(
                QRectF(area.left() - 5 + below(area.width() + 10), area.top() - 2 + below(area.height()),
                    below(i % 10 == 0 ? 30 : 3), below(area.height() + 4)),
                QColor::fromHsv(static_cast<int>(below(359)), 200, 200));
        return made;
    }
};

PLANLOOM_QTEST(PixelStripTest)

#include "pixel_strip_test.moc"
