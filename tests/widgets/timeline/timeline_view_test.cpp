#include <QtCore/QBuffer>
#include <QtCore/QObject>
#include <QtGui/QAccessible>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QPainter>
#include <QtGui/QWheelEvent>
#include <QtSvg/QSvgGenerator>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTreeWidget>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_panel.h"
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
            QCOMPARE(
                image.pixelColor(QPoint(rect.center().x(), rect.top()) * image.devicePixelRatio()), accent);
        }
    }

    void clickOnIdleTimeClearsTheSelection()
    {
        click(1);
        const QRect last = *m_view->rectOf(2);
        const QRect next = *m_view->rectOf(3);
        QVERIFY(next.left() - last.right() > 20);
        QTest::mouseClick(
            m_view->viewport(), Qt::LeftButton, {}, {(last.right() + next.left()) / 2, last.center().y()});
        QVERIFY(m_selection->selected().empty());
    }

    void controlClickAdds()
    {
        click(0);
        QTest::mouseClick(
            m_view->viewport(), Qt::LeftButton, Qt::ControlModifier, m_view->rectOf(2)->center());
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
        QVERIFY(before.pixelColor(beside * before.devicePixelRatio())
                != after.pixelColor(beside * after.devicePixelRatio())
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
        for (int number = 0; number < kTimelineColouringCount; ++number) {
            m_view->setColouring(static_cast<TimelineColouring>(number));
            for (const bool stale : {false, true}) {
                m_view->setStale(stale);
                const QImage image = m_view->viewport()->grab().toImage();
                const QPoint inside = m_view->rectOf(0)->center();
                QVERIFY(image.pixelColor(inside * image.devicePixelRatio()) != paletteFor(*m_view).surface);
            }
        }
    }

    void heldBlocksHaveAPinAndImpliedOnesAHollowOne()
    {
        std::vector<QImage> corners;
        for (const DecidedBy decidedBy : {DecidedBy::Default, DecidedBy::Implied, DecidedBy::Row}) {
            m_view->setScene(sceneForTests(
                {.devices = 1, .microBatches = 1, .operators = 3, .decidedBy = std::vector(6, decidedBy)}));
            m_view->fitAll();
            const auto block = m_view->rectOfBlock(0, 0);
            QVERIFY(block && block->width() > 60);
            corners.push_back(m_view->viewport()->grab(QRect(block->topLeft(), QSize(12, 14))).toImage());
        }
        QVERIFY(corners[0] != corners[1]);
        QVERIFY(corners[0] != corners[2]);
        QVERIFY(corners[1] != corners[2]);
    }

    void spaceAndDragPans()
    {
        wheel({600, 100}, 480, Qt::ControlModifier);
        const TimeAxis before = m_view->axis();
        QTest::keyPress(m_view.get(), Qt::Key_Space);
        dragged({600, 100}, {500, 100});
        QTest::keyRelease(m_view.get(), Qt::Key_Space);
        QCOMPARE(m_view->axis().origin, before.origin + 100 * before.nanosecondsPerPixel);
    }

    void theHorizontalScrollBarIsReal()
    {
        QCOMPARE(m_view->horizontalScrollBar()->maximum(), 0); // all is shown
        wheel({600, 100}, 960, Qt::ControlModifier);
        QScrollBar *bar = m_view->horizontalScrollBar();
        QVERIFY(bar->maximum() > bar->minimum());
        bar->setValue(bar->maximum());
        const double end = static_cast<double>(m_view->scene()->timeline->step.count());
        const double right = m_view->axis().timeAt(m_view->viewport()->width() - m_view->axisLeft());
        QVERIFY(std::abs(right - end) < 4 * m_view->axis().nanosecondsPerPixel);
        QTest::keyClick(m_view.get(), Qt::Key_A);
        QVERIFY(bar->value() < bar->maximum());
    }

    void aBoxSelectsWhatItEnclosesAndShowsItsFigures()
    {
        // From left to right: only what lies in it whole.
        const QRect first = *m_view->rectOf(1);
        const QRect last = *m_view->rectOf(2);
        const int above = first.top() - 40;
        const int below = m_view->rectOf(12)->bottom() + 20;
        dragged({first.left() + 5, below}, {last.right() + 8, above});
        QTRY_COMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{2}});
        QTRY_VERIFY(m_view->panel().isVisible());
        QVERIFY(m_view->panel().table().text().find("GPU 0") != std::string::npos);
        QTest::keyClick(m_view.get(), Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text().toStdString(), m_view->panel().table().text());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(!m_view->panel().isVisible());
        QVERIFY(!m_selection->selected().empty());
        // From right to left: all that it touches.
        dragged({last.right() + 8, below}, {first.left() + 5, above});
        QTRY_COMPARE(m_selection->selected(), (std::vector<OperatorId>{OperatorId{1}, OperatorId{2}}));
    }

    void aLongTableIsShownInPart()
    {
        QWidget canvas;
        canvas.resize(900, 500);
        TimelinePanel panel(&canvas);
        PanelTable table{"Why it is idle", {"What", "Time"}, {}};
        for (int i = 0; i < 20'000; ++i)
            table.lines.push_back(
                {i % 100 == 0 ? 0 : 1, {"waits for " + std::to_string(i), std::to_string(i) + " ms"}, i});
        panel.open(table);
        canvas.show();
        const auto *tree = panel.findChild<QTreeWidget *>();
        int lines = 0;
        for (int i = 0; i < tree->topLevelItemCount(); ++i)
            lines += 1 + tree->topLevelItem(i)->childCount();
        QVERIFY2(lines > 100 && lines < 400, qPrintable(QString::number(lines)));
        const QTreeWidgetItem *last = tree->topLevelItem(tree->topLevelItemCount() - 1);
        QVERIFY2(last->text(0).contains(QStringLiteral("and 19750 more")), qPrintable(last->text(0)));
        QCOMPARE(panel.table().lines.size(), std::size_t{20'000}); // what is copied
        QVERIFY(tree->topLevelItem(1)->isExpanded());
        QVERIFY(tree->columnWidth(1) > tree->fontMetrics().horizontalAdvance(QStringLiteral("999 ms")));
        QSignalSpy chosen(&panel, &TimelinePanel::spanChosen);
        Q_EMIT panel.findChild<QTreeWidget *>()->itemClicked(
            tree->topLevelItem(tree->topLevelItemCount() - 1), 0);
        QCOMPARE(chosen.count(), 0); // what is more is no span
        Q_EMIT panel.findChild<QTreeWidget *>()->itemClicked(tree->topLevelItem(1)->child(4), 0);
        QCOMPARE(chosen.takeFirst().front().toLongLong(), 105);
    }

    void escapeAbandonsABox()
    {
        const QRect first = *m_view->rectOf(1);
        const QPoint from(first.left(), m_view->rectOf(12)->bottom() + 20);
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, {}, from);
        moved(from - QPoint(0, 100));
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, {}, from - QPoint(0, 100));
        QVERIFY(m_selection->selected().empty());
        QVERIFY(!m_view->panel().isVisible());
    }

    void altAndDragZoomsToTheBox()
    {
        const QPoint from(400, m_view->rectOf(12)->bottom() + 20);
        const double begin = m_view->axis().timeAt(400 - m_view->axisLeft());
        const double end = m_view->axis().timeAt(700 - m_view->axisLeft());
        dragged(from, {700, from.y() - 30}, Qt::AltModifier);
        const double width = m_view->viewport()->width() - m_view->axisLeft();
        QVERIFY(std::abs(m_view->axis().timeAt(0) - begin) < 3 * m_view->axis().nanosecondsPerPixel);
        QVERIFY(std::abs(m_view->axis().timeAt(width) - end) < 0.02 * (end - begin));
    }

    void holdingMMeasures()
    {
        QTest::keyPress(m_view.get(), Qt::Key_M);
        const QImage before = m_view->viewport()->grab().toImage();
        dragged({300, 100}, {600, 100});
        QTest::keyRelease(m_view.get(), Qt::Key_M);
        QVERIFY(m_view->viewport()->grab().toImage() != before);
        QVERIFY(m_selection->selected().empty());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
    }

    void arrowsReachEveryPartOfALane()
    {
        m_view->setScene(sceneForTests({.devices = 2,
            .microBatches = 2,
            .operators = 3,
            .span = 10'000,
            .gap = 20'000,
            .symmetric = false}));
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_view->focus().part, LanePart::Span);
        QTest::keyClick(m_view.get(), Qt::Key_Up);
        QCOMPARE(m_view->focus().part, LanePart::Block);
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_view->focus().part, LanePart::Idle);
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_view->focus().block, 1);
        QTest::keyClick(m_view.get(), Qt::Key_Up);
        QCOMPARE(m_view->focus().part, LanePart::Bracket);
        for (int i = 0; i < 4; ++i)
            QTest::keyClick(m_view.get(), Qt::Key_Down);
        QCOMPARE(m_view->focus().lane, 1);
        QCOMPARE(m_view->focus().part, LanePart::Bracket);
    }

    void screenReadersHearWhatHasTheFocus()
    {
        m_view->setScene(sceneForTests({.devices = 2,
            .microBatches = 2,
            .operators = 3,
            .span = 1'150'000,
            .gap = 20'000,
            .symmetric = false}));
        m_view->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_view.get()));
        m_view->setFocus();
        QAccessibleInterface *timeline = QAccessible::queryAccessibleInterface(m_view.get());
        QVERIFY(timeline);
        QCOMPARE(timeline->text(QAccessible::Name), QStringLiteral("Timeline"));
        QVERIFY(timeline->childCount() >= 2);
        QAccessibleInterface *lane = timeline->child(1);
        QVERIFY(lane->text(QAccessible::Name).startsWith(QStringLiteral("GPU 1, stage 1, busy")));
        QCOMPARE(timeline->indexOfChild(lane), 1);
        QCOMPARE(lane->parent(), timeline);
        QCOMPARE(lane->childCount(), 0);
        const DeviceLane &of = m_view->scene()->lanes[1];
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(1, 2)->center());
        QCOMPARE(lane->childCount(), 1);
        QAccessibleInterface *item = timeline->focusChild();
        QCOMPARE(item, lane->child(0));
        QCOMPARE(item->text(QAccessible::Name),
            QStringLiteral("forward of micro-batch 1, stage 1 on GPU 1, 3.45 ms"));
        QVERIFY(item->state().focused);
        QVERIFY(!item->rect().isEmpty());
        QCOMPARE(timeline->childAt(item->rect().center().x(), item->rect().center().y()), lane);
        QTest::keyClick(m_view.get(), Qt::Key_Down);
        QVERIFY(item->text(QAccessible::Name)
                    .startsWith(QStringLiteral("forward_0, forward of micro-batch 1, stage 1 on GPU 1")));
        QCOMPARE(of.stage, 1);
    }

    void lanesArePinnedMovedAndFiltered()
    {
        m_view->setScene(sceneForTests({.devices = 4,
            .microBatches = 2,
            .operators = 3,
            .span = 10'000,
            .gap = 20'000,
            .symmetric = false}));
        const QSignalSpy changed(m_view.get(), &TimelineView::viewStateChanged);
        // Dragged by its name above the first.
        const auto &rows = m_view->rows();
        const int first = m_view->lanesTop() + rows[0].y + 6;
        const int second = m_view->lanesTop() + rows[1].y + 20;
        dragged({60, second}, {60, first});
        QCOMPARE(m_view->rows()[0].lane, 1);
        QVERIFY(changed.count() > 0);
        // Pinned by the keyboard.
        QTest::mouseClick(
            m_view->viewport(), Qt::LeftButton, {}, {60, m_view->lanesTop() + m_view->rows()[1].y + 20});
        QCOMPARE(m_view->focus().lane, 0);
        m_view->findChild<QAction *>(QStringLiteral("timeline.pin"))->trigger();
        QVERIFY(m_view->rows()[0].pinned);
        QCOMPARE(m_view->rows()[0].lane, 0);
        const std::string state = m_view->viewState();
        // Kept over a restart.
        TimelineView other(m_selection.get());
        other.resize(1000, 420);
        other.restoreViewState(state);
        other.setScene(m_view->scene());
        QCOMPARE(other.arrangement(), m_view->arrangement());
        QCOMPARE(other.rows()[0].lane, 0);
        m_view->findChild<QAction *>(QStringLiteral("timeline.filter"))->trigger();
        auto *edit = m_view->findChild<QLineEdit *>(QStringLiteral("timeline.line.filter"));
        QVERIFY(edit);
        QTest::keyClicks(edit, QStringLiteral("gpu 3"));
        QCOMPARE(m_view->rows().size(), std::size_t{1});
        QTest::keyClick(edit, Qt::Key_Return);
        QVERIFY(!edit->isVisible());
        QCOMPARE(m_view->rows().size(), std::size_t{1});
        m_view->findChild<QAction *>(QStringLiteral("timeline.showAllLanes"))->trigger();
        QCOMPARE(m_view->rows().size(), std::size_t{4});
    }

    void communicationCanBeHidden()
    {
        QVERIFY(m_view->rectOf(12).has_value());
        m_view->findChild<QAction *>(QStringLiteral("timeline.communication"))->trigger();
        QVERIFY(!m_view->rectOf(12).has_value());
        QVERIFY(!m_view->grab().isNull());
    }

    void lanesGrowByTheWheelAroundThePointer()
    {
        const int fitted = heightOf(m_view->rows());
        const auto held = Qt::ControlModifier | Qt::ShiftModifier;
        const TimeAxis axis = m_view->axis();
        for (int notch = 0; notch < 6; ++notch)
            wheel({600, 60}, -120, held);
        QVERIFY(heightOf(m_view->rows()) < fitted);
        QCOMPARE(m_view->verticalScrollBar()->maximum(), 0);
        m_view->findChild<QAction *>(QStringLiteral("timeline.lanesFit"))->trigger();
        QCOMPARE(heightOf(m_view->rows()), fitted); // once is back, and no other height
        for (int notch = 0; notch < 20; ++notch)
            wheel({600, 60}, 120, held);
        QVERIFY(heightOf(m_view->rows()) > fitted);
        QCOMPARE(m_view->axis(), axis); // times stay where they are
        const std::string state = m_view->viewState();
        const int grown = heightOf(m_view->rows());
        m_view->findChild<QAction *>(QStringLiteral("timeline.lanesFit"))->trigger();
        QCOMPARE(heightOf(m_view->rows()), fitted);
        m_view->restoreViewState(state);
        QCOMPARE(heightOf(m_view->rows()), grown);
    }

    void theViewStateRoundTrips()
    {
        wheel({600, 100}, 480, Qt::ControlModifier);
        m_view->setColouring(TimelineColouring::MicroBatch);
        const std::string state = m_view->viewState();
        const TimeAxis axis = m_view->axis();
        m_view->fitAll();
        m_view->setColouring(TimelineColouring::Kind);
        m_view->restoreViewState(state);
        QCOMPARE(m_view->axis(), axis);
        QCOMPARE(m_view->colouring(), TimelineColouring::MicroBatch);
        for (const char *rubbish : {"", "{", "[]", "{\"scale\":-1,\"expanded\":7}", "null"})
            m_view->restoreViewState(rubbish);
        QVERIFY(m_view->axis().nanosecondsPerPixel > 0);
    }

    void twoTimelinesShareAnAxis()
    {
        TimelineView other(m_selection.get());
        other.resize(1000, 420);
        other.setScene(m_view->scene());
        connect(m_view.get(), &TimelineView::axisChanged, &other, &TimelineView::setAxis);
        connect(&other, &TimelineView::axisChanged, m_view.get(), &TimelineView::setAxis);
        wheel({600, 100}, 480, Qt::ControlModifier);
        QCOMPARE(other.axis(), m_view->axis());
    }

    void measuredSpansAreDrawnOverPredictedOnes()
    {
        const QImage predicted = m_view->viewport()->grab().toImage();
        m_view->setBadge(QStringLiteral("CPU emulation: times are not GPU times"));
        for (const std::int64_t span : {9'000, 12'000, 11'000}) { // live: again and again
            m_view->setMeasured(sceneForTests(
                {.devices = 2, .microBatches = 2, .operators = 3, .span = span, .gap = 20'000}));
        }
        QVERIFY(m_view->viewport()->grab().toImage() != predicted);
        const auto error = busyErrorOf(*m_view->scene(), *m_view->measured(), 0);
        QVERIFY(error.has_value());
        QCOMPARE(std::round(*error), 10.0);
        const auto facts = factsOfMeasured(*m_view->scene(), *m_view->measured(), 3);
        const auto has = [&](const FactLine &line) {
            return std::find(facts.begin(), facts.end(), line) != facts.end();
        };
        QVERIFY(has({"Measured", "11.0 µs", -1}));
        QVERIFY(has({"Predicted", "10.0 µs", -1}));
        click(1);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{1}});
        m_view->setMeasured(nullptr);
        QVERIFY(!m_view->measured());
    }

    void itIsDrawnForExport()
    {
        click(1);
        for (const bool dark : {false, true}) {
            QImage image(1600, 700, QImage::Format_ARGB32);
            QPainter painter(&image);
            m_view->render(painter, image.size(), dark ? darkPalette() : lightPalette());
            painter.end();
            QCOMPARE(image.pixelColor(1590, 300), (dark ? darkPalette() : lightPalette()).canvas);
        }
        QBuffer buffer;
        buffer.open(QIODevice::WriteOnly);
        QSvgGenerator svg;
        svg.setOutputDevice(&buffer);
        svg.setSize({1600, 700});
        QPainter painter(&svg);
        m_view->render(painter, {1600, 700}, lightPalette());
        painter.end();
        QVERIFY(buffer.data().contains("GPU 0-1"));
        QVERIFY(buffer.data().contains("forward_1"));
    }

    void aBigSelectionIsGatheredBesides()
    {
        const auto big = sceneForTests(
            {.devices = 8, .microBatches = 64, .operators = 40, .span = 1000, .symmetric = false});
        m_view->setScene(big);
        std::vector<OperatorId> all;
        for (std::int32_t i = 0; i < 80; ++i)
            all.push_back(OperatorId{i});
        QVERIFY(rowCountOf(*big, all) > 20'000);
        const QImage before = m_view->viewport()->grab().toImage();
        m_selection->select(all);
        QTRY_VERIFY(m_view->viewport()->grab().toImage() != before);
    }

    void theCriticalPathIsDrawn()
    {
        auto model = openModel({"zoo:gpt?layers=2&hidden=64&heads=4&seq=64&vocab=128&batch=8", {}, {}}, {});
        QVERIFY(bool(model));
        const auto update = planned(*model, {}, "pipeline:micro-batches=4,schedule=1f1b", 2);
        QVERIFY(update);
        m_view->setScene(update->scene);
        const auto analysis = analyse(update->scene, true);
        QVERIFY(analysis->deep);
        QVERIFY(analysis->steady.has_value());
        // Its length is the makespan.
        std::int64_t length = 0;
        for (std::size_t i = 0; i < analysis->path.size(); ++i) {
            length +=
                update->scene->timeline->spans.duration[static_cast<std::size_t>(analysis->path.span[i])]
                + analysis->path.gap[i];
        }
        QCOMPARE(length, update->scene->timeline->step.count());
        QTest::qWait(0);
        const QImage before = m_view->viewport()->grab().toImage();
        m_view->findChild<QAction *>(QStringLiteral("timeline.criticalPath"))->trigger();
        QTRY_VERIFY(m_view->viewport()->grab().toImage() != before);
        // A pause explains itself at a click.
        const DeviceLane &second = update->scene->lanes[1];
        const double pause = static_cast<double>(second.warmUp.begin) / 2;
        const QRect block = *m_view->rectOfBlock(1, second.blockOf(second.compute.begin) == 0 ? 0 : 1);
        const QPoint at(m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(pause)), block.bottom() + 4);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, at);
        if (m_view->focus().part == LanePart::Idle) {
            QTRY_VERIFY(m_view->panel().isVisible());
            QVERIFY(m_view->panel().table().title.find(" waits ") != std::string::npos);
        }
    }

private:
    void click(std::size_t row)
    {
        const auto rect = m_view->rectOf(row);
        QVERIFY(rect.has_value());
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, rect->center());
    }

    void moved(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QMouseEvent event(QEvent::MouseMove, at, m_view->viewport()->mapToGlobal(at), Qt::NoButton,
            Qt::LeftButton, modifiers);
        QApplication::sendEvent(m_view->viewport(), &event);
    }

    void dragged(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, modifiers, from);
        moved((from + to) / 2, modifiers);
        moved(to, modifiers);
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, modifiers, to);
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

PLANLOOM_QTEST(TimelineViewTest)
#include "timeline_view_test.moc"
