#pragma once

#include <QtCore/QObject>
#include <QtCore/QTimer>

#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace planloom {

/// Work for the GUI thread in small pieces: one an event, so that keys and pointer come in between. Of pieces
/// with the same name the newest is done, in the place of the first.
class Chores : public QObject
{
    Q_OBJECT
public:
    explicit Chores(QObject *parent = nullptr);

    void add(const char *name, std::function<void()> work);
    void drop(const char *name);
    /// Does the piece with this name now, if it waits.
    void finish(const char *name);
    /// Does all now.
    void finishAll();
    bool isEmpty() const { return m_waiting.empty(); }

private:
    void next();

    std::deque<std::pair<std::string, std::function<void()>>> m_waiting;
    QTimer m_timer;
};

} // namespace planloom
