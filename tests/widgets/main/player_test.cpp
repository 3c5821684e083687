#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtTest/QtTest>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/dag/dag_view.h"
#include "widgets/main/player.h"
#include "widgets/scene/running_now.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace planloom;

/// A step is played on the timeline and on the graph; what is communicated is the same on both.
class PlayerTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { openModels(); }

    void init()
    {
        show(m_pipeline);
        m_dag = std::make_unique<DagView>();
        m_dag->resize(1000, 700);
        m_dag->setReducedMotion(true);
        m_dag->setSelectionModel(m_selection.get());
        m_dag->setGraph(m_model->graph);
        m_dag->show();
        QTRY_VERIFY(m_dag->isSettled() && m_dag->picture());
        m_dag->setUpdate(m_pipeline);
        m_player = std::make_unique<Player>(m_view.get(), m_dag.get(),
            [this](const char *id, const QString &text, const QList<QKeySequence> &keys,
                std::function<void()> act) {
                auto *action = new QAction(text, m_view.get());
                action->setObjectName(QLatin1String(id));
                action->setShortcuts(keys);
                action->setShortcutContext(Qt::WidgetShortcut);
                connect(action, &QAction::triggered, action, [act] { act(); });
                m_view->addAction(action);
                return action;
            });
        connect(m_dag.get(), &DagView::communicationChosen, m_view.get(), &TimelineView::selectCommunication);
        connect(m_view.get(), &TimelineView::communicationChosen, m_dag.get(), &DagView::markCommunication);
        m_view->setScene(nullptr);
        m_view->setScene(m_scene); // as when a plan arrives
        QVERIFY(m_player->playback().scene() == m_scene);
        m_view->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_view.get()));
        m_view->setFocus();
    }

    void cleanup()
    {
        delete m_player->bar();
        m_player.reset();
        m_dag.reset();
        close();
    }

    void itPlaysToTheEnd()
    {
        Playback &playback = m_player->playback();
        QVERIFY(!playback.time() && !m_player->bar()->isVisibleTo(m_player->bar()->parentWidget()));
        QTest::keyClick(m_view.get(), Qt::Key_Space, Qt::ShiftModifier);
        QVERIFY(playback.isPlaying());
        QCOMPARE(*playback.time(), 0.0);
        QSignalSpy moved(&playback, &Playback::timeChanged);
        double before = 0;
        for (int frame = 0; frame < 2000 && playback.isPlaying(); ++frame) {
            playback.advance(0.016);
            QVERIFY(*playback.time() > before);
            QCOMPARE(m_view->shownTime()->count(), std::llround(*playback.time()));
            before = *playback.time();
        }
        QCOMPARE(before, static_cast<double>(m_scene->timeline->step.count()));
        QVERIFY(!playback.isPlaying());
        QCOMPARE(moved.count(), 625); // ten seconds of 16 ms
        QVERIFY(m_dag->moment().empty()); // nothing runs at the end
        playback.play(); // and again from the begin
        QCOMPARE(*playback.time(), 0.0);
    }

    void itGoesRoundWhereItLoops()
    {
        Playback &playback = m_player->playback();
        m_view->findChild<QAction *>(QStringLiteral("play.loop"))->setChecked(true);
        QVERIFY(playback.loops());
        playback.play();
        playback.advance(9.9);
        playback.advance(0.2);
        QVERIFY(playback.isPlaying());
        QCOMPARE(*playback.time(), 0.0);
        playback.setSpeed(4);
        playback.advance(1);
        QCOMPARE(*playback.time(), 0.4 * static_cast<double>(m_scene->timeline->step.count()));
        playback.setSpeed(1e9);
        QCOMPARE(playback.speed(), Playback::kMostSpeed);
    }

    void backIsTheInverse()
    {
        Playback &playback = m_player->playback();
        std::vector<double> moments;
        for (int i = 0; i < 10'000; ++i) {
            QTest::keyClick(m_view.get(), Qt::Key_Period);
            if (!moments.empty() && moments.back() == *playback.time())
                break;
            moments.push_back(*playback.time());
        }
        std::set<double> expected{static_cast<double>(m_scene->timeline->step.count())};
        for (const DeviceLane &lane : m_scene->lanes)
            for (const TimelineBlock &block : lane.blocks)
                if (block.end > block.begin)
                    expected.insert(static_cast<double>(block.begin));
        QCOMPARE(moments, std::vector<double>(expected.begin(), expected.end()));
        for (std::size_t i = moments.size() - 1; i-- > 0;) {
            QTest::keyClick(m_view.get(), Qt::Key_Comma);
            QCOMPARE(*playback.time(), moments[i]);
        }
    }

    void whatRunsIsFoundAsByLookingAtAll()
    {
        const SpanColumns &spans = m_scene->timeline->spans;
        std::mt19937 random(3);
        for (int trial = 0; trial < 200; ++trial) {
            const auto time = static_cast<double>(
                std::uniform_int_distribution<std::int64_t>(0, m_scene->timeline->step.count())(random));
            std::set<std::size_t> expected;
            for (std::size_t row = 0; row < spans.size(); ++row)
                if (static_cast<double>(spans.start[row]) <= time
                    && time < static_cast<double>(spans.start[row] + spans.duration[row]))
                    expected.insert(row);
            std::set<std::size_t> found;
            for (const RunningSpan &span : runningAt(*m_scene, time)) {
                QVERIFY(span.share >= 0 && span.share < 1);
                QVERIFY(found.insert(span.row).second);
            }
            QCOMPARE(found, expected);
        }
    }

    void theGraphShowsWhatComputes()
    {
        const std::size_t row = productSpan(0);
        const SpanColumns &spans = m_scene->timeline->spans;
        m_player->playback().seek(
            static_cast<double>(spans.start[row]) + static_cast<double>(spans.duration[row]) / 2);
        const auto &operators = m_dag->moment().operators;
        QVERIFY(std::any_of(operators.begin(), operators.end(),
            [&](const PlayedOperator &played) { return played.op == m_scene->operatorOf(row); }));
        QVERIFY(m_view->hasPlayhead());
        m_dag->repaint();
        m_view->viewport()->repaint();
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QVERIFY(!m_view->hasPlayhead());
        QVERIFY(!m_player->playback().time());
        QVERIFY(m_dag->moment().empty());
    }

    void dataMovesFromItsMakerToItsUser()
    {
        const SpanColumns &spans = m_scene->timeline->spans;
        std::size_t moves = 0;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            if (!isBetweenStages(spans.queue[row]) || spans.duration[row] == 0)
                continue;
            m_player->playback().seek(
                static_cast<double>(spans.start[row]) + 0.25 * static_cast<double>(spans.duration[row]));
            for (const PlayedMove &move : m_dag->moment().moves) {
                QVERIFY(move.share >= 0 && move.share < 1);
                QVERIFY(move.from.valid());
                ++moves;
            }
        }
        QVERIFY(moves > 0);
        m_dag->repaint();
    }

    void theRulerScrubs()
    {
        const QPoint at(m_view->axisLeft() + 300, 6);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, at);
        QCOMPARE(*m_player->playback().time(), std::round(m_view->axis().timeAt(300)));
        QVERIFY(!m_player->playback().isPlaying());
    }

    void aBadgeAndItsSpansFindOneAnother()
    {
        m_dag->expandAll();
        QTRY_VERIFY(m_dag->isSettled());
        QTRY_VERIFY(!m_dag->traffic().empty());
        m_dag->fitAll();
        QTRY_VERIFY(m_dag->isSettled());
        m_dag->repaint();
        // All that is communicated is on some badge, once.
        std::vector<std::uint32_t> edges;
        std::int64_t bytes = 0;
        for (const TrafficBadge &badge : m_dag->traffic()) {
            edges.insert(edges.end(), badge.edges.begin(), badge.edges.end());
            bytes += badge.bytes();
        }
        std::sort(edges.begin(), edges.end());
        QCOMPARE(edges.size(), m_scene->communication.size());
        for (std::size_t i = 0; i < edges.size(); ++i)
            QCOMPARE(edges[i], static_cast<std::uint32_t>(i));
        std::int64_t all = 0;
        for (const EdgeCommunication &edge : m_scene->communication)
            all += edge.bytes.count;
        QCOMPARE(bytes, all);

        std::size_t badge = 0;
        while (badge < m_dag->traffic().size() && m_dag->trafficRect(badge).isEmpty())
            ++badge;
        QVERIFY(badge < m_dag->traffic().size());
        QTest::mouseClick(m_dag.get(), Qt::LeftButton, {}, m_dag->trafficRect(badge).center().toPoint());
        QVERIFY(!m_view->selectedRows().empty());
        for (const std::size_t row : m_view->selectedRows())
            QVERIFY(m_scene->timeline->spans.queue[row] != QueueKind::Compute);
        QVERIFY(m_dag->markedCommunication().has_value());

        // The other way round.
        const std::size_t row = m_view->selectedRows().front();
        m_selection->select({OperatorId{0}});
        QVERIFY(!m_dag->markedCommunication().has_value());
        const double scale = static_cast<double>(m_scene->timeline->spans.duration[row]) / 40;
        m_view->setAxis({static_cast<double>(m_scene->timeline->spans.start[row]) - 100 * scale, scale});
        QVERIFY(m_view->rectOf(row));
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(row)->center());
        QCOMPARE(m_dag->markedCommunication().value_or(999'999), badge);
        m_dag->setCommunicationShown(false);
        m_dag->repaint();
        QVERIFY(m_dag->trafficRect(badge).isEmpty());
    }

    void closedGroupsAddUp()
    {
        const auto sums = [this] {
            std::map<InstructionKind, std::int64_t> of;
            for (const TrafficBadge &badge : m_dag->traffic())
                for (const auto &[kind, bytes] : badge.kinds)
                    of[kind] += bytes;
            return of;
        };
        QTRY_VERIFY(!m_dag->traffic().empty());
        const auto open = sums();
        const std::size_t badges = m_dag->traffic().size();
        m_dag->collapseAll();
        QTRY_VERIFY(m_dag->isSettled());
        QCOMPARE(sums(), open);
        QVERIFY(m_dag->traffic().size() <= badges);
    }

private:
    std::unique_ptr<DagView> m_dag;
    std::unique_ptr<Player> m_player;
};

PLANLOOM_QTEST(PlayerTest)
#include "player_test.moc"
