#include "widgets/main/command_registry.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QSet>
#include <QtWidgets/QDialog>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QWidget>

#include "widgets/common/themed_icon.h"
#include "widgets/frame/settings.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kMostRecent = 12;
const QString kShortcutKey = QStringLiteral("shortcuts/");
const QString kRecentKey = QStringLiteral("commands/recent");

/// Where an action's shortcut counts: the widgets that hold it, without menus and tool bars, which only show
/// it.
std::vector<const QWidget *> holdersOf(const QAction &action)
{
    std::vector<const QWidget *> holders;
    for (QObject *object : action.associatedObjects()) {
        const auto *widget = qobject_cast<QWidget *>(object);
        if (widget && !qobject_cast<const QMenu *>(widget) && !qobject_cast<const QMenuBar *>(widget)
            && !qobject_cast<const QToolBar *>(widget) && !qobject_cast<const QToolButton *>(widget))
            holders.push_back(widget);
    }
    return holders;
}

bool isLocal(const QAction &action)
{
    return action.shortcutContext() == Qt::WidgetShortcut
        || action.shortcutContext() == Qt::WidgetWithChildrenShortcut;
}

/// True if the widget lies in the window itself, or in a menu of it, but not in a dialog of its own.
bool belongsTo(const QWidget *widget, const QWidget *window)
{
    for (const QWidget *up = widget; up; up = up->parentWidget()) {
        if (up == window)
            return true;
        if (up->isWindow() && !qobject_cast<const QMenu *>(up) && !up->inherits("QDockWidget"))
            return false;
    }
    return false;
}

} // namespace

QString categoryName(const QString &id)
{
    const QString first = id.section(QLatin1Char('.'), 0, 0);
    static const std::pair<const char *, const char *> kNames[] = {
        {"file", QT_TRANSLATE_NOOP("Commands", "File")}, {"edit", QT_TRANSLATE_NOOP("Commands", "Edit")},
        {"view", QT_TRANSLATE_NOOP("Commands", "View")}, {"select", QT_TRANSLATE_NOOP("Commands", "Select")},
        {"plan", QT_TRANSLATE_NOOP("Commands", "Plan")},
        {"schedule", QT_TRANSLATE_NOOP("Commands", "Schedule")},
        {"solve", QT_TRANSLATE_NOOP("Commands", "Solve")},
        {"compare", QT_TRANSLATE_NOOP("Commands", "Compare")}, {"run", QT_TRANSLATE_NOOP("Commands", "Run")},
        {"help", QT_TRANSLATE_NOOP("Commands", "Help")}, {"dag", QT_TRANSLATE_NOOP("Commands", "DAG")},
        {"timeline", QT_TRANSLATE_NOOP("Commands", "Timeline")},
        {"rows", QT_TRANSLATE_NOOP("Commands", "Constraints")},
        {"history", QT_TRANSLATE_NOOP("Commands", "History")},
        {"plans", QT_TRANSLATE_NOOP("Commands", "Plans")},
        {"inspector", QT_TRANSLATE_NOOP("Commands", "Inspector")},
        {"memory", QT_TRANSLATE_NOOP("Commands", "Memory")},
        {"devices", QT_TRANSLATE_NOOP("Commands", "Devices")},
        {"communication", QT_TRANSLATE_NOOP("Commands", "Communication")},
        {"log", QT_TRANSLATE_NOOP("Commands", "Log")},
        {"problems", QT_TRANSLATE_NOOP("Commands", "Problems")},
        {"gallery", QT_TRANSLATE_NOOP("Commands", "Gallery")},
        {"model", QT_TRANSLATE_NOOP("Commands", "Model")}, {"tool", QT_TRANSLATE_NOOP("Commands", "Tools")}};
    for (const auto &[key, words] : kNames) {
        if (first == QLatin1String(key))
            return QCoreApplication::translate("Commands", words);
    }
    return first.left(1).toUpper() + first.mid(1);
}

CommandRegistry::CommandRegistry(QWidget *window, std::shared_ptr<Settings> settings, QObject *parent)
    : QObject(parent)
    , m_window(window)
    , m_settings(std::move(settings))
{
    connect(m_settings.get(), &Settings::changed, this, [this](const QString &key) {
        if (!key.startsWith(kShortcutKey))
            return;
        const QString id = key.mid(kShortcutKey.size());
        if (const Command *command = findCommand(id))
            applyCustom(*command);
        for (const Command &twin : m_twins) {
            if (twin.id == id)
                applyCustom(twin);
        }
        Q_EMIT shortcutsChanged();
    });
}

QAction *CommandRegistry::add(
    const char *id, const QString &text, const QList<QKeySequence> &shortcuts, const char *icon)
{
    auto *action = new QAction(text, m_window);
    action->setObjectName(QLatin1String(id));
    action->setShortcuts(shortcuts);
    action->setShortcutContext(Qt::WindowShortcut);
    if (icon)
        action->setIcon(themedIcon(QLatin1String(icon)));
    m_window->addAction(action);
    take(action);
    return action;
}

void CommandRegistry::enableWhile(QAction *action, std::function<bool()> possible)
{
    action->setEnabled(possible());
    m_conditions.emplace_back(action, std::move(possible));
}

void CommandRegistry::refresh()
{
    for (const auto &[action, possible] : m_conditions) {
        if (action)
            action->setEnabled(possible());
    }
}

const QWidget *CommandRegistry::panelOf(const QAction &action)
{
    for (const QWidget *holder : holdersOf(action)) {
        if (!holder->isWindow())
            return holder;
    }
    return nullptr;
}

bool CommandRegistry::isReachable(const QAction &action) const
{
    for (QObject *object : action.associatedObjects()) {
        const auto *widget = qobject_cast<QWidget *>(object);
        if (const auto *menu = qobject_cast<const QMenu *>(widget); menu && belongsTo(menu, m_window))
            return true; // a menu's keys act while it is closed
        if (widget && !qobject_cast<const QMenu *>(widget) && widget->isVisible()
            && belongsTo(widget, m_window))
            return true;
    }
    return false;
}

void CommandRegistry::take(QAction *action)
{
    // A key that acts everywhere does so too while its dock is closed or behind another.
    if (action->shortcutContext() == Qt::WindowShortcut && !action->shortcuts().isEmpty()
        && !m_window->actions().contains(action))
        m_window->addAction(action);
    Command command{action->objectName(), categoryName(action->objectName()), action, action->shortcuts()};
    connect(action, &QAction::triggered, this, [this, id = command.id] { noteUse(id); });
    applyCustom(command);
    m_commands.push_back(std::move(command));
}

void CommandRegistry::rescan()
{
    std::erase_if(m_commands, [](const Command &command) { return command.action.isNull(); });
    std::erase_if(m_conditions, [](const auto &condition) { return condition.first.isNull(); });
    std::erase_if(m_twins, [](const Command &command) { return command.action.isNull(); });
    QSet<const QAction *> known;
    QSet<QString> ids;
    for (const Command &command : m_commands) {
        known.insert(command.action);
        ids.insert(command.id);
    }
    for (const Command &twin : m_twins)
        known.insert(twin.action);
    const auto look = [&](const QWidget *widget) {
        for (QAction *action : widget->actions()) {
            const QString id = action->objectName();
            if (known.contains(action) || action->isSeparator() || action->menu() || action->text().isEmpty()
                || !id.contains(QLatin1Char('.')) || id.startsWith(QLatin1String("qt_")))
                continue;
            known.insert(action);
            if (ids.contains(id)) {
                m_twins.push_back({id, {}, action, action->shortcuts()});
                applyCustom(m_twins.back());
                continue;
            }
            ids.insert(id);
            take(action);
        }
    };
    look(m_window);
    for (const QWidget *widget : m_window->findChildren<QWidget *>()) {
        if (!widget->actions().isEmpty() && belongsTo(widget, m_window))
            look(widget);
    }
}

const Command *CommandRegistry::findCommand(const QString &id) const
{
    const auto found = std::find_if(m_commands.begin(), m_commands.end(),
        [&id](const Command &command) { return command.id == id && command.action; });
    return found == m_commands.end() ? nullptr : &*found;
}

QAction *CommandRegistry::find(const QString &id) const
{
    const Command *command = findCommand(id);
    return command ? command->action.data() : nullptr;
}

void CommandRegistry::applyCustom(const Command &command)
{
    if (!command.action)
        return;
    const QVariant custom = m_settings->value(kShortcutKey + command.id);
    if (!custom.isValid()) {
        command.action->setShortcuts(command.defaults);
        return;
    }
    const QKeySequence keys = QKeySequence::fromString(custom.toString(), QKeySequence::PortableText);
    command.action->setShortcuts(keys.isEmpty() ? QList<QKeySequence>{} : QList<QKeySequence>{keys});
}

void CommandRegistry::setShortcut(const QString &id, const QKeySequence &keys)
{
    m_settings->setValue(kShortcutKey + id, keys.toString(QKeySequence::PortableText));
}

void CommandRegistry::resetShortcut(const QString &id)
{
    m_settings->setValue(kShortcutKey + id, {});
}

bool CommandRegistry::isCustom(const QString &id) const
{
    return m_settings->value(kShortcutKey + id).isValid();
}

bool CommandRegistry::overlap(const QAction &first, const QAction &second) const
{
    if (!isLocal(first) || !isLocal(second))
        return true;
    for (const QWidget *a : holdersOf(first)) {
        for (const QWidget *b : holdersOf(second)) {
            if (a == b || (first.shortcutContext() == Qt::WidgetWithChildrenShortcut && a->isAncestorOf(b))
                || (second.shortcutContext() == Qt::WidgetWithChildrenShortcut && b->isAncestorOf(a)))
                return true;
        }
    }
    return false;
}

QStringList CommandRegistry::clashesOf(const QString &id, const QKeySequence &keys) const
{
    QStringList others;
    const QAction *action = find(id);
    if (!action || keys.isEmpty())
        return others;
    for (const Command &other : m_commands) {
        if (other.id != id && other.action && other.action->shortcuts().contains(keys)
            && overlap(*action, *other.action))
            others.append(other.id);
    }
    return others;
}

std::vector<ShortcutClash> CommandRegistry::clashes() const
{
    std::vector<ShortcutClash> found;
    for (auto first = m_commands.begin(); first != m_commands.end(); ++first) {
        for (auto second = std::next(first); first->action && second != m_commands.end(); ++second) {
            if (!second->action)
                continue;
            for (const QKeySequence &keys : first->action->shortcuts()) {
                if (second->action->shortcuts().contains(keys) && overlap(*first->action, *second->action))
                    found.push_back({first->id, second->id, keys});
            }
        }
    }
    return found;
}

void CommandRegistry::noteUse(const QString &id)
{
    QStringList ids = recent();
    ids.removeAll(id);
    ids.prepend(id);
    m_settings->setValue(kRecentKey, QStringList(ids.mid(0, kMostRecent)));
}

QStringList CommandRegistry::recent() const
{
    return m_settings->value(kRecentKey).toStringList();
}

QString CommandRegistry::plainText(const QAction &action)
{
    QString text;
    const QString marked = action.text();
    for (qsizetype i = 0; i < marked.size(); ++i) {
        if (marked[i] == QLatin1Char('&') && i + 1 < marked.size())
            ++i;
        text += marked[i];
    }
    return text;
}

} // namespace planloom

#include "moc_command_registry.cpp"
