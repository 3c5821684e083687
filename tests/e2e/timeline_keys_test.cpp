// Every gesture of the timeline by keyboard, in the whole window with its engine: the row it writes, the plan
// that follows, Esc at every stage, undo and redo.

#include <QtWidgets/QLineEdit>

#include "tests/e2e/timeline_hands.h"
#include "tests/qt_test.h"

using namespace planloom;

class TimelineKeysTest : public TimelineHandsInWindow
{
    Q_OBJECT

private Q_SLOTS:
    void aBracketHasKeys()
    {
        open(kPipeline);
        press(m_at, [this] {
            HandGesture hand = base();
            m_count = scene().lanes[0].warmUp.count;
            QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBracketEnd(0)->center());
            hand.finish = [this] { QTest::keyClick(m_view, Qt::Key_Minus); };
            hand.rows = {QStringLiteral("in-flight %1").arg(m_count - 1)};
            hand.follows = [this] {
                QCOMPARE(m_at.workspace().lastGood()->plan->inFlight.at(0), m_count - 1);
            };
            return hand;
        });
    }

    void shiftAndDownMovesTheSelection()
    {
        open(kPipeline);
        press(m_at, [this] {
            HandGesture hand = base();
            clickSpan(wideSpan(0));
            hand.finish = [this] { QTest::keyClick(m_view, Qt::Key_Down, Qt::ShiftModifier); };
            hand.rows = {QStringLiteral("place ")};
            hand.follows = [this] { QCOMPARE(m_at.decision(m_operator).devices, kSecond); };
            return hand;
        });
    }

    void repeatedPressesAreOneStep()
    {
        open(kPipeline);
        HandGesture hand = base();
        clickSpan(wideSpan(0));
        const DesignMark before(m_at.workspace());
        QTest::keyClick(m_view, Qt::Key_Down, Qt::ShiftModifier);
        QTest::keyClick(m_view, Qt::Key_Up, Qt::ShiftModifier);
        QCOMPARE(m_at.workspace().history().steps().size(), before.steps + 1);
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
        QCOMPARE(m_at.decision(m_operator).devices, kFirst);
        QTest::keyClick(m_view, Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(m_at.workspace().tableText(), before.text);
    }

    void shiftAndLeftMovesABlock() { pressingBlock(Qt::Key_Left, Qt::ShiftModifier); }

    void shiftAndLeftMovesAnOperatorBeforeAPiece() { pressingPiece(Qt::ShiftModifier); }

    void altShiftAndLeftMovesThisBlockAlone()
    {
        pressingBlock(Qt::Key_Left, Qt::ShiftModifier | Qt::AltModifier);
    }

    /// Behind the next one, and before the one after that.
    void controlShiftAndRightHoldsAnOperatorBetweenItsNeighbours()
    {
        open(kPipeline);
        HandGesture hand = base();
        const DesignMark before(m_at.workspace());
        const LaneRows rows = scene().lanes[0].blocks[0].rows;
        int tried = 0;
        for (std::size_t row = rows.begin; row + 2 < rows.end; ++row) {
            zoomTo(row);
            const auto rect = m_view->rectOf(row);
            if (!rect || !scene().operatorOf(row).valid())
                continue;
            const OperatorId own = scene().operatorOf(row);
            const OperatorId other = scene().operatorOf(row + 1);
            const OperatorId behind = scene().operatorOf(row + 2);
            // A cast serves the operator behind it, and is none of its own.
            const auto isKernel = [this](std::size_t at) {
                return scene().findInstruction(at)->kind == InstructionKind::Kernel;
            };
            if (!isKernel(row) || !isKernel(row + 1) || !isKernel(row + 2))
                continue;
            QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, rect->center());
            if (m_at.window->selection().selected() != std::vector<OperatorId>{own})
                continue; // a view takes no time: a click hits what runs there
            QTest::keyClick(m_view, Qt::Key_Right, Qt::ControlModifier | Qt::ShiftModifier);
            if (m_at.workspace().tableText() == before.text)
                continue; // the data flows that way
            ++tried;
            QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
            const bool two =
                m_at.workspace().lastGood()->plan->orders.size() >= before.plan->plan->orders.size() + 2;
            if (two) {
                QCOMPARE(m_at.workspace().history().steps().size(),
                    before.steps + static_cast<std::size_t>(tried));
                hasOrder(other, own);
                hasOrder(own, behind);
            }
            QTest::keyClick(m_view, Qt::Key_Z, Qt::ControlModifier);
            QCOMPARE(m_at.workspace().tableText(), before.text);
            QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
            if (two)
                return;
        }
        QFAIL("nothing could be held between two others");
    }

    void tSplitsByALine()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            clickSpan(productSpan(0));
            hand.steps = {[this] { QTest::keyClick(m_view, Qt::Key_T); },
                [this] {
                    QLineEdit *count = nullptr;
                    for (QLineEdit *each :
                        m_view->findChildren<QLineEdit *>(QStringLiteral("timeline.line.count.edit")))
                        count = each->isVisible() ? each : count;
                    QVERIFY(count);
                    auto *dimension = count->parentWidget()->parentWidget()->findChild<QComboBox *>(
                        QStringLiteral("timeline.line.dimension"));
                    QVERIFY(dimension);
                    dimension->setCurrentIndex(
                        dimension->count() - 1); // the batch is already cut in micro-batches
                    count->setFocus();
                    count->selectAll();
                    QTest::keyClicks(count, QStringLiteral("4"));
                }};
            hand.finish = [this] { key(m_view, Qt::Key_Return); };
            hand.rows = {QStringLiteral("by 4")};
            hand.follows = [this] { QCOMPARE(m_at.decision(m_operator).partition.splits.back().parts, 4); };
            return hand;
        });
    }

    void shiftTReplicatesByALine()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            clickSpan(productSpan(0));
            hand.steps = {[this] { QTest::keyClick(m_view, Qt::Key_T, Qt::ShiftModifier); }};
            hand.finish = [this] { key(m_view, Qt::Key_Return); };
            hand.rows = {QStringLiteral("replicate ")};
            hand.follows = [this] {
                QVERIFY(m_at.decision(m_operator).partition.splits.back().kind == SplitKind::Replicate);
            };
            return hand;
        });
    }

    void gPlacesByALine()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            clickSpan(wideSpan(0));
            hand.steps = {[this] { QTest::keyClick(m_view, Qt::Key_G); },
                [this] { QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("1")); }};
            hand.finish = [this] { key(m_view, Qt::Key_Return); };
            hand.rows = {QStringLiteral("place ")};
            hand.follows = [this] { QCOMPARE(m_at.decision(m_operator).devices, kSecond); };
            return hand;
        });
    }

    void bOrdersByALine()
    {
        open(kPipeline);
        walk(m_at, [this] {
            HandGesture hand = base();
            clickSpan(wideSpan(0));
            hand.steps = {[this] { QTest::keyClick(m_view, Qt::Key_B); },
                [this] { QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("h.3.mlp.c_fc")); }};
            hand.finish = [this] { key(m_view, Qt::Key_Return); };
            hand.rows = {QStringLiteral("order ")};
            hand.follows = [this] { hasOrder(m_operator, m_at.named("h.3.mlp.c_fc")); };
            return hand;
        });
    }

    void rRecomputes()
    {
        open(kPipeline);
        pressing(Qt::Key_R, {}, QStringLiteral("recompute "),
            [this] { QVERIFY(m_at.decision(m_operator).recomputeGroup >= 0); });
    }

    void pHoldsAndShiftPAndDeleteFree()
    {
        open(nullptr);
        pressing(Qt::Key_P, {}, QStringLiteral("place "),
            [this] { QVERIFY(!m_at.decision(m_operator).rows.empty()); });
        if (QTest::currentTestFailed())
            return;
        for (const auto &[pressed, held] : {std::pair{Qt::Key_P, Qt::KeyboardModifiers(Qt::ShiftModifier)},
                 std::pair{Qt::Key_Delete, Qt::KeyboardModifiers()}}) {
            base();
            clickSpan(productSpan(0));
            QTest::keyClick(m_view, Qt::Key_R);
            QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
            QVERIFY(m_at.decision(m_operator).recomputeGroup >= 0);
            pressing(pressed, held, {}, [this] { QVERIFY(m_at.decision(m_operator).recomputeGroup < 0); });
            if (QTest::currentTestFailed())
                return;
            QTest::keyClick(m_view, Qt::Key_Z, Qt::ControlModifier);
            QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
        }
    }
};

PLANLOOM_QTEST(TimelineKeysTest)
#include "timeline_keys_test.moc"
