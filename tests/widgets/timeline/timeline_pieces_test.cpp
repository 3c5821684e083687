#include <QtTest/QSignalSpy>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_pieces.h"
#include "widgets/timeline/timeline_tag.h"

using namespace planloom;

/// Gestures on a plan that runs a forward and a backward block side by side, piece by piece.
class TimelinePiecesTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        auto opened = openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8", {}, {}}, {});
        QVERIFY2(opened, opened ? "" : opened.error().message.c_str());
        m_model = *opened;
        m_paired = planned(m_model, {}, "3d:dp=1,tp=2,pp=2,micro-batches=4,schedule=combined-1f1b", 4);
        QVERIFY(m_paired);
    }
    void init()
    {
        showOn(m_paired, 4);
        findPair();
    }
    void cleanup() { close(); }

    /// The last piece of a block, by its header, to before the second piece of the other.
    void aPieceGoesBeforeAnother()
    {
        const LaneRows piece = pieceOf(m_pair.own, -1);
        const LaneRows mark = pieceOf(m_pair.other, 1);
        fitPair();
        const QPoint from = headerOf(piece);
        drag(from, atBegin(mark, from.y()));
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QCOMPARE(ghost.drag, TimelineDrag::Order);
        QVERIFY(ghost.amongPieces);
        QVERIFY(!ghost.atHome);
        QCOMPARE(ghost.caret->before, mark.begin);
        // All of its own block that stands between comes along, and nothing of the other.
        QVERIFY(ghost.spans.size() > piece.end - piece.begin);
        for (const std::size_t span : ghost.spans)
            QVERIFY(m_scene->isIn(lane().blocks[m_pair.own], span) && span >= mark.begin);
        QVERIFY(m_view->gestures().proposal()->accepted());
        m_host->answerPreview();
        const auto preview = m_host->currentPreview();
        QVERIFY(preview->update && preview->update->scene);
        QVERIFY(runsBefore(*preview->update->scene, lastOf(m_pair.own, piece), firstOf(m_pair.other, mark)));
        const TimelineTag tag = tagFor(ghost, m_view->gestures().proposal(), preview.get());
        QVERIFY(tag.lines.join(' ').contains(QStringLiteral("before")));
        QVERIFY(tag.lines.join(' ').contains(QStringLiteral("step")));
        release(atBegin(mark, from.y()));
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(hasRow("order name:"), m_host->text().c_str());
        const auto done = m_host->replanned();
        QVERIFY(done);
        QVERIFY(runsBefore(*done->scene, lastOf(m_pair.own, piece), firstOf(m_pair.other, mark)));
    }

    /// An operator, by its span, behind an operator in the middle of the other block's next piece.
    void anOperatorGoesIntoTheMiddleOfAPiece()
    {
        const LaneRows mark = pieceOf(m_pair.other, 1);
        std::size_t own = pieceOf(m_pair.own, 1).begin;
        while (!m_scene->operatorOf(own).valid() || own > mark.begin)
            ++own;
        QVERIFY(m_scene->isIn(lane().blocks[m_pair.own], own));
        std::size_t other = mark.begin;
        for (std::size_t row = mark.begin; row + 1 < mark.end; ++row)
            if (isKernel(m_pair.other, row))
                other = row;
        QVERIFY(isKernel(m_pair.other, other));
        zoomOver(own, other);
        const QPoint from = m_view->rectOf(own)->center();
        const SpanColumns &spans = m_scene->timeline->spans;
        const double time =
            static_cast<double>(spans.start[other]) + 0.75 * static_cast<double>(spans.duration[other]);
        drag(from, QPoint(m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(time)), from.y()));
        const TimelineGhost &ghost = m_view->gestures().ghost();
        QVERIFY(ghost.amongPieces);
        QCOMPARE(ghost.caret->before, other + 1);
        QVERIFY(m_view->gestures().proposal()->accepted());
        release(QPoint(m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(time)), from.y()));
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const auto done = m_host->replanned();
        QVERIFY(done);
        const OperatorId moved = m_scene->operatorOf(own);
        const OperatorId behind = m_scene->operatorOf(other);
        QVERIFY(runsBefore(
            *done->scene, Run{behind, microBatchOf(m_pair.other)}, Run{moved, microBatchOf(m_pair.own)}));
    }

    void whatRowsForbidIsRefusedWithTheRow()
    {
        // A first move, the other way round.
        const LaneRows last = pieceOf(m_pair.other, -1);
        const auto behind = pieceMoveTo(*m_scene, lane(), m_pair, pieceOf(m_pair.own, 1), last.end, true);
        QVERIFY(behind.has_value());
        QVERIFY(m_host->commit(proposePieceMove(*m_host->gestureContext(), *behind)));
        m_host->commits.clear();
        // The piece behind it would have to come before what it now follows.
        fitPair();
        const LaneRows piece = pieceOf(m_pair.own, -1);
        const LaneRows mark = pieceOf(m_pair.other, 1);
        const QPoint from = headerOf(piece);
        drag(from, atBegin(mark, from.y()));
        QVERIFY(m_view->gestures().proposal()->refusal.has_value());
        QVERIFY2(m_view->gestures().proposal()->refusal->message.find("row ") != std::string::npos,
            m_view->gestures().proposal()->refusal->message.c_str());
        const QSignalSpy refused(m_view.get(), &TimelineView::refused);
        release(atBegin(mark, from.y()));
        QCOMPARE(refused.count(), 1);
        nothingIsLeft();
    }

    void backOnItsPlaceOrOutsideItIsNoPiece()
    {
        fitPair();
        const LaneRows piece = pieceOf(m_pair.own, 1);
        const QPoint from = headerOf(piece);
        drag(from, from + QPoint(7, 0));
        QVERIFY(m_view->gestures().ghost().atHome);
        // Beyond both blocks it is the whole block that moves.
        const int outside =
            m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(static_cast<double>(m_pair.begin))) - 40;
        moveTo(QPoint(outside, from.y()));
        QVERIFY(!m_view->gestures().ghost().amongPieces);
        std::size_t own = 0;
        for (const LaneRows &each : lane().piecesOf(m_pair.own))
            own += each.end - each.begin;
        QCOMPARE(m_view->gestures().ghost().spans.size(), own);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
    }

    void keysStepOverPieces()
    {
        const LaneRows mark = pieceOf(m_pair.other, 1);
        std::size_t own = mark.end; // the first span behind it
        while (own < m_pair.rows.end && !isKernel(m_pair.own, own))
            ++own;
        QVERIFY(own < m_pair.rows.end);
        zoomTo(own);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(own)->center());
        QCOMPARE(m_view->focus().span, static_cast<std::int64_t>(own));
        QTest::keyClick(m_view.get(), Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const Run moved{m_scene->operatorOf(own), microBatchOf(m_pair.own)};
        const auto done = m_host->replanned();
        QVERIFY(done);
        QVERIFY(runsBefore(*done->scene, moved, firstOf(m_pair.other, mark)));
        // And back, before the plan has come.
        QTest::keyClick(m_view.get(), Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{2});
        const auto back = m_host->replanned();
        QVERIFY(back);
        QVERIFY(runsBefore(*back->scene, lastOf(m_pair.other, mark), moved));
    }

    void controlAndShiftRunsTwoBlocksSideBySideAndAKeyApart()
    {
        const auto apart = planned(m_model, {}, "3d:dp=1,tp=2,pp=2,micro-batches=4,schedule=1f1b", 4);
        QVERIFY(apart);
        showOn(apart, 4);
        m_view->fitAll();
        const auto placeOf = [this](SegmentKind kind, std::int32_t microBatch) {
            const auto &blocks = m_scene->lanes[0].blocks;
            return static_cast<std::size_t>(std::find_if(blocks.begin(), blocks.end(),
                                                [&](const TimelineBlock &block) {
                                                    return block.kind == kind
                                                        && block.microBatch == microBatch;
                                                })
                - blocks.begin());
        };
        const std::size_t forward = placeOf(SegmentKind::Forward, 2);
        const std::size_t backward = placeOf(SegmentKind::Backward, 0);
        QVERIFY(!sideBySideOf(m_scene->lanes[0], forward));
        const Qt::KeyboardModifiers both = Qt::ControlModifier | Qt::ShiftModifier;
        const QPoint from = m_view->rectOfBlock(0, forward)->center();
        const QPoint to(m_view->rectOfBlock(0, backward)->center().x(), from.y());
        drag(from, to, both);
        QVERIFY(m_view->gestures().proposal()->accepted());
        release(to, both);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(hasRow("interleave forward stage 0 with backward at -2"), m_host->text().c_str());
        const auto paired = m_host->replanned();
        QVERIFY(paired);
        showOn(paired, 4);
        const auto pair = sideBySideOf(m_scene->lanes[0], placeOf(SegmentKind::Forward, 2));
        QVERIFY(pair.has_value());
        QCOMPARE(pair->other, placeOf(SegmentKind::Backward, 0));
        m_view->fitAll();
        const LaneRows first = m_scene->lanes[0].piecesOf(pair->own)[0];
        const SpanColumns &spans = m_scene->timeline->spans;
        const double middle =
            (static_cast<double>(spans.start[first.begin])
                + static_cast<double>(spans.start[first.end - 1] + spans.duration[first.end - 1]))
            / 2;
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {},
            {m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(middle)),
                m_view->rectOfBlock(0, pair->own)->center().y()});
        QCOMPARE(m_view->focus().block, static_cast<std::int32_t>(pair->own));
        QVERIFY2(m_view->focusText().endsWith(QStringLiteral(", side by side with B0")),
            qPrintable(m_view->focusText()));
        QTest::keyClick(m_view.get(), Qt::Key_B, Qt::ShiftModifier);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(!hasRow("interleave"), m_host->text().c_str());
    }

private:
    struct Run {
        OperatorId op{};
        std::int32_t microBatch = 0;
    };

    const DeviceLane &lane() const { return m_scene->lanes[static_cast<std::size_t>(m_lane)]; }
    std::int32_t microBatchOf(std::size_t block) const { return lane().blocks[block].microBatch; }

    void findPair()
    {
        m_lane = -1;
        for (const DeviceLane &lane : m_scene->lanes)
            for (std::size_t block = 0; block < lane.blocks.size() && m_lane < 0; ++block)
                if (const auto pair = sideBySideOf(lane, block); pair
                    && lane.blocks[block].kind == SegmentKind::Forward && lane.piecesOf(block).size() > 2
                    && lane.piecesOf(pair->other).size() > 2) {
                    m_lane = lane.device.index;
                    m_pair = *pair;
                }
        QVERIFY2(m_lane >= 0, "blocks run side by side");
    }

    /// Counted from the end where below 0.
    LaneRows pieceOf(std::size_t block, int number) const
    {
        const auto pieces = lane().piecesOf(block);
        return pieces[number < 0 ? pieces.size() - 1 : static_cast<std::size_t>(number)];
    }

    bool isKernel(std::size_t block, std::size_t row) const
    {
        const Instruction *run = m_scene->findInstruction(row);
        return run && run->kind == InstructionKind::Kernel && !run->recompute
            && m_scene->isIn(lane().blocks[block], row);
    }
    Run firstOf(std::size_t block, LaneRows piece) const
    {
        for (std::size_t row = piece.begin; row < piece.end; ++row)
            if (isKernel(block, row))
                return {m_scene->operatorOf(row), microBatchOf(block)};
        return {};
    }
    Run lastOf(std::size_t block, LaneRows piece) const
    {
        for (std::size_t row = piece.end; row-- > piece.begin;)
            if (isKernel(block, row))
                return {m_scene->operatorOf(row), microBatchOf(block)};
        return {};
    }

    /// On the device of the pair.
    bool runsBefore(const TimelineScene &scene, const Run &first, const Run &second) const
    {
        const SpanColumns &spans = scene.timeline->spans;
        const auto timeOf = [&](const Run &run) {
            for (const std::size_t row : rowsOf(scene, {run.op}))
                if (const Instruction *it = scene.findInstruction(row); spans.device[row] == m_lane
                    && spans.microBatch[row] == run.microBatch && it->kind == InstructionKind::Kernel
                    && !it->recompute)
                    return spans.start[row];
            return std::int64_t{-1};
        };
        return timeOf(first) >= 0 && timeOf(first) < timeOf(second);
    }

    double axisWidth() const { return m_view->viewport()->width() - m_view->axisLeft(); }

    void fitPair()
    {
        const auto length = static_cast<double>(m_pair.end - m_pair.begin);
        m_view->setAxis({static_cast<double>(m_pair.begin) - length / 8, length * 1.25 / axisWidth()});
    }
    void zoomOver(std::size_t a, std::size_t b)
    {
        const SpanColumns &spans = m_scene->timeline->spans;
        const auto begin = static_cast<double>(spans.start[a]);
        const double length = static_cast<double>(spans.start[b] + spans.duration[b]) - begin;
        m_view->setAxis({begin - length / 8, length * 1.25 / axisWidth()});
    }
    QPoint headerOf(LaneRows piece) const
    {
        const SpanColumns &spans = m_scene->timeline->spans;
        const double middle =
            (static_cast<double>(spans.start[piece.begin])
                + static_cast<double>(spans.start[piece.end - 1] + spans.duration[piece.end - 1]))
            / 2;
        return {m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(middle)),
            static_cast<int>(m_view->rectOfBlock(m_lane, m_pair.own)->center().y())};
    }
    QPoint atBegin(LaneRows piece, int y) const
    {
        return {m_view->axisLeft()
                + static_cast<int>(
                    m_view->axis().xOf(static_cast<double>(m_scene->timeline->spans.start[piece.begin]))),
            y};
    }

    PlanUpdateSnapshot m_paired;
    std::int32_t m_lane = -1;
    SideBySide m_pair{};
};

PLANLOOM_QTEST(TimelinePiecesTest)
#include "timeline_pieces_test.moc"
