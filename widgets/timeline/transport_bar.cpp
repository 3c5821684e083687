#include "widgets/timeline/transport_bar.h"

#include <QtCore/QSignalBlocker>
#include <QtGui/QAction>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include "engine/base/words.h"
#include "widgets/common/qt_text.h"
#include "widgets/timeline/playback.h"

#include <cmath>

namespace planloom {

namespace {

constexpr int kSliderSteps = 10'000;

QString speedText(double speed)
{
    return speed >= 1 ? QStringLiteral("%1×").arg(speed) : QStringLiteral("1/%1×").arg(std::round(1 / speed));
}

} // namespace

TransportBar::TransportBar(Playback *playback, const Actions &actions, QWidget *parent)
    : QFrame(parent)
    , m_playback(playback)
    , m_slider(new QSlider(Qt::Horizontal, this))
    , m_time(new QLabel(this))
    , m_running(new QLabel(this))
    , m_speed(new QComboBox(this))
{
    setObjectName(QStringLiteral("transportBar"));
    setAccessibleName(tr("Playing the step"));
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(6, 2, 6, 2);
    layout->setSpacing(4);
    for (QAction *action : {actions.back, actions.play, actions.forward, actions.loop}) {
        if (!action)
            continue;
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::NoFocus); // keys go to the canvas
        layout->addWidget(button);
    }
    m_slider->setRange(0, kSliderSteps);
    m_slider->setPageStep(kSliderSteps / 20);
    m_slider->setAccessibleName(tr("Time of the step"));
    layout->addWidget(m_slider, 3);
    m_time->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral("000.0 ms of 000.0 ms ")));
    layout->addWidget(m_time);
    for (double speed = Playback::kLeastSpeed; speed <= Playback::kMostSpeed; speed *= 2)
        m_speed->addItem(speedText(speed), speed);
    m_speed->setAccessibleName(tr("Speed"));
    m_speed->setToolTip(tr("Speed: at 1× a whole step takes %1 s").arg(Playback::kSecondsOfStep));
    m_speed->setFocusPolicy(Qt::ClickFocus);
    layout->addWidget(m_speed);
    m_running->setTextFormat(Qt::PlainText);
    m_running->setMinimumWidth(0);
    m_running->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    layout->addWidget(m_running, 2);
    if (actions.stop) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(actions.stop);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::NoFocus);
        layout->addWidget(button);
    }
    connect(m_slider, &QSlider::valueChanged, this, [this](int value) {
        if (const auto &scene = m_playback->scene())
            m_playback->seek(static_cast<double>(scene->timeline->step.count()) * value
                / static_cast<double>(kSliderSteps));
    });
    connect(m_speed, &QComboBox::activated, this,
        [this](int index) { m_playback->setSpeed(m_speed->itemData(index).toDouble()); });
    connect(m_playback, &Playback::timeChanged, this, &TransportBar::showTime);
    connect(m_playback, &Playback::stateChanged, this, &TransportBar::showState);
    showTime();
    showState();
}

void TransportBar::setRunning(const QString &words)
{
    if (m_running->text() == words)
        return;
    m_running->setText(words);
    m_running->setToolTip(words);
}

QString TransportBar::timeText() const
{
    return m_time->text();
}

void TransportBar::showTime()
{
    const auto time = m_playback->time();
    setVisible(time.has_value());
    if (!time)
        return;
    const std::int64_t step = m_playback->scene()->timeline->step.count();
    m_time->setText(
        tr("%1 of %2")
            .arg(toQString(formatNanoseconds(std::llround(*time))), toQString(formatNanoseconds(step))));
    if (m_slider->isSliderDown())
        return; // it is what moves the playhead
    const QSignalBlocker blocker(m_slider);
    m_slider->setValue(
        step > 0 ? static_cast<int>(std::llround(*time / static_cast<double>(step) * kSliderSteps)) : 0);
}

void TransportBar::showState()
{
    m_speed->setCurrentIndex(m_speed->findData(m_playback->speed()));
}

} // namespace planloom

#include "moc_transport_bar.cpp"
