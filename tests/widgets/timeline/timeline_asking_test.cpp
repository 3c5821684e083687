#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QMenu>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/timeline_panel_text.h"
#include "widgets/timeline/timeline_under.h"

using namespace planloom;

/// What a person asks a timeline: what is here, what if this took no time, where may this go.
class TimelineAskingTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { openModels(); }
    void init() { show(m_pipeline); }
    void cleanup() { close(); }

    void aStepWithoutNothingIsTheStep()
    {
        const auto analysis = analyse(m_scene, true);
        const WhatIf nothing = stepWithout(*m_scene->timeline, analysis->dependencies, {});
        QCOMPARE(nothing.before, m_scene->timeline->step.count());
        QCOMPARE(nothing.after, nothing.before);
        QCOMPARE(nothing.spans, std::size_t{0});
        std::vector<std::size_t> all(m_scene->timeline->spans.size());
        for (std::size_t row = 0; row < all.size(); ++row)
            all[row] = row;
        QCOMPARE(stepWithout(*m_scene->timeline, analysis->dependencies, all).after, std::int64_t{0});
        QCOMPARE(stepWithout(*m_single->scene->timeline, analysis->dependencies, {}).before, std::int64_t{0});
    }

    /// What is on the critical path saves at most its own time; what has slack enough saves nothing.
    void aSpanSavesAtMostItsTime()
    {
        const auto analysis = analyse(m_scene, true);
        const SpanColumns &spans = m_scene->timeline->spans;
        int saves = 0;
        for (std::size_t row = 0; row < spans.size(); row += 3) {
            const WhatIf answer = stepWithout(*m_scene->timeline, analysis->dependencies, {row});
            const std::int64_t saved = answer.before - answer.after;
            QVERIFY(saved >= 0 && saved <= spans.duration[row]);
            if (analysis->slack[row] > 0)
                QCOMPARE(saved, std::int64_t{0});
            saves += saved > 0 ? 1 : 0;
        }
        QVERIFY(saves > 10);
    }

    void theKeyAsksForTheSelection()
    {
        const std::size_t span = productSpan(0);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QVERIFY(action("timeline.whatIf")->isEnabled());
        QTest::keyClick(m_view.get(), Qt::Key_0);
        QTRY_VERIFY(m_view->panel().isVisible());
        const PanelTable table = m_view->panel().table();
        const std::string name = m_model->graph->at(m_scene->operatorOf(span)).name;
        QVERIFY2(table.title.find(name) != std::string::npos, table.title.c_str());
        const auto analysis = analyse(m_scene, true);
        const WhatIf expected =
            stepWithout(*m_scene->timeline, analysis->dependencies, computeRows(m_scene->operatorOf(span)));
        QCOMPARE(expected.spans, std::size_t{4}); // of all micro-batches
        QCOMPARE(table.text(), whatIfTable(*m_scene, expected, name).text());
        // Where the step would end is drawn as long as the table is there.
        m_view->fitAll();
        const QImage asked = m_view->viewport()->grab().toImage();
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(!m_view->panel().isVisible());
        QVERIFY(asked != m_view->viewport()->grab().toImage());
    }

    void aCommunicationIsAskedForByItself()
    {
        m_view->fitAll();
        const LaneRows rows = m_scene->lanes[0].rowsOf(QueueKind::Pipeline);
        QVERIFY(rows.begin < rows.end);
        const auto rect = m_view->rectOf(rows.begin);
        QVERIFY(rect.has_value());
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, rect->center());
        QCOMPARE(m_view->focus().part, LanePart::Communication);
        QTest::keyClick(m_view.get(), Qt::Key_0);
        QTRY_VERIFY(m_view->panel().isVisible());
        QVERIFY2(m_view->panel().table().title.starts_with("What if send")
                || m_view->panel().table().title.starts_with("What if recv"),
            m_view->panel().table().title.c_str());
    }

    void withoutASelectionThereIsNothingToAsk() { QVERIFY(!action("timeline.whatIf")->isEnabled()); }

    void everythingUnderAPlaceIsListed()
    {
        m_view->fitAll();
        const TimelineCanvas canvas{m_scene.get(), &m_view->rows(), m_view->axis(), 1000};
        const QPoint at = m_view->rectOfBlock(0, 0)->center();
        const auto things = thingsUnder(canvas, at.x() - m_view->axisLeft(), at.y() - m_view->lanesTop());
        const auto count = [&](ThingUnder::Kind kind) {
            return std::count_if(
                things.begin(), things.end(), [kind](const ThingUnder &thing) { return thing.kind == kind; });
        };
        QCOMPARE(count(ThingUnder::Kind::Lane), 1);
        QCOMPARE(count(ThingUnder::Kind::Bracket), 1);
        QCOMPARE(count(ThingUnder::Kind::Block), 1);
        QVERIFY(count(ThingUnder::Kind::Span) > 1); // too small to be seen, one by one
        QCOMPARE(count(ThingUnder::Kind::Memory), 1);
        QCOMPARE(count(ThingUnder::Kind::Idle), 0);
        QVERIFY(thingsUnder(canvas, 10, 100'000).empty());
        QCOMPARE(thingsUnder(canvas, -5, at.y() - m_view->lanesTop()).size(), std::size_t{1});
        // A pause.
        const auto &blocks = m_scene->lanes[0].blocks;
        std::size_t behind = 1;
        while (blocks[behind].begin - blocks[behind - 1].end < 50'000)
            ++behind;
        const double middle =
            (static_cast<double>(blocks[behind].begin) + static_cast<double>(blocks[behind - 1].end)) / 2;
        bool idle = false;
        for (const ThingUnder &thing :
            thingsUnder(canvas, m_view->axis().xOf(middle), at.y() - m_view->lanesTop())) {
            idle = idle || thing.kind == ThingUnder::Kind::Idle;
            if (thing.kind == ThingUnder::Kind::Idle)
                QCOMPARE(thing.focus.block, static_cast<std::int32_t>(behind));
        }
        QVERIFY(idle);
    }

    void altAndClickOpensTheList()
    {
        m_view->fitAll();
        const QPoint at = m_view->rectOfBlock(0, 0)->center();
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, Qt::AltModifier, at);
        QMenu *menu = list();
        QVERIFY(menu && menu->isVisible());
        QVERIFY(m_host->commits.empty());
        QAction *span = nullptr;
        for (QAction *entry : menu->actions())
            span = entry->text().startsWith(QStringLiteral("block")) ? entry : span;
        QVERIFY(span);
        menu->setActiveAction(span);
        QTest::keyClick(menu, Qt::Key_Return);
        QCOMPARE(m_view->focus().part, LanePart::Block);
        QVERIFY(!m_selection->selected().empty());
    }

    void aLongPressOpensTheListAndADragDoesNot()
    {
        m_view->fitAll();
        const QPoint at = m_view->rectOfBlock(0, 0)->center();
        press(at);
        QTRY_VERIFY(list() && list()->isVisible());
        QVERIFY(!m_view->gestures().pressed());
        list()->close();
        release(at);
        QVERIFY(m_selection->selected().empty());
        QTRY_VERIFY(!list());
        press(at);
        moveTo(at + QPoint(20, 0));
        QVERIFY(m_view->gestures().dragging());
        QVERIFY(!list());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
    }

    void aKeyListsWhatHasTheFocus()
    {
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, 0)->center());
        QTest::keyClick(m_view.get(), Qt::Key_L);
        QVERIFY(list() && list()->isVisible());
        list()->close();
    }

    /// Found little by little, they are those that asking for each place gives.
    void placesForABlockLightUp()
    {
        m_view->fitAll();
        const QPoint from = m_view->rectOfBlock(0, 2)->center();
        const QPoint to = from - QPoint(30, 0);
        press(from);
        moveTo(from - QPoint(8, 0));
        std::vector<std::size_t> expected;
        const auto &lane = m_scene->lanes[0];
        for (std::size_t caret = 1; caret < lane.blocks.size(); ++caret) {
            const BlockMove move = blockMoveTo(lane, 2, caret);
            if (lane.blocks[caret].begin <= lane.blocks[caret - 1].end || !move.changes())
                continue;
            if (!proposeBlockOrder(*m_host->gestureContext(),
                    refOf(lane.blocks[static_cast<std::size_t>(move.first)]),
                    refOf(lane.blocks[static_cast<std::size_t>(move.second)]), false)
                     .refusal)
                expected.push_back(caret);
        }
        QVERIFY(!expected.empty());
        QTRY_COMPARE(m_view->gestures().ghost().candidates, expected);
        moveTo(to);
        if (const QByteArray folder = qgetenv("PLANLOOM_TEST_PICTURES"); !folder.isEmpty())
            m_view->grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/candidates.png"));
        moveTo(to, Qt::ShiftModifier); // changing places is another matter
        QVERIFY(m_view->gestures().ghost().candidates.empty());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    /// What is hatched are the places that are refused one by one, and no other.
    void refusedPlacesAreHatchedAsFarAsTheyGo()
    {
        m_view->fitAll();
        const auto &lane = m_scene->lanes[0];
        const QPoint from = m_view->rectOfBlock(0, 0)->center();
        const QRect past = *m_view->rectOfBlock(0, 2);
        drag(from, QPoint(past.right() - 2, from.y()));
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        const std::size_t caret = ghost.caret->before;
        const auto refused = [&](std::size_t at) {
            const BlockMove move = blockMoveTo(lane, 0, at);
            return move.changes()
                && proposeBlockOrder(*m_host->gestureContext(),
                    refOf(lane.blocks[static_cast<std::size_t>(move.first)]),
                    refOf(lane.blocks[static_cast<std::size_t>(move.second)]), false)
                       .refusal.has_value();
        };
        std::size_t low = caret;
        while (low > 0 && refused(low - 1))
            --low;
        std::size_t high = caret;
        while (high < lane.blocks.size() && refused(high + 1))
            ++high;
        const auto middle = [&](std::size_t block) {
            return (static_cast<double>(lane.blocks[block].begin)
                       + static_cast<double>(lane.blocks[block].end))
                / 2;
        };
        const double begin = low > 0 ? middle(low - 1) : 0;
        const double end =
            high < lane.blocks.size() ? middle(high) : static_cast<double>(m_scene->timeline->step.count());
        QTRY_COMPARE(ghost.illegalBegin, begin);
        QTRY_COMPARE(ghost.illegalEnd, end);
        if (const QByteArray folder = qgetenv("PLANLOOM_TEST_PICTURES"); !folder.isEmpty())
            m_view->grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/refused.png"));
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(m_view->gestures().ghost().illegalBegin >= m_view->gestures().ghost().illegalEnd);
    }

private:
    QAction *action(const char *name) const { return m_view->findChild<QAction *>(QLatin1String(name)); }
    QMenu *list() const { return m_view->findChild<QMenu *>(QStringLiteral("timeline.under")); }
    std::vector<std::size_t> computeRows(OperatorId op) const
    {
        std::vector<std::size_t> rows = rowsOf(*m_scene, {op});
        std::erase_if(
            rows, [&](std::size_t row) { return m_scene->timeline->spans.queue[row] != QueueKind::Compute; });
        return rows;
    }
};

PLANLOOM_QTEST(TimelineAskingTest)
#include "timeline_asking_test.moc"
