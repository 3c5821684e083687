#pragma once

#include "tests/e2e/window_for_tests.h"

namespace planloom {

constexpr const char *kName = "h.0.mlp.c_fc"; ///< The operator that most gestures are about.

/// A gesture ready to be made: everything is selected and in sight.
struct HandGesture {
    QWidget *canvas = nullptr; ///< Gets undo and redo.
    std::vector<std::function<void()>> steps{}; ///< Press and movements, or a key and what is typed.
    std::function<void()> finish{}; ///< The release, or Enter.
    std::function<void()> escape{}; ///< In place of Esc, where the desktop takes the key; mostly empty.
    std::function<void()> letGo{}; ///< After Esc: the button is still held; may be empty.
    QStringList rows{}; ///< What the lines say that are in the table then and were not before.
    std::function<void()> follows{}; ///< Looks at the plan that followed.
};

/// Where a design is: what nothing but a finished gesture may change.
struct DesignMark {
    explicit DesignMark(const Workspace &workspace)
        : text(workspace.tableText())
        , step(workspace.history().current())
        , steps(workspace.history().steps().size())
        , plan(workspace.lastGood())
    {
    }
    std::string text;
    StepId step;
    std::size_t steps;
    PlanUpdateSnapshot plan;
};

/// What a plan decides, apart from what it was made of.
inline bool sameDecisions(const Plan &a, const Plan &b)
{
    return a.decisions == b.decisions && a.orders == b.orders && a.inFlight == b.inFlight
        && a.stageCount == b.stageCount && a.microBatches == b.microBatches && a.schedule == b.schedule
        && a.deviceCount == b.deviceCount;
}

inline void untouched(WindowForTests &at, const DesignMark &mark)
{
    QCOMPARE(at.workspace().tableText(), mark.text);
    QCOMPARE(at.workspace().history().current(), mark.step);
    QCOMPARE(at.workspace().history().steps().size(), mark.steps);
    QVERIFY(!at.workspace().currentPreview());
    QVERIFY(at.workspace().lastGood() == mark.plan);
    QVERIFY(!at.workspace().isStale());
    QVERIFY(!at.dag()->gestures().dragging() && !at.dag()->gestures().editor());
    QVERIFY(!at.timeline()->gestures().dragging());
}

inline bool previewIsFinal(const WindowForTests &at)
{
    const PreviewSnapshot preview = at.workspace().currentPreview();
    return preview && preview->final && preview->feasible();
}

/// Why there are no final numbers.
inline QByteArray missing(const WindowForTests &at)
{
    const PreviewSnapshot preview = at.workspace().currentPreview();
    if (!preview)
        return "there is no preview";
    QByteArray text = QByteArray::fromStdString(preview->proposal.words);
    if (preview->proposal.refusal)
        text += "; refused: " + QByteArray::fromStdString(preview->proposal.refusal->message);
    if (preview->update && preview->update->error)
        text += "; no plan: " + QByteArray::fromStdString(preview->update->error->message);
    return text + (preview->final ? "; final" : "; not final");
}

/// Esc after the first `count` steps leaves nothing behind.
inline void abandonAfter(WindowForTests &at, const HandGesture &gesture, std::size_t count, bool answered)
{
    const DesignMark mark(at.workspace());
    for (std::size_t i = 0; i < count; ++i)
        gesture.steps[i]();
    if (answered)
        QVERIFY2(QTest::qWaitFor([&] { return previewIsFinal(at); }, kPatience), missing(at).constData());
    QCOMPARE(at.workspace().tableText(), mark.text);
    if (gesture.escape)
        gesture.escape();
    else
        key(gesture.canvas, Qt::Key_Escape);
    untouched(at, mark);
    if (QTest::currentTestFailed())
        return;
    if (gesture.letGo)
        gesture.letGo();
    QCoreApplication::processEvents();
    untouched(at, mark);
}

/// Undo brings back rows and plan, redo the row and its plan, undo once more; `before` is where it was.
inline void undoAndRedo(WindowForTests &at, QWidget *canvas, const DesignMark &before)
{
    const std::string written = at.workspace().tableText();
    const PlanUpdateSnapshot after = at.workspace().lastGood();
    canvas->setFocus();
    QTest::keyClick(canvas, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(at.workspace().tableText(), before.text);
    QCOMPARE(at.workspace().history().current(), before.step);
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    QVERIFY(sameDecisions(*at.workspace().lastGood()->plan, *before.plan->plan));
    QTest::keyClick(canvas, Qt::Key_Y, Qt::ControlModifier);
    QCOMPARE(at.workspace().tableText(), written);
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    QVERIFY(sameDecisions(*at.workspace().lastGood()->plan, *after->plan));
    QTest::keyClick(canvas, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(at.workspace().tableText(), before.text);
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
}

inline void writesItsRows(WindowForTests &at, const HandGesture &gesture, const DesignMark &before)
{
    QVERIFY(at.workspace().tableText() != before.text);
    QCOMPARE(at.workspace().history().steps().size(), before.steps + 1);
    QVERIFY(!at.workspace().currentPreview());
    const QString now = QString::fromStdString(at.workspace().tableText());
    QStringList added = now.split(QLatin1Char('\n'));
    for (const QString &line : QString::fromStdString(before.text).split(QLatin1Char('\n')))
        added.removeOne(line);
    for (const QString &row : gesture.rows)
        QVERIFY2(added.join(QLatin1Char('\n')).contains(row),
            qPrintable(row + QStringLiteral(" was not written:\n") + now));
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    QVERIFY2(at.workspace().latest()->plan && at.workspace().latest()->scene, qPrintable(now));
    QCOMPARE(at.workspace().latest()->errorCount(), std::size_t{0});
    if (gesture.follows)
        gesture.follows();
}

/// Makes a gesture: given up at every stage, then wholly, with what leads to its numbers before; undone and
/// done again.
inline void walk(WindowForTests &at, const std::function<HandGesture()> &prepare)
{
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    HandGesture gesture = prepare();
    if (QTest::currentTestFailed())
        return;
    const std::size_t stages = gesture.steps.size();
    for (std::size_t count = 1; count <= stages + 1; ++count) {
        abandonAfter(at, gesture, std::min(count, stages), count > stages);
        if (QTest::currentTestFailed()) {
            qWarning("given up after step %d of %d", static_cast<int>(count), static_cast<int>(stages));
            return;
        }
        gesture = prepare();
        if (QTest::currentTestFailed())
            return;
    }
    const DesignMark before(at.workspace());
    for (const auto &step : gesture.steps)
        step();
    QVERIFY(at.workspace().currentPreview());
    QVERIFY2(QTest::qWaitFor([&] { return previewIsFinal(at); }, kPatience), missing(at).constData());
    const PreviewSnapshot promised = at.workspace().currentPreview();
    QVERIFY2(!tagOf(*promised).contains(QChar(0x2026)), qPrintable(tagOf(*promised)));
    QCOMPARE(at.workspace().tableText(), before.text);
    QVERIFY(at.workspace().lastGood() == before.plan);
    gesture.finish();
    writesItsRows(at, gesture, before);
    if (QTest::currentTestFailed())
        return;
    // What was promised is what came.
    QCOMPARE(at.workspace().lastGood()->summary.stepSeconds, promised->update->summary.stepSeconds);
    QCOMPARE(
        at.workspace().lastGood()->summary.largestPeak.count, promised->update->summary.largestPeak.count);
    undoAndRedo(at, gesture.canvas, before);
}

/// A key that writes at once: there is nothing to give up.
inline void press(WindowForTests &at, const std::function<HandGesture()> &prepare)
{
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    const HandGesture gesture = prepare();
    if (QTest::currentTestFailed())
        return;
    const DesignMark before(at.workspace());
    gesture.finish();
    writesItsRows(at, gesture, before);
    if (QTest::currentTestFailed())
        return;
    undoAndRedo(at, gesture.canvas, before);
}

} // namespace planloom
