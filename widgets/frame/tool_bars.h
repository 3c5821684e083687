#pragma once

#include <QtCore/QObject>
#include <QtCore/QString>

#include <cstddef>
#include <vector>

class QAction;
class QMainWindow;
class QToolBar;
class QToolButton;
class QWidget;

namespace planloom {

/// The two bars below a window's menus: at the left what can be chosen, at the right what is always in sight,
/// deeds and the state. Where there is no room, words go first, then choices that menus have too; what is
/// left of the choices stays behind the bar's arrow, and the right bar is never cut.
class ToolBars : public QObject
{
    Q_OBJECT
public:
    explicit ToolBars(QMainWindow *window);

    QToolBar *choices() const { return m_choices; }
    QToolBar *deeds() const { return m_deeds; }

    /// A tool: its word goes before those of deeds.
    void addTool(QAction *action);
    /// A choice behind its name; that of the first choice goes last. @param spare  menus have it, too: 1 is
    /// the first to go, 0 stays
    void addChoice(const QString &name, QWidget *choice, std::size_t spare = 0);
    /// Starts something.
    void addDeed(QAction *action);
    /// The state, after the deeds so far. Others keep room for `letters` letters of it, and for the most that
    /// it took so far, so that they don't step aside for each of its words.
    void addState(QWidget *state, int letters);

    void setShown(bool shown);
    /// Goes with the window's width.
    void fit();
    /// Makes room for words of the state that are longer than any before.
    void fitState();

private:
    int needed(Qt::ToolButtonStyle tools, std::size_t unnamed, Qt::ToolButtonStyle deeds, std::size_t spared);
    void choose(int width);

    QMainWindow *m_window;
    QToolBar *m_choices;
    QToolBar *m_deeds;
    std::vector<QToolButton *> m_toolButtons;
    std::vector<QToolButton *> m_deedButtons;
    std::vector<QAction *> m_names; ///< Of choices: the first to go first.
    std::vector<QAction *> m_spare; ///< As those.
    QWidget *m_state = nullptr;
    int m_stateRoom = 0; ///< Pixels that others leave to the state.
};

} // namespace planloom
