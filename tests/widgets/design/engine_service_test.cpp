#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/design/engine_service.h"

using namespace planloom;

class EngineServiceTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    /// Answers are held back so that bursts don't drown the views, but nobody waits for a timeline that is
    /// there.
    void theFirstTimelineIsNotHeldBack()
    {
        constexpr int kNever = 600'000; // ms between two answers
        const auto model =
            openModel({"zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=33&batch=8", {}, {}}, {});
        QVERIFY(model);
        EngineService service(nullptr, kNever);
        QSignalSpy updates(&service, &EngineService::planUpdated);
        PlanRequest request;
        request.model = *model;
        request.gallery = "data-parallel";
        request.target = {"dgx-h100:2", {}, 2};
        request.upTo = PlanGrade::Simulated;
        const std::uint64_t revision = service.plan(request);
        const auto drawn = [&] {
            return !updates.isEmpty() && updates.back().front().value<PlanUpdateSnapshot>()->scene;
        };
        QTRY_VERIFY_WITH_TIMEOUT(drawn(), 30'000);
        QCOMPARE(updates.back().front().value<PlanUpdateSnapshot>()->revision, revision);
        QVERIFY(updates.size() <= 2);
    }

    /// A drop shows the rows as they are, and then what the solver makes of them; soon another one follows.
    void aFewTimelinesOneAfterAnotherAreNotHeldBackEither()
    {
        constexpr int kNever = 600'000; // ms between two answers
        const auto model =
            openModel({"zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=33&batch=8", {}, {}}, {});
        QVERIFY(model);
        EngineService service(nullptr, kNever);
        QSignalSpy updates(&service, &EngineService::planUpdated);
        PlanRequest request;
        request.model = *model;
        request.target = {"dgx-h100:2", {}, 2};
        request.upTo = PlanGrade::Simulated;
        for (int i = 0; i < EngineService::kMostAtOnce; ++i) {
            request.table = TableDocument("micro-batches " + std::to_string(1 << i % 2) + "\n");
            const std::uint64_t revision = service.plan(request);
            const auto drawn = [&] {
                const auto last =
                    updates.isEmpty() ? nullptr : updates.back().front().value<PlanUpdateSnapshot>();
                return last && last->scene && last->revision == revision;
            };
            QTRY_VERIFY_WITH_TIMEOUT(drawn(), 30'000);
        }
    }
};

PLANLOOM_QTEST(EngineServiceTest)
#include "engine_service_test.moc"
