#pragma once

#include <QtWidgets/QWidget>

#include "widgets/scenes/scene.h"

class QAction;
class QCheckBox;
class QComboBox;
class QLabel;
class QListView;
class QPlainTextEdit;
class QSpinBox;

namespace planloom {

class SceneList;
class SceneStage;

/// The Scenes dock: the scenes of a talk in their order, and what is said about the one that is chosen.
/// Enter or a double click goes to a scene, F2 renames it in place, Delete removes it, Alt+Up and Alt+Down or
/// a drag move it, Ctrl+Z in the list takes the last change of scenes back.
///
/// Actions (added to the widget): scenes.update, scenes.goTo, scenes.rename, scenes.remove, scenes.up,
/// scenes.down, scenes.undo.
class ScenesPanel : public QWidget
{
    Q_OBJECT
public:
    /// @param list, stage  must outlive the panel
    ScenesPanel(SceneList *list, SceneStage *stage, QWidget *parent = nullptr);

    QListView *list() const { return m_view; }
    QPlainTextEdit *note() const { return m_note; }
    int currentRow() const; ///< -1 if no scene is chosen.
    void setCurrentRow(int row);
    /// For the bar above the list: commands of the window.
    void addTool(QAction *action);

public Q_SLOTS:
    /// Takes the present state as a scene behind the one that is chosen.
    void makeScene();

Q_SIGNALS:
    void made(const QString &name);
    void removed(const QString &name); ///< *Undo* brings it back.

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void makeActions();
    QWidget *makeEditor();
    void goToCurrent();
    void removeCurrent();
    void moveCurrent(int by);
    void showCurrent();

    SceneList *m_list;
    SceneStage *m_stage;
    QListView *m_view;
    QLabel *m_empty; ///< In place of a list without scenes: what they are, or what was wrong with them.
    QWidget *m_tools;
    QComboBox *m_canvases = nullptr;
    QSpinBox *m_seconds = nullptr;
    QCheckBox *m_plays = nullptr;
    QPlainTextEdit *m_note = nullptr;
    QWidget *m_editor; ///< Holds those; behind them: making it sets them.
    bool m_shows = false; ///< The editor is being filled.
};

} // namespace planloom
