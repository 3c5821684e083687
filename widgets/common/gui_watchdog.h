#pragma once

#include <QtCore/QEvent>
#include <QtCore/QString>
#include <QtWidgets/QApplication>

#include <cstdint>
#include <vector>

namespace planloom {

/// One delivery of an event that kept the GUI thread longer than it may.
struct SlowEvent {
    QString receiver{}; ///< Its class: "planloom::DagView".
    QEvent::Type type = QEvent::None;
    std::int64_t microseconds = 0;
};

/// The application object of the desktop: measures how long each event keeps the GUI thread when asked to.
///
/// Painting has a budget of its own (a frame) and is left out, and so is time spent in events delivered within an event:
/// each is counted once, at the innermost receiver. Idle unless `watch` is on, which costs two clock readings an event.
class GuiWatchdog : public QApplication
{
    Q_OBJECT
public:
    static constexpr std::int64_t kMostMicroseconds = 5000; ///< That an event may take.

    GuiWatchdog(int &argc, char **argv);

    /// Starts or stops measuring; `log` writes each slow event as a warning too.
    void watch(bool on, bool log = false);
    bool isWatching() const { return m_watching; }
    /// Slow events since the last `clear`, oldest first; the oldest go beyond `kMostKept`.
    const std::vector<SlowEvent> &slowEvents() const { return m_slow; }
    void clear() { m_slow.clear(); }

    bool notify(QObject *receiver, QEvent *event) override;

private:
    static constexpr std::size_t kMostKept = 1000;
    /// Painting, and what leads to it: a frame's budget.
    static bool isPainting(QEvent::Type type);

    bool m_watching = false;
    bool m_log = false;
    std::int64_t m_inner = 0; ///< Nanoseconds of events within the present one.
    std::vector<SlowEvent> m_slow;
};

} // namespace planloom
