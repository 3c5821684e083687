#include <QtCore/QObject>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/common/palette.h"
#include "widgets/timeline/timeline_view.h"

#include <memory>

using namespace planloom;

/// Pictures for export: the whole step, a selection, in tiles.
class TimelinePictureTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_selection = std::make_unique<SelectionModel>();
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(900, 400);
        m_view->setScene(sceneForTests({.devices = 4,
            .microBatches = 3,
            .operators = 4,
            .span = 10'000,
            .gap = 5'000,
            .symmetric = false}));
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
    }

    void cleanup()
    {
        m_view.reset();
        m_selection.reset();
    }

    void withoutASelectionThereIsNoPartOfIt()
    {
        QVERIFY(!m_view->partOfSelection());
        m_view->setScene(nullptr);
        m_selection->select({OperatorId{0}});
        QVERIFY(!m_view->partOfSelection());
    }

    void thePartOfASelectionIsWhereItsSpansAre()
    {
        m_selection->select({OperatorId{1}, OperatorId{2}});
        const auto part = m_view->partOfSelection();
        QVERIFY(part.has_value());
        const SpanColumns &spans = m_view->scene()->timeline->spans;
        double begin = 1e18;
        double end = 0;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            const OperatorId op = m_view->scene()->operatorOf(row);
            if (op != OperatorId{1} && op != OperatorId{2})
                continue;
            begin = std::min(begin, static_cast<double>(spans.start[row]));
            end = std::max(end, static_cast<double>(spans.start[row] + spans.duration[row]));
        }
        QCOMPARE(part->begin, begin);
        QCOMPARE(part->end, end);
        QCOMPARE(part->devices, (std::vector<DeviceId>{{0}, {1}, {2}, {3}}));
    }

    void aPartHasTheLanesOfItsDevicesAlone()
    {
        const TimelinePart all = m_view->wholePart();
        const TimelinePart two{20'000, 80'000, {{1}, {2}}};
        const QSize whole = m_view->pictureSize(1000, &all);
        const QSize less = m_view->pictureSize(1000, &two);
        QCOMPARE(all.devices.size(), std::size_t{4});
        QCOMPARE(whole.width(), 1000);
        QVERIFY(less.height() < whole.height());
        // Both names are there, in the order of the lanes, and no other.
        const auto rows = rowsOfDevices(layoutRows(*m_view->scene(), {}), two.devices);
        QStringList names;
        for (const TimelineRow &row : rows) {
            if (row.kind == TimelineRow::Kind::Device)
                names << QString::fromStdString(row.title);
        }
        QCOMPARE(names, (QStringList{"GPU 1", "GPU 2"}));
        QCOMPARE(rows.front().y, 0);
        QVERIFY(paint(less, &two) != paint(less, &all));
    }

    void aPartIsFittedWhateverIsOnScreen()
    {
        const TimelinePart part{20'000, 80'000, {{1}}};
        const QSize size = m_view->pictureSize(1200, &part);
        const QImage before = paint(size, &part);
        m_view->zoomIn();
        m_view->zoomIn();
        QCOMPARE(paint(size, &part), before);
        QVERIFY(paint(size, nullptr) != before);
    }

    /// Where spans are too small to be told apart nothing is in another colour than those of the palette: not
    /// even where two micro-batches meet.
    void aHeaderIsWhereItsOperatorsAreAndJoinedByALine()
    {
        m_view->setScene(sceneForTests(
            {.devices = 1, .microBatches = 1, .operators = 2, .span = 10'000, .pause = 60'000}));
        m_view->fitAll();
        const QImage image = m_view->viewport()->grab().toImage();
        const QRect block = *m_view->rectOfBlock(0, 0);
        const QPoint works(block.left() + 3, block.top() + 2);
        const QPoint waits(block.center().x(), block.top() + 2);
        const QColor header = image.pixelColor(works);
        QVERIFY(image.pixelColor(waits) != header);
        int joined = 0; // pixels of the line, from the header's top to its bottom
        for (int y = block.top(); y <= block.bottom(); ++y)
            joined += image.pixelColor(waits.x(), y) == header ? 1 : 0;
        QVERIFY2(joined >= 1 && joined <= 3, qPrintable(QString::number(joined)));
        // There is none either where nothing but the pause is in sight, or only what comes before it.
        for (const double begin : {20'000.0, 1'000.0}) {
            m_view->setAxis({begin, 50});
            const QImage waiting = m_view->viewport()->grab().toImage();
            const int x = m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(30'000));
            QVERIFY(waiting.pixelColor(x, block.top() + 2) != header);
        }
        m_view->fitAll();
        // A pause too short to be seen cuts nothing.
        m_view->setScene(
            sceneForTests({.devices = 1, .microBatches = 1, .operators = 2, .span = 60'000, .pause = 1'000}));
        m_view->fitAll();
        const QRect whole = *m_view->rectOfBlock(0, 0);
        const QImage shut = m_view->viewport()->grab().toImage();
        for (int x = whole.left() + 1; x < whole.right() - 1; ++x)
            QVERIFY2(
                shut.pixelColor(x, whole.top() + 1) == shut.pixelColor(whole.left() + 3, whole.top() + 1),
                qPrintable(QStringLiteral("%1 of %2 to %3").arg(x).arg(whole.left()).arg(whole.right())));
    }

    void foldedSpansAreInTheirColours()
    {
        m_view->setPalette(applicationPalette(darkPalette()));
        m_view->setScene(sceneForTests({.devices = 1, .microBatches = 6, .operators = 300, .span = 10}));
        m_view->fitAll();
        const QImage image = m_view->viewport()->grab().toImage();
        int folded = 0;
        for (std::size_t block = 0; block < 6; ++block) {
            const auto rect = m_view->rectOfBlock(0, block);
            QVERIFY(rect);
            for (int x = rect->left(); x < rect->right(); ++x) {
                const QRgb pixel =
                    image.pixel(x, rect->bottom() + 4); // below the block's name, above the run's
                QVERIFY2(pixel != qRgb(255, 255, 255), qPrintable(QStringLiteral("white at %1").arg(x)));
                folded += pixel != darkPalette().canvas.rgb() ? 1 : 0;
            }
        }
        QVERIFY(folded > 100);
    }

    /// Nothing of what is above the device's memory is in another colour, however long the parts below stay
    /// as they are.
    void tooMuchMemoryIsRedWithoutGaps()
    {
        const auto made = sceneForTests({.devices = 1, .microBatches = 6, .operators = 4, .span = 10'000});
        auto timeline = std::make_shared<Timeline>(*made->timeline);
        MemoryCurve &curve = timeline->memory.front();
        curve.bytes = {};
        for (std::size_t i = 0; i < curve.time.size(); ++i) {
            std::array<std::int64_t, kMemoryKindCount> bytes{};
            bytes[static_cast<std::size_t>(MemoryKind::OptimizerState)] = std::int64_t{200} << 30;
            bytes[static_cast<std::size_t>(MemoryKind::Activation)] = std::int64_t{i / 6 % 2 ? 50 : 10} << 30;
            curve.bytes.push_back(bytes);
        }
        curve.peak = Bytes{std::int64_t{250} << 30};
        m_view->setScene(makeTimelineScene(timeline, made->plan, made->cluster));
        m_view->fitAll();
        const QImage image = m_view->viewport()->grab().toImage();
        const QColor red = paletteFor(*m_view).error;
        const int strip = m_view->rows().front().memory;
        const int end = m_view->rectOfBlock(0, 11)->right();
        for (int x = m_view->rectOfBlock(0, 0)->left() + 1; x < end - 1; ++x) {
            int reds = 0;
            for (int y = 0; y < image.height(); ++y)
                reds += image.pixelColor(x, y) == red ? 1 : 0;
            QVERIFY2(reds > 0.4 * strip, qPrintable(QStringLiteral("%1 at %2").arg(reds).arg(x)));
        }
    }

    /// What a writer of pictures larger than an image may be does.
    void tilesMakeUpTheSamePicture()
    {
        m_selection->select({OperatorId{1}});
        const TimelinePart all = m_view->wholePart();
        const QSize size = m_view->pictureSize(1500, &all);
        const QImage whole = paint(size, &all);
        QImage joined(size, whole.format());
        QPainter joining(&joined);
        for (const QSize &tile : {QSize(size.width(), 97), QSize(211, 160)}) {
            for (int y = 0; y < size.height(); y += tile.height()) {
                for (int x = 0; x < size.width(); x += tile.width()) {
                    QImage image(tile, whole.format());
                    QPainter painter(&image);
                    painter.translate(-x, -y);
                    m_view->render(painter, size, lightPalette(), &all);
                    painter.end();
                    joining.drawImage(x, y, image);
                }
            }
            // Halves of pixels may be rounded otherwise where a tile begins.
            int different = 0;
            for (int y = 0; y < size.height(); ++y) {
                for (int x = 0; x < size.width(); ++x)
                    different += joined.pixel(x, y) != whole.pixel(x, y) ? 1 : 0;
            }
            QVERIFY2(different < 10, qPrintable(QString::number(different)));
        }
    }

    void aPictureMayBeWiderThanAnyImage()
    {
        const TimelinePart all = m_view->wholePart();
        const QSize size(200'000, m_view->pictureSize(200'000, &all).height());
        // The tile at its right end has the end of the step in it.
        QImage image(400, size.height(), QImage::Format_RGB32);
        QPainter painter(&image);
        painter.translate(-(size.width() - 400), 0);
        m_view->render(painter, size, lightPalette(), &all);
        painter.end();
        const auto rows = layoutRows(*m_view->scene(), m_view->arrangement());
        const TimelineRow &row = rows.back();
        const int y = m_view->lanesTop() + row.operatorsTop() + row.operators / 2;
        // The last span of the lane ends 5 µs before the step: 200,000 pixels are 375 µs.
        QVERIFY(image.pixelColor(20, y) != image.pixelColor(399, y)
            || image.pixelColor(20, y) != lightPalette().canvas);
        QVERIFY(image.pixelColor(20, y) != QColor(Qt::black));
    }

private:
    QImage paint(const QSize &size, const TimelinePart *part)
    {
        QImage image(size, QImage::Format_RGB32);
        QPainter painter(&image);
        m_view->render(painter, size, lightPalette(), part);
        return image;
    }

    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TimelineView> m_view;
};

PLANLOOM_QTEST(TimelinePictureTest)
#include "timeline_picture_test.moc"
