#include <QtCore/QObject>
#include <QtGui/QWheelEvent>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>

#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/timeline/timeline_view.h"

#include <cmath>

using namespace planloom;

class TimelineViewTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_selection = std::make_unique<SelectionModel>();
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(1000, 420);
        m_view->setScene(
            sceneForTests({.devices = 2, .microBatches = 2, .operators = 3, .span = 10'000, .gap = 20'000}));
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
    }

    void cleanup()
    {
        m_view.reset();
        m_selection.reset();
    }

    void anEmptyViewPaints()
    {
        m_view->setScene(nullptr);
        QVERIFY(!m_view->grab().isNull());
        QTest::keyClick(m_view.get(), Qt::Key_F);
        QTest::keyClick(m_view.get(), Qt::Key_W);
        wheel({500, 100}, 120, Qt::ControlModifier);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, {500, 100});
        QVERIFY(m_selection->selected().empty());
    }

    void clickSelectsTheOperatorAndAllItsSpansAreOutlined()
    {
        const QSignalSpy activated(m_view.get(), &TimelineView::operatorActivated);
        click(1);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{1}});
        QCOMPARE(activated.count(), 1);
        // Both micro-batches' spans have the accent on their edge.
        const QImage image = m_view->viewport()->grab().toImage();
        const QColor accent = paletteFor(*m_view).accent;
        for (const std::size_t row : {std::size_t{1}, std::size_t{7}}) {
            const QRect rect = *m_view->rectOf(row);
            QCOMPARE(image.pixelColor(QPoint(rect.center().x(), rect.top()) * image.devicePixelRatio()), accent);
        }
    }

    void clickOnIdleTimeClearsTheSelection()
    {
        click(1);
        const QRect last = *m_view->rectOf(2);
        const QRect next = *m_view->rectOf(3);
        QVERIFY(next.left() - last.right() > 20);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, {(last.right() + next.left()) / 2, last.center().y()});
        QVERIFY(m_selection->selected().empty());
    }

    void controlClickAdds()
    {
        click(0);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, Qt::ControlModifier, m_view->rectOf(2)->center());
        QCOMPARE(m_selection->selected(), (std::vector<OperatorId>{OperatorId{0}, OperatorId{2}}));
    }

    void hoverNamesTheOperatorToTheOtherViews()
    {
        QTest::mouseMove(m_view->viewport(), m_view->rectOf(4)->center());
        QTRY_COMPARE(m_selection->hovered(), OperatorId{4});
        QTest::mouseMove(m_view->viewport(), {20, 5});
        QTRY_COMPARE(m_selection->hovered(), OperatorId{});
    }

    void hoverPaintsATooltip()
    {
        const QImage before = m_view->viewport()->grab().toImage();
        QTest::mouseMove(m_view->viewport(), m_view->rectOf(4)->center());
        QTRY_COMPARE(m_selection->hovered(), OperatorId{4});
        const QImage after = m_view->viewport()->grab().toImage();
        const QPoint beside = m_view->rectOf(4)->center() + QPoint(30, 22);
        QVERIFY(before.pixelColor(beside * before.devicePixelRatio()) != after.pixelColor(beside * after.devicePixelRatio())
            || before != after);
    }

    void controlWheelZoomsAtThePointer()
    {
        const QPoint at(600, 100);
        const double x = at.x() - m_view->axisLeft();
        const double time = m_view->axis().timeAt(x);
        const double scale = m_view->axis().nanosecondsPerPixel;
        wheel(at, 120, Qt::ControlModifier);
        QVERIFY(std::abs(m_view->axis().timeAt(x) - time) < 1e-3 * time);
        QVERIFY(m_view->axis().nanosecondsPerPixel < scale);
        QTest::keyClick(m_view.get(), Qt::Key_Home);
        QCOMPARE(m_view->axis().nanosecondsPerPixel, scale);
    }

    void dragPansAndIsNoClick()
    {
        wheel({600, 100}, 480, Qt::ControlModifier);
        const TimeAxis before = m_view->axis();
        QTest::mousePress(m_view->viewport(), Qt::MiddleButton, {}, {600, 100});
        QTest::mouseMove(m_view->viewport(), {560, 100});
        QTest::mouseMove(m_view->viewport(), {500, 100});
        QTest::mouseRelease(m_view->viewport(), Qt::MiddleButton, {}, {500, 100});
        QCOMPARE(m_view->axis().origin, before.origin + 100 * before.nanosecondsPerPixel);
        QVERIFY(m_selection->selected().empty());
    }

    void keysZoomPanFitAndFocus()
    {
        const TimeAxis fit = m_view->axis();
        QTest::keyClick(m_view.get(), Qt::Key_W);
        QVERIFY(m_view->axis().nanosecondsPerPixel < fit.nanosecondsPerPixel);
        const double origin = m_view->axis().origin;
        QTest::keyClick(m_view.get(), Qt::Key_D);
        QVERIFY(m_view->axis().origin > origin);
        QTest::keyClick(m_view.get(), Qt::Key_A);
        QCOMPARE(m_view->axis().origin, origin);
        QTest::keyClick(m_view.get(), Qt::Key_S);
        QTest::keyClick(m_view.get(), Qt::Key_Home);
        QCOMPARE(m_view->axis(), fit);
        m_selection->select({OperatorId{0}});
        QTest::keyClick(m_view.get(), Qt::Key_F);
        const double begin = m_view->axis().xOf(0);
        QVERIFY(begin > 0);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(m_selection->selected().empty());
    }

    void arrowsWalkFromSpanToSpan()
    {
        click(0);
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{1}});
        QTest::keyClick(m_view.get(), Qt::Key_Left);
        QTest::keyClick(m_view.get(), Qt::Key_Left);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{0}});
    }

    void aClickOnTheNameShowsSymmetricDevicesOneByOne()
    {
        QCOMPARE(m_view->rows().size(), std::size_t{1});
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, {40, 60});
        QCOMPARE(m_view->rows().size(), std::size_t{2});
        QVERIFY(m_view->rectOf(14).has_value());
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, {40, 60});
        QCOMPARE(m_view->rows().size(), std::size_t{1});
    }

    void doubleClickFitsASpan()
    {
        QTest::mouseDClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(4)->center());
        const QRect rect = *m_view->rectOf(4);
        QVERIFY(rect.width() > 500);
    }

    void aNewPlanKeepsTheZoomIfTheStepIsAboutAsLong()
    {
        wheel({600, 100}, 480, Qt::ControlModifier);
        const TimeAxis before = m_view->axis();
        m_view->setScene(
            sceneForTests({.devices = 2, .microBatches = 2, .operators = 3, .span = 11'000, .gap = 20'000}));
        QCOMPARE(m_view->axis(), before);
        m_view->setScene(sceneForTests({.devices = 2, .microBatches = 8, .operators = 9, .span = 50'000}));
        QCOMPARE(m_view->axis().origin, 0.0);
    }

    void everyColouringPaintsInBothThemesWhetherStaleOrNot()
    {
        for (const auto colouring : {TimelineColouring::Direction, TimelineColouring::MicroBatch,
                 TimelineColouring::Stage, TimelineColouring::Device, TimelineColouring::Kind, TimelineColouring::Time}) {
            m_view->setColouring(colouring);
            for (const bool stale : {false, true}) {
                m_view->setStale(stale);
                const QImage image = m_view->viewport()->grab().toImage();
                const QPoint inside = m_view->rectOf(0)->center();
                QVERIFY(image.pixelColor(inside * image.devicePixelRatio()) != paletteFor(*m_view).surface);
            }
        }
    }

private:
    void click(std::size_t row)
    {
        const auto rect = m_view->rectOf(row);
        QVERIFY(rect.has_value());
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, rect->center());
    }

    void wheel(QPoint at, int delta, Qt::KeyboardModifiers modifiers)
    {
        QWheelEvent event(at, m_view->viewport()->mapToGlobal(at), {}, {0, delta}, Qt::NoButton, modifiers,
            Qt::NoScrollPhase, false);
        QApplication::sendEvent(m_view->viewport(), &event);
    }

    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TimelineView> m_view;
};

QTEST_MAIN(TimelineViewTest)
#include "timeline_view_test.moc"
