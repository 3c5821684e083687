// The graph and the timeline are two views of one design: the same words, commands and counts mean the same
// on both.

#include <QtCore/QObject>
#include <QtTest/QTest>
#include <QtWidgets/QLineEdit>

#include "tests/e2e/timeline_hands.h"
#include "tests/qt_test.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/table/constraint_table_model.h"
#include "widgets/timeline/timeline_line_editor.h"

#include <algorithm>
#include <optional>

using namespace planloom;

namespace {

/// What came of a place that was typed: the rows then, or why it was refused.
struct Placed {
    std::string rows{};
    QString refusal{};
};

} // namespace

class TwoCanvasesTest : public TimelineHandsInWindow
{
    Q_OBJECT

private Q_SLOTS:
    void aPlaceReadsTheSameOnBoth_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("taken");
        for (const char *text : {"3", "4-7", "0, 2", "all", "h0", "H1", "tp:2", "pp=1", "free"})
            QTest::addRow("%s", text) << QString::fromLatin1(text) << true;
        for (const char *text : {"12", "3-1", "h2", "dp:0", "tp:4", "gpu", "1,,2", "1, tp:0"})
            QTest::addRow("%s", text) << QString::fromLatin1(text) << false;
    }

    void aPlaceReadsTheSameOnBoth()
    {
        QFETCH(const QString, text);
        QFETCH(const bool, taken);
        if (!m_at.workspace().model()) {
            openRows(10, "mesh pp=2 tp=4\nplace all : pp=0\n");
            if (QTest::currentTestFailed())
                return;
        }
        const std::string before = m_at.workspace().tableText();
        const auto onGraph = placed(true, text);
        const auto onTimeline = placed(false, text);
        QVERIFY(onGraph && onTimeline);
        QCOMPARE(onGraph->rows, onTimeline->rows);
        QCOMPARE(onGraph->refusal, onTimeline->refusal);
        QCOMPARE(onGraph->refusal.isEmpty(), taken);
        QCOMPARE(onGraph->rows != before, taken);
    }

    /// Select > Similar, Same Device, Same Stage, All, Invert select the same, whichever canvas has the
    /// focus.
    void selectingMeansTheSameOnBoth()
    {
        openRows(4,
            "mesh pp=2 tp=2\nstage layer:0-1 : 0\nstage layer:2-3 : 1\nplace layer:0-1 & "
            "!name:h.1.mlp.c_proj : pp=0\nplace "
            "layer:2-3 : pp=1\n"
            "place name:h.1.mlp.c_proj : devices 0\n");
        if (QTest::currentTestFailed())
            return;
        for (const char *command :
            {"select.similar", "select.sameDevice", "select.sameStage", "select.all", "select.invert"}) {
            for (const char *name : {"h.1.ln_1", "h.1.mlp.c_proj", "h.2.attn.k_attn"}) {
                for (const bool backward : {false, true}) {
                    const OperatorId forward = m_at.named(name);
                    std::vector<OperatorId> begin{backward ? m_at.graph().at(forward).mirror : forward};
                    QVERIFY(begin.front().valid());
                    const auto onGraph = selected(m_at.dag(), command, begin);
                    const auto onTimeline = selected(m_view, command, begin);
                    const auto byMenu = selected(nullptr, command, begin);
                    QVERIFY2(onGraph.size() > 1, command);
                    QCOMPARE(onGraph.size() == m_at.graph().operators.size(),
                        command == std::string("select.all"));
                    QVERIFY2(onGraph == onTimeline, command);
                    QCOMPARE(onGraph, byMenu);
                }
            }
        }
        // What runs on GPU 0 alone is not on the same devices as what runs on both.
        QCOMPARE(selected(m_view, "select.sameDevice", {m_at.named("h.1.mlp.c_proj")}).size(),
            selected(m_at.dag(), "select.sameDevice", {m_at.named("h.1.mlp.c_proj")}).size());
        const auto pair = selected(m_at.dag(), "select.sameDevice", {m_at.named("h.1.ln_1")});
        QVERIFY(!std::binary_search(pair.begin(), pair.end(), m_at.named("h.1.mlp.c_proj")));
    }

    /// The order of two blocks is between micro-batches: the graph, which shows one, has no arrow for it.
    void anOrderOfBlocksIsNoFanOfArrowsOnTheGraph()
    {
        open(kPipeline);
        m_at.dag()->expandAll();
        QTRY_VERIFY_WITH_TIMEOUT(m_at.dag()->isSettled(), kPatience);
        base();
        const QPoint block = m_view->rectOfBlock(0, static_cast<std::int32_t>(firstBackward()))->center();
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, block);
        QTest::keyClick(m_view, Qt::Key_Left, Qt::ShiftModifier);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.settled() && !m_at.workspace().lastGood()->plan->orders.empty(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_at.dag()->isSettled(), kPatience);
        QVERIFY(m_at.workspace().tableText().find("order ") != std::string::npos);
        QCOMPARE(m_at.dag()->orders().size(), std::size_t{0});
        // One within a micro-batch has its arrow, beside it.
        m_at.workspace().setTableText(
            m_at.workspace().tableText() + "order name:h.0.attn.k_attn before name:h.0.attn.q_attn\n");
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.settled() && m_at.dag()->isSettled() && m_at.dag()->orders().size() == 1, kPatience);
    }

    /// A row says that it binds as many operators switched off as switched on.
    void aRowCountsTheSameOnAndOff()
    {
        openRows(4, "mesh dp=2 tp=2\nsplit all : batch over dp\nsplit layer:* : heads over tp\n");
        if (QTest::currentTestFailed())
            return;
        for (int row = 1; row < 3; ++row) {
            QVERIFY2(
                QTest::qWaitFor([&] { return binds(row).contains(QStringLiteral(" device")); }, kPatience),
                qPrintable(binds(row)));
            const QString on = binds(row).section(QStringLiteral(" · "), 0, 0);
            QVERIFY2(on.endsWith(QStringLiteral(" ops")), qPrintable(on));
            toggle(row, Qt::Unchecked);
            QCOMPARE(binds(row), on);
            toggle(row, Qt::Checked);
            QTRY_VERIFY_WITH_TIMEOUT(binds(row).startsWith(on + QStringLiteral(" · ")), kPatience);
        }
    }

private:
    void openRows(int devices, const char *rows)
    {
        m_view = m_at.timeline();
        m_at.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", devices, "", rows);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.workspace().model() && m_at.settled() && m_at.workspace().lastGood(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_view->scene() && m_at.dag()->isSettled(), kPatience);
    }

    /// Types a place into a canvas' line, takes it if it is one, and takes that back.
    std::optional<Placed> placed(bool onGraph, const QString &text)
    {
        base();
        m_at.window->selection().select({m_at.named(kName)});
        QWidget *canvas = onGraph ? static_cast<QWidget *>(m_at.dag()) : m_view;
        canvas->setFocus();
        QTest::keyClick(canvas, Qt::Key_G);
        QWidget *line = onGraph ? static_cast<QWidget *>(m_at.dag()->gestures().editor())
                                : m_view->findChild<TimelineLineEditor *>();
        if (!line || !line->isVisible())
            return std::nullopt;
        // The last: fields of an earlier opening may still wait for their end.
        QTest::keyClicks(line->findChildren<QLineEdit *>().back(), text);
        Placed result;
        if (onGraph) {
            result.refusal = m_at.dag()->gestures().editor()->problem();
        } else if (const auto proposal = m_view->findChild<TimelineLineEditor *>()->proposal();
                   proposal.refusal) {
            result.refusal = QString::fromStdString(proposal.refusal->message
                + (proposal.refusal->advice.empty() ? "" : ". " + proposal.refusal->advice));
        }
        const std::size_t steps = m_at.workspace().history().steps().size();
        const std::string before = m_at.workspace().tableText();
        key(canvas, Qt::Key_Return);
        result.rows = m_at.workspace().tableText();
        key(canvas, Qt::Key_Escape);
        if (m_at.workspace().history().steps().size() > steps && result.rows != before)
            m_at.workspace().undo();
        [&] { QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience); }();
        [&] { QCOMPARE(m_at.workspace().tableText(), before); }();
        return result;
    }

    /// The selection after a command that a canvas' key, or the menu, starts.
    std::vector<OperatorId> selected(
        QWidget *canvas, const char *command, const std::vector<OperatorId> &begin)
    {
        m_at.window->selection().select(begin);
        (canvas ? canvas : m_view)->setFocus();
        QAction *action = m_at.window->findChild<QAction *>(QLatin1String(command));
        if (canvas == m_at.dag()) {
            const QStringList carriers = action->property("carriedOutBy").toStringList();
            action = m_at.dag()->findChild<QAction *>(carriers.front());
        }
        [&] { QTRY_VERIFY2_WITH_TIMEOUT(action && action->isEnabled(), command, kPatience); }();
        action->trigger();
        return m_at.window->selection().selected();
    }

    QAbstractItemModel *table() const { return m_at.window->findChild<ConstraintTableModel *>(); }
    QString binds(int row) const
    {
        return table()->index(row, static_cast<int>(TableColumn::Binds)).data().toString();
    }
    void toggle(int row, Qt::CheckState state)
    {
        QVERIFY(table()->setData(
            table()->index(row, static_cast<int>(TableColumn::On)), state, Qt::CheckStateRole));
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
    }
};

PLANLOOM_QTEST(TwoCanvasesTest)
#include "two_canvases_test.moc"
