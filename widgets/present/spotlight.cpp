#include "widgets/present/spotlight.h"

#include <QtCore/QEvent>
#include <QtGui/QCursor>
#include <QtGui/QPaintEvent>
#include <QtGui/QPainter>
#include <QtGui/QRadialGradient>

#include <algorithm>

namespace planloom {

namespace {

constexpr int kFollowMilliseconds = 16;
constexpr int kDarkness = 125; ///< Of 255.
constexpr double kSharp = 0.72; ///< Share of the radius that is fully lit.

} // namespace

Spotlight::Spotlight(QWidget *window)
    : QWidget(window)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    hide();
    m_follow.setInterval(kFollowMilliseconds);
    connect(&m_follow, &QTimer::timeout, this, [this] { moveTo(mapFromGlobal(QCursor::pos())); });
    window->installEventFilter(this);
}

void Spotlight::setOn(bool on)
{
    if (on) {
        setGeometry(parentWidget()->rect());
        m_place = mapFromGlobal(QCursor::pos());
        m_follow.start();
        raise();
    } else {
        m_follow.stop();
    }
    setVisible(on);
}

int Spotlight::radius() const
{
    return std::max(90, std::min(width(), height()) / 6);
}

QRect Spotlight::lightAt(QPoint place) const
{
    const int reach = radius() + 1;
    return {place.x() - reach, place.y() - reach, 2 * reach, 2 * reach};
}

void Spotlight::moveTo(QPoint place)
{
    if (place == m_place)
        return;
    update(lightAt(m_place));
    m_place = place;
    update(lightAt(m_place));
}

void Spotlight::paintEvent(QPaintEvent *event)
{
    QPainter painter(this);
    const QRect light = lightAt(m_place);
    const QColor dark(0, 0, 0, kDarkness);
    QRadialGradient gradient(m_place, radius());
    gradient.setColorAt(0, Qt::transparent);
    gradient.setColorAt(kSharp, Qt::transparent);
    gradient.setColorAt(1, dark);
    for (const QRect &part : event->region() - light)
        painter.fillRect(part, dark);
    for (const QRect &part : event->region() & light)
        painter.fillRect(part, gradient);
}

bool Spotlight::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parentWidget() && event->type() == QEvent::Resize && isOn())
        setGeometry(parentWidget()->rect());
    return QWidget::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_spotlight.cpp"
