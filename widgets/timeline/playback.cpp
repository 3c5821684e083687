#include "widgets/timeline/playback.h"

#include "widgets/scene/running_now.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kFrameMilliseconds = 16;

} // namespace

Playback::Playback(QObject *parent)
    : QObject(parent)
    , m_timer(this)
{
    m_timer.setTimerType(Qt::PreciseTimer);
    m_timer.setInterval(kFrameMilliseconds);
    connect(
        &m_timer, &QTimer::timeout, this, [this] { advance(static_cast<double>(m_clock.restart()) * 1e-3); });
}

void Playback::setScene(TimelineSceneSnapshot scene)
{
    if (scene == m_scene)
        return;
    const bool same = m_scene && scene && m_scene->timeline->step == scene->timeline->step;
    m_scene = std::move(scene);
    m_moments.clear();
    if (!same)
        stop();
    else if (m_time)
        Q_EMIT timeChanged(); // other things run then
}

void Playback::move(std::optional<double> time)
{
    if (time == m_time)
        return;
    m_time = time;
    Q_EMIT timeChanged();
}

void Playback::play()
{
    if (!m_scene || isPlaying() || length() <= 0)
        return;
    m_clock.start();
    m_timer.start();
    if (!m_time || *m_time >= length())
        move(0.0);
    Q_EMIT stateChanged();
}

void Playback::pause()
{
    if (!isPlaying())
        return;
    m_timer.stop();
    Q_EMIT stateChanged();
}

void Playback::stop()
{
    pause();
    move({});
}

void Playback::stepForward()
{
    if (!m_scene)
        return;
    pause();
    if (m_moments.empty())
        m_moments = blockMoments(*m_scene);
    const auto next = std::upper_bound(m_moments.begin(), m_moments.end(), m_time.value_or(-1),
        [](double time, std::int64_t moment) { return time < static_cast<double>(moment); });
    if (next != m_moments.end())
        move(static_cast<double>(*next));
}

void Playback::stepBack()
{
    if (!m_scene)
        return;
    pause();
    if (m_moments.empty())
        m_moments = blockMoments(*m_scene);
    const double from = m_time.value_or(length() + 1);
    const auto next = std::lower_bound(m_moments.begin(), m_moments.end(), from,
        [](std::int64_t moment, double time) { return static_cast<double>(moment) < time; });
    if (next != m_moments.begin())
        move(static_cast<double>(*(next - 1)));
}

void Playback::seek(double nanoseconds)
{
    if (m_scene)
        move(std::clamp(nanoseconds, 0.0, length()));
}

void Playback::setSpeed(double speed)
{
    speed = std::clamp(speed, kLeastSpeed, kMostSpeed);
    if (speed == m_speed)
        return;
    m_speed = speed;
    Q_EMIT stateChanged();
}

void Playback::setLoops(bool loops)
{
    if (loops == m_loops)
        return;
    m_loops = loops;
    Q_EMIT stateChanged();
}

void Playback::advance(double seconds)
{
    if (!m_scene || !isPlaying())
        return;
    const double next = m_time.value_or(0) + seconds * m_speed / kSecondsOfStep * length();
    if (next < length()) {
        move(next);
    } else if (m_loops) {
        move(0.0);
    } else {
        move(length());
        pause();
    }
}

} // namespace planloom

#include "moc_playback.cpp"
