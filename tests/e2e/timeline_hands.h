#pragma once

#include <QtCore/QObject>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>

#include "tests/e2e/gesture_walk.h"
#include "tests/widgets/timeline/places_for_tests.h"
#include "widgets/timeline/timeline_pieces.h"

#include <algorithm>

namespace planloom {

constexpr const char *kPipeline = "pipeline:micro-batches=4,schedule=1f1b";
constexpr const char *kSideBySide =
    "mesh x=2\nsplit all : heads over x\nmicro-batches 4\nschedule combined-1f1b\n";
inline const std::vector<DeviceId> kFirst{DeviceId{0}};
inline const std::vector<DeviceId> kSecond{DeviceId{1}};

/// A hand on the timeline of the whole window, with its engine.
class TimelineHandsInWindow : public QObject
{
protected:
    const TimelineScene &scene() const { return *m_view->scene(); }

    void open(const char *gallery, const char *rows = "")
    {
        m_view = m_at.timeline();
        m_at.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", 2, gallery ? gallery : "", rows);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.workspace().model() && m_at.settled() && m_at.workspace().lastGood(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_view->scene() && !scene().lanes.empty() && m_at.dag()->isSettled(), kPatience);
    }

    /// The whole step in sight, every device with a lane of its own, nothing selected.
    HandGesture base()
    {
        m_at.window->selection().clear();
        m_view->expandAll(true);
        m_view->fitAll();
        m_at.window->activateWindow(); // a popup that closes leaves no window active, without a desktop
        if (!QTest::qWaitForWindowActive(m_at.window.get()))
            QTest::qFail("the window is not active", __FILE__, __LINE__);
        m_view->setFocus();
        HandGesture hand;
        hand.canvas = m_view;
        return hand;
    }

    /// By the choice in the tool bar.
    void keepOrder(bool keep)
    {
        auto *choice = m_at.window->findChild<QComboBox *>(QStringLiteral("followers"));
        QVERIFY(choice);
        choice->setFocus();
        QTest::keyClick(choice, keep ? Qt::Key_Down : Qt::Key_Up);
        QCOMPARE(choice->currentText(), keep ? QStringLiteral("Keep order") : QStringLiteral("Close gaps"));
        QCOMPARE(m_view->followersPolicy(), keep ? FollowersPolicy::KeepOrder : FollowersPolicy::CloseGaps);
    }

    static QString blocks(const TimelineScene &scene)
    {
        QStringList words;
        for (const TimelineBlock &block : scene.lanes.front().blocks) {
            if (block.isOrdered())
                words << (block.kind == SegmentKind::Backward ? QStringLiteral("B%1") : QStringLiteral("F%1"))
                             .arg(block.microBatch);
        }
        return words.join(QLatin1Char(' '));
    }

    void byMouse(HandGesture &hand, QPoint from, QPoint first, QPoint to, Qt::KeyboardModifiers held = {})
    {
        QWidget *on = m_view->viewport();
        hand.steps = {[=] { pressAt(on, from, held); }, [=] { moveTo(on, first, held); },
            [=] { moveTo(on, to, held); }};
        hand.letGo = [=] {
            moveTo(on, to + QPoint(1, 1));
            releaseAt(on, to + QPoint(1, 1));
        };
        hand.finish = [=] { releaseAt(on, to, held); };
    }

    void wholeStage(HandGesture &hand)
    {
        m_stage = operatorsOfStage(*m_at.workspace().gestureContext(), StageId{0});
        hand.rows = {QStringLiteral("devices 1")};
        hand.follows = [this] {
            QVERIFY(m_stage.size() > 5);
            for (const OperatorId op : m_stage)
                QCOMPARE(m_at.decision(op).devices, kSecond);
        };
    }

    std::size_t firstBackward() const
    {
        const auto &blocks = scene().lanes[0].blocks;
        std::size_t backward = 0;
        while (blocks[backward].kind != SegmentKind::Backward)
            ++backward;
        return backward;
    }

    /// The first backward block of stage 0 goes before the forward block in front of it.
    void comesBefore(HandGesture &hand, bool onlyThis)
    {
        const std::size_t backward = firstBackward();
        const TimelineBlock moved = scene().lanes[0].blocks[backward];
        const TimelineBlock passed = scene().lanes[0].blocks[backward - 1];
        hand.rows = {QStringLiteral("order ")};
        if (onlyThis)
            hand.rows.append(QStringLiteral(" of "));
        hand.follows = [this, moved, passed] {
            const auto &blocks = m_at.workspace().lastGood()->scene->lanes[0].blocks;
            const auto place = [&](const TimelineBlock &block) {
                return std::find_if(blocks.begin(), blocks.end(), [&](const TimelineBlock &other) {
                    return other.kind == block.kind && other.microBatch == block.microBatch
                        && other.stage == block.stage;
                }) - blocks.begin();
            };
            QVERIFY(place(moved) < place(passed));
        };
    }

    void movingBlock(Qt::KeyboardModifiers held, int where)
    {
        open(kPipeline);
        walk(m_at, [&] {
            HandGesture hand = base();
            const std::size_t backward = firstBackward();
            const QPoint from = m_view->rectOfBlock(0, backward)->center();
            const QRect before = *m_view->rectOfBlock(0, backward - 1);
            const QPoint to(where < 0 ? before.left() + 2 : before.center().x(), from.y());
            byMouse(hand, from, from - QPoint(8, 0), to, held);
            comesBefore(hand, (held & Qt::AltModifier) != 0);
            return hand;
        });
    }

    void pressingBlock(Qt::Key pressed, Qt::KeyboardModifiers held)
    {
        open(kPipeline);
        press(m_at, [&] {
            HandGesture hand = base();
            QTest::mouseClick(
                m_view->viewport(), Qt::LeftButton, {}, m_view->rectOfBlock(0, firstBackward())->center());
            hand.finish = [this, pressed, held] { QTest::keyClick(m_view, pressed, held); };
            comesBefore(hand, (held & Qt::AltModifier) != 0);
            return hand;
        });
    }

    /// Two operators of one block that don't need each other: one goes behind the other.
    void movingSpan(Qt::KeyboardModifiers held)
    {
        open(kPipeline);
        walk(m_at, [&] {
            HandGesture hand = base();
            const TimelineBlock &block = scene().lanes[0].blocks[0];
            for (std::size_t row = block.rows.begin; row + 1 < block.rows.end; ++row) {
                zoomTo(row);
                const auto rect = m_view->rectOf(row);
                const auto next = m_view->rectOf(row + 1);
                if (!rect || !next || !scene().operatorOf(row).valid()
                    || !scene().operatorOf(row + 1).valid())
                    continue;
                const QPoint from = rect->center();
                const QPoint to(std::min(next->right() - 1, m_view->viewport()->width() - 60), from.y());
                byMouse(hand, from, from + QPoint(8, 0), to, held);
                for (const auto &step : hand.steps)
                    step();
                const auto &proposal = m_view->gestures().proposal();
                const bool stays = held.testFlag(Qt::ControlModifier); // between its new neighbours
                const bool found = proposal && proposal->accepted()
                    && (!stays || proposal->words.find("and not behind") != std::string::npos);
                QTest::keyClick(m_view, Qt::Key_Escape);
                hand.letGo();
                if (found) {
                    m_operator = scene().operatorOf(row);
                    m_other = scene().operatorOf(row + 1);
                    hand.rows = {QStringLiteral("order ")};
                    const OperatorId behind = stays ? scene().operatorOf(row + 2) : OperatorId{};
                    hand.follows = [this, behind] {
                        hasOrder(m_other, m_operator);
                        if (behind.valid())
                            hasOrder(m_operator, behind);
                    };
                    m_at.window->selection().clear();
                    return hand;
                }
            }
            QTest::qFail("no two neighbours can change places", __FILE__, __LINE__);
            return hand;
        });
    }

    /// A forward block of the first device that runs beside a backward block, each in several pieces.
    SideBySide pair() const
    {
        const DeviceLane &lane = scene().lanes[0];
        for (std::size_t block = 0; block < lane.blocks.size(); ++block)
            if (const auto found = sideBySideOf(lane, block); found
                && lane.blocks[block].kind == SegmentKind::Forward && lane.piecesOf(block).size() > 2
                && lane.piecesOf(found->other).size() > 2)
                return *found;
        qFatal("no blocks run side by side");
        return {};
    }

    /// The operator of the block that the piece runs first, or last.
    OperatorId runBy(std::size_t block, LaneRows piece, bool first) const
    {
        const auto sequence = sequenceOf(scene(), scene().lanes[0].blocks[block]);
        OperatorId found;
        for (std::size_t row = piece.begin; row < piece.end && !(first && found.valid()); ++row)
            if (const OperatorId op = scene().operatorOf(row);
                std::find(sequence.begin(), sequence.end(), op) != sequence.end())
                found = op;
        return found;
    }

    /// The last piece of a block goes before the second of the one beside it.
    void movingPiece(Qt::KeyboardModifiers held)
    {
        open(nullptr, kSideBySide);
        walk(m_at, [&] {
            HandGesture hand = base();
            const SideBySide two = pair();
            const double length = static_cast<double>(two.end - two.begin);
            m_view->setAxis({static_cast<double>(two.begin) - length / 8,
                length * 1.25 / (m_view->viewport()->width() - m_view->axisLeft())});
            const LaneRows piece = scene().lanes[0].piecesOf(two.own).back();
            const LaneRows mark = scene().lanes[0].piecesOf(two.other)[1];
            const auto at = [this](std::size_t row, double part) {
                const SpanColumns &spans = scene().timeline->spans;
                return m_view->axisLeft()
                    + static_cast<int>(m_view->axis().xOf(static_cast<double>(spans.start[row])
                        + part * static_cast<double>(spans.duration[row])));
            };
            const int y = m_view->rectOfBlock(0, two.own)->center().y();
            const QPoint from((at(piece.begin, 0) + at(piece.end - 1, 1)) / 2, y);
            byMouse(hand, from, from - QPoint(8, 0), QPoint(at(mark.begin, 0), y), held);
            m_operator = runBy(two.own, piece, false);
            m_other = runBy(two.other, mark, true);
            hand.rows = {QStringLiteral("order ")};
            if (held & Qt::AltModifier)
                hand.rows.append(QStringLiteral(" of "));
            hand.follows = [this] { hasOrder(m_operator, m_other); };
            return hand;
        });
    }

    /// The first operator behind a piece of the block beside its own goes before that piece.
    void pressingPiece(Qt::KeyboardModifiers held)
    {
        open(nullptr, kSideBySide);
        press(m_at, [&] {
            HandGesture hand = base();
            const SideBySide two = pair();
            const LaneRows mark = scene().lanes[0].piecesOf(two.other)[1];
            const auto sequence = sequenceOf(scene(), scene().lanes[0].blocks[two.own]);
            std::size_t row = mark.end;
            while (std::find(sequence.begin(), sequence.end(), scene().operatorOf(row)) == sequence.end())
                ++row;
            zoomTo(row);
            QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(row)->center());
            m_operator = scene().operatorOf(row);
            m_other = runBy(two.other, mark, true);
            hand.finish = [this, held] { QTest::keyClick(m_view, Qt::Key_Left, held); };
            hand.rows = {QStringLiteral("order ")};
            hand.follows = [this] { hasOrder(m_operator, m_other); };
            return hand;
        });
    }

    void spreading(bool digit)
    {
        open(kPipeline);
        walk(m_at, [&] {
            HandGesture hand = base();
            const std::size_t span = productSpan(0);
            m_operator = forward(scene().operatorOf(span));
            zoomTo(span);
            const QRect rect = *m_view->rectOf(span);
            const QPoint from(rect.center().x(), rect.bottom() - 1);
            byMouse(hand, from, from + QPoint(0, 8), QPoint(from.x(), laneMiddle(1)));
            if (digit)
                hand.steps.push_back([this] {
                    QTest::keyClick(m_view, Qt::Key_2);
                    QCOMPARE(m_view->gestures().ghost().choice, 1);
                });
            hand.rows = {QStringLiteral("split "), QStringLiteral("place ")};
            hand.follows = [this] {
                QCOMPARE(
                    m_at.decision(m_operator).devices, (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
                QCOMPARE(m_at.decision(m_operator).partition.splits.back().parts, 2);
            };
            return hand;
        });
    }

    void pressing(
        Qt::Key pressed, Qt::KeyboardModifiers held, const QString &row, const std::function<void()> &follows)
    {
        press(m_at, [&] {
            HandGesture hand = base();
            clickSpan(productSpan(0));
            hand.finish = [this, pressed, held] { QTest::keyClick(m_view, pressed, held); };
            if (!row.isEmpty())
                hand.rows = {row};
            hand.follows = follows;
            return hand;
        });
    }

    void hasOrder(OperatorId first, OperatorId second) const
    {
        for (const OrderConstraint &order : m_at.workspace().lastGood()->plan->orders) {
            if (order.first == first && order.second == second)
                return;
        }
        QFAIL("the plan does not have that order");
    }

    OperatorId forward(OperatorId op) const
    {
        const Operator &of = m_at.graph().at(op);
        return of.direction == Direction::Backward ? of.mirror : op;
    }

    void clickSpan(std::size_t span)
    {
        m_operator = forward(scene().operatorOf(span));
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(span)->center());
        QCOMPARE(m_at.window->selection().selected().size(), std::size_t{1});
    }

    /// A forward span of a lane's first block that can be seen alone; zooms in until there is one.
    std::size_t wideSpan(std::int32_t lane, std::size_t from = 0, OperatorKind *kind = nullptr)
    {
        for (int tries = 0; tries < 40; ++tries) {
            const auto &blocks = scene().lanes[static_cast<std::size_t>(lane)].blocks;
            const TimelineBlock &block = *std::find_if(blocks.begin(), blocks.end(),
                [](const TimelineBlock &each) { return each.kind == SegmentKind::Forward; });
            for (std::size_t row = std::max(block.rows.begin, from); row < block.rows.end; ++row) {
                const OperatorId op = scene().operatorOf(row);
                const auto rect = m_view->rectOf(row);
                if (rect && rect->width() >= 14 && op.valid() && (!kind || m_at.graph().at(op).kind == *kind))
                    return row;
            }
            QTest::keyClick(m_view, Qt::Key_W);
            m_view->setAxis({static_cast<double>(block.begin), m_view->axis().nanosecondsPerPixel});
        }
        qFatal("no span is wide enough");
        return 0;
    }
    /// One that has dimensions to split.
    std::size_t productSpan(std::int32_t lane)
    {
        OperatorKind kind = OperatorKind::Linear;
        return wideSpan(lane, 0, &kind);
    }
    void zoomTo(std::size_t row) { zoomToSpan(*m_view, row); }
    int laneMiddle(std::int32_t lane) const { return planloom::laneMiddle(*m_view, lane); }

    WindowForTests m_at;
    TimelineView *m_view = nullptr;
    QMimeData m_data;
    OperatorId m_operator;
    OperatorId m_other;
    std::vector<OperatorId> m_stage;
    std::int32_t m_count = 0;
};

} // namespace planloom
