// The command palette, Go to Anything, and what they lead to.

#include "widgets/main/main_window.h"

#include <QtCore/QSet>
#include <QtGui/QAction>
#include <QtWidgets/QMenu>

#include "engine/gesture/selection.h"
#include "widgets/frame/dock_board.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/locator.h"
#include "widgets/main/shortcut_sheet.h"
#include "widgets/table/table_panel.h"

#include <algorithm>

namespace planloom {

void MainWindow::buildLocator()
{
    m_locator = new Locator(
        &m_workspace, [this] { return locatorSources(); }, this);
    m_sheet = new ShortcutSheet(m_commands.get(), this);
    connect(m_locator, &Locator::chosen, this, &MainWindow::goTo);
}

namespace {

/// Titles of the menus that an action stands in, from the bar.
QStringList menusOf(const QAction &action)
{
    for (QObject *holder : action.associatedObjects())
        if (const auto *menu = qobject_cast<QMenu *>(holder))
            return menusOf(*menu->menuAction()) << CommandRegistry::plainText(*menu->menuAction());
    return {};
}

} // namespace

LocatorSources MainWindow::locatorSources()
{
    m_commands->rescan();
    m_commands->refresh();
    LocatorSources sources;
    // What a command of the menus hands to the canvases is listed once.
    QSet<QString> handed;
    for (const Command &command : m_commands->commands()) {
        if (command.action) {
            for (const QString &id : command.action->property("carriedOutBy").toStringList())
                handed.insert(id);
        }
    }
    const QStringList recent = m_commands->recent();
    for (const Command &command : m_commands->commands()) {
        if (!command.action || handed.contains(command.id))
            continue;
        LocatorCommand entry;
        entry.id = command.id;
        const QString text = CommandRegistry::plainText(*command.action);
        entry.text = text.section(QLatin1Char('\t'), 0, 0);
        entry.category = command.category;
        entry.menu = menusOf(*command.action).join(QLatin1Char(' '));
        entry.keys = text.contains(QLatin1Char('\t'))
            ? text.section(QLatin1Char('\t'), 1)
            : command.action->shortcut().toString(QKeySequence::NativeText);
        entry.enabled = command.action->isEnabled();
        entry.recent = static_cast<int>(recent.indexOf(command.id));
        sources.commands.push_back(std::move(entry));
    }
    sources.model = m_workspace.model();
    sources.context = m_workspace.gestureContext();
    sources.plan = m_workspace.lastGood();
    sources.deviceCount = m_workspace.model() ? m_workspace.deviceCount() : 0;
    sources.selected = m_selection.selected();
    return sources;
}

void MainWindow::goTo(const LocatorEntry &entry)
{
    switch (entry.kind) {
    case LocatorKind::Command:
        // After the line is gone and the keyboard back where it was.
        QMetaObject::invokeMethod(
            this, [this, id = entry.command] { trigger(id); }, Qt::QueuedConnection);
        return;
    case LocatorKind::Write:
        return; // committed already
    case LocatorKind::Operator:
        m_selection.select({entry.op});
        m_dag->showOperator(entry.op);
        m_selection.select({entry.op}); // the box shown may stand for more
        m_dag->setFocus(Qt::OtherFocusReason);
        return;
    case LocatorKind::Row:
        m_docks->reveal(QStringLiteral("constraints"), false);
        m_constraints->focusRow(entry.line);
        return;
    case LocatorKind::Time:
        m_timeline->setAxis(
            {std::max(0.0,
                 entry.nanoseconds
                     - m_timeline->axis().nanosecondsPerPixel * m_timeline->viewport()->width() / 2),
                m_timeline->axis().nanosecondsPerPixel});
        m_timeline->setFocus(Qt::OtherFocusReason);
        return;
    case LocatorKind::Device:
        if (m_workspace.lastGood() && m_workspace.lastGood()->plan)
            m_selection.select(operatorsOnDevice(*m_workspace.lastGood()->plan, entry.device));
        m_timeline->focusSelection();
        m_timeline->setFocus(Qt::OtherFocusReason);
        return;
    case LocatorKind::Select:
        m_selection.select(entry.operators);
        m_dag->fitSelection();
        m_dag->setFocus(Qt::OtherFocusReason);
        return;
    }
}

void MainWindow::writeRow(const QString &text, int selectFrom, int selectLength)
{
    m_locator->open(true, text, selectFrom, selectLength);
}

} // namespace planloom
