#include <QtCore/QMimeData>
#include <QtGui/QAction>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QDragMoveEvent>
#include <QtGui/QDropEvent>
#include <QtTest/QSignalSpy>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_tag.h"

using namespace planloom;

/// Every gesture with a real mouse: the rows it writes, and that Escape leaves nothing behind.
class TimelineGesturesTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { openModels(); }
    void init() { show(m_pipeline); }
    void cleanup() { close(); }

    void aSpanDraggedToAnotherLanePlacesItsOperator()
    {
        const std::size_t span = wideSpan(0);
        const OperatorId op = forward(m_scene->operatorOf(span));
        const QPoint from = m_view->rectOf(span)->center();
        const QPoint to(from.x(), laneMiddle(1));
        drag(from, to);
        QVERIFY(m_view->gestures().dragging());
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Place);
        QCOMPARE(m_view->gestures().ghost().operators, std::vector<OperatorId>{op});
        // All micro-batches, forward and backward, go together.
        QVERIFY(m_view->gestures().ghost().spans.size() >= 8);
        QCOMPARE(m_host->previews.back().operators, std::vector<OperatorId>{op});
        QVERIFY(m_host->commits.empty());
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("place"));
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            std::vector<DeviceId>{DeviceId{1}});
    }

    void aBlockDraggedToAnotherLaneTakesItsStage()
    {
        const QPoint from = m_view->rectOfBlock(0, 0)->center();
        const QPoint to(from.x(), laneMiddle(1));
        drag(from, to);
        QCOMPARE(m_view->gestures().ghost().stage, StageId{0});
        QCOMPARE(m_host->previews.back().operators, operatorsOfStage(*m_host->gestureContext(), StageId{0}));
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const auto after = m_host->replanned();
        QVERIFY(after);
        for (const OperatorId op : m_host->commits.back().proposal.operators) {
            QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices,
                std::vector<DeviceId>{DeviceId{1}});
        }
    }

    void shiftTakesTheWholeStageOfASpan()
    {
        const std::size_t span = wideSpan(0);
        const QPoint from = m_view->rectOf(span)->center();
        const QPoint to(from.x(), laneMiddle(1));
        drag(from, to, Qt::ShiftModifier);
        QCOMPARE(m_view->gestures().ghost().stage, StageId{0});
        // Letting go of Shift goes back to the one operator, at once.
        moveTo(to, Qt::NoModifier);
        QCOMPARE(m_view->gestures().ghost().operators.size(), std::size_t{1});
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void aSelectionMovesTogether()
    {
        const std::size_t a = wideSpan(0);
        const std::size_t b = wideSpan(0, a + 1);
        std::vector<OperatorId> both{forward(m_scene->operatorOf(a)), forward(m_scene->operatorOf(b))};
        std::sort(both.begin(), both.end());
        m_selection->select({m_scene->operatorOf(a), m_scene->operatorOf(b)});
        const QPoint from = m_view->rectOf(a)->center();
        drag(from, QPoint(from.x(), laneMiddle(1)));
        QCOMPARE(m_view->gestures().ghost().operators, both);
        release(QPoint(from.x(), laneMiddle(1)));
        QCOMPARE(m_host->commits.back().proposal.operators, both);
    }

    void sixPixelsLockTheDirection()
    {
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        press(from);
        moveTo(from + QPoint(3, 4));
        QVERIFY(!m_view->gestures().dragging());
        moveTo(from + QPoint(2, 7));
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Place);
        moveTo(from + QPoint(90, 8)); // goes sideways now, but the direction stays
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Place);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void escapeAbandonsAtEveryStage()
    {
        const std::string before = m_host->text();
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        const QPoint to(from.x(), laneMiddle(1));
        for (int stage = 0; stage < 4; ++stage) {
            press(from);
            if (stage >= 1)
                moveTo(from + QPoint(0, 8));
            if (stage >= 2)
                moveTo(to);
            if (stage >= 3)
                m_host->answerPreview();
            QTest::keyClick(m_view.get(), Qt::Key_Escape);
            nothingIsLeft();
            moveTo(to + QPoint(1, 1), Qt::NoModifier);
            nothingIsLeft();
            release(to);
            nothingIsLeft();
            QCOMPARE(m_host->text(), before);
        }
    }

    void theRightButtonAbandons()
    {
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        drag(from, QPoint(from.x(), laneMiddle(1)));
        QTest::mousePress(m_view->viewport(), Qt::RightButton, {}, QPoint(from.x(), laneMiddle(1)));
        QVERIFY(!m_view->gestures().dragging());
        QVERIFY(!m_host->currentPreview());
        release(QPoint(from.x(), laneMiddle(1)));
        QVERIFY(m_host->commits.empty());
    }

    void backOnItsOwnLaneNothingIsWritten()
    {
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        drag(from, QPoint(from.x(), laneMiddle(1)));
        moveTo(from + QPoint(0, 7));
        QVERIFY(m_view->gestures().ghost().atHome);
        QVERIFY(!m_host->currentPreview());
        release(from + QPoint(0, 7));
        QVERIFY(m_host->commits.empty());
    }

    void theGhostIsDrawnFromThePreview()
    {
        const QPoint from = m_view->rectOfBlock(0, 0)->center();
        const QPoint to(from.x() + 2, laneMiddle(1));
        drag(from, to);
        const QImage waiting = m_view->viewport()->grab().toImage();
        m_host->answerPreview();
        QVERIFY(m_host->currentPreview()->feasible());
        const QImage answered = m_view->viewport()->grab().toImage();
        QVERIFY(waiting != answered);
        const TimelineTag tag =
            tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(), m_host->currentPreview().get());
        QVERIFY2(tag.lines.front().contains(QStringLiteral("step")), qPrintable(tag.lines.front()));
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
    }

    void aRefusedDropForbidsAndSaysWhy()
    {
        // The first forward block can't come behind its own backward block.
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        const QPoint from = m_view->rectOfBlock(0, 0)->center();
        const QRect past = *m_view->rectOfBlock(0, backward);
        const QPoint to(past.right() - 2, from.y() + 1);
        const QSignalSpy refused(m_view.get(), &TimelineView::refused);
        drag(from, to);
        QVERIFY(m_view->gestures().proposal().has_value());
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::ForbiddenCursor);
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QVERIFY(ghost.illegalBegin < ghost.illegalEnd);
        QVERIFY(ghost.illegalEnd >= static_cast<double>(blocks[backward].begin));
        const TimelineTag tag = tagFor(ghost, m_view->gestures().proposal(), m_host->currentPreview().get());
        QCOMPARE(tag.state, TimelineTag::State::Refused);
        QVERIFY(tag.lines.front().contains(
            QString::fromStdString(m_view->gestures().proposal()->refusal->message)));
        QVERIFY(!m_view->viewport()->grab().isNull());
        release(to);
        QVERIFY(m_host->commits.empty());
        QCOMPARE(refused.count(), 1);
    }

    void aBlockDraggedToACaretIsOrderedBeforeItsNeighbour()
    {
        // On stage 0 forward blocks stand before the first backward one: bring that forward past the last of
        // them.
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        QVERIFY(backward > 1);
        const QPoint from = m_view->rectOfBlock(0, backward)->center();
        const QRect before = *m_view->rectOfBlock(0, backward - 1);
        const QPoint to(before.left() + 2, from.y());
        drag(from, to);
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Order);
        QCOMPARE(m_view->gestures().ghost().caret->before, backward - 1);
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(hasRow("order"), m_host->text().c_str());
        const auto after = m_host->replanned();
        QVERIFY(after);
        // The plan follows: that backward block now comes before the forward one.
        const auto &now = after->scene->lanes[0].blocks;
        const auto place = [&](const TimelineBlock &block) {
            return std::find_if(now.begin(), now.end(), [&](const TimelineBlock &other) {
                return other.kind == block.kind && other.microBatch == block.microBatch
                    && other.stage == block.stage;
            }) - now.begin();
        };
        QVERIFY(place(blocks[backward]) < place(blocks[backward - 1]));
    }

    void altOrdersThisMicroBatchOnly()
    {
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        const QPoint from = m_view->rectOfBlock(0, backward)->center();
        const QPoint to(m_view->rectOfBlock(0, backward - 1)->left() + 2, from.y());
        drag(from, to);
        const auto all = m_host->previews.back().rows;
        moveTo(to + QPoint(0, 1), Qt::AltModifier);
        QVERIFY(m_host->previews.back().rows != all);
        release(to, Qt::AltModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
    }

    void shiftSwapsWithTheBlockUnderThePointer()
    {
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        const QPoint from = m_view->rectOfBlock(0, backward)->center();
        const QPoint to = m_view->rectOfBlock(0, backward - 1)->center();
        drag(from, to, Qt::ShiftModifier);
        QCOMPARE(m_view->gestures().ghost().caret->before, backward - 1);
        release(to, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("order"));
    }

    void aSpanDraggedWithinItsBlockIsOrderedBeforeItsNeighbour()
    {
        show(m_single);
        // Two operators of one block with no path between them are rare: whatever is proposed, it is about
        // these two.
        const std::size_t span = wideSpan(0, wideSpan(0) + 2);
        zoomTo(span);
        const QRect rect = *m_view->rectOf(span);
        const auto next = m_view->rectOf(span + 1);
        QVERIFY(next.has_value());
        const QPoint to(next->right() - 1, rect.center().y());
        drag(rect.center(), to);
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Order);
        QVERIFY(m_view->gestures().ghost().amongSpans);
        QCOMPARE(m_view->gestures().ghost().caret->before, span + 2);
        QVERIFY(m_view->gestures().proposal().has_value());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void theBottomEdgeSpreadsAnOperatorOverLanes()
    {
        const std::size_t span = productSpan(0);
        zoomTo(span);
        const QRect rect = *m_view->rectOf(span);
        const QPoint from(rect.center().x(), rect.bottom() - 1);
        const QPoint to(from.x(), laneMiddle(1));
        drag(from, to);
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Spread);
        QCOMPARE(m_view->gestures().ghost().targetRows.size(), std::size_t{2});
        QVERIFY(m_view->gestures().proposal().has_value());
        QVERIFY2(!m_view->gestures().proposal()->refusal,
            m_view->gestures().proposal()->refusal ? m_view->gestures().proposal()->refusal->message.c_str()
                                                   : "");
        const auto choices = m_view->gestures().ghost().choices;
        QVERIFY(choices.size() > 1);
        const auto first = m_view->gestures().proposal()->rows;
        QTest::keyClick(m_view.get(), Qt::Key_2); // another dimension
        QCOMPARE(m_view->gestures().ghost().choice, 1);
        QVERIFY(m_view->gestures().proposal()->rows != first);
        const TimelineTag tag = tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(), nullptr);
        QVERIFY(tag.lines.back().contains(QString::fromStdString(choices[1])));
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("split"));
        QVERIFY(hasRow("place"));
        const OperatorId op = forward(m_scene->operatorOf(span));
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
        // Dragging the edge back takes the split away.
        m_view->setScene(after->scene);
        const std::size_t now = rowOf(*after->scene, op, 0);
        zoomTo(now);
        const QRect split = *m_view->rectOf(now);
        const QPoint edge(split.center().x(), split.bottom() - 1);
        drag(edge, QPoint(edge.x(), edge.y() - 12));
        QCOMPARE(m_view->gestures().ghost().targetRows.size(), std::size_t{1});
        release(QPoint(edge.x(), edge.y() - 12));
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        const auto back = m_host->replanned();
        QVERIFY(back);
        QCOMPARE(back->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            std::vector<DeviceId>{DeviceId{0}});
    }

    void theEdgeOfALaneSpreadsAllOfIt()
    {
        show(m_single);
        const TimelineRow *lane = nullptr;
        for (const TimelineRow &row : m_view->rows())
            lane = !lane && row.kind == TimelineRow::Kind::Device ? &row : lane;
        QVERIFY(lane && lane->lane == 0);
        const QPoint from(m_view->axisLeft() / 2, m_view->lanesTop() + lane->y + lane->height - 2);
        moveTo(from, {});
        QMouseEvent hover(
            QEvent::MouseMove, from, m_view->viewport()->mapToGlobal(from), Qt::NoButton, Qt::NoButton, {});
        QApplication::sendEvent(m_view->viewport(), &hover);
        QCOMPARE(m_view->viewport()->cursor().shape(), Qt::SizeVerCursor);
        const QPoint to(from.x(), laneMiddle(1));
        drag(from, to);
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QCOMPARE(ghost.drag, TimelineDrag::Spread);
        QCOMPARE(ghost.targetRows.size(), std::size_t{2});
        QVERIFY(ghost.operators.size() > 50);
        QVERIFY(m_view->gestures().proposal().has_value());
        QVERIFY2(!m_view->gestures().proposal()->refusal,
            m_view->gestures().proposal()->refusal ? m_view->gestures().proposal()->refusal->message.c_str()
                                                   : "");
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
        release(to);
        nothingIsLeft();
        drag(from, to);
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const auto after = m_host->replanned();
        QVERIFY(after);
        const OperatorId op = forward(m_scene->operatorOf(productSpan(0)));
        const OperatorDecision &decision = after->plan->decisions[static_cast<std::size_t>(op.index)];
        QCOMPARE(decision.devices, (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
        QCOMPARE(decision.partition.splits.back().parts, 2);
    }

    void theNameOfALaneStillMovesIt()
    {
        const TimelineRow first = m_view->rows().front();
        const QPoint from(40, m_view->lanesTop() + first.y + first.height / 2);
        drag(from,
            QPoint(40, m_view->lanesTop() + m_view->rows().back().y + m_view->rows().back().height - 20));
        QVERIFY(!m_view->gestures().dragging());
        release(QPoint(40, m_view->lanesTop() + m_view->rows().back().y + m_view->rows().back().height - 20));
        QCOMPARE(m_view->rows().back().lane, first.lane);
        QVERIFY(m_host->commits.empty());
    }

    void theBracketChangesHowManyAreInFlight()
    {
        const WarmUp warmUp = m_scene->lanes[0].warmUp;
        QVERIFY(warmUp.count >= 2);
        const QPoint grip = m_view->rectOfBracketEnd(0)->center();
        const int each = m_view->rectOfBlock(0, 0)->width();
        const QPoint to = grip - QPoint(each, 0);
        drag(grip, to);
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::InFlight);
        QCOMPARE(m_view->gestures().ghost().inFlight, warmUp.count - 1);
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(hasRow(("in-flight <= " + std::to_string(warmUp.count - 1)).c_str())
                || m_host->commits.back().proposal.words.find(std::to_string(warmUp.count - 1))
                    != std::string::npos,
            m_host->text().c_str());
    }

    void aMeshAxisDroppedOnALaneSplitsOverIt()
    {
        show(planned(m_model, {}, "3d:pp=1,tp=2,dp=1", kDevices));
        const std::size_t span = productSpan(0);
        const OperatorId op = m_scene->operatorOf(span);
        m_selection->select({op});
        QMimeData data;
        data.setData(QStringLiteral("application/x-planloom-axis"), "tp:2");
        const QPoint at(m_view->axisLeft() + 60, laneMiddle(0));
        QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_view->viewport(), &enter);
        QVERIFY(enter.isAccepted());
        QDragMoveEvent move(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_view->viewport(), &move);
        QVERIFY(!m_host->previews.empty());
        QVERIFY(m_host->commits.empty());
        QDragLeaveEvent leave;
        QApplication::sendEvent(m_view->viewport(), &leave);
        nothingIsLeft();
        QDragEnterEvent again(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_view->viewport(), &again);
        QApplication::sendEvent(m_view->viewport(), &move);
        QDropEvent drop(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_view->viewport(), &drop);
        QVERIFY(m_host->previews.back().words.find("tp") != std::string::npos);
        QCOMPARE(
            m_host->commits.size(), m_host->previews.back().accepted() ? std::size_t{1} : std::size_t{0});
        QVERIFY(!m_view->gestures().dragging());
    }

    void withoutAHostItIsAViewer()
    {
        m_view->setGestureHost(nullptr);
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        drag(from, QPoint(from.x(), laneMiddle(1)));
        QVERIFY(!m_view->gestures().dragging());
        release(QPoint(from.x(), laneMiddle(1)));
        QVERIFY(m_host->previews.empty());
        QVERIFY(!m_view->findChild<QAction *>(QStringLiteral("timeline.place"))->isEnabled());
    }

    void aNewPlanWaitsForTheEndOfADrag()
    {
        const QPoint from = m_view->rectOf(wideSpan(0))->center();
        drag(from, QPoint(from.x(), laneMiddle(1)));
        m_view->setScene(m_single->scene);
        QCOMPARE(m_view->scene(), m_scene);
        QVERIFY(m_view->gestures().dragging());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QCOMPARE(m_view->scene(), m_single->scene);
    }

    void everyActionIsNamed()
    {
        QVERIFY(m_view->actions().size() > 15);
        for (const QAction *action : m_view->actions()) {
            QVERIFY(action->objectName().startsWith(QStringLiteral("timeline.")));
            QVERIFY(!action->text().isEmpty());
        }
    }

    void aDragAtTheEdgeScrolls()
    {
        QTest::keyClick(m_view.get(), Qt::Key_W);
        QTest::keyClick(m_view.get(), Qt::Key_W);
        QTest::keyClick(m_view.get(), Qt::Key_W);
        const double origin = m_view->axis().origin;
        const auto &blocks = m_scene->lanes[0].blocks;
        QPoint from;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const auto rect = m_view->rectOfBlock(0, i);
            if (rect && rect->width() > 40 && rect->right() < m_view->viewport()->width() - 60) {
                from = rect->center();
                break;
            }
        }
        QVERIFY(!from.isNull());
        drag(from, QPoint(m_view->viewport()->width() - 4, from.y()));
        QTRY_VERIFY(m_view->axis().origin > origin);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }
};

PLANLOOM_QTEST(TimelineGesturesTest)
#include "timeline_gestures_test.moc"
