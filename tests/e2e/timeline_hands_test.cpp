// Every gesture of the timeline by mouse, in the whole window with its engine: the row it writes, the plan
// that follows, Esc at every stage, undo and redo.

#include "tests/e2e/timeline_hands.h"
#include "tests/qt_test.h"

using namespace planloom;

class TimelineHandsTest : public TimelineHandsInWindow
{
    Q_OBJECT

private Q_SLOTS:
    void aSpanIsMovedToAnotherLane()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            const std::size_t span = wideSpan(0);
            m_operator = forward(scene().operatorOf(span));
            const QPoint from = m_view->rectOf(span)->center();
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)));
            hand.rows = {QStringLiteral("place ")};
            hand.follows = [this] { QCOMPARE(m_at.decision(m_operator).devices, kSecond); };
            return hand;
        });
    }

    void aSpanIsMovedWithShift()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            const QPoint from = m_view->rectOf(wideSpan(0))->center();
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)), Qt::ShiftModifier);
            wholeStage(hand);
            return hand;
        });
    }

    void aBlockIsMovedToAnotherLane()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            const QPoint from = m_view->rectOfBlock(0, 0)->center();
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)));
            wholeStage(hand);
            return hand;
        });
    }

    /// Both stages need more memory on one device than a row allows: O switches that row off in the same
    /// step.
    void aBlockIsMovedWhereARowIsInTheWay()
    {
        open(kPipeline);
        const std::int64_t kibibytes =
            m_at.workspace().lastGood()->summary.largestPeak.count / 1024 * 21 / 20;
        const std::string limit = "limit memory " + std::to_string(kibibytes) + "KiB";
        const std::string text = m_at.workspace().tableText();
        m_at.workspace().setTableText(text + (text.ends_with('\n') ? "" : "\n") + limit + "\n");
        walk(m_at, [this, &limit] {
            HandGesture hand = base();
            const QPoint from = m_view->rectOfBlock(0, 0)->center();
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)));
            wholeStage(hand);
            hand.steps.push_back([this] {
                QTRY_VERIFY_WITH_TIMEOUT(previewIsFinal(m_at), kPatience);
                QCOMPARE(moodOf(*m_at.workspace().currentPreview()), GhostMood::Blocked);
            });
            hand.steps.push_back([this] {
                QTest::keyClick(m_view, Qt::Key_O);
                QVERIFY(m_view->gestures().rowsInTheWay().wished());
            });
            hand.rows << QStringLiteral("off %1").arg(QString::fromStdString(limit));
            return hand;
        });
    }

    void aBlockIsMovedEarlier() { movingBlock({}, -1); }

    void aBlockIsMovedEarlierWithAlt() { movingBlock(Qt::AltModifier, -1); }

    void aBlockIsSwappedWithShift() { movingBlock(Qt::ShiftModifier, 0); }

    /// B0 goes before F1, once: what follows keeps its order by one row more, with the mouse and with the
    /// keys.
    void aBlockIsMovedAndWhatFollowsKeepsItsOrder()
    {
        open(kPipeline);
        keepOrder(true);
        QCOMPARE(blocks(scene()), QStringLiteral("F0 F1 B0 F2 B1 F3 B2 B3"));
        const auto kept = [this] {
            QCOMPARE(blocks(*m_at.workspace().lastGood()->scene), QStringLiteral("F0 B0 F1 F2 B1 F3 B2 B3"));
        };
        walk(m_at, [&] {
            HandGesture hand = base();
            const QPoint from = m_view->rectOfBlock(0, 2)->center();
            byMouse(hand, from, from - QPoint(8, 0), QPoint(m_view->rectOfBlock(0, 1)->left() + 2, from.y()),
                Qt::AltModifier);
            hand.steps.push_back([this] {
                QTRY_VERIFY_WITH_TIMEOUT(
                    m_view->gestures().ghost().kept && m_view->gestures().ghost().kept->known, kPatience);
                QCOMPARE(m_view->gestures().ghost().kept->rows, 1);
            });
            hand.rows = {QStringLiteral("order ")};
            hand.follows = kept;
            return hand;
        });
        if (QTest::currentTestFailed())
            return;
        base();
        const DesignMark before(m_at.workspace());
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, 2)->center());
        QTest::keyClick(m_view, Qt::Key_Left, Qt::ShiftModifier | Qt::AltModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled()
                && blocks(*m_at.workspace().lastGood()->scene).startsWith(QStringLiteral("F0 B0 F1 F2")),
            kPatience);
        kept();
        while (m_at.workspace().history().steps().size() > before.steps
            && m_at.workspace().tableText() != before.text)
            QTest::keyClick(m_view, Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(m_at.workspace().tableText(), before.text);
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
        keepOrder(false);
    }

    void aSpanIsMovedWithinItsBlock() { movingSpan({}); }

    void aSpanIsMovedWithinItsBlockWithControl() { movingSpan(Qt::ControlModifier); }

    void aSpanIsMovedWithinItsBlockWithAlt() { movingSpan(Qt::AltModifier); }

    void aPieceIsMovedAmongThoseOfTheBlockBeside() { movingPiece({}); }

    void aPieceIsMovedForThisMicroBatchWithAlt() { movingPiece(Qt::AltModifier); }

    void aBottomEdgeIsPulledOverLanes() { spreading(false); }

    void aBottomEdgeIsPulledAndADigitPicks() { spreading(true); }

    void aLaneIsPulledOverAnother()
    {
        open("single");
        walk(m_at, [this] {
            HandGesture hand = base();
            int bottom = 0;
            for (const TimelineRow &row : m_view->rows())
                bottom = row.lane == 0 && row.kind == TimelineRow::Kind::Device ? row.y + row.height : bottom;
            m_operator = forward(scene().operatorOf(productSpan(0)));
            m_view->fitAll();
            const QPoint from(m_view->axisLeft() / 2, m_view->lanesTop() + bottom - 2);
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)));
            hand.rows = {QStringLiteral("split "), QStringLiteral("place ")};
            hand.follows = [this] {
                QCOMPARE(
                    m_at.decision(m_operator).devices, (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
                QCOMPARE(m_at.decision(m_operator).partition.splits.back().parts, 2);
            };
            return hand;
        });
    }

    void aBracketIsPulled()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            m_count = scene().lanes[0].warmUp.count;
            const QPoint grip = m_view->rectOfBracketEnd(0)->center();
            byMouse(hand, grip, grip - QPoint(8, 0), grip - QPoint(m_view->rectOfBlock(0, 0)->width(), 0));
            hand.rows = {QStringLiteral("in-flight %1").arg(m_count - 1)};
            hand.follows = [this] {
                QCOMPARE(m_at.workspace().lastGood()->plan->inFlight.at(0), m_count - 1);
            };
            return hand;
        });
    }

    void anAxisIsDroppedOnALane()
    {
        open(nullptr, "mesh pp=1 tp=2\n");
        walk(m_at, [this] {
            HandGesture hand = base();
            const std::size_t span = productSpan(0);
            m_operator = forward(scene().operatorOf(span));
            m_at.window->selection().select({m_operator});
            m_data.setData(QStringLiteral("application/x-planloom-axis"), "tp:2");
            const QPoint place(m_view->axisLeft() + 60, laneMiddle(0));
            hand.steps = {[this, place] {
                QDragEnterEvent enter(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_view->viewport(), &enter);
                QDragMoveEvent move(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_view->viewport(), &move);
                QVERIFY(move.isAccepted());
            }};
            // The desktop takes Esc while something is dragged, and the drag leaves.
            hand.escape = [this] {
                QDragLeaveEvent leave;
                QApplication::sendEvent(m_view->viewport(), &leave);
            };
            hand.finish = [this, place] {
                QDropEvent drop(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_view->viewport(), &drop);
            };
            hand.rows = {QStringLiteral("over tp")};
            hand.follows = [this] {
                QCOMPARE(m_at.decision(m_operator).partition.splits.back().axis, std::string("tp"));
            };
            return hand;
        });
    }
};

PLANLOOM_QTEST(TimelineHandsTest)
#include "timeline_hands_test.moc"
