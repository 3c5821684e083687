// A schedule in the hands of a person: from a template over blocks that are dragged to the best there is,
// held against where it began, and back.

#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/common/format.h"
#include "widgets/compare/compare_view.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/player.h"
#include "widgets/schedule/schedule_board.h"
#include "widgets/schedule/schedule_chooser.h"

#include <algorithm>

using namespace planloom;

namespace {

/// Activations are most of what its first stage holds.
constexpr const char *kScheduled = "zoo:gpt?layers=4&hidden=64&heads=4&seq=256&vocab=128&batch=32&fused=0";

QPushButton *buttonIn(const QWidget &in, const QString &text)
{
    for (QPushButton *each : in.findChildren<QPushButton *>())
        if (each->text() == text)
            return each;
    return nullptr;
}

} // namespace

class ScheduleHandsTest : public QObject
{
    Q_OBJECT

private:
    Workspace &workspace() { return m_at.workspace(); }
    TimelineView *view() { return m_at.timeline(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_at.settled() && view()->scene(), kPatience); }

    /// Where a block of the first device is.
    QRect block(SegmentKind kind, std::int32_t microBatch)
    {
        const auto &blocks = view()->scene()->lanes[0].blocks;
        const auto found = std::find_if(blocks.begin(), blocks.end(),
            [=](const TimelineBlock &each) { return each.kind == kind && each.microBatch == microBatch; });
        const auto rect = found == blocks.end()
            ? std::nullopt
            : view()->rectOfBlock(0, static_cast<std::size_t>(found - blocks.begin()));
        return rect.value_or(QRect());
    }
    /// From a block to right before another, up to the release; what would be is known.
    QPoint dragBefore(const QRect &moved, const QRect &before)
    {
        QWidget *on = view()->viewport();
        const QPoint from = moved.center();
        const QPoint to(before.left() + 2, from.y());
        pressAt(on, from);
        moveTo(on, from - QPoint(8, 0));
        moveTo(on, to);
        [&] {
            QTRY_VERIFY_WITH_TIMEOUT(
                workspace().currentPreview() && workspace().currentPreview()->final, kPatience);
        }();
        return to;
    }

    WindowForTests m_at;

private Q_SLOTS:
    void init() { m_at.open(); } // each in a window of its own

    void fromATemplateToTheBestAndBack()
    {
        workspace().openWith(
            {kScheduled, {}, {}}, "dgx-h100", 4, "pipeline:stages=4,micro-batches=8,schedule=gpipe");
        QTRY_VERIFY_WITH_TIMEOUT(workspace().model() != nullptr, kPatience);
        settle();
        const std::string atFirst = workspace().tableText();

        // The template, by the keyboard, from the tool bar.
        ScheduleChooser *chooser = m_at.window->schedules();
        QCOMPARE(chooser->currentText(), QStringLiteral("gpipe"));
        QTRY_VERIFY_WITH_TIMEOUT(!chooser->isPossible(ScheduleKind::DualPipe), kPatience);
        chooser->setFocus();
        QTest::keyClick(chooser, Qt::Key_Down);
        settle();
        QCOMPARE(workspace().lastGood()->plan->schedule, ScheduleKind::OneFOneB);
        QCOMPARE(chooser->currentText(), QStringLiteral("1f1b"));
        const double ofTemplate = workspace().lastGood()->summary.stepSeconds;

        // As much memory as that takes.
        const std::int64_t kibibytes = workspace().lastGood()->summary.largestPeak.count / 1024 + 1;
        std::string text = workspace().tableText();
        text += (text.ends_with('\n') ? "" : "\n") + std::string("limit memory ") + std::to_string(kibibytes)
            + "KiB\n";
        workspace().setTableText(text);
        settle();
        QCOMPARE(workspace().latest()->errorCount(), std::size_t{0});

        // A block that is dragged to where memory is short stays where it is, and it is said why.
        view()->expandAll(true);
        view()->fitAll();
        m_at.window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_at.window.get()));
        view()->setFocus();
        QSignalSpy refused(view(), &TimelineView::refused);
        QPoint to = dragBefore(block(SegmentKind::Forward, 4), block(SegmentKind::Backward, 0));
        QVERIFY(view()->gestures().proposal() && view()->gestures().proposal()->refusal);
        releaseAt(view()->viewport(), to);
        QCOMPARE(refused.size(), 1);
        const QString why = refused.front().front().toString();
        QVERIFY2(
            why.contains(QStringLiteral("F4 of stage 0 can't run before B0 of stage 0: GPU 0 would hold")),
            qPrintable(why));
        QVERIFY2(why.contains(QStringLiteral("allows %1")
                                  .arg(QString::fromStdString(formatBytes(Bytes{kibibytes * 1024})))),
            qPrintable(why));
        QCOMPARE(workspace().tableText(), text);

        // One that is allowed is moved.
        to = dragBefore(block(SegmentKind::Backward, 1), block(SegmentKind::Forward, 4));
        QVERIFY(view()->gestures().proposal() && view()->gestures().proposal()->accepted());
        releaseAt(view()->viewport(), to);
        settle();
        QVERIFY(workspace().tableText() != text);
        QVERIFY(block(SegmentKind::Backward, 1).left() < block(SegmentKind::Forward, 4).left());
        const std::string dragged = workspace().tableText();

        // The best schedule keeps that row.
        QVERIFY(m_at.window->trigger(QStringLiteral("schedule.best")));
        ScheduleBoard *board = m_at.window->scheduleBoard();
        QVERIFY(board && board->isVisible());
        QSignalSpy found(board, &ScheduleBoard::found);
        QTRY_VERIFY_WITH_TIMEOUT(!found.isEmpty(), 2 * kPatience);
        QCOMPARE(workspace().tableText(), dragged); // nothing is taken that nobody asked for
        QPushButton *apply = buttonIn(*board, QStringLiteral("&Apply"));
        QVERIFY(apply && apply->isEnabled());
        QTest::keyClick(apply, Qt::Key_Return);
        settle();
        QVERIFY2(!board->state().contains(QStringLiteral("try again")), qPrintable(board->state()));
        QVERIFY(workspace().lastGood()->summary.stepSeconds <= ofTemplate);
        QCOMPARE(workspace().latest()->errorCount(), std::size_t{0});
        QVERIFY(board->proof().contains(QStringLiteral("GPU ")));
        QVERIFY(workspace().tableText().find("order ") != std::string::npos);
        const std::string best = workspace().tableText();

        // Two schedules are held against each other; the design stays as it is.
        auto *list = board->list();
        list->clearSelection();
        for (int line = 0; line < list->rowCount(); ++line)
            if (const TriedSchedule *tried = board->triedAt(line);
                tried && (tried->name == "gpipe" || tried->name == "1f1b"))
                list->selectionModel()->select(
                    list->model()->index(line, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
        QPushButton *compare = buttonIn(*board, QStringLiteral("&Compare"));
        QVERIFY(compare && compare->isEnabled());
        QTest::mouseClick(compare, Qt::LeftButton);
        QVERIFY(!board->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(m_at.window->compare() && m_at.window->compare()->result(), kPatience);
        QCOMPARE(workspace().tableText(), best);

        // It is played to its end, faster and faster.
        m_at.window->docks().apply(QStringLiteral("design"));
        auto *player = m_at.window->findChild<Player *>();
        QVERIFY(player);
        m_at.window->activateWindow(); // a window that closes leaves none active, without a desktop
        QVERIFY(QTest::qWaitForWindowActive(m_at.window.get()));
        view()->setFocus();
        QTRY_VERIFY_WITH_TIMEOUT(view()->isVisible() && view()->hasFocus(), kPatience);
        QTest::keyClick(view(), Qt::Key_Space, Qt::ShiftModifier);
        QVERIFY(player->playback().isPlaying());
        for (int i = 0; i < 4; ++i)
            QTest::keyClick(view(), Qt::Key_Period, Qt::ShiftModifier);
        QCOMPARE(player->playback().speed(), 16.0);
        QTRY_VERIFY_WITH_TIMEOUT(!player->playback().isPlaying(), kPatience);
        const auto end = player->playback().time();
        QVERIFY(end);
        QCOMPARE(*end, static_cast<double>(view()->scene()->timeline->step.count()));
        QTest::keyClick(view(), Qt::Key_Comma);
        QVERIFY(*player->playback().time() < *end);

        // And back, step by step.
        workspace().undo();
        QCOMPARE(workspace().tableText(), dragged);
        workspace().undo();
        QCOMPARE(workspace().tableText(), text);
        while (workspace().canUndo())
            workspace().undo();
        QCOMPARE(workspace().tableText(), atFirst);
        settle();
    }

    /// A key acts at once: what there is no room for is moved back when that is known.
    void aKeyThatBreaksALimitIsRefused()
    {
        workspace().openWith(
            {kScheduled, {}, {}}, "dgx-h100", 4, "pipeline:stages=4,micro-batches=8,schedule=1f1b");
        QTRY_VERIFY_WITH_TIMEOUT(workspace().model() != nullptr, kPatience);
        settle();
        std::string text = workspace().tableText();
        text += (text.ends_with('\n') ? "" : "\n") + std::string("in-flight 4 stage 0\n");
        workspace().setTableText(text);
        settle();
        view()->expandAll(true);
        view()->fitAll();
        m_at.window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_at.window.get()));
        view()->setFocus();
        QSignalSpy broken(&workspace(), &Workspace::limitBroken);
        QTest::mouseClick(view()->viewport(), Qt::LeftButton, {}, block(SegmentKind::Forward, 4).center());
        QTRY_VERIFY2(view()->focusText().startsWith(QStringLiteral("forward of micro-batch 4")),
            qPrintable(view()->focusText()));
        QTest::keyClick(view(), Qt::Key_Left, Qt::ShiftModifier);
        QVERIFY2(workspace().tableText() != text, qPrintable(view()->focusText()));
        QTRY_COMPARE_WITH_TIMEOUT(broken.size(), 1, kPatience);
        const auto error = broken.front().front().value<Error>();
        QVERIFY2(error.message.starts_with("F4 of stage 0 can't run before B0 of stage 0: row "),
            error.message.c_str());
        QCOMPARE(workspace().tableText(), text);
        settle();
        QCOMPARE(broken.size(), 1);
        QVERIFY(workspace().canRedo()); // for who wants it nevertheless
        workspace().redo();
        QVERIFY(workspace().tableText() != text);
        settle();
        QCOMPARE(broken.size(), 1);
        // Once more by key, now that its plan is known.
        workspace().undo();
        settle();
        QTest::mouseClick(view()->viewport(), Qt::LeftButton, {}, block(SegmentKind::Forward, 4).center());
        QTRY_VERIFY(view()->focusText().startsWith(QStringLiteral("forward of micro-batch 4")));
        QTest::keyClick(view(), Qt::Key_Left, Qt::ShiftModifier);
        QTRY_COMPARE_WITH_TIMEOUT(broken.size(), 2, kPatience);
        QCOMPARE(workspace().tableText(), text);
        settle();
    }

    /// A plan that is known from before is shown within the press; the next press goes on from there.
    void keysGoOnFromAPlanThatWasKnown()
    {
        workspace().openWith(
            {kScheduled, {}, {}}, "dgx-h100", 4, "pipeline:stages=4,micro-batches=8,schedule=gpipe");
        QTRY_VERIFY_WITH_TIMEOUT(workspace().model() != nullptr, kPatience);
        settle();
        const std::string text = workspace().tableText();
        view()->expandAll(true);
        view()->fitAll();
        m_at.window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_at.window.get()));
        std::vector<std::string> reached;
        for (const bool waits : {true, false}) {
            view()->setFocus();
            QTest::mouseClick(
                view()->viewport(), Qt::LeftButton, {}, block(SegmentKind::Backward, 0).center());
            QTRY_VERIFY2(view()->focusText().startsWith(QStringLiteral("backward of micro-batch 0")),
                qPrintable(view()->focusText()));
            for (int press = 0; press < 2; ++press) {
                QTest::keyClick(view(), Qt::Key_Left, Qt::ShiftModifier);
                if (waits)
                    settle();
            }
            settle();
            reached.push_back(workspace().tableText());
            QVERIFY(reached.back() != text);
            workspace().setTableText(text);
            settle();
        }
        QCOMPARE(reached.back(), reached.front());
    }

    /// Every template is a command, those that do not fit are not to be had.
    void everyTemplateIsInThePalette()
    {
        workspace().openWith(
            {kScheduled, {}, {}}, "dgx-h100", 4, "pipeline:stages=4,micro-batches=8,schedule=1f1b");
        QTRY_VERIFY_WITH_TIMEOUT(workspace().model() != nullptr, kPatience);
        settle();
        QTRY_VERIFY_WITH_TIMEOUT(
            !m_at.window->schedules()->isPossible(ScheduleKind::DualPipe) && m_at.window->isSettled(),
            kPatience);
        for (const ScheduleKind kind : kAllSchedules) {
            QAction *action =
                m_at.window->commands().find(QStringLiteral("schedule.%1").arg(QLatin1String(nameOf(kind))));
            QVERIFY2(action, nameOf(kind));
            QTRY_COMPARE_WITH_TIMEOUT(
                action->isEnabled(), m_at.window->schedules()->isPossible(kind), kPatience);
        }
        QVERIFY(m_at.window->trigger(QStringLiteral("schedule.zb-h1")));
        settle();
        QCOMPARE(workspace().lastGood()->plan->schedule, ScheduleKind::ZeroBubbleH1);
        QCOMPARE(m_at.window->schedules()->currentText(), QStringLiteral("zb-h1"));
        workspace().undo();
        settle();
        QCOMPARE(m_at.window->schedules()->currentText(), QStringLiteral("1f1b"));
    }
};

PLANLOOM_QTEST(ScheduleHandsTest)
#include "schedule_hands_test.moc"
