#include "widgets/common/latest_job.h"

#include "tests/qt_test.h"

#include <atomic>
#include <thread>
#include <vector>

using namespace planloom;

class LatestJobTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    /// What waits is replaced, what runs is stopped, and the newest is taken.
    void theNewestIsTaken()
    {
        std::vector<int> taken;
        LatestJob<int> job([&taken](const int &value) { taken.push_back(value); });
        std::atomic<bool> wasStopped = false;
        std::atomic<bool> begun = false;
        job.ask([&](const std::stop_token &stop) {
            begun = true;
            while (!stop.stop_requested())
                std::this_thread::yield();
            wasStopped = true;
            return 1;
        });
        QTRY_VERIFY(begun);
        std::atomic<bool> second = false;
        job.ask([&second](const std::stop_token &) {
            second = true;
            return 2;
        });
        job.ask([](const std::stop_token &) { return 3; });
        QVERIFY(job.isBusy());
        QTRY_COMPARE(taken, std::vector<int>{3});
        QVERIFY(wasStopped);
        QVERIFY(!second);
        QVERIFY(!job.isBusy());
    }

    void nothingIsTakenOnceCancelled()
    {
        int taken = 0;
        LatestJob<int> job([&taken](const int &value) { taken += value; });
        std::atomic<bool> done = false;
        job.ask([&done](const std::stop_token &) {
            done = true;
            return 1;
        });
        job.cancel();
        QVERIFY(!job.isBusy());
        QTRY_VERIFY(done);
        QTest::qWait(20);
        QCOMPARE(taken, 0);
        job.ask([](const std::stop_token &) { return 4; });
        QTRY_COMPARE(taken, 4);
    }

    void itsEndWaitsForNobody()
    {
        std::atomic<bool> ended = false;
        int taken = 0;
        {
            LatestJob<int> job([&taken](const int &) { ++taken; });
            job.ask([&ended](const std::stop_token &stop) {
                while (!stop.stop_requested())
                    std::this_thread::yield();
                ended = true;
                return 1;
            });
        }
        QTRY_VERIFY(ended);
        QTest::qWait(20);
        QCOMPARE(taken, 0);
    }
};

PLANLOOM_QTEST(LatestJobTest)
#include "latest_job_test.moc"
