#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLabel>

#include "tests/qt_test.h"
#include "widgets/accuracy/accuracy_dialog.h"
#include "widgets/accuracy/scatter_chart.h"
#include "widgets/frame/application_style.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/sweep/sweep_chart.h"
#include "widgets/sweep/sweep_panel.h"

#include <algorithm>

using namespace planloom;

/// What the window says of a plan beyond the plan: what is assumed, and what others would come to.
class ReadingTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_window = std::make_unique<MainWindow>();
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
        m_window->workspace().openWith(
            {"zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=100&batch=8", {}, {}}, "dgx-a100", 4,
            "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(), 20'000);
    }

    void cleanup() { m_window.reset(); }

    /// What the inspector says can be changed there, and is a step like others.
    void theQueuesAreSaidAndSwitched()
    {
        auto *inspector = m_window->findChild<InspectorPanel *>();
        QVERIFY(inspector);
        QTRY_VERIFY(inspector->toPlainText().contains(QStringLiteral("Simulated With")));
        QVERIFY(inspector->toPlainText().contains(QStringLiteral("wait for each other")));
        const double own = good()->summary.stepSeconds;
        QAction *one = m_window->commands().find(QStringLiteral("plan.oneQueue"));
        QVERIFY(one && one->isEnabled() && !one->isChecked());
        Q_EMIT inspector->anchorClicked(QUrl(QStringLiteral("queues:one")));
        QTRY_VERIFY_WITH_TIMEOUT(
            isPlanned() && good()->cluster.communicationQueues == CommunicationQueues::One, 20'000);
        QVERIFY(good()->summary.stepSeconds >= 0.98 * own); // another order may be a little luckier
        QTRY_VERIFY(one->isChecked());
        QTRY_VERIFY(inspector->toPlainText().contains(QStringLiteral("one for all communication")));
        one->trigger(); // and back, to the profile itself
        QTRY_VERIFY_WITH_TIMEOUT(
            isPlanned() && good()->cluster.communicationQueues == CommunicationQueues::Own, 20'000);
        QCOMPARE(m_window->workspace().cluster(), std::string("dgx-a100"));
        QVERIFY(m_window->workspace().clusterJson().empty());
        QCOMPARE(good()->summary.stepSeconds, own);
        m_window->workspace().undo();
        m_window->workspace().undo();
        QTRY_VERIFY_WITH_TIMEOUT(
            isPlanned() && good()->cluster.communicationQueues == CommunicationQueues::Own, 20'000);
    }

    /// Each point is what its plan comes to, and opens as one step.
    void otherNumbersAreWorkedOutAndOpened()
    {
        auto *panel = m_window->findChild<SweepPanel *>();
        QVERIFY(panel);
        m_window->commands().find(QStringLiteral("view.whatif"))->trigger();
        QTRY_VERIFY(panel->isVisible());
        const SweepChart &chart = panel->microBatches();
        QTRY_COMPARE_WITH_TIMEOUT(chart.choices().size(), std::size_t{4}, 20'000);
        QTRY_VERIFY_WITH_TIMEOUT(!panel->isWorking(), 20'000);
        std::size_t two = 0;
        for (std::size_t i = 0; i < chart.choices().size(); ++i) {
            QVERIFY(chart.pointOf(i));
            if (chart.choices()[i].now)
                QCOMPARE(chart.pointOf(i)->stepSeconds, good()->summary.stepSeconds);
            if (chart.choices()[i].value == 2)
                two = i;
        }
        const double expected = chart.pointOf(two)->stepSeconds;
        const std::string before = m_window->workspace().tableText();
        const_cast<SweepChart &>(chart).grab(); // it paints
        QTest::mouseClick(
            const_cast<SweepChart *>(&chart), Qt::LeftButton, {}, chart.columnRect(two).center().toPoint());
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned() && good()->plan->microBatches == 2, 20'000);
        QCOMPARE(good()->summary.stepSeconds, expected);
        m_window->workspace().undo(); // one step
        QCOMPARE(m_window->workspace().tableText(), before);
    }

    /// How good a predicted step is stands beside it, and in the help.
    void measuredRunsAreShownBesideTheirPredictions()
    {
        const auto labels = m_window->findChildren<QLabel *>();
        const auto link = std::find_if(labels.begin(), labels.end(),
            [](const QLabel *label) { return label->text().contains(QStringLiteral("how good?")); });
        QVERIFY(link != labels.end());
        QVERIFY((*link)->text().contains(QStringLiteral("step ")));
        Q_EMIT(*link)->linkActivated(QStringLiteral("#"));
        auto *dialog = m_window->findChild<AccuracyDialog *>();
        QVERIFY(dialog && dialog->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(!dialog->isReading() && dialog->model().groupCount() >= 2, 20'000);
        QVERIFY(!dialog->chart()->points().empty());
        m_window->commands().find(QStringLiteral("help.accuracy"))->trigger();
        QCOMPARE(m_window->findChildren<AccuracyDialog *>().size(), 1);
    }

private:
    PlanUpdateSnapshot good() const { return m_window->workspace().lastGood(); }
    bool isPlanned() const
    {
        Workspace &workspace = m_window->workspace();
        return good() && good()->scene && !workspace.isPlanning() && !workspace.isStale();
    }

    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(ReadingTest)
#include "reading_test.moc"
