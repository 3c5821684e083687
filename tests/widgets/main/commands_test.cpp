// Every command of the window: named, with words, reachable by keyboard, without two meanings of one key, and
// possible at some time.

#include <QtCore/QObject>
#include <QtCore/QSet>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QTableView>

#include "tests/qt_test.h"
#include "widgets/compare/compare_view.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/locator.h"
#include "widgets/main/main_window.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/shortcut_model.h"
#include "widgets/main/shortcut_sheet.h"

#include <algorithm>
#include <map>

using namespace planloom;

namespace {

void collect(const QMenu *menu, std::vector<QAction *> &actions)
{
    for (QAction *action : menu->actions()) {
        if (action->menu())
            collect(action->menu(), actions);
        else if (!action->isSeparator())
            actions.push_back(action);
    }
}

QString joined(const QStringList &list)
{
    return list.join(QStringLiteral("; "));
}

} // namespace

class CommandsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_settings = std::make_shared<Settings>();
        m_themes = std::make_unique<ThemeKeeper>(qApp, m_settings);
        WindowServices services;
        services.settings = m_settings;
        services.themes = m_themes.get();
        m_window = std::make_unique<MainWindow>(services);
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
        m_window->openSample({"small", "A small one", "For tests",
            "zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100&batch=8", "dgx-a100", 4,
            "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4"});
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().latest() && m_window->workspace().latest()->verdict, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->isSettled(), kLong);
    }

    void cleanupTestCase()
    {
        m_window.reset();
        m_themes.reset();
    }

    void everyCommandHasANameAndWords()
    {
        registry().rescan();
        QVERIFY(registry().commands().size() > 80);
        QSet<QString> ids;
        for (const Command &command : registry().commands()) {
            QVERIFY(command.action);
            QVERIFY2(!ids.contains(command.id), qPrintable(command.id));
            ids.insert(command.id);
            QVERIFY2(
                !CommandRegistry::plainText(*command.action).trimmed().isEmpty(), qPrintable(command.id));
            QVERIFY2(!command.category.isEmpty(), qPrintable(command.id));
        }
    }

    void everyActionOfTheMenusIsACommand()
    {
        std::vector<QAction *> actions;
        for (QAction *top : m_window->menuBar()->actions())
            collect(top->menu(), actions);
        QVERIFY(actions.size() > 60);
        QStringList unknown;
        for (const QAction *action : actions) {
            if (action->isVisible() && !registry().find(action->objectName()))
                unknown.append(action->text());
        }
        unknown.removeAll(QStringLiteral("No session was open yet"));
        QVERIFY2(unknown.isEmpty(), qPrintable(joined(unknown)));
    }

    void noKeyHasTwoMeaningsInOnePlace()
    {
        registry().rescan();
        QStringList clashes;
        for (const ShortcutClash &clash : registry().clashes())
            clashes.append(
                QStringLiteral("%1 and %2: %3").arg(clash.first, clash.second, clash.keys.toString()));
        QVERIFY2(clashes.isEmpty(), qPrintable(joined(clashes)));
    }

    void lettersActOnlyOnCanvasesAndLists()
    {
        for (const Command &command : registry().commands()) {
            for (const QKeySequence &keys : command.action->shortcuts()) {
                if (keys.isEmpty())
                    continue;
                const QKeyCombination first = keys[0];
                const bool letter = first.key() >= Qt::Key_A && first.key() <= Qt::Key_Z
                    && !(first.keyboardModifiers()
                        & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
                QVERIFY2(!letter || command.action->shortcutContext() == Qt::WidgetShortcut
                        || command.action->shortcutContext() == Qt::WidgetWithChildrenShortcut,
                    qPrintable(command.id));
            }
        }
    }

    void everyCommandIsInThePalette()
    {
        m_window->locator()->open(true);
        QTRY_VERIFY(m_window->locator()->isSettled());
        QStringList missing;
        QSet<QString> handed;
        for (const Command &command : registry().commands()) {
            for (const QString &id : command.action->property("carriedOutBy").toStringList())
                handed.insert(id);
        }
        for (const Command &command : registry().commands()) {
            if (handed.contains(command.id))
                continue; // there once, under the menu's name
            const QString text = CommandRegistry::plainText(*command.action).section(QLatin1Char('\t'), 0, 0);
            m_window->locator()->line()->setText(text);
            Q_EMIT m_window->locator()->line()->textEdited(text);
            QTRY_VERIFY(m_window->locator()->isSettled());
            bool found = false;
            for (const LocatorEntry &entry : m_window->locator()->model()->entries())
                found = found || entry.command == command.id;
            if (!found)
                missing.append(command.id);
        }
        m_window->locator()->close();
        QVERIFY2(missing.isEmpty(), qPrintable(joined(missing)));
    }

    /// Not two lines that read the same, and no key that dies with its dock.
    void everyCommandIsFoundOnceAndByItsKeyWithoutAnyDock()
    {
        m_window->docks().apply(QStringLiteral("compare")); // brings the comparison's own
        QTRY_VERIFY_WITH_TIMEOUT(m_window->compare() && !m_window->compare()->isComparing(), kLong);
        m_window->docks().apply(QStringLiteral("design"));
        for (QDockWidget *dock : m_window->docks().docks())
            dock->hide();
        QCoreApplication::processEvents();
        registry().rescan();
        QSet<QString> handed;
        for (const Command &command : registry().commands()) {
            for (const QString &id : command.action->property("carriedOutBy").toStringList())
                handed.insert(id);
        }
        std::map<QString, QString> seen;
        QStringList twice;
        QStringList dead;
        for (const Command &command : registry().commands()) {
            const QAction &action = *command.action;
            const QString text = CommandRegistry::plainText(action).section(QLatin1Char('\t'), 0, 0);
            if (!handed.contains(command.id)) {
                if (const auto [place, isNew] =
                        seen.try_emplace(command.category + QLatin1Char(' ') + text, command.id);
                    !isNew)
                    twice.append(place->second + QStringLiteral(" and ") + command.id);
            }
            if (action.shortcutContext() == Qt::WindowShortcut && !action.shortcut().isEmpty()
                && !registry().isReachable(action))
                dead.append(command.id);
        }
        QVERIFY2(twice.isEmpty(), qPrintable(joined(twice)));
        QVERIFY2(dead.isEmpty(), qPrintable(joined(dead)));
        // A dock that does something comes to the front.
        QVERIFY(!m_window->docks().find(QStringLiteral("history"))->isVisible());
        QVERIFY(m_window->trigger(QStringLiteral("history.filter")));
        QVERIFY(m_window->docks().find(QStringLiteral("history"))->isVisible());
        m_window->docks().reset();
    }

    void toolsAreChosenByTapAndLentByHold()
    {
        m_window->activateWindow();
        const auto on = [&](const char *id) { return registry().find(QLatin1String(id))->isChecked(); };
        m_window->timeline()->setFocus();
        QVERIFY(on("tool.select"));
        QTest::keyClick(m_window->timeline(), Qt::Key_M);
        QVERIFY(on("tool.measure") && !on("tool.select"));
        QCOMPARE(m_window->timeline()->tool(), CanvasTool::Measure);
        QTest::keyClick(m_window->dag(), Qt::Key_V);
        QVERIFY(on("tool.select"));
        QCOMPARE(m_window->timeline()->tool(), CanvasTool::Select);
        // Held for a drag, then let go.
        QWidget *canvas = m_window->timeline()->viewport();
        const QPoint from = canvas->rect().center();
        m_window->timeline()->setFocus();
        QTest::keyPress(m_window->timeline(), Qt::Key_H);
        QVERIFY(on("tool.pan"));
        QTest::mousePress(canvas, Qt::LeftButton, {}, from);
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, from);
        QTest::keyRelease(m_window->timeline(), Qt::Key_H);
        QVERIFY(on("tool.select"));
    }

    void paletteFindsAndTriggersByKeyboard()
    {
        m_window->activateWindow();
        m_window->dag()->setFocus();
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        Locator *locator = m_window->locator();
        QTRY_VERIFY(locator->isVisible());
        QVERIFY(m_window->workspace().isLive());
        QTest::keyClicks(locator->line(), QStringLiteral("live"));
        QTRY_VERIFY(locator->isSettled());
        QCOMPARE(locator->model()->entries().front().command, QStringLiteral("solve.live"));
        QTest::keyClick(locator->line(), Qt::Key_Return);
        QTRY_VERIFY(!m_window->workspace().isLive());
        QVERIFY(!locator->isVisible());
        QVERIFY(m_window->trigger(QStringLiteral("solve.live")));
        QVERIFY(m_window->workspace().isLive());
        // Used last, listed first.
        locator->open(true);
        QTRY_VERIFY(locator->isSettled());
        QCOMPARE(locator->model()->entries().front().command, QStringLiteral("solve.live"));
        QTest::keyClick(locator->line(), Qt::Key_Escape);
        QVERIFY(!locator->isVisible());
    }

    void aRowTypedInThePaletteIsAGhostThenARow()
    {
        Locator *locator = m_window->locator();
        const std::string before = m_window->workspace().tableText();
        const auto type = [&] {
            locator->open(true);
            QTest::keyClicks(locator->line(), QStringLiteral("recompute layer:0 per layer"));
            QTRY_VERIFY(locator->isSettled());
            QTRY_VERIFY(!locator->model()->entries().empty());
            QCOMPARE(locator->model()->entries().front().kind, LocatorKind::Write);
        };
        type();
        QTRY_VERIFY(m_window->workspace().currentPreview() != nullptr);
        QTest::keyClick(locator->line(), Qt::Key_Escape);
        QVERIFY(m_window->workspace().currentPreview() == nullptr);
        QCOMPARE(m_window->workspace().tableText(), before); // nothing is left behind
        type();
        QTest::keyClick(locator->line(), Qt::Key_Return);
        QTRY_VERIFY(m_window->workspace().tableText() != before);
        QVERIFY(m_window->workspace().tableText().find("recompute layer:0 per layer") != std::string::npos);
        QVERIFY(m_window->trigger(QStringLiteral("edit.undo")));
        QCOMPARE(m_window->workspace().tableText(), before);
    }

    void goToAnythingLeadsToOperatorsRowsAndDevices()
    {
        Locator *locator = m_window->locator();
        const auto go = [&](const QString &text) {
            locator->open(false);
            QTest::keyClicks(locator->line(), text);
            QTest::keyClick(locator->line(), Qt::Key_Return); // may come before the answers
            QTRY_VERIFY(!locator->isVisible());
        };
        go(QStringLiteral("@h.1.mlp"));
        QCOMPARE(m_window->selection().selected().size(), std::size_t{1});
        const Graph &graph = *m_window->workspace().model()->graph;
        QVERIFY(graph.at(m_window->selection().selected().front()).name.find("h.1.mlp") != std::string::npos);
        go(QStringLiteral("=layer:0"));
        QVERIFY(m_window->selection().selected().size() > 3);
        go(QStringLiteral("d 2"));
        QVERIFY(!m_window->selection().selected().empty());
        go(QStringLiteral("#1"));
        QTRY_VERIFY(QApplication::focusWidget() && QApplication::focusWidget() != m_window->dag());
    }

    void nothingIsGreyForEver()
    {
        // What is possible in one of the states a person gets into.
        QSet<QString> possible;
        const auto look = [&] {
            registry().rescan();
            registry().refresh();
            for (const Command &command : registry().commands()) {
                if (command.action->isEnabled())
                    possible.insert(command.id);
            }
        };
        Workspace &workspace = m_window->workspace();
        look();
        m_window->selection().select({OperatorId{3}});
        look();
        m_window->dag()->setFocus();
        look();
        m_window->timeline()->setFocus();
        m_window->timeline()->focusSelection();
        look();
        QTest::keyClick(m_window->timeline(), Qt::Key_Right);
        look();
        const TableDocument table = workspace.table();
        workspace.editTable(QStringLiteral("a row that can't be read"),
            insertText(table, table.lineCount(), "split nonsense"));
        look(); // at work
        QTRY_VERIFY_WITH_TIMEOUT(workspace.latest()->errorCount() > 0 && !workspace.isPlanning(), kLong);
        look();
        workspace.undo();
        look();
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isPlanning(), kLong);
        workspace.nameCheckpoint(QStringLiteral("first"));
        workspace.addBranch(QStringLiteral("other"));
        QVERIFY(m_window->trigger(QStringLiteral("view.makeScene")));
        QCoreApplication::processEvents();
        look();
        // Lists want something chosen in them.
        for (QAbstractItemView *list : m_window->findChildren<QAbstractItemView *>()) {
            m_window->selection()
                .clear(); // rows that act on it would be first in the grid, out of the order of the text
            QCoreApplication::processEvents();
            for (int row = 0; list->model() && row < std::min(list->model()->rowCount(), 8); ++row) {
                const int column = std::min(3, list->model()->columnCount() - 1);
                list->setCurrentIndex(list->model()->index(row, column));
                QCoreApplication::processEvents();
                look();
            }
        }
        // These want a place in the timeline (a bracket, an idle stretch, a box), a schedule that repeats,
        // stages that lie otherwise, a sorted grid, a plan with a name, the clipboard, a run, a measured one,
        // a search or a lesson, and have tests of their own with those.
        static const QSet<QString> kElsewhere{QStringLiteral("timeline.moreInFlight"),
            QStringLiteral("timeline.lessInFlight"), QStringLiteral("timeline.whyIdle"),
            QStringLiteral("timeline.copy"), QStringLiteral("rows.textOrder"), QStringLiteral("rows.paste"),
            QStringLiteral("plans.removeName"), QStringLiteral("run.stop"), QStringLiteral("run.pauseView"),
            QStringLiteral("run.again"), QStringLiteral("run.continue"), QStringLiteral("run.remove"),
            QStringLiteral("run.run"), QStringLiteral("solve.keepSearched"), QStringLiteral("rows.keep"),
            QStringLiteral("rows.keepAll"), QStringLiteral("timeline.pinUnit"),
            QStringLiteral("lesson.leave"), QStringLiteral("trace.calibrate"),
            QStringLiteral("schedule.chimera"), QStringLiteral("schedule.hanayo"),
            QStringLiteral("schedule.zb-v"), QStringLiteral("schedule.v-half"),
            QStringLiteral("schedule.v-min"), QStringLiteral("schedule.dualpipe"),
            QStringLiteral("schedule.dualpipev")};
        QStringList never;
        for (const Command &command : registry().commands()) {
            if (!possible.contains(command.id) && !kElsewhere.contains(command.id))
                never.append(command.id);
        }
        QVERIFY2(never.isEmpty(), qPrintable(joined(never)));
    }

    void theSheetShowsShortcutsAndFilters()
    {
        m_window->activateWindow();
        m_window->dag()->setFocus();
        QVERIFY(m_window->trigger(QStringLiteral("help.shortcuts")));
        ShortcutSheet *sheet = m_window->shortcutSheet();
        QVERIFY(sheet->isVisible());
        QVERIFY(sheet->text().contains(QStringLiteral("Solve Now\tF5")));
        QTest::keyClicks(sheet->filter(), QStringLiteral("undo"));
        QVERIFY(!sheet->text().contains(QStringLiteral("Solve Now")));
        QVERIFY(sheet->text().contains(QStringLiteral("Ctrl+Z")));
        QTest::keyClick(sheet->filter(), Qt::Key_Escape);
        QVERIFY(!sheet->isVisible());
    }

    void preferencesChangeThemeAndShortcuts()
    {
        QVERIFY(m_window->trigger(QStringLiteral("edit.preferences")));
        PreferencesDialog *dialog = m_window->preferences();
        QVERIFY(dialog && dialog->isVisible());
        QVERIFY(!dialog->isModal());
        QTest::keyClicks(dialog->filter(), QStringLiteral("Solve Now"));
        QAbstractItemModel *model = dialog->shortcuts()->model();
        QVERIFY(model->rowCount() >= 1);
        QVERIFY(model->setData(model->index(0, ShortcutModel::Keys),
            QVariant::fromValue(QKeySequence(Qt::Key_F10)), Qt::EditRole));
        QCOMPARE(registry().find(QStringLiteral("solve.now"))->shortcut(), QKeySequence(Qt::Key_F10));
        registry().resetShortcut(QStringLiteral("solve.now"));
        QCOMPARE(registry().find(QStringLiteral("solve.now"))->shortcut(), QKeySequence(Qt::Key_F5));
        for (const Theme theme : kThemes) {
            QVERIFY(m_window->trigger(QStringLiteral("view.theme")
                + (theme == Theme::Light                    ? QStringLiteral("Light")
                        : theme == Theme::Dark              ? QStringLiteral("Dark")
                        : theme == Theme::HighContrastLight ? QStringLiteral("HighContrast")
                                                            : QStringLiteral("HighContrastDark"))));
            QCOMPARE(m_themes->theme(), theme);
            QVERIFY(!m_window->grab().isNull());
        }
        dialog->close();
    }

private:
    CommandRegistry &registry() { return m_window->commands(); }

    std::shared_ptr<Settings> m_settings;
    std::unique_ptr<ThemeKeeper> m_themes;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(CommandsTest)
#include "commands_test.moc"
