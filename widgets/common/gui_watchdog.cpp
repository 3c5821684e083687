#include "widgets/common/gui_watchdog.h"

#include <QtCore/QDebug>
#include <QtCore/QMetaEnum>

#include <chrono>
#include <utility>

namespace planloom {

GuiWatchdog::GuiWatchdog(int &argc, char **argv) : QApplication(argc, argv)
{
}

void GuiWatchdog::watch(bool on, bool log)
{
    m_watching = on;
    m_log = log;
    m_inner = 0;
}

bool GuiWatchdog::isPainting(QEvent::Type type)
{
    switch (type) {
    case QEvent::Paint:
    case QEvent::UpdateRequest:
    case QEvent::Expose:
    case QEvent::UpdateLater:
        return true;
    default:
        return false;
    }
}

bool GuiWatchdog::notify(QObject *receiver, QEvent *event)
{
    if (!m_watching)
        return QApplication::notify(receiver, event);
    using Clock = std::chrono::steady_clock;
    const QEvent::Type type = event->type();
    // Both may be gone afterwards; the names cost nothing.
    const char *name = receiver->metaObject()->className();
    const std::int64_t outer = std::exchange(m_inner, 0);
    const auto begin = Clock::now();
    const bool result = QApplication::notify(receiver, event);
    const std::int64_t whole = std::chrono::nanoseconds(Clock::now() - begin).count();
    const std::int64_t own = (whole - m_inner) / 1000;
    m_inner = outer + whole;
    if (own > kMostMicroseconds && !isPainting(type)) {
        if (m_slow.size() == kMostKept)
            m_slow.erase(m_slow.begin());
        m_slow.push_back({QString::fromLatin1(name), type, own});
        if (m_log)
            qWarning().noquote() << "slow event:" << name << type << own << "µs";
    }
    return result;
}

} // namespace planloom
