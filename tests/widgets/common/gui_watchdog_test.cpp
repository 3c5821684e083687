#include "widgets/common/gui_watchdog.h"

#include <QtCore/QThread>

#include <gtest/gtest.h>

#include <chrono>

namespace planloom {
namespace {

const auto kWork = static_cast<QEvent::Type>(QEvent::User + 1);
const auto kOuter = static_cast<QEvent::Type>(QEvent::User + 2);

/// Works for a while on one event, and delivers that one within another.
class Worker : public QObject
{
public:
    bool event(QEvent *event) override
    {
        if (event->type() == kWork) {
            const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(12);
            while (std::chrono::steady_clock::now() < until)
                ;
            return true;
        }
        if (event->type() == kOuter || event->type() == QEvent::Paint) {
            QEvent inner(kWork);
            if (event->type() == kOuter)
                QCoreApplication::sendEvent(this, &inner);
            else
                static_cast<void>(this->event(&inner));
            return true;
        }
        return QObject::event(event);
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
    GuiWatchdog m_application {m_count, m_arguments};
    Worker m_worker;
};

TEST_F(GuiWatchdogTest, NamesWhoKeptTheThread)
{
    send(kWork);
    EXPECT_TRUE(m_application.slowEvents().empty()); // not asked to watch
    m_application.watch(true);
    send(kWork);
    ASSERT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_EQ(m_application.slowEvents()[0].receiver, QStringLiteral("QObject"));
    EXPECT_EQ(m_application.slowEvents()[0].type, kWork);
    EXPECT_GE(m_application.slowEvents()[0].microseconds, 11'000);
    m_application.clear();
    EXPECT_TRUE(m_application.slowEvents().empty());
}

TEST_F(GuiWatchdogTest, CountsTimeOnceAtTheInnermostReceiver)
{
    m_application.watch(true);
    send(kOuter);
    ASSERT_EQ(m_application.slowEvents().size(), 1U);
    EXPECT_EQ(m_application.slowEvents()[0].type, kWork);
}

TEST_F(GuiWatchdogTest, LeavesPaintingToItsOwnBudget)
{
    m_application.watch(true);
    send(QEvent::Paint);
    EXPECT_TRUE(m_application.slowEvents().empty());
}

} // namespace
} // namespace planloom
