#include <QtTest/QSignalSpy>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_text.h"

#include <map>
#include <tuple>

using namespace planloom;

/// Gestures on a plan whose last backward blocks are interrupted by the reduction of gradients.
class TimelineSlicesTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        // Large enough for several buckets: each is cast to what it is sent in between two slices.
        auto opened =
            openModel({"zoo:gpt?layers=4&hidden=1024&heads=16&seq=128&vocab=1024&batch=16", {}, {}}, {});
        QVERIFY2(opened, opened ? "" : opened.error().message.c_str());
        m_model = *opened;
        m_sliced = planned(m_model, "precision all : bf16 reduction=bf16\n",
            "3d:dp=2,tp=2,pp=2,zero1=1,micro-batches=4,schedule=1f1b", kSlicedOn);
        QVERIFY(m_sliced);
    }
    void init()
    {
        showOn(m_sliced, kSlicedOn);
        m_lane = -1;
        for (const DeviceLane &lane : m_scene->lanes) {
            for (std::size_t block = 0; block < lane.blocks.size() && m_lane < 0; ++block) {
                if (!lane.blocks[block].isOrdered() || !lane.blocks[block].interrupted)
                    continue;
                m_lane = lane.device.index;
                m_block = block;
            }
        }
        QVERIFY2(m_lane >= 0, "some block is interrupted");
    }
    void cleanup() { close(); }

    void everyMicroBatchHasOneBlockOfEachDirection()
    {
        for (const DeviceLane &lane : m_scene->lanes) {
            std::map<std::tuple<SegmentKind, std::int32_t, std::int32_t>, int> count;
            for (const TimelineBlock &block : lane.blocks) {
                if (block.isOrdered())
                    ++count[{block.kind, block.stage.index, block.microBatch}];
            }
            QCOMPARE(count.size(), std::size_t{8});
            for (const auto &[block, times] : count)
                QCOMPARE(times, 1);
        }
        const TimelineBlock &block = lane().blocks[m_block];
        QCOMPARE(QString::fromStdString(labelOf(block)), QStringLiteral("B3"));
        QVERIFY(lane().piecesOf(m_block).size() > 1);
        // Reductions between its slices are blocks without an order of their own.
        const std::size_t inside = static_cast<std::size_t>(lane().blockOf(lane().piecesOf(m_block)[0].end));
        QVERIFY(inside != m_block);
        QCOMPARE(lane().blocks[inside].kind, SegmentKind::Reduce);
        QVERIFY(!lane().blocks[inside].isOrdered());
    }

    void draggedItIsTakenWhole()
    {
        m_view->fitAll();
        const auto block = m_view->rectOfBlock(m_lane, m_block);
        const QPoint from(static_cast<int>(block->left()) + 3, static_cast<int>(block->center().y()));
        drag(from, from - QPoint(60, 0)); // by its first slice
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QCOMPARE(ghost.drag, TimelineDrag::Order);
        QVERIFY(!ghost.amongSpans);
        std::size_t own = 0;
        for (const LaneRows &piece : lane().piecesOf(m_block))
            own += piece.end - piece.begin;
        QCOMPARE(ghost.spans.size(), own);
        for (const std::size_t span : ghost.spans)
            QVERIFY(m_scene->isIn(lane().blocks[m_block], span));
        // Carets lie between blocks, never among its slices.
        QVERIFY(ghost.caret.has_value());
        QVERIFY(ghost.caret->time <= static_cast<double>(lane().blocks[m_block].begin)
            || ghost.caret->time >= static_cast<double>(lane().blocks[m_block].end));
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void aReductionIsNotMovedByHand()
    {
        const LaneRows first = lane().piecesOf(m_block)[0];
        zoomTo(first.end); // the span that interrupts it
        const QPoint from = m_view->rectOf(first.end)->center();
        drag(from, from + QPoint(60, 0));
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        QVERIFY2(m_view->gestures().proposal()->refusal->message.starts_with("gradients are reduced"),
            m_view->gestures().proposal()->refusal->message.c_str());
        const QSignalSpy refused(m_view.get(), &TimelineView::refused);
        release(from + QPoint(60, 0));
        QCOMPARE(refused.count(), 1);
        nothingIsLeft();
        // Nor with keys.
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {},
            m_view->rectOfBlock(m_lane, static_cast<std::size_t>(lane().blockOf(first.end)))->center());
        QCOMPARE(m_view->focus().block, lane().blockOf(first.end));
        QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ShiftModifier);
        QVERIFY(m_host->commits.empty());
        QCOMPARE(refused.count(), 2);
    }

    /// Past what interrupts its block, an operator stands beside the last one of the slice before.
    void anOperatorIsDraggedPastAnInterruption()
    {
        const auto pieces = lane().piecesOf(m_block);
        const std::size_t own = pieces[1].begin;
        const std::size_t neighbour = pieces[0].end - 1;
        const OperatorId op = m_scene->operatorOf(own);
        QVERIFY(op.valid() && m_scene->operatorOf(neighbour).valid());
        // Both in sight, with the reduction between them.
        const SpanColumns &spans = m_scene->timeline->spans;
        const auto begin = static_cast<double>(spans.start[neighbour]);
        const auto end = static_cast<double>(spans.start[own] + spans.duration[own]);
        m_view->setAxis({begin - (end - begin) / 9, (end - begin) / 900});
        const QRect from = m_view->rectOf(own).value_or(QRect());
        QVERIFY(from.width() >= 6);
        const QPoint start = from.center();
        // Left of the neighbour's middle: before it.
        const double time = begin + 0.4 * static_cast<double>(spans.duration[neighbour]);
        const QPoint to(m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(time)), start.y());
        drag(start, to);
        QVERIFY(m_view->gestures().ghost().amongSpans);
        QCOMPARE(m_view->gestures().ghost().caret->before, neighbour);
        const Proposal expected = proposeOrder(
            *m_host->gestureContext(), {.first = {op}, .second = {m_scene->operatorOf(neighbour)}});
        QVERIFY(m_view->gestures().proposal().has_value());
        QCOMPARE(m_view->gestures().proposal()->rows, expected.rows);
        QCOMPARE(m_view->gestures().proposal()->refusal.has_value(), expected.refusal.has_value());
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

private:
    static constexpr std::int32_t kSlicedOn = 8;
    const DeviceLane &lane() const { return m_scene->lanes[static_cast<std::size_t>(m_lane)]; }

    PlanUpdateSnapshot m_sliced;
    std::int32_t m_lane = -1;
    std::size_t m_block = 0;
};

PLANLOOM_QTEST(TimelineSlicesTest)
#include "timeline_slices_test.moc"
