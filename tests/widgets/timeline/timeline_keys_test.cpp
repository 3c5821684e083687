#include <QtTest/QSignalSpy>
#include <QtWidgets/QLineEdit>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_line_editor.h"

using namespace planloom;

/// Every gesture by keyboard: the keys that write at once, and the lines that are typed.
class TimelineKeysTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { openModels(); }
    void init() { show(m_pipeline); }
    void cleanup() { close(); }

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
        QTest::keyClick(m_view.get(), Qt::Key_Up,
            Qt::ShiftModifier); // goes on from where it was sent, not from the old plan
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        QCOMPARE(m_host->commits[0].mergeKey, m_host->commits[1].mergeKey);
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            std::vector<DeviceId>{DeviceId{0}});
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
        QCOMPARE(after->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            std::vector<DeviceId>{DeviceId{1}});
        QVERIFY(m_view->hasFocus());
    }

    void aTypedLineIsAbandonedByEscape()
    {
        for (const int key : {Qt::Key_T, Qt::Key_G, Qt::Key_B}) {
            QTest::mouseClick(
                m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(productSpan(0))->center());
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
        edit->setText(
            QString::fromStdString(operators[static_cast<std::size_t>(m_model->forwardOperators) - 1].name));
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
};

PLANLOOM_QTEST(TimelineKeysTest)
#include "timeline_keys_test.moc"
