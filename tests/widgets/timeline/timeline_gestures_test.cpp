#include <QtCore/QMimeData>
#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QDragMoveEvent>
#include <QtGui/QDropEvent>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_tag.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>

using namespace planloom;

namespace {

constexpr std::int32_t kDevices = 2;

} // namespace

/// Every gesture with a real mouse or keyboard: the rows it writes, and that Escape leaves nothing behind.
class TimelineGesturesTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        auto opened = openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8", {}, {}}, {});
        QVERIFY2(opened, opened ? "" : opened.error().message.c_str());
        m_model = *opened;
        m_pipeline = planned(m_model, {}, "pipeline:micro-batches=4,schedule=1f1b", kDevices);
        QVERIFY(m_pipeline);
        m_single = planned(m_model, {}, "single", kDevices);
        QVERIFY(m_single);
    }

    void init() { show(m_pipeline); }

    void cleanup()
    {
        m_view.reset();
        m_host.reset();
        m_selection.reset();
    }

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
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices, std::vector<DeviceId>{DeviceId{1}});
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
            QCOMPARE(
                after->plan->decisions[static_cast<std::size_t>(op.index)].devices, std::vector<DeviceId>{DeviceId{1}});
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
        const TimelineTag tag = tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(),
            m_host->currentPreview().get());
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
        QVERIFY(tag.lines.front().contains(QString::fromStdString(m_view->gestures().proposal()->refusal->message)));
        QVERIFY(!m_view->viewport()->grab().isNull());
        release(to);
        QVERIFY(m_host->commits.empty());
        QCOMPARE(refused.count(), 1);
    }

    void aBlockDraggedToACaretIsOrderedBeforeItsNeighbour()
    {
        // On stage 0 forward blocks stand before the first backward one: bring that forward past the last of them.
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
                return other.kind == block.kind && other.microBatch == block.microBatch && other.stage == block.stage;
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
        // Two operators of one block with no path between them are rare: whatever is proposed, it is about these two.
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
            m_view->gestures().proposal()->refusal ? m_view->gestures().proposal()->refusal->message.c_str() : "");
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
        QCOMPARE(back->plan->decisions[static_cast<std::size_t>(op.index)].devices, std::vector<DeviceId>{DeviceId{0}});
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
                || m_host->commits.back().proposal.words.find(std::to_string(warmUp.count - 1)) != std::string::npos,
            m_host->text().c_str());
    }

    void theBracketHasKeys()
    {
        const WarmUp warmUp = m_scene->lanes[0].warmUp;
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBracketEnd(0)->center());
        QCOMPARE(m_view->focus().part, LanePart::Bracket);
        QTest::keyClick(m_view.get(), Qt::Key_Minus);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QTest::keyClick(m_view.get(), Qt::Key_Plus);
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        QCOMPARE(m_host->commits[0].mergeKey, m_host->commits[1].mergeKey);
        QVERIFY(m_host->commits[1].proposal.words.find(std::to_string(warmUp.count)) != std::string::npos);
    }

    void shiftAndArrowsMoveTheSelectionALane()
    {
        const std::size_t span = wideSpan(0);
        const OperatorId op = forward(m_scene->operatorOf(span));
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QTest::keyClick(m_view.get(), Qt::Key_Down, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(!m_host->commits[0].mergeKey.isEmpty());
        QTest::keyClick(m_view.get(), Qt::Key_Up, Qt::ShiftModifier); // goes on from where it was sent, not from the old plan
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        QCOMPARE(m_host->commits[0].mergeKey, m_host->commits[1].mergeKey);
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices, std::vector<DeviceId>{DeviceId{0}});
        const QSignalSpy refused(m_view.get(), &TimelineView::refused);
        QTest::keyClick(m_view.get(), Qt::Key_Up, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        QCOMPARE(refused.count(), 1);
    }

    void shiftAndArrowsMoveABlockASlot()
    {
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, backward)->center());
        QCOMPARE(m_view->focus().part, LanePart::Block);
        QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("order"));
        QVERIFY(!m_host->commits[0].mergeKey.isEmpty());
        const auto after = m_host->replanned();
        QVERIFY(after);
    }

    void placeIsTyped()
    {
        const std::size_t span = wideSpan(0);
        const OperatorId op = forward(m_scene->operatorOf(span));
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QTest::keyClick(m_view.get(), Qt::Key_G);
        auto *edit = m_view->findChild<QLineEdit *>(QStringLiteral("timeline.line.place"));
        QVERIFY(edit && edit->isVisible());
        QTest::keyClicks(edit, QStringLiteral("9"));
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        QTest::keyClick(edit, Qt::Key_Return); // refused: nothing is written, and the line can be put right
        QVERIFY(m_host->commits.empty());
        QVERIFY(edit->isVisible());
        QTest::keyClick(edit, Qt::Key_Backspace);
        QTest::keyClicks(edit, QStringLiteral("1"));
        QVERIFY(m_host->currentPreview() != nullptr);
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices, std::vector<DeviceId>{DeviceId{1}});
        QVERIFY(m_view->hasFocus());
    }

    void aTypedLineIsAbandonedByEscape()
    {
        for (const int key : {Qt::Key_T, Qt::Key_G, Qt::Key_B}) {
            QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(productSpan(0))->center());
            QTest::keyClick(m_view.get(), key);
            auto *line = m_view->findChild<TimelineLineEditor *>();
            QVERIFY(line->isVisible());
            QWidget *focused = QApplication::focusWidget();
            QVERIFY(focused && line->isAncestorOf(focused));
            QVERIFY(!m_view->viewport()->grab().isNull());
            QTest::keyClick(focused, Qt::Key_Escape);
            QVERIFY(!line->isVisible());
            nothingIsLeft();
        }
    }

    void splitIsTyped()
    {
        const std::size_t span = productSpan(0);
        const OperatorId op = forward(m_scene->operatorOf(span));
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QTest::keyClick(m_view.get(), Qt::Key_T);
        auto *count = m_view->findChild<QLineEdit *>(QStringLiteral("timeline.line.count.edit"));
        QVERIFY(count);
        QVERIFY(m_host->currentPreview() != nullptr); // the ghost is there from the first moment
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("split"));
        QCOMPARE(m_host->commits[0].proposal.operators, std::vector<OperatorId>{op});
    }

    void orderIsTyped()
    {
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(wideSpan(0))->center());
        QTest::keyClick(m_view.get(), Qt::Key_B);
        auto *edit = m_view->findChild<QLineEdit *>(QStringLiteral("timeline.line.operator"));
        QVERIFY(edit);
        QTest::keyClicks(edit, QStringLiteral("no such operator"));
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        edit->clear();
        const auto &operators = m_model->graph->operators;
        edit->setText(QString::fromStdString(operators[static_cast<std::size_t>(m_model->forwardOperators) - 1].name));
        QVERIFY2(!m_view->gestures().proposal()->refusal, "the last operator can come last");
        QTest::keyClick(edit, Qt::Key_Escape);
        nothingIsLeft();
    }

    void actionsOfTheSelectionHaveKeysAndWriteRows()
    {
        const std::size_t span = productSpan(0);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QTest::keyClick(m_view.get(), Qt::Key_P, Qt::ShiftModifier); // free
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QTest::keyClick(m_view.get(), Qt::Key_P); // hold
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        QTest::keyClick(m_view.get(), Qt::Key_R);
        QCOMPARE(m_host->commits.size(), std::size_t{3});
        QVERIFY(hasRow("recompute"));
        QTest::keyClick(m_view.get(), Qt::Key_Delete);
        QCOMPARE(m_host->commits.size(), std::size_t{4});
        QVERIFY(!hasRow("recompute"));
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
        QCOMPARE(m_host->commits.size(), m_host->previews.back().accepted() ? std::size_t{1} : std::size_t{0});
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

private:
    void show(const PlanUpdateSnapshot &update)
    {
        QVERIFY(update);
        cleanup();
        m_scene = update->scene;
        m_selection = std::make_unique<SelectionModel>();
        m_host = std::make_unique<RecordingHost>(m_model, update, kDevices);
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(1400, 520);
        m_view->setScene(m_scene);
        m_view->setGestureHost(m_host.get());
        m_view->setExpanded(m_scene->lanes.front().symmetryClass, true);
        m_view->show();
        m_view->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_view.get()));
        m_view->setFocus();
        QVERIFY(m_view->hasFocus());
    }

    OperatorId forward(OperatorId op) const
    {
        const Operator &of = m_model->graph->at(op);
        return of.direction == Direction::Backward ? of.mirror : op;
    }

    /// A forward compute span of a lane's first block that can be seen alone; zooms in until there is one.
    std::size_t wideSpan(std::int32_t lane, std::size_t from = 0)
    {
        for (int tries = 0; tries < 40; ++tries) {
            const auto &blocks = m_scene->lanes[static_cast<std::size_t>(lane)].blocks;
            const TimelineBlock &block = *std::find_if(blocks.begin(), blocks.end(),
                [](const TimelineBlock &each) { return each.kind == SegmentKind::Forward; });
            for (std::size_t row = std::max(block.rows.begin, from); row < block.rows.end; ++row) {
                const auto rect = m_view->rectOf(row);
                const OperatorId op = m_scene->operatorOf(row);
                if (rect && rect->width() >= 14 && op.valid())
                    return row;
            }
            QTest::keyClick(m_view.get(), Qt::Key_W);
            m_view->setAxis({static_cast<double>(block.begin), m_view->axis().nanosecondsPerPixel});
        }
        qFatal("no span is wide enough");
        return 0;
    }

    /// A product (that has dimensions to split), likewise.
    std::size_t productSpan(std::int32_t lane)
    {
        std::size_t row = wideSpan(lane);
        while (m_model->graph->at(m_scene->operatorOf(row)).kind != OperatorKind::Linear)
            row = wideSpan(lane, row + 1);
        return row;
    }

    std::size_t rowOf(const TimelineScene &scene, OperatorId op, std::int32_t device) const
    {
        for (const std::size_t row : rowsOf(scene, {op})) {
            if (scene.timeline->spans.device[row] == device && scene.timeline->spans.stream[row] == StreamKind::Compute)
                return row;
        }
        return 0;
    }

    void zoomTo(std::size_t row)
    {
        const SpanColumns &spans = m_view->scene()->timeline->spans;
        const double duration = static_cast<double>(spans.duration[row]);
        m_view->setAxis({static_cast<double>(spans.start[row]) - 2 * duration, duration / 100});
    }

    int laneMiddle(std::int32_t lane) const
    {
        for (const TimelineRow &row : m_view->rows()) {
            if (row.lane == lane && row.kind == TimelineRow::Kind::Device)
                return m_view->lanesTop() + row.operatorsTop() + row.operators / 2;
        }
        return -1;
    }

    void press(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, modifiers, at);
    }
    void moveTo(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QMouseEvent event(QEvent::MouseMove, at, m_view->viewport()->mapToGlobal(at), Qt::NoButton, Qt::LeftButton, modifiers);
        QApplication::sendEvent(m_view->viewport(), &event);
    }
    void release(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, modifiers, at);
    }
    void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {})
    {
        press(from, modifiers);
        moveTo(from + (to - from) / 4, modifiers);
        moveTo((from + to) / 2, modifiers);
        moveTo(to, modifiers);
    }

    bool hasRow(const char *word) const { return m_host->text().find(word) != std::string::npos; }

    void nothingIsLeft()
    {
        QVERIFY(!m_view->gestures().dragging());
        QVERIFY(!m_host->currentPreview());
        QVERIFY(m_host->commits.empty());
    }

    ModelSnapshot m_model;
    PlanUpdateSnapshot m_pipeline;
    PlanUpdateSnapshot m_single;
    TimelineSceneSnapshot m_scene;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<RecordingHost> m_host;
    std::unique_ptr<TimelineView> m_view;
};

QTEST_MAIN(TimelineGesturesTest)
#include "timeline_gestures_test.moc"
