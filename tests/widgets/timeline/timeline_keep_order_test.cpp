#include <QtGui/QAction>
#include <QtTest/QSignalSpy>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_tag.h"

using namespace planloom;

/// Moving things in time while what follows keeps its order, or closes the gaps.
class TimelineKeepOrderTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { openModels(); }
    void init() { show(m_pipeline); }
    void cleanup() { close(); }

    void gapsAreClosedByDefault()
    {
        QCOMPARE(m_view->followersPolicy(), FollowersPolicy::CloseGaps);
        QCOMPARE(blocksOf(*m_scene), QStringLiteral("F0 F1 B0 F2 B1 F3 B2 B3"));
        dragTheBackward();
        QVERIFY(!m_view->gestures().ghost().kept);
        m_host->answerPreview();
        QCOMPARE(m_host->previews.back().rows.size(), std::size_t{1});
        release(m_to, Qt::AltModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(blocksOf(*after->scene), QStringLiteral("F0 F2 B0 F1 B2 F3 B1 B3"));
    }

    void theGhostFindsTheRowsThatKeepTheOrder()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        const std::string before = m_host->text();
        dragTheBackward();
        QVERIFY(m_view->gestures().ghost().kept && !m_view->gestures().ghost().kept->known);
        settle();
        QCOMPARE(m_view->gestures().ghost().kept->rows, 1);
        QVERIFY(tagText().contains(QStringLiteral("one row more keeps what follows in its order")));
        QCOMPARE(m_host->text(), before);
        release(m_to, Qt::AltModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1}); // one step
        QCOMPARE(m_host->commits[0].proposal.rows.size(), std::size_t{2});
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(blocksOf(*after->scene), QStringLiteral("F0 B0 F1 F2 B1 F3 B2 B3"));
        // The plan arrives: nothing is left to do.
        m_view->setScene(after->scene);
        QCoreApplication::processEvents();
        QCOMPARE(m_host->commits.size(), std::size_t{1});
    }

    void releasedBeforeTheAnswerTheRowsFollowInTheSameStep()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        dragTheBackward();
        release(m_to, Qt::AltModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QCOMPARE(m_host->commits[0].proposal.rows.size(), std::size_t{1});
        m_view->setScene(m_host->replanned()->scene);
        QTRY_COMPARE(m_host->commits.size(), std::size_t{2});
        QVERIFY(!m_host->commits[0].mergeKey.isEmpty());
        QCOMPARE(m_host->commits[1].mergeKey, m_host->commits[0].mergeKey);
        const auto after = m_host->replanned();
        QCOMPARE(blocksOf(*after->scene), QStringLiteral("F0 B0 F1 F2 B1 F3 B2 B3"));
        m_view->setScene(after->scene);
        QCoreApplication::processEvents();
        QCOMPARE(m_host->commits.size(), std::size_t{2});
    }

    void whatWasTakenBackMeanwhileIsLeftAlone()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        dragTheBackward();
        release(m_to, Qt::AltModifier);
        const auto late = m_host->replanned();
        Proposal back;
        back.words = "undo";
        back.edit = inverse(m_host->commits[0].proposal.edit);
        QVERIFY(m_host->commit(back));
        m_view->setScene(late->scene);
        QCoreApplication::processEvents();
        QCOMPARE(m_host->commits.size(), std::size_t{2});
    }

    void anOldPlanSaysNothingOfIt()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        dragTheBackward();
        release(m_to, Qt::AltModifier);
        m_view->setScene(m_pipeline->scene); // once more the one from before
        QCoreApplication::processEvents();
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        m_view->setScene(m_host->replanned()->scene);
        QTRY_COMPARE(m_host->commits.size(), std::size_t{2});
    }

    void keysKeepTheOrderToo()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, 2)->center());
        QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ShiftModifier | Qt::AltModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        m_view->setScene(m_host->replanned()->scene);
        QTRY_COMPARE(m_host->commits.size(), std::size_t{2});
        QCOMPARE(m_host->commits[1].mergeKey, m_host->commits[0].mergeKey);
        QCOMPARE(blocksOf(*m_host->replanned()->scene), QStringLiteral("F0 B0 F1 F2 B1 F3 B2 B3"));
    }

    void aPatternNeedsNoRowAndSaysSo()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        m_from = m_view->rectOfBlock(0, 2)->center();
        m_to = QPoint(m_view->rectOfBlock(0, 1)->left() + 2, m_from.y());
        drag(m_from, m_to);
        settle();
        QCOMPARE(m_view->gestures().ghost().kept->rows, 0);
        QVERIFY2(tagText().contains(QStringLiteral("no row is needed")), qPrintable(tagText()));
        release(m_to);
        QCOMPARE(m_host->commits[0].proposal.rows.size(), std::size_t{1});
    }

    void escapeLeavesNothing()
    {
        m_view->setFollowersPolicy(FollowersPolicy::KeepOrder);
        for (int answers = 0; answers < 3; ++answers) {
            dragTheBackward();
            for (int i = 0; i < answers; ++i)
                m_host->answerPreview();
            QTest::keyClick(m_view.get(), Qt::Key_Escape);
            nothingIsLeft();
            release(m_to);
            nothingIsLeft();
        }
    }

    void theChoiceIsAnActionAndPartOfTheView()
    {
        auto *action = m_view->findChild<QAction *>(QStringLiteral("timeline.keepOrder"));
        QVERIFY(action && action->isCheckable() && !action->isChecked());
        const QSignalSpy changed(m_view.get(), &TimelineView::followersPolicyChanged);
        const QSignalSpy state(m_view.get(), &TimelineView::viewStateChanged);
        action->trigger();
        QCOMPARE(m_view->followersPolicy(), FollowersPolicy::KeepOrder);
        QCOMPARE(changed.count(), 1);
        QVERIFY(state.count() > 0);
        const std::string kept = m_view->viewState();
        m_view->setFollowersPolicy(FollowersPolicy::CloseGaps);
        QVERIFY(!action->isChecked());
        m_view->restoreViewState(kept);
        QCOMPARE(m_view->followersPolicy(), FollowersPolicy::KeepOrder);
        QVERIFY(action->isChecked());
    }

private:
    /// B0 of stage 0 before F1, this micro-batch alone.
    void dragTheBackward()
    {
        m_from = m_view->rectOfBlock(0, 2)->center();
        m_to = QPoint(m_view->rectOfBlock(0, 1)->left() + 2, m_from.y());
        drag(m_from, m_to, Qt::AltModifier);
        QVERIFY(m_view->gestures().proposal() && m_view->gestures().proposal()->accepted());
    }
    void settle()
    {
        for (int i = 0; i < 12 && !m_view->gestures().ghost().kept->known; ++i)
            m_host->answerPreview();
        QVERIFY(m_view->gestures().ghost().kept->known);
    }
    QString tagText() const
    {
        return tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(),
            m_host->currentPreview().get(), &m_view->gestures().rowsInTheWay())
            .lines.join(QLatin1Char('\n'));
    }
    static QString blocksOf(const TimelineScene &scene)
    {
        QStringList words;
        for (const TimelineBlock &block : scene.lanes.front().blocks) {
            if (block.isOrdered())
                words << (block.kind == SegmentKind::Backward ? QStringLiteral("B%1") : QStringLiteral("F%1"))
                             .arg(block.microBatch);
        }
        return words.join(QLatin1Char(' '));
    }

    QPoint m_from;
    QPoint m_to;
};

PLANLOOM_QTEST(TimelineKeepOrderTest)
#include "timeline_keep_order_test.moc"
