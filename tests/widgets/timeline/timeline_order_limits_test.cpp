#include <QtGui/QAction>
#include <QtTest/QSignalSpy>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_tag.h"

using namespace planloom;

/// Blocks that are moved in time: what forbids it is named, and a pinned unit takes all of its copies along.
class TimelineOrderLimitsTest : public TimelineHandsForTests
{
    Q_OBJECT

private:
    TimelineTag tag() const
    {
        return tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(),
            m_host->currentPreview().get(), &m_view->gestures().rowsInTheWay());
    }
    /// Index of a block of lane 0.
    std::size_t block(SegmentKind kind, std::int32_t microBatch) const
    {
        const auto &blocks = m_scene->lanes[0].blocks;
        return static_cast<std::size_t>(
            std::find_if(blocks.begin(), blocks.end(),
                [=](const TimelineBlock &each) { return each.kind == kind && each.microBatch == microBatch; })
            - blocks.begin());
    }
    /// F2 goes before B0: one micro-batch more is in flight on the first stage.
    void dragForward()
    {
        const QPoint from = m_view->rectOfBlock(0, block(SegmentKind::Forward, 2))->center();
        m_to = {m_view->rectOfBlock(0, block(SegmentKind::Backward, 0))->left() + 2, from.y()};
        drag(from, m_to);
    }
    PlanUpdateSnapshot with(const std::string &row) const
    {
        std::string text = m_pipeline->table.text();
        return planned(m_model, text + (text.ends_with('\n') ? "" : "\n") + row + "\n", {}, kDevices);
    }

    QPoint m_to;

private Q_SLOTS:
    void initTestCase() { openModels(); }
    void cleanup() { close(); }

    void whatTheMemoryForbidsIsRefusedAndNamed()
    {
        show(with("in-flight 2 stage 0"));
        const std::string before = m_host->text();
        QSignalSpy refused(m_view.get(), &TimelineView::refused);
        dragForward();
        QVERIFY(m_view->gestures().proposal()->accepted()); // as far as is known
        m_host->answerPreview();
        QCOMPARE(tag().state, TimelineTag::State::Refused);
        const QString said = tag().lines.join(QLatin1Char('\n'));
        QVERIFY2(said.contains(QStringLiteral("F2 of stage 0 can't run before B0 of stage 0: row ")),
            qPrintable(said));
        QVERIFY2(
            said.contains(QStringLiteral("allows 2 micro-batches in flight on stage 0")), qPrintable(said));
        release(m_to);
        QVERIFY(m_host->commits.empty());
        QCOMPARE(m_host->text(), before);
        QCOMPARE(refused.size(), 1);
        QVERIFY(refused.front().front().toString().contains(QStringLiteral("in flight on stage 0")));
        nothingIsLeft();
    }

    void whatWaitsIsNamedWithBothBlocks()
    {
        show(m_pipeline);
        const QPoint from = m_view->rectOfBlock(0, block(SegmentKind::Backward, 0))->center();
        const QPoint to(m_view->rectOfBlock(0, 0)->left() + 1, from.y());
        drag(from, to);
        const QString said = tag().lines.join(QLatin1Char('\n'));
        QCOMPARE(tag().state, TimelineTag::State::Refused);
        QVERIFY2(said.contains(QStringLiteral("B0 of stage 0 needs what F0 of stage 0 keeps for it")),
            qPrintable(said));
        release(to);
        QVERIFY(m_host->commits.empty());
    }

    void theTagSaysWhatBecomesOfStepBubbleAndPeak()
    {
        show(m_pipeline);
        dragForward();
        m_host->answerPreview();
        const QString said = tag().lines.join(QLatin1Char('\n'));
        for (const char *figure : {"step ", "bubble ", "peak "})
            QVERIFY2(said.contains(QLatin1String(figure)), qPrintable(said));
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void aPinnedUnitTakesItsCopiesAlong()
    {
        const auto eight = planned(m_model, {}, "pipeline:micro-batches=8,schedule=1f1b", kDevices);
        show(eight);
        auto *pin = m_view->findChild<QAction *>(QStringLiteral("timeline.pinUnit"));
        QVERIFY(pin);
        QTRY_VERIFY(pin->isEnabled()); // once it is known what repeats
        QTest::keyClick(m_view.get(), Qt::Key_U);
        QVERIFY(pin->isChecked());
        QCOMPARE(m_view->gestures().pinnedUnit(), 1);
        // B1 before F2, and so B2 before F3 ...
        const std::size_t moved = block(SegmentKind::Backward, 1);
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t passed = moved - 1;
        while (!blocks[passed].isOrdered())
            --passed;
        const QPoint from = m_view->rectOfBlock(0, moved)->center();
        const QPoint to(m_view->rectOfBlock(0, passed)->left() + 2, from.y());
        drag(from, to);
        QVERIFY2(m_view->gestures().proposal() && m_view->gestures().proposal()->accepted(),
            qPrintable(tag().lines.join(QLatin1Char('\n'))));
        QVERIFY(QString::fromStdString(m_view->gestures().proposal()->words)
                    .endsWith(QStringLiteral("in every unit")));
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("schedule order "));
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->plan->schedule, ScheduleKind::Listed);
        // Keys do the same, on what is shown then.
        show(eight);
        pin = m_view->findChild<QAction *>(QStringLiteral("timeline.pinUnit"));
        QTRY_VERIFY(pin->isEnabled());
        QTest::keyClick(m_view.get(), Qt::Key_U);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, moved)->center());
        QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(m_host->replanned()->plan->order == after->plan->order);
        if (const QByteArray folder = qgetenv("PLANLOOM_TEST_PICTURES"); !folder.isEmpty())
            m_view->grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/pinned.png"));
    }

    void whatDoesNotRepeatCannotBePinned()
    {
        show(m_single);
        auto *pin = m_view->findChild<QAction *>(QStringLiteral("timeline.pinUnit"));
        QVERIFY(!pin->isEnabled());
        QTest::keyClick(m_view.get(), Qt::Key_U);
        QVERIFY(!pin->isChecked());
        QCOMPARE(m_view->gestures().pinnedUnit(), 0);
    }
};

PLANLOOM_QTEST(TimelineOrderLimitsTest)
#include "timeline_order_limits_test.moc"
