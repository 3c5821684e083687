#pragma once

#include <QtCore/QList>
#include <QtCore/QObject>
#include <QtCore/QPointer>
#include <QtGui/QAction>
#include <QtGui/QKeySequence>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

class QWidget;

namespace planloom {

class Settings;

/// One thing a person can ask the window for.
struct Command {
    QString id{}; ///< The action's object name: "solve.now".
    QString category{}; ///< For people: "Solve".
    QPointer<QAction> action{};
    QList<QKeySequence> defaults{}; ///< Its shortcuts before a person changed them.
};

/// Two commands that one key would start.
struct ShortcutClash {
    QString first{};
    QString second{};
    QKeySequence keys{};
};

/// Every command of a window: its own, and those of all the widgets in it (menus, canvases, docks), known by
/// the object names of their actions. Keeps what a person changed of their shortcuts, and which were used
/// lately.
class CommandRegistry : public QObject
{
    Q_OBJECT
public:
    /// @param window  whose actions these are; must outlive this object
    CommandRegistry(QWidget *window, std::shared_ptr<Settings> settings, QObject *parent = nullptr);

    /// Makes an action of the window, reachable everywhere in it.
    /// @param id  "category.name", unique
    /// @param icon  of resources/icons; empty for none
    QAction *add(const char *id, const QString &text, const QList<QKeySequence> &shortcuts = {},
        const char *icon = nullptr);
    /// As above, with what it does.
    template<typename Context, typename Function>
    QAction *add(const char *id, const QString &text, const QList<QKeySequence> &shortcuts, const char *icon,
        Context *context, Function &&function)
    {
        QAction *action = add(id, text, shortcuts, icon);
        connect(action, &QAction::triggered, context, std::forward<Function>(function));
        return action;
    }
    /// `action` is enabled as long as `possible`; asked by `refresh`.
    void enableWhile(QAction *action, std::function<bool()> possible);
    /// Asks all conditions again.
    void refresh();

    /// Takes up the actions that have come with widgets since, and lets go of those that are gone.
    void rescan();
    const std::vector<Command> &commands() const { return m_commands; }
    /// Null if there is none.
    QAction *find(const QString &id) const;
    const Command *findCommand(const QString &id) const;

    /// What a person made of a command's shortcut; an empty one leaves it without. Kept in the settings.
    void setShortcut(const QString &id, const QKeySequence &keys);
    void resetShortcut(const QString &id);
    bool isCustom(const QString &id) const;
    /// Commands that `keys` would start together with `id`, by their ids.
    QStringList clashesOf(const QString &id, const QKeySequence &keys) const;
    /// All pairs that share a key where both could be meant.
    std::vector<ShortcutClash> clashes() const;

    /// Ids of commands triggered lately, the latest first.
    QStringList recent() const;

    /// The widget an action belongs to, where it is not the window's own; null otherwise.
    static const QWidget *panelOf(const QAction &action);
    /// A key that acts everywhere in the window finds something in sight that holds the action.
    bool isReachable(const QAction &action) const;

    /// The text without its mnemonic: "Solve Now".
    static QString plainText(const QAction &action);

Q_SIGNALS:
    void shortcutsChanged();

private:
    void take(QAction *action);
    void applyCustom(const Command &command);
    void noteUse(const QString &id);
    bool overlap(const QAction &first, const QAction &second) const;

    QWidget *m_window;
    std::shared_ptr<Settings> m_settings;
    std::vector<Command> m_commands; ///< In order of first appearance.
    std::vector<Command> m_twins; ///< Further actions of known commands: those of a second canvas.
    std::vector<std::pair<QPointer<QAction>, std::function<bool()>>> m_conditions;
};

/// "dag" -> "DAG": the first part of a command's id in words.
QString categoryName(const QString &id);

} // namespace planloom
