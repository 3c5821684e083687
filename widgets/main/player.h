#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>

#include "widgets/timeline/playback.h"
#include "widgets/timeline/transport_bar.h"

#include <functional>
#include <vector>

class QMenu;

namespace planloom {

class DagView;
class MemoryPanel;
class TimelineView;

/// Plays a step in all views at once: the playhead on the timeline, what computes and what is sent on the
/// graph, the memory of that moment.
class Player : public QObject
{
    Q_OBJECT
public:
    /// Makes a command of the window that acts while a canvas has the keyboard.
    using MakeCommand = std::function<QAction *(
        const char *id, const QString &text, const QList<QKeySequence> &keys, std::function<void()> act)>;

    /// @param timeline, dag  must outlive this
    Player(TimelineView *timeline, DagView *dag, const MakeCommand &makeCommand, QObject *parent = nullptr);

    /// The bar below the timeline; it belongs to who places it.
    TransportBar *bar() const { return m_bar; }
    Playback &playback() { return m_playback; }
    /// Adds the commands.
    void fill(QMenu *menu) const;
    const std::vector<QAction *> &actions() const { return m_actions; }
    /// Follows the playhead from now on. Must outlive this.
    void setMemory(MemoryPanel *memory);

private:
    void showMoment();
    void showState();

    TimelineView *m_timeline;
    DagView *m_dag;
    MemoryPanel *m_memory = nullptr;
    Playback m_playback;
    std::vector<QAction *> m_actions; ///< In the order of the menu.
    QAction *m_play;
    QAction *m_loop;
    TransportBar *m_bar;
    QElapsedTimer m_sinceMemory; ///< Its list of tensors is not made anew in every frame.
    QTimer m_memoryLater;
};

} // namespace planloom
