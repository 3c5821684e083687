#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTableView>

#include "tests/qt_test.h"
#include "tests/widgets/compare/planned.h"
#include "widgets/compare/pareto_view.h"
#include "widgets/compare/plan_book.h"
#include "widgets/compare/plans_model.h"
#include "widgets/compare/plans_panel.h"
#include "widgets/design/workspace.h"
#include "widgets/scene/plan_thumbnail.h"

#include <memory>

using namespace planloom;

namespace {

constexpr const char *kTwoLayers = "zoo:mlp?layers=2&hidden=32&batch=8";

QString text(const QAbstractItemModel &model, int row, int column)
{
    return model.index(row, column).data().toString();
}

} // namespace

class PlansPanelTest : public QObject
{
    Q_OBJECT

    std::unique_ptr<Workspace> m_workspace;
    std::unique_ptr<CompareChoice> m_choice;
    std::unique_ptr<PlansPanel> m_panel;

    void edit(const char *rows)
    {
        m_workspace->setTableText(rows);
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(*m_workspace), kLong);
    }

    QAction *action(const char *name) const { return m_panel->findChild<QAction *>(QLatin1String(name)); }

    void selectRow(int row)
    {
        m_panel->list()->setCurrentIndex(m_panel->model()->index(row, PlansModel::Name));
    }

private Q_SLOTS:
    void init()
    {
        m_workspace = std::make_unique<Workspace>();
        m_choice = std::make_unique<CompareChoice>();
        m_workspace->openWith({kTwoLayers, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(*m_workspace), kLong);
        m_panel = std::make_unique<PlansPanel>(m_workspace.get(), m_choice.get());
        m_panel->resize(1100, 320);
        m_panel->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_panel.get()));
    }

    void cleanup()
    {
        m_panel.reset();
        m_choice.reset();
        m_workspace.reset();
    }

    void theChoiceKeepsAtMostSixAndChangesPlaces()
    {
        CompareChoice choice;
        QSignalSpy changed(&choice, &CompareChoice::changed);
        QCOMPARE(choice.plans(), (std::vector<StepId>{0, kCurrentPlan}));
        choice.setA(5);
        QCOMPARE(choice.plans(), (std::vector<StepId>{5, kCurrentPlan}));
        choice.setB(5);
        QCOMPARE(choice.plans(), (std::vector<StepId>{kCurrentPlan, 5}));
        choice.swap();
        QCOMPARE(choice.a(), StepId{5});
        QCOMPARE(choice.b(), kCurrentPlan);
        for (const StepId step : {1, 2, 3, 4})
            QVERIFY(choice.setChosen(step, true));
        QVERIFY(!choice.setChosen(9, true));
        QCOMPARE(choice.indexOf(4), 5);
        for (const StepId step : {1, 2, 3, 4, 5})
            QVERIFY(choice.setChosen(step, false));
        QVERIFY(!choice.isPair());
        choice.setB(kCurrentPlan);
        QCOMPARE(choice.plans(), (std::vector<StepId>{0, kCurrentPlan}));
        QVERIFY(choice.setChosen(0, false));
        QVERIFY(choice.setChosen(kCurrentPlan, false));
        choice.setB(3);
        QCOMPARE(choice.plans(), (std::vector<StepId>{kCurrentPlan, 3}));
        QVERIFY(changed.count() > 10);
    }

    void plansAreListedWithTheirFigures()
    {
        QAbstractItemModelTester tester(
            m_panel->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        edit("mesh dp=2\nsplit all : batch over dp\n");
        m_workspace->nameCheckpoint(QStringLiteral("data-parallel"));
        edit("mesh dp=2\n");
        PlansModel &model = *m_panel->model();
        QCOMPARE(model.rowCount(), 3); // current, beginning, data-parallel
        QCOMPARE(text(model, 0, PlansModel::Name), QStringLiteral("Current"));
        QCOMPARE(text(model, 1, PlansModel::Name), QStringLiteral("Beginning"));
        QCOMPARE(text(model, 2, PlansModel::Name), QStringLiteral("data-parallel"));
        for (int row = 0; row < 3; ++row) {
            QTRY_VERIFY_WITH_TIMEOUT(text(model, row, PlansModel::Bubble).endsWith(QLatin1Char('%')), kLong);
            QTRY_VERIFY_WITH_TIMEOUT(
                !model.index(row, PlansModel::Picture).data(Qt::DecorationRole).value<QImage>().isNull(),
                kLong);
            QVERIFY(text(model, row, PlansModel::StepTime).endsWith(QLatin1Char('s')));
            QCOMPARE(text(model, row, PlansModel::Run), QStringLiteral("not run"));
        }
        QCOMPARE(text(model, 2, PlansModel::Rows), QStringLiteral("2"));
        QCOMPARE(text(model, 0, PlansModel::Rows), QStringLiteral("1"));
        SessionRun run;
        run.step = m_workspace->history().names().at("data-parallel");
        run.state = "done";
        m_workspace->addRun(run);
        QCOMPARE(text(model, 2, PlansModel::Run), QStringLiteral("done"));

        m_workspace->goTo(run.step);
        m_workspace->addBranch(QStringLiteral("other"));
        edit("mesh tp=2\n");
        QCOMPARE(model.rowCount(), 5); // and the ends of both branches
        QVERIFY(text(model, 3, PlansModel::Name).contains(QStringLiteral("main")));
        QVERIFY(text(model, 4, PlansModel::Name).contains(QStringLiteral("other")));
    }

    void plansAreNamedRenamedAndTakenOff()
    {
        QVERIFY(!action("plans.name")->isEnabled()); // the beginning is called that
        edit("mesh dp=2\n");
        QTRY_VERIFY(action("plans.name")->isEnabled());
        const auto type = [this](const char *name) {
            auto *editor = m_panel->list()->findChild<QLineEdit *>();
            QVERIFY(editor);
            editor->selectAll();
            QTest::keyClicks(editor, QLatin1String(name));
            QTest::keyClick(editor, Qt::Key_Return);
            QTRY_VERIFY(!m_panel->list()->findChild<QLineEdit *>()); // taken over, a turn of the loop later
        };
        action("plans.name")->trigger();
        type("first");
        QTRY_COMPARE(m_workspace->history().names().count("first"), std::size_t{1});
        edit("mesh dp=1\n");
        action("plans.name")->trigger();
        type("first"); // taken
        QVERIFY(m_panel->remark().contains(QStringLiteral("first")));
        QCOMPARE(m_workspace->history().names().at("first"), m_workspace->history().current() - 1);
        selectRow(m_panel->model()->rowOf(m_workspace->history().names().at("first")));
        QTRY_VERIFY(action("plans.rename")->isEnabled());
        action("plans.rename")->trigger();
        type("second");
        QTRY_COMPARE(m_workspace->history().names().count("second"), std::size_t{1});
        QCOMPARE(m_workspace->history().names().size(), std::size_t{1});
        selectRow(m_panel->model()->rowOf(m_workspace->history().names().at("second")));
        action("plans.goTo")->trigger();
        QCOMPARE(m_workspace->history().current(), m_workspace->history().names().at("second"));
        action("plans.removeName")->trigger();
        QVERIFY(m_workspace->history().names().empty());
    }

    void plansAreChosenByCheckAndByKey()
    {
        edit("mesh dp=2\nsplit all : batch over dp\n");
        m_workspace->nameCheckpoint(QStringLiteral("dp"));
        const StepId named = m_workspace->history().current();
        edit("mesh dp=2\n");
        PlansModel &model = *m_panel->model();
        const int row = model.rowOf(named);
        QCOMPARE(text(model, 0, PlansModel::Chosen), QStringLiteral("B"));
        QCOMPARE(text(model, 1, PlansModel::Chosen), QStringLiteral("A"));
        selectRow(row);
        action("plans.setA")->trigger();
        QCOMPARE(m_choice->plans(), (std::vector<StepId>{named, kCurrentPlan}));
        QVERIFY(model.setData(model.index(1, PlansModel::Chosen), Qt::Checked, Qt::CheckStateRole));
        QCOMPARE(text(model, 1, PlansModel::Chosen), QStringLiteral("C"));
        action("plans.swap")->trigger();
        QCOMPARE(text(model, row, PlansModel::Chosen), QStringLiteral("B"));
        QSignalSpy compare(m_panel.get(), &PlansPanel::compareRequested);
        action("plans.compareWithPrevious")->trigger();
        QCOMPARE(compare.count(), 1);
        QCOMPARE(m_choice->plans(), (std::vector<StepId>{named, kCurrentPlan}));
        QCOMPARE(
            action("plans.compareWithPrevious")->shortcut(), QKeySequence(QStringLiteral("Ctrl+Shift+D")));
        // Space on the check box of the first column
        m_panel->list()->setFocus();
        m_panel->list()->setCurrentIndex(model.index(row, PlansModel::Chosen));
        QTest::keyClick(m_panel->list(), Qt::Key_Space);
        QCOMPARE(m_choice->plans(), (std::vector<StepId>{kCurrentPlan}));
        QTRY_VERIFY(!action("plans.compare")->isEnabled());
    }

    void theScatterOpensPlans()
    {
        edit("mesh dp=2\nsplit all : batch over dp\n");
        m_workspace->nameCheckpoint(QStringLiteral("dp"));
        const StepId named = m_workspace->history().current();
        edit("mesh dp=1\n");
        ParetoView *scatter = m_panel->scatter();
        QTRY_COMPARE_WITH_TIMEOUT(
            scatter->points().size(), std::size_t{2}, kLong); // the last equals the beginning
        QVERIFY(!scatter->front().empty());
        std::size_t point = 0;
        while (scatter->points()[point].step != named)
            ++point;
        QCOMPARE(scatter->points()[point].label, QStringLiteral("dp"));
        QTest::mouseClick(scatter, Qt::LeftButton, {}, scatter->positionOf(point).toPoint());
        QCOMPARE(workspaceStep(), named);
        m_workspace->goTo(named + 1);
        scatter->setFocus();
        QTest::keyClick(scatter, Qt::Key_Home);
        if (scatter->points()[0].step != named)
            QTest::keyClick(scatter, Qt::Key_Right);
        QVERIFY(scatter->accessibleDescription().contains(QStringLiteral("dp")));
        QTest::keyClick(scatter, Qt::Key_Return);
        QCOMPARE(workspaceStep(), named);
    }

    void toolTipsSayWhatThePlanIs()
    {
        edit("mesh dp=2\nsplit all : batch over dp\nzero1 weight:* over dp\n");
        const QModelIndex now = m_panel->model()->index(0, PlansModel::StepTime);
        QTRY_VERIFY_WITH_TIMEOUT(
            now.data(Qt::ToolTipRole).toString().startsWith(QLatin1String("data parallel 2, ZeRO-1 on 2\n")),
            kLong);
        edit("mesh dp=1\n");
        QTRY_VERIFY_WITH_TIMEOUT(
            !now.data(Qt::ToolTipRole).toString().contains(QLatin1String("ZeRO")), kLong);
    }

    void aPlanThatCannotHoldSaysWhy()
    {
        m_workspace->setTableText("split all : nonsense by 2\nplace all : devices 99\n");
        QTRY_VERIFY_WITH_TIMEOUT(
            !m_workspace->isPlanning() && m_workspace->latest()->errorCount() > 0, kLong);
        PlansModel &model = *m_panel->model();
        QTRY_COMPARE_WITH_TIMEOUT(text(model, 0, PlansModel::StepTime), QStringLiteral("no plan"), kLong);
        QVERIFY(!model.index(0, PlansModel::StepTime).data(Qt::ToolTipRole).toString().isEmpty());
    }

    void everyActionHasNameAndText()
    {
        QVERIFY(m_panel->actions().size() >= 9);
        for (const QAction *each : m_panel->actions()) {
            QVERIFY(!each->objectName().isEmpty());
            QVERIFY(!each->text().isEmpty());
        }
        QVERIFY(!m_panel->list()->accessibleName().isEmpty());
        QVERIFY(!m_panel->scatter()->accessibleName().isEmpty());
    }

    void picturesHaveInkWhereDevicesAreBusy()
    {
        const QImage image = thumbnailOf(*m_workspace->lastGood()->scene, lightPalette(), {120, 20});
        QCOMPARE(image.size(), QSize(120, 20));
        std::set<QRgb> colours;
        for (int x = 0; x < image.width(); ++x)
            colours.insert(image.pixel(x, 4));
        QVERIFY(colours.size() >= 2);
    }

private:
    StepId workspaceStep() const { return m_workspace->history().current(); }
};

PLANLOOM_QTEST(PlansPanelTest)
#include "plans_panel_test.moc"
