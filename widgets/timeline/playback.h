#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtCore/QTimer>

#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// Goes through a step in time, or block by block: where the playhead is, whether it moves, and how fast.
class Playback : public QObject
{
    Q_OBJECT
public:
    /// How long a whole step takes to play at speed 1, whatever its length: steps are of milliseconds or of
    /// minutes.
    static constexpr double kSecondsOfStep = 10;
    static constexpr double kLeastSpeed = 1.0 / 64;
    static constexpr double kMostSpeed = 16;

    explicit Playback(QObject *parent = nullptr);

    /// The step that is played. Another one of another length takes the playhead away and pauses.
    void setScene(TimelineSceneSnapshot scene);
    const TimelineSceneSnapshot &scene() const { return m_scene; }

    /// Where the playhead is, nanoseconds; nothing while there is none.
    std::optional<double> time() const { return m_time; }
    bool isPlaying() const { return m_timer.isActive(); }
    double speed() const { return m_speed; }
    bool loops() const { return m_loops; }

    /// From the playhead on; from the begin if it is at the end, or there is none.
    void play();
    void pause();
    void toggle() { isPlaying() ? pause() : play(); }
    /// Pauses, and takes the playhead away.
    void stop();
    /// To when the next block begins anywhere, at last to the step's end; pauses. From one of these moments
    /// the other way round leads back to the last one.
    void stepForward();
    void stepBack();
    /// Puts the playhead there, within the step; plays on if it played.
    void seek(double nanoseconds);
    /// Within [kLeastSpeed, kMostSpeed].
    void setSpeed(double speed);
    void setLoops(bool loops);
    /// As if so much time had gone by while it plays: what the clock calls.
    void advance(double seconds);

Q_SIGNALS:
    /// The playhead has moved, or come, or gone.
    void timeChanged();
    /// It plays, pauses, loops, or goes faster or slower.
    void stateChanged();

private:
    double length() const { return static_cast<double>(m_scene->timeline->step.count()); }
    void move(std::optional<double> time);

    TimelineSceneSnapshot m_scene;
    std::vector<std::int64_t> m_moments; ///< Ascending; made when first stepped through.
    std::optional<double> m_time;
    double m_speed = 1;
    bool m_loops = false;
    QTimer m_timer;
    QElapsedTimer m_clock; ///< Since the last time it moved by itself.
};

} // namespace planloom
