#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtCore/QTimer>

#include "widgets/present/present_frame.h"
#include "widgets/present/present_strip.h"

#include <optional>

class QKeyEvent;

namespace planloom {

class NotesWindow;
class SceneList;
class SceneStage;
class Spotlight;

/// Presents the window: without its frame, one scene after the other, by keys or by themselves. Without
/// scenes, what is there. At the end all is as it was before: docks, place, perspective, step and view.
///
/// Right, Space, Page Down: next scene; Left, Page Up: previous; Home, End; P plays the step, A the scenes,
/// S is the spotlight, N the notes window, T the timer, B the bar; 1, 2, 3 both canvases, graph, timeline;
/// Escape leaves.
class Presenter : public QObject
{
    Q_OBJECT
public:
    /// @param list, stage  must outlive this
    Presenter(SceneList *list, SceneStage *stage, PresentParts parts, QObject *parent = nullptr);
    ~Presenter() override;

    bool isPresenting() const { return m_frame.isEntered(); }
    /// Row of the scene that is shown; -1 without one.
    int current() const { return m_current; }
    /// With this scene first; with what is there if there is no such scene.
    void start(int row);
    void leave();
    void goTo(int row);
    /// Lets scenes follow one another, each for its seconds, or stops that.
    void setRunning(bool runs);
    bool isRunning() const { return m_runs; }
    Spotlight *spotlight() const { return m_spotlight; }
    PresentStrip *strip() const { return m_strip; }
    NotesWindow *notes() const { return m_notes; } ///< Null until it is asked for.

Q_SIGNALS:
    void presentingChanged(bool presents);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    bool act(int key);
    void showState();
    TalkState state() const;
    void stay();
    void toggleNotes();
    void togglePlay();

    SceneList *m_list;
    SceneStage *m_stage;
    PresentFrame m_frame;
    PresentStrip *m_strip;
    Spotlight *m_spotlight;
    NotesWindow *m_notes = nullptr; ///< The window's.
    std::optional<Scene> m_before; ///< As the window was.
    int m_current = -1;
    bool m_runs = false;
    QTimer m_second;
    QTimer m_stay; ///< Until the next scene.
    QElapsedTimer m_since;
};

} // namespace planloom
