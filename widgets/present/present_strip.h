#pragma once

#include <QtWidgets/QFrame>

class QLabel;

namespace planloom {

/// What a talk says of itself.
struct TalkState {
    QString name{}; ///< Of the scene; of the session without one.
    int number = 0; ///< From 1; 0 without a scene.
    int count = 0;
    QString note{};
    QString next{}; ///< The next scene's name; empty behind the last.
    qint64 elapsed = 0; ///< Seconds since it began.
    qint64 planned = 0; ///< Seconds that its scenes are meant to take.
    bool runs = false; ///< Scenes follow one another by themselves.
};

/// "4:05"
QString minutesText(qint64 seconds);

/// The narrow bar below the canvases of a talk: which scene it is, and how long it has been going on.
class PresentStrip : public QFrame
{
    Q_OBJECT
public:
    explicit PresentStrip(QWidget *parent = nullptr);

    void show(const TalkState &state);
    void setTimerShown(bool shown);
    bool isTimerShown() const;
    QString text() const; ///< All of it, for tests and screen readers.
    using QFrame::show;

private:
    QLabel *m_number;
    QLabel *m_name;
    QLabel *m_timer;
};

} // namespace planloom
