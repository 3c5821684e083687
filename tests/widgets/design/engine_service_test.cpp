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
};

PLANLOOM_QTEST(EngineServiceTest)
#include "engine_service_test.moc"
