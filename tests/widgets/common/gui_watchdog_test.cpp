#include "widgets/common/gui_watchdog.h"

#include <QtCore/QThread>

#include <gtest/gtest.h>

#include <ctime>

namespace planloom {
namespace {

constexpr long kShort = 12; ///< ms: too long for an event, short enough for a frame.
constexpr long kTooLong = 24;
const auto kWork = static_cast<QEvent::Type>(QEvent::User + 1);
const auto kOuter = static_cast<QEvent::Type>(QEvent::User + 2);
const auto kWait = static_cast<QEvent::Type>(QEvent::User + 3);
const auto kLongWork = static_cast<QEvent::Type>(QEvent::User + 4);

/// Takes processor time, however long that lasts on the wall.
void work(long milliseconds)
{
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return time.tv_sec * 1'000'000'000L + time.tv_nsec;
    };
    const long until = now() + milliseconds * 1'000'000L;
    while (now() < until)
        ;
}

/// Works for a while on one event, and delivers that one within another.
class Worker : public QObject
{
public:
    bool event(QEvent *event) override
    {
        if (event->type() == kWork || event->type() == kLongWork) {
            work(event->type() == kWork ? kShort : kTooLong);
        } else if (event->type() == kWait) {
            QThread::msleep(kTooLong);
        } else if (event->type() == kOuter) {
            QEvent inner(kWork);
            QCoreApplication::sendEvent(this, &inner);
        } else if (event->type() == QEvent::Paint) {
            work(kShort);
        } else if (event->type() == QEvent::UpdateRequest) {
            // Two widgets in one frame: each is quick, the frame is not.
            for (int i = 0; i < 2; ++i) {
                QEvent paint(QEvent::Paint);
                QCoreApplication::sendEvent(this, &paint);
            }
        } else {
            return QObject::event(event);
        }
        return true;
    }
};

class GuiWatchdogTest : public testing::Test
{
protected:
    void send(QEvent::Type type)
    {
        QEvent event(type);
        QCoreApplication::sendEvent(&m_worker, &event);
    }

    int m_count = 1;
    char m_name[5] = "test";
    char *m_arguments[2] = {m_name, nullptr};
    GuiWatchdog m_application{m_count, m_arguments};
    Worker m_worker;
};

TEST_F(GuiWatchdogTest, NamesWhoKeptTheThread)
{
    send(kWork);
    EXPECT_TRUE(m_application.slowEvents().empty()); // not asked to watch
    m_application.watch(true);
    m_worker.setObjectName(QStringLiteral("worker"));
    send(kWork);
    ASSERT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_EQ(m_application.slowEvents()[0].receiver, QStringLiteral("QObject worker"));
    EXPECT_EQ(m_application.slowEvents()[0].type, kWork);
    EXPECT_GE(m_application.slowEvents()[0].microseconds, 1000 * kShort);
    EXPECT_TRUE(describe({QStringLiteral("QObject worker"), QEvent::MouseMove, 12345})
        == QStringLiteral("QObject worker kept the GUI thread for 12.3 ms on MouseMove"));
    m_application.clear();
    EXPECT_TRUE(m_application.slowEvents().empty());
}

TEST_F(GuiWatchdogTest, NamesWhatANamelessReceiverBelongsTo)
{
    QObject owner;
    owner.setObjectName(QStringLiteral("owner"));
    m_worker.setParent(&owner);
    m_application.watch(true);
    send(kWork);
    m_worker.setParent(nullptr);
    ASSERT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_EQ(m_application.slowEvents()[0].receiver, QStringLiteral("QObject of QObject owner"));
}

TEST_F(GuiWatchdogTest, CountsTimeOnceAtTheInnermostReceiver)
{
    m_application.watch(true);
    send(kOuter);
    ASSERT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_EQ(m_application.slowEvents()[0].type, kWork);
    EXPECT_EQ(m_application.events(), 2);
}

TEST_F(GuiWatchdogTest, DoesNotCountWhatAMachineDoesMeanwhile)
{
    m_application.watch(true);
    send(kWait);
    EXPECT_TRUE(m_application.slowEvents().empty());
}

TEST_F(GuiWatchdogTest, LeavesPaintingToItsOwnBudget)
{
    m_application.watch(true);
    send(QEvent::Paint);
    EXPECT_TRUE(m_application.slowEvents().empty());
    EXPECT_TRUE(m_application.slowFrames().empty());
    send(QEvent::UpdateRequest);
    EXPECT_TRUE(m_application.slowEvents().empty());
    ASSERT_EQ(m_application.slowFrames().size(), 1U); // the frame, not each paint of it
    EXPECT_EQ(m_application.slowFrames()[0].type, QEvent::UpdateRequest);
    EXPECT_EQ(m_application.frames(), 2);
}

TEST_F(GuiWatchdogTest, AllowsSlowBuildsMore)
{
    m_application.watch(true);
    m_application.setAllowance(3);
    send(kWork);
    EXPECT_TRUE(m_application.slowEvents().empty());
    send(kLongWork);
    EXPECT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_GE(GuiWatchdog::buildFactor(), 1);
}

TEST_F(GuiWatchdogTest, EndsTheProgramWhereThatIsAskedFor)
{
    m_application.watch(true, WatchdogReply::Assert);
    EXPECT_DEATH(send(kWork), "QObject kept the GUI thread for .* ms on .*; it may take 5.0 ms");
}

} // namespace
} // namespace planloom
