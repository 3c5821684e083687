#pragma once

#include <QtWidgets/QFrame>

class QAction;
class QComboBox;
class QLabel;
class QSlider;

namespace planloom {

class Playback;

/// Buttons, a slider and the time of what is played. It is there while there is a playhead.
class TransportBar : public QFrame
{
    Q_OBJECT
public:
    /// Actions that its buttons carry out; null ones have no button.
    struct Actions {
        QAction *back = nullptr;
        QAction *play = nullptr;
        QAction *forward = nullptr;
        QAction *loop = nullptr;
        QAction *stop = nullptr;
    };
    /// @param playback  must outlive this
    TransportBar(Playback *playback, const Actions &actions, QWidget *parent = nullptr);

    /// What runs now, in words: "F2 on GPU 0, B0 on GPU 3".
    void setRunning(const QString &words);
    QString timeText() const;

private:
    void showTime();
    void showState();

    Playback *m_playback;
    QSlider *m_slider;
    QLabel *m_time;
    QLabel *m_running;
    QComboBox *m_speed;
};

} // namespace planloom
