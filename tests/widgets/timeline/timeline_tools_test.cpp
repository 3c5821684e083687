#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QPointingDevice>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QScrollBar>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/timeline/timeline_lane_cache.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/timeline_view.h"

#include <chrono>
#include <cmath>
#include <memory>

using namespace planloom;
using std::chrono_literals::operator""us;

/// The tools of the canvas, the marked time, and the lanes that are remembered between frames.
class TimelineToolsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_selection = std::make_unique<SelectionModel>();
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(1000, 420);
        m_view->setScene(sceneForTests({.devices = 2,
            .microBatches = 2,
            .operators = 3,
            .span = 10'000,
            .gap = 20'000,
            .symmetric = false}));
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
    }

    void cleanup()
    {
        m_view.reset();
        m_selection.reset();
    }

    void panMovesTheViewWhereverTheDragBegins()
    {
        const double scale = 50;
        m_view->setAxis({0, scale});
        m_view->setTool(CanvasTool::Pan);
        QCOMPARE(m_view->tool(), CanvasTool::Pan);
        QVERIFY(m_view->rectOf(1).has_value());
        const QPoint on = m_view->rectOf(1)->center();
        moveTo(on);
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::OpenHandCursor);
        const double before = m_view->axis().origin;
        drag(on, on - QPoint(60, 0)); // on a span, which another tool would move or select
        QCOMPARE(m_view->axis().origin, before + 60 * scale);
        QVERIFY(m_selection->selected().empty());
        QVERIFY(!m_view->panel().isVisible());
        moveTo(on + QPoint(1, 0));
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::OpenHandCursor);
        // A press shows that the hand holds on.
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, on);
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::ClosedHandCursor);
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, on);
    }

    void measureMeasuresUntilEscape()
    {
        m_view->setTool(CanvasTool::Measure);
        const QPoint on = m_view->rectOf(1)->center();
        moveTo(on);
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::CrossCursor);
        const QImage before = picture();
        drag(on, on + QPoint(200, 0));
        moveTo(on);
        QVERIFY(m_selection->selected().empty());
        const QImage measured = picture();
        // The plate with the time is on the accent's colour in the middle of the stretch.
        const QRgb accent = paletteFor(*m_view).accent.rgb();
        QVERIFY(count(measured, accent) > count(before, accent) + 200);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        moveTo(on);
        QCOMPARE(picture(), before);
    }

    void selectIsTheUsualTool()
    {
        QCOMPARE(m_view->tool(), CanvasTool::Select);
        m_view->setTool(CanvasTool::Measure);
        m_view->setTool(CanvasTool::Select);
        const QPoint on = m_view->rectOf(1)->center();
        moveTo(on);
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::PointingHandCursor);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, on);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{1}});
    }

    void heldKeysGoBeforeTheTool()
    {
        m_view->setTool(CanvasTool::Measure);
        QTest::keyClick(m_view.get(), Qt::Key_W);
        QTest::keyClick(m_view.get(), Qt::Key_W);
        const TimeAxis before = m_view->axis();
        QTest::keyPress(m_view.get(), Qt::Key_Space);
        drag({600, 100}, {500, 100});
        QTest::keyRelease(m_view.get(), Qt::Key_Space);
        QCOMPARE(m_view->axis().origin, before.origin + 100 * before.nanosecondsPerPixel);
        m_view->setTool(CanvasTool::Pan);
        QTest::keyPress(m_view.get(), Qt::Key_M);
        const TimeAxis panned = m_view->axis();
        drag({600, 100}, {500, 100});
        QTest::keyRelease(m_view.get(), Qt::Key_M);
        QCOMPARE(m_view->axis(), panned);
    }

    void anotherToolLetsGoOfWhatTheHandHolds()
    {
        const QPoint from = QPoint(600, m_view->lanesTop() + m_view->rows().back().y + 2);
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, from);
        moveTo(from + QPoint(80, 40), Qt::LeftButton);
        m_view->setTool(CanvasTool::Pan);
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, from + QPoint(80, 40));
        QVERIFY(!m_view->panel().isVisible());
        QVERIFY(m_selection->selected().empty());
    }

    void aMarkedTimeIsDrawnAndScrolledIntoView()
    {
        const QImage before = picture();
        m_view->showTime(50us);
        QCOMPARE(m_view->shownTime(), std::optional<Nanoseconds>(50us));
        const QImage marked = picture();
        const int x = m_view->axisLeft() + static_cast<int>(std::lround(m_view->axis().xOf(50'000)));
        const int y = m_view->viewport()->height() - 60; // below the lanes, where nothing else is drawn
        QVERIFY(column(marked, x, y).contains(paletteFor(*m_view).text.rgb()));
        QVERIFY(!column(before, x, y).contains(paletteFor(*m_view).text.rgb()));
        // Out of sight: the view goes there, at the same zoom.
        for (int i = 0; i < 12; ++i)
            m_view->zoomIn();
        QTest::keyClick(m_view.get(), Qt::Key_Home);
        for (int i = 0; i < 12; ++i)
            QTest::keyClick(m_view.get(), Qt::Key_W);
        const QSignalSpy moved(m_view.get(), &TimelineView::axisChanged);
        const TimeAxis axis = m_view->axis();
        const double width = m_view->viewport()->width() - m_view->axisLeft();
        const bool early = axis.xOf(5'000) >= 0 && axis.xOf(5'000) <= width;
        const Nanoseconds away = early ? 150us : 5us;
        m_view->showTime(away);
        QCOMPARE(moved.count(), 1);
        QCOMPARE(m_view->axis().nanosecondsPerPixel, axis.nanosecondsPerPixel);
        const double at = m_view->axis().xOf(static_cast<double>(away.count()));
        QVERIFY(at >= 0 && at <= width);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(!m_view->shownTime());
    }

    void aTimeBeyondTheStepIsNotMarked()
    {
        m_view->showTime(Nanoseconds{-1});
        QVERIFY(!m_view->shownTime());
        m_view->showTime(m_view->scene()->timeline->step + 1us);
        QVERIFY(!m_view->shownTime());
        m_view->showTime(m_view->scene()->timeline->step);
        QVERIFY(m_view->shownTime().has_value());
        // A step that is over before has no such time.
        m_view->setScene(sceneForTests({.devices = 2, .microBatches = 1, .operators = 1, .span = 100}));
        QVERIFY(!m_view->shownTime());
        m_view->setScene(nullptr);
        m_view->showTime(Nanoseconds{0});
        QVERIFY(!m_view->shownTime());
    }

    void twoFingersZoom()
    {
        const double before = m_view->axis().nanosecondsPerPixel;
        const QPointF at(600, 100);
        const double time = m_view->axis().timeAt(600 - m_view->axisLeft());
        QNativeGestureEvent event(Qt::ZoomNativeGesture, QPointingDevice::primaryPointingDevice(), 2, at, at,
            m_view->viewport()->mapToGlobal(at), 0.5, {});
        QCoreApplication::sendEvent(m_view->viewport(), &event);
        QCOMPARE(m_view->axis().nanosecondsPerPixel, before / 1.5);
        QVERIFY(std::abs(m_view->axis().timeAt(600 - m_view->axisLeft()) - time)
            < before); // what is there stays there
    }

    void twoFingersOnAScreenZoomAndPan()
    {
        const double before = m_view->axis().nanosecondsPerPixel;
        QPointingDevice *screen = QTest::createTouchDevice();
        QWidget *on = m_view->viewport();
        const double time = m_view->axis().timeAt(600 - m_view->axisLeft());
        QTest::touchEvent(on, screen).press(0, QPoint(500, 150), on).press(1, QPoint(700, 150), on);
        for (int step = 1; step <= 10; ++step)
            QTest::touchEvent(on, screen)
                .move(0, QPoint(500 - 10 * step, 150), on)
                .move(1, QPoint(700 + 10 * step, 150), on);
        QTest::touchEvent(on, screen).release(0, QPoint(400, 150), on).release(1, QPoint(800, 150), on);
        // Twice as far apart, but for what it took to see that it is a pinch.
        QVERIFY2(m_view->axis().nanosecondsPerPixel < before / 1.4,
            qPrintable(QString::number(before / m_view->axis().nanosecondsPerPixel)));
        QVERIFY(std::abs(m_view->axis().timeAt(600 - m_view->axisLeft()) - time) < 3 * before);
        QVERIFY(m_selection->selected().empty());
    }

    void lanesAreGroupedByAnAction()
    {
        const auto checked = [this](const char *name) {
            return m_view->findChild<QAction *>(QLatin1String(name))->isChecked();
        };
        QVERIFY(checked("timeline.groupAutomatic"));
        m_view->findChild<QAction *>(QStringLiteral("timeline.groupNone"))->trigger();
        QCOMPARE(m_view->arrangement().grouping, LaneGrouping::None);
        QVERIFY(checked("timeline.groupNone") && !checked("timeline.groupAutomatic"));
        const std::string state = m_view->viewState();
        m_view->findChild<QAction *>(QStringLiteral("timeline.groupByStage"))->trigger();
        QCOMPARE(m_view->arrangement().grouping, LaneGrouping::Stage);
        m_view->restoreViewState(state);
        QCOMPARE(m_view->arrangement().grouping, LaneGrouping::None);
        QVERIFY(checked("timeline.groupNone"));
        m_view->findChild<QAction *>(QStringLiteral("timeline.groupNone"))
            ->trigger(); // what is chosen stays so
        QVERIFY(checked("timeline.groupNone"));
    }

    /// Remembered lanes look as painted ones: frame after frame the same, and new ones once anything changes.
    void framesFromMemoryAreTheSame()
    {
        const QImage first = picture();
        QCOMPARE(picture(), first);
        QCOMPARE(picture(), first);
        m_selection->select({OperatorId{1}});
        const QImage selected = picture();
        QVERIFY(selected != first);
        QCOMPARE(picture(), selected);
        QCOMPARE(picture(), selected);
        m_view->setStale(true);
        QVERIFY(picture() != selected);
        m_view->setStale(false);
        QCOMPARE(picture(), selected);
        m_view->setConflicts({DeviceId{0}});
        QVERIFY(picture() != selected);
        m_view->setConflicts({});
        QCOMPARE(picture(), selected);
        m_view->setColouring(TimelineColouring::MicroBatch);
        QVERIFY(picture() != selected);
    }

    void aKeyIsTheSameOnlyForTheSameThings()
    {
        const auto scene = std::make_shared<int>(1);
        TimelineLanesKey key;
        key.scene = scene;
        key.size = {10, 10};
        key.palette = &lightPalette();
        int painted = 0;
        QImage image(10, 10, QImage::Format_RGB32);
        QPainter painter(&image);
        TimelineLaneCache cache;
        const auto frame = [&] { cache.paint(painter, key, [&painted](QPainter &) { ++painted; }); };
        for (int i = 0; i < 5; ++i)
            frame();
        QCOMPARE(painted, 2); // at once, and into memory
        key.scroll = 1;
        frame();
        QCOMPARE(painted, 3);
        const auto other = std::make_shared<int>(1);
        key.scene = other;
        frame();
        QCOMPARE(painted, 4);
        key.taken = 1;
        frame();
        frame();
        frame();
        QCOMPARE(painted, 6);
    }

private:
    QImage picture() { return m_view->viewport()->grab().toImage(); }

    static int count(const QImage &image, QRgb colour)
    {
        int found = 0;
        for (int y = 0; y < image.height(); ++y) {
            for (int x = 0; x < image.width(); ++x)
                found += image.pixel(x, y) == colour ? 1 : 0;
        }
        return found;
    }

    /// Colours of three pixels around a place.
    static QList<QRgb> column(const QImage &image, int x, int y)
    {
        return {image.pixel(x - 1, y), image.pixel(x, y), image.pixel(x + 1, y)};
    }

    void moveTo(QPoint at, Qt::MouseButtons buttons = Qt::NoButton)
    {
        QMouseEvent event(
            QEvent::MouseMove, at, m_view->viewport()->mapToGlobal(at), Qt::NoButton, buttons, {});
        QCoreApplication::sendEvent(m_view->viewport(), &event);
    }

    void drag(QPoint from, QPoint to)
    {
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, from);
        moveTo(from + (to - from) / 2, Qt::LeftButton);
        moveTo(to, Qt::LeftButton);
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, to);
    }

    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TimelineView> m_view;
};

PLANLOOM_QTEST(TimelineToolsTest)
#include "timeline_tools_test.moc"
