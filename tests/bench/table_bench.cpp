// How long the Constraints dock keeps the GUI thread with 10,000 rows: for each thing a person does, the
// longest single event
// (`event`, which may take 5 ms) and the longest frame (`frame`, 16 ms) until all is quiet again, in ms of
// processor time.
//
// PLANLOOM_ROWS makes it fewer rows, PLANLOOM_TIMES does each more often; PLANLOOM_SAY names the longest
// events.

#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QScrollBar>

#include "widgets/common/gui_watchdog.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/table/cell_editors.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/price_service.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"
#include "widgets/table/table_text_editor.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

using namespace planloom;

namespace {

constexpr int kPatience = 60'000; ///< ms
constexpr int kQuiet = 60; ///< ms without anything to do: all is done.
constexpr int kLayers = 24;

int rowCount()
{
    const int asked = qEnvironmentVariableIntValue("PLANLOOM_ROWS");
    return asked > 0 ? asked : 10'000;
}

/// Rows as a long session leaves them: places, preferences, remarks, some off, some @gestures, a few that
/// can't be read.
std::string rowsFor(int count)
{
    std::string text = "# a large table\nmesh dp=2 tp=2\nmicro-batches 4\n";
    for (int i = 2; i < count; ++i) {
        const std::string layer = std::to_string(i % kLayers);
        switch (i % 8) {
        case 0:
            text += "recompute layer:" + layer + "\n";
            break;
        case 1:
            text += "prefer place layer:" + layer + " & kind:Linear : devices 0-3  # a note of row "
                + std::to_string(i) + "\n";
            break;
        case 2:
            text += "split layer:" + layer + " & kind:Linear : batch by 2 over dp @gesture\n";
            break;
        case 3:
            text += "off place layer:" + layer + " : devices " + std::to_string(i % 4) + "\n";
            break;
        case 4:
            text += "# a remark\nprefer 2 split layer:" + layer + " : batch over dp\n";
            break;
        case 5:
            text += "off limit memory 70 GiB\n";
            break;
        case 6:
            text += i % 80 == 6
                ? "splt layer:" + layer + " : batch\n"
                : "off order layer:" + layer + " & forward before layer:" + layer + " & backward\n";
            break;
        default:
            text += "split layer:" + layer + " & kind:LayerNorm : batch by 2 over dp\n";
            break;
        }
    }
    return text;
}

/// The dock with its rows, shown, its plan made.
class Table
{
public:
    Table()
    {
        m_workspace = std::make_unique<Workspace>();
        m_selection = std::make_unique<SelectionModel>();
        m_workspace->openWith(
            {"zoo:gpt?layers=24&hidden=64&heads=4&seq=16&batch=16&vocab=64", {}, {}}, "dgx-a100", 4, {}, {});
        wait(
            [this] { return m_workspace->model() && m_workspace->latest() && m_workspace->latest()->final; });
        m_workspace->setLive(qEnvironmentVariableIsSet("PLANLOOM_LIVE"));
        m_panel = std::make_unique<TablePanel>(m_workspace.get(), m_selection.get());
        m_panel->prices()->setEnabled(false);
        m_panel->resize(1500, 600);
        m_panel->show();
        m_panel->activateWindow();
        static_cast<void>(QTest::qWaitForWindowActive(m_panel.get())); // measured all the same
        quiet();
    }
    ~Table()
    {
        m_panel.reset();
        m_workspace.reset();
    }

    Workspace &workspace() { return *m_workspace; }
    SelectionModel &selection() { return *m_selection; }
    TablePanel &panel() { return *m_panel; }
    RowsView &grid() { return *m_panel->grid(); }
    TableListModel &list() { return *m_panel->list(); }
    QModelIndex cell(int row, TableColumn column) { return list().index(row, static_cast<int>(column)); }
    QAction *action(const char *name) { return m_panel->findChild<QAction *>(QString::fromLatin1(name)); }

    static void wait(const std::function<bool()> &done)
    {
        QElapsedTimer clock;
        clock.start();
        while (!done() && clock.elapsed() < kPatience) {
            QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
            QTest::qSleep(1);
        }
    }
    /// Until nothing has happened for a while and the engine rests.
    void quiet()
    {
        wait([this] { return !m_workspace->isPlanning() && !m_workspace->isOpening(); });
        QElapsedTimer clock;
        clock.start();
        auto *watchdog = static_cast<GuiWatchdog *>(QCoreApplication::instance()); // as `main` made it
        std::int64_t events = -1;
        while (clock.elapsed() < kQuiet) {
            QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
            QTest::qSleep(1);
            if (watchdog->isWatching() && watchdog->events() != events) {
                events = watchdog->events();
                clock.restart();
            }
            if (m_workspace->isPlanning())
                clock.restart();
        }
    }

private:
    std::unique_ptr<Workspace> m_workspace;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TablePanel> m_panel;
};

Table &table()
{
    static auto *made = new Table; // lives as long as the application
    return *made;
}

/// Does `act` as one event and measures until all is quiet.
void measure(benchmark::State &state, const std::function<void(Table &)> &prepare,
    const std::function<void(Table &)> &act)
{
    auto *watchdog = static_cast<GuiWatchdog *>(QCoreApplication::instance()); // as `main` made it
    Table &dock = table();
    double event = 0;
    double frame = 0;
    SlowEvent worst;
    for (auto _ : state) {
        prepare(dock);
        dock.quiet();
        watchdog->setAllowance(1e-4);
        watchdog->clear();
        watchdog->watch(true);
        QTimer::singleShot(0, &dock.panel(), [&] { act(dock); });
        dock.quiet();
        watchdog->watch(false);
        for (const SlowEvent &slow : watchdog->slowEvents()) {
            if (qEnvironmentVariableIsSet("PLANLOOM_SAY") && slow.microseconds > 2000)
                std::cerr << "  " << describe(slow).toStdString() << '\n';
            event = std::max(event, static_cast<double>(slow.microseconds) / 1000);
        }
        for (const SlowEvent &slow : watchdog->slowFrames())
            frame = std::max(frame, static_cast<double>(slow.microseconds) / 1000);
    }
    state.counters["event"] = event;
    state.counters["frame"] = frame;
}

void rowsThere(Table &dock)
{
    if (dock.panel().rows()->rowCount() < rowCount() / 2) {
        dock.workspace().setTableText(rowsFor(rowCount()));
        dock.quiet();
    }
    dock.panel().setTextMode(false);
    dock.panel().filterLine()->clear();
    dock.action("rows.groupNone")->trigger();
    if (dock.list().sortColumn() >= 0)
        dock.action("rows.textOrder")->trigger();
    dock.panel().actingOnSelectionAction()->setChecked(false);
    dock.selection().clear();
    dock.grid().clearSelection();
    dock.grid().setFocus();
    dock.grid().setCurrentIndex(dock.cell(rowCount() / 2, TableColumn::Value));
    dock.grid().scrollTo(dock.grid().currentIndex());
}

using Act = std::function<void(Table &)>;

void add(const char *name, Act act, Act prepare = rowsThere, int times = 3)
{
    benchmark::RegisterBenchmark(name,
        [act = std::move(act), prepare = std::move(prepare)](
            benchmark::State &state) { measure(state, prepare, act); })
        ->Iterations(std::max(times, qEnvironmentVariableIntValue("PLANLOOM_TIMES")))
        ->Unit(benchmark::kMillisecond);
}

void addAll()
{
    add(
        "open", [](Table &dock) { dock.panel().restoreViewState(dock.panel().viewState()); },
        [](Table &dock) { rowsThere(dock); }, 1);
    add(
        "set 10,000 rows", [](Table &dock) { dock.workspace().setTableText(rowsFor(rowCount())); },
        [](Table &dock) { dock.workspace().setTableText("mesh dp=2\n"); }, 2);
    add("begin to edit a value", [](Table &dock) { QTest::keyClick(&dock.grid(), Qt::Key_F2); });
    add("write a value", [](Table &dock) {
        dock.list().setData(dock.cell(rowCount() / 2, TableColumn::Note),
            QStringLiteral("x%1").arg(std::rand()), Qt::EditRole);
    });
    add("type into the new row", [](Table &dock) {
        dock.list().setData(dock.cell(dock.list().newRow(), TableColumn::Selector),
            QStringLiteral("recompute layer:3"), Qt::EditRole);
    });
    add("switch a row", [](Table &dock) {
        dock.grid().selectRow(rowCount() / 2);
        dock.panel().switchRows();
    });
    add(
        "switch 1,000 rows", [](Table &dock) { dock.panel().switchRows(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectionModel()->select(
                QItemSelection(dock.cell(100, TableColumn::On), dock.cell(1099, TableColumn::Note)),
                QItemSelectionModel::ClearAndSelect);
        });
    const auto switched = [](Table &dock) {
        rowsThere(dock);
        dock.grid().selectionModel()->select(
            QItemSelection(dock.cell(100, TableColumn::On), dock.cell(1099, TableColumn::Note)),
            QItemSelectionModel::ClearAndSelect);
        dock.panel().switchRows();
    };
    add(
        "undo it", [](Table &dock) { dock.workspace().undo(); }, switched, 2);
    add(
        "redo it", [](Table &dock) { dock.workspace().redo(); },
        [switched](Table &dock) {
            switched(dock);
            dock.workspace().undo();
        },
        2);
    add(
        "paste 1,000 rows: read", [](Table &dock) { dock.panel().pasteRows(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().pastePreview()->hide();
            QApplication::clipboard()->setText(QString::fromStdString(rowsFor(1000)));
        });
    add(
        "paste 1,000 rows: written",
        [](Table &dock) { QTest::keyClick(dock.panel().pastePreview(), Qt::Key_Return); },
        [](Table &dock) {
            rowsThere(dock);
            QApplication::clipboard()->setText(QString::fromStdString(rowsFor(1000)));
            dock.panel().pasteRows();
            Table::wait([&] { return dock.panel().pastePreview()->isVisible(); });
        },
        2);
    add(
        "remove 1,000 rows", [](Table &dock) { dock.panel().removeRows(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectionModel()->select(
                QItemSelection(dock.cell(5000, TableColumn::On), dock.cell(5999, TableColumn::Note)),
                QItemSelectionModel::ClearAndSelect);
        },
        2);
    add(
        "move a row up", [](Table &dock) { dock.panel().moveRows(-1); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectRow(4000);
        });
    const auto removeAll = [](Table &dock) {
        rowsThere(dock);
        dock.grid().selectAll();
        dock.panel().removeRows();
    };
    add(
        "remove all", [](Table &dock) { dock.panel().removeRows(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectAll();
        },
        2);
    add(
        "undo the removal of all", [](Table &dock) { dock.workspace().undo(); }, removeAll, 2);
    add(
        "redo the removal of all", [](Table &dock) { dock.workspace().redo(); },
        [removeAll](Table &dock) {
            removeAll(dock);
            dock.workspace().undo();
        },
        2);
    for (int column = 0; column < kTableColumns; ++column) {
        static std::vector<std::string> names;
        names.push_back("sort by " + titleOf(static_cast<TableColumn>(column)).toStdString());
        add(names.back().c_str(),
            [column](Table &dock) { dock.grid().horizontalHeader()->sectionClicked(column); });
    }
    add(
        "write while sorted by value",
        [](Table &dock) {
            dock.list().setData(
                dock.cell(77, TableColumn::Note), QStringLiteral("x%1").arg(std::rand()), Qt::EditRole);
        },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().horizontalHeader()->sectionClicked(static_cast<int>(TableColumn::Value));
        });
    add("filter: first letter",
        [](Table &dock) { QTest::keyClicks(dock.panel().filterLine(), QStringLiteral("l")); });
    add("filter: a word",
        [](Table &dock) { dock.panel().filterLine()->setText(QStringLiteral("layer:7 recompute")); });
    add(
        "filter: cleared", [](Table &dock) { dock.panel().filterLine()->clear(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().filterLine()->setText(QStringLiteral("layer:7 recompute"));
        });
    add("filter: a note",
        [](Table &dock) { dock.panel().filterLine()->setText(QStringLiteral("of row 99")); });
    add("select all", [](Table &dock) { dock.grid().selectAll(); });
    add(
        "select one, all were", [](Table &dock) { dock.grid().selectRow(7); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectAll();
        });
    const auto selectLayer = [](Table &dock) {
        dock.selection().select(dock.workspace().model()->index->select(*parseSelector("layer:7")));
    };
    add("operators selected: rows first", selectLayer);
    add(
        "acting on selection", [](Table &dock) { dock.panel().actingOnSelectionAction()->trigger(); },
        [selectLayer](Table &dock) {
            rowsThere(dock);
            selectLayer(dock);
        });
    add(
        "acting on selection: off", [](Table &dock) { dock.panel().actingOnSelectionAction()->trigger(); },
        [selectLayer](Table &dock) {
            rowsThere(dock);
            selectLayer(dock);
            dock.panel().actingOnSelectionAction()->setChecked(true);
        });
    add("operator under the pointer", [](Table &dock) {
        dock.selection().setHovered(
            dock.workspace().model()->index->select(*parseSelector("layer:5")).front());
    });
    add("row under the pointer", [](Table &dock) { Q_EMIT dock.grid().rowHovered(4321); });
    add("scroll a page", [](Table &dock) {
        dock.grid().verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepAdd);
    });
    add("scroll to the end", [](Table &dock) { dock.grid().scrollToBottom(); });
    add("text mode", [](Table &dock) { dock.panel().setTextMode(true); });
    add(
        "grid again", [](Table &dock) { dock.panel().setTextMode(false); },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().setTextMode(true);
        });
    add(
        "type in the text", [](Table &dock) { QTest::keyClick(dock.panel().textEditor(), Qt::Key_X); },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().setTextMode(true);
        });
    add(
        "scroll the text",
        [](Table &dock) {
            dock.panel().textEditor()->verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepAdd);
        },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().setTextMode(true);
        });
    add(
        "select all the text", [](Table &dock) { dock.panel().textEditor()->selectAll(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.panel().setTextMode(true);
        });
    add("group by rule", [](Table &dock) { dock.action("rows.groupByRule")->trigger(); });
    add("group by origin", [](Table &dock) { dock.action("rows.groupByOrigin")->trigger(); });
    add(
        "collapse a group", [](Table &dock) { dock.list().setCollapsed(0, !dock.list().isCollapsed(0)); },
        [](Table &dock) {
            rowsThere(dock);
            dock.action("rows.groupByRule")->trigger();
        });
    add(
        "copy all", [](Table &dock) { dock.panel().copyRows(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectAll();
        });
    add(
        "find operators of all rows", [](Table &dock) { dock.panel().selectOperators(); },
        [](Table &dock) {
            rowsThere(dock);
            dock.grid().selectAll();
        });
    add(
        "a new plan arrives", [](Table &dock) { dock.workspace().replan(); }, rowsThere, 1);
    add(
        "prices: begin",
        [](Table &dock) {
            dock.panel().prices()->setIdleMilliseconds(1);
            dock.panel().prices()->setEnabled(true);
            dock.workspace().replan();
            QTimer::singleShot(4000, &dock.panel(), [&dock] { dock.panel().prices()->setEnabled(false); });
        },
        rowsThere, 1);
}

} // namespace

int main(int argc, char **argv)
{
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    GuiWatchdog application(argc, argv);
    benchmark::Initialize(&argc, argv);
    addAll();
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
