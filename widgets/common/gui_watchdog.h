#pragma once

#include <QtCore/QEvent>
#include <QtCore/QString>
#include <QtWidgets/QApplication>

#include <cstdint>
#include <vector>

namespace planloom {

/// One delivery of an event that kept the GUI thread longer than it may.
struct SlowEvent {
    QString receiver{}; ///< Its class, and its name if it has one: "planloom::DagView dag", "QTimer of
                        ///< planloom::DagView dag".
    QEvent::Type type = QEvent::None;
    std::int64_t microseconds = 0; ///< Of processor time.
};

/// "planloom::DagView dag kept the GUI thread for 7.3 ms on MouseMove"
QString describe(const SlowEvent &event);

/// What happens to an event that was slow.
enum class WatchdogReply : std::uint8_t {
    Keep, ///< It is kept for `slowEvents`.
    Warn, ///< And written as a warning.
    Assert, ///< The program ends with a message that names it.
};

/// The application object of the desktop: measures how long each event keeps the GUI thread when asked to.
///
/// Measured is the thread's processor time, not the clock on the wall: a machine that is busy with other
/// things, or was asleep, makes no event slow. Painting has a budget of its own (a frame); time spent in
/// events delivered within an event is counted once, at the innermost receiver, but a frame is counted whole.
/// Idle unless `watch` is on, which costs two readings of the processor's clock an event.
class GuiWatchdog : public QApplication
{
    Q_OBJECT
public:
    static constexpr std::int64_t kMostMicroseconds =
        5000; ///< That an event may take, in an optimised build.
    static constexpr std::int64_t kMostFrameMicroseconds = 16000; ///< That painting may take.

    GuiWatchdog(int &argc, char **argv);

    /// Starts or stops measuring.
    void watch(bool on, WatchdogReply reply = WatchdogReply::Keep);
    bool isWatching() const { return m_watching; }
    /// Multiplies what events and frames may take; 1 unless said otherwise.
    void setAllowance(double factor) { m_allowance = factor; }
    double allowance() const { return m_allowance; }
    /// How much slower this build is than an optimised one: without optimisation, or with sanitisers.
    static double buildFactor();

    /// Slow events since the last `clear`, oldest first; the oldest go beyond `kMostKept`.
    const std::vector<SlowEvent> &slowEvents() const { return m_slow; }
    /// The same of painting.
    const std::vector<SlowEvent> &slowFrames() const { return m_slowFrames; }
    std::int64_t events() const { return m_events; } ///< Delivered since the last `clear`.
    std::int64_t frames() const { return m_frames; }
    void clear();

    bool notify(QObject *receiver, QEvent *event) override;

private:
    static constexpr std::size_t kMostKept = 1000;
    /// Painting, and what leads to it: a frame's budget.
    static bool isPainting(QEvent::Type type);
    void note(std::vector<SlowEvent> &list, SlowEvent event, std::int64_t most);

    bool m_watching = false;
    WatchdogReply m_reply = WatchdogReply::Keep;
    double m_allowance = 1;
    std::int64_t m_inner = 0; ///< Nanoseconds of events within the present one.
    int m_painting = 0; ///< Painting events the present one lies in.
    std::int64_t m_events = 0;
    std::int64_t m_frames = 0;
    std::vector<SlowEvent> m_slow;
    std::vector<SlowEvent> m_slowFrames;
};

} // namespace planloom
