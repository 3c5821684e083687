#include "widgets/common/gui_watchdog.h"

#include <QtCore/QDebug>
#include <QtCore/QMetaEnum>
#include <QtCore/QPointer>

#include <ctime>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr double kUnoptimised = 6; ///< How much slower than -O2, measured on the window's own tests.
constexpr double kSanitised = 8;

/// Processor time of this thread.
std::int64_t threadNanoseconds()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * kNanosecondsPerSecond + now.tv_nsec;
}

/// Class and name; of what has neither of its own (timers, watchers), those of what it belongs to as well.
QString nameOf(const QObject &object)
{
    QString name = QString::fromLatin1(object.metaObject()->className());
    if (!object.objectName().isEmpty())
        name += QLatin1Char(' ') + object.objectName();
    const QObject *owner = object.parent();
    if (!name.startsWith(QLatin1String("planloom::")) && owner && !object.isWidgetType())
        name += QStringLiteral(" of ") + nameOf(*owner);
    return name;
}

} // namespace

QString describe(const SlowEvent &event)
{
    const char *type = QMetaEnum::fromType<QEvent::Type>().valueToKey(event.type);
    return QStringLiteral("%1 kept the GUI thread for %2 ms on %3")
        .arg(event.receiver)
        .arg(static_cast<double>(event.microseconds) / 1000, 0, 'f', 1)
        .arg(type ? QString::fromLatin1(type) : QString::number(event.type));
}

GuiWatchdog::GuiWatchdog(int &argc, char **argv)
    : QApplication(argc, argv)
{
}

double GuiWatchdog::buildFactor()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return kSanitised;
#elif !defined(__OPTIMIZE__)
    return kUnoptimised;
#else
    return 1;
#endif
}

void GuiWatchdog::watch(bool on, WatchdogReply reply)
{
    m_watching = on;
    m_reply = reply;
    m_inner = 0;
    m_painting = 0;
}

void GuiWatchdog::clear()
{
    m_slow.clear();
    m_slowFrames.clear();
    m_events = 0;
    m_frames = 0;
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

void GuiWatchdog::note(std::vector<SlowEvent> &list, SlowEvent event, std::int64_t most)
{
    const QString said = describe(event);
    if (list.size() == kMostKept)
        list.erase(list.begin());
    list.push_back(std::move(event));
    if (m_reply == WatchdogReply::Assert)
        qFatal("%s; it may take %.1f ms", qPrintable(said), static_cast<double>(most) * m_allowance / 1000);
    if (m_reply == WatchdogReply::Warn)
        qWarning().noquote() << "slow event:" << said;
}

bool GuiWatchdog::notify(QObject *receiver, QEvent *event)
{
    if (!m_watching)
        return QApplication::notify(receiver, event);
    const QEvent::Type type = event->type();
    const bool painting = isPainting(type);
    // Both may be gone afterwards. Names are made of what is still there then, or else of the class alone.
    const QPointer<QObject> still(receiver);
    const char *className = receiver->metaObject()->className();
    const std::int64_t outer = std::exchange(m_inner, 0);
    m_painting += painting ? 1 : 0;
    const std::int64_t begin = threadNanoseconds();
    const bool result = QApplication::notify(receiver, event);
    const std::int64_t whole = threadNanoseconds() - begin;
    const std::int64_t own = whole - m_inner;
    m_painting -= painting && m_painting > 0 ? 1 : 0;
    m_inner = outer + whole;
    if (!m_watching)
        return result;
    const auto slow = [&](std::int64_t nanoseconds) {
        return SlowEvent{still ? nameOf(*still) : QString::fromLatin1(className), type, nanoseconds / 1000};
    };
    if (painting && m_painting == 0) {
        ++m_frames;
        if (static_cast<double>(whole) > 1000 * m_allowance * kMostFrameMicroseconds)
            note(m_slowFrames, slow(whole), kMostFrameMicroseconds);
    } else if (!painting) {
        ++m_events;
        if (static_cast<double>(own) > 1000 * m_allowance * kMostMicroseconds)
            note(m_slow, slow(own), kMostMicroseconds);
    }
    return result;
}

} // namespace planloom

#include "moc_gui_watchdog.cpp"
