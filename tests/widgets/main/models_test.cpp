#include <QtCore/QObject>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTreeView>

#include "tests/qt_test.h"
#include "widgets/main/inspector_text.h"
#include "widgets/main/outline_model.h"
#include "widgets/main/outline_panel.h"
#include "widgets/problems/problems_panel.h"

using namespace planloom;

namespace {

ModelSnapshot modelOf(const char *spec)
{
    auto model = openModel({spec, {}, {}}, {});
    if (!model)
        qFatal("%s", describe(model.error()).c_str());
    return *model;
}

PlanUpdateSnapshot planOf(const ModelSnapshot &model, const std::string &text)
{
    PlanRequest request;
    request.model = model;
    request.table = TableDocument(text);
    request.target = {"dgx-a100", {}, 2};
    PlanUpdateSnapshot last;
    makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    return last;
}

constexpr const char *kGpt = "zoo:gpt?layers=3&hidden=32&heads=2&seq=8&vocab=64&batch=4";

} // namespace

class ModelsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theOutlineIsAProperModel()
    {
        OutlineModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 0);
        const ModelSnapshot gpt = modelOf(kGpt);
        model.setTree(makeOutlineTree(gpt->graph));
        QVERIFY(model.rowCount() > 3);
        model.setTree(makeOutlineTree(modelOf("zoo:mlp?layers=2&hidden=8&batch=2")->graph, "linear"));
        model.setTree(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void theOutlineHoldsEveryForwardOperatorOnce()
    {
        OutlineModel model;
        const ModelSnapshot gpt = modelOf(kGpt);
        model.setTree(makeOutlineTree(gpt->graph));
        std::vector<OperatorId> all;
        for (int row = 0; row < model.rowCount(); ++row) {
            const auto in = model.operatorsIn(model.index(row, 0));
            all.insert(all.end(), in.begin(), in.end());
        }
        std::sort(all.begin(), all.end());
        QCOMPARE(all.size(), static_cast<std::size_t>(gpt->forwardOperators));
        QVERIFY(std::adjacent_find(all.begin(), all.end()) == all.end());
        for (const OperatorId op : all)
            QCOMPARE(model.operatorAt(model.indexOf(op)), op);
        // A backward operator is found at its forward one.
        const OperatorId backward = gpt->graph->at(all.back()).mirror;
        if (backward.valid())
            QCOMPARE(model.operatorAt(model.indexOf(backward)), all.back());
    }

    void aModuleFoundShowsAllThatLiesInIt()
    {
        const ModelSnapshot gpt = modelOf(kGpt);
        const auto all = makeOutlineTree(gpt->graph);
        const auto some = makeOutlineTree(gpt->graph, "H.0");
        QVERIFY(some->nodes.front().operators > 0);
        QVERIFY(some->nodes.front().operators < all->nodes.front().operators);
        for (std::size_t i = 0; i < gpt->graph->operators.size(); ++i) {
            const Operator &op = gpt->graph->operators[i];
            if (some->nodeOfOperator[i] >= 0)
                QVERIFY(op.name.find("h.0") != std::string::npos);
        }
        QCOMPARE(makeOutlineTree(gpt->graph, "no such thing")->nodes.size(), std::size_t{1});
        std::stop_source stop;
        stop.request_stop();
        QVERIFY(!makeOutlineTree(gpt->graph, {}, stop.get_token()));
    }

    void findingFiltersTheOutline()
    {
        SelectionModel selection;
        OutlinePanel panel(&selection);
        panel.setGraph(modelOf(kGpt)->graph);
        panel.resize(300, 400);
        QTRY_VERIFY(panel.isSettled());
        const int before = panel.tree()->model()->rowCount();
        QTest::keyClicks(panel.findLine(), "LN_f");
        QTRY_VERIFY(panel.isSettled());
        QVERIFY(panel.tree()->model()->rowCount() < before);
        QVERIFY(panel.tree()->model()->rowCount() > 0);
        panel.findLine()->clear();
        QTRY_VERIFY(panel.isSettled());
        QCOMPARE(panel.tree()->model()->rowCount(), before);
    }

    void selectingInTheOutlineSelectsEverywhereAndBack()
    {
        SelectionModel selection;
        OutlinePanel panel(&selection);
        panel.setGraph(modelOf(kGpt)->graph);
        QTRY_VERIFY(panel.isSettled());
        panel.tree()->setCurrentIndex(panel.tree()->model()->index(0, 0));
        QVERIFY(!selection.selected().empty());
        selection.select({OperatorId{1}});
        QCOMPARE(panel.tree()->selectionModel()->selectedRows().size(), 1);
        selection.clear();
        QVERIFY(panel.tree()->selectionModel()->selectedRows().isEmpty());
    }

    void problemsAreAProperModelAndLeadToTheirLine()
    {
        ProblemsModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const auto update = planOf(modelOf(kGpt), "mesh dp=2\nnonsense\nsplit all : batch over tp\n");
        model.setProblems(problemsOf(*update));
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.problems()[0].line, 1);
        QCOMPARE(model.problems()[1].line, 2);
        QVERIFY(!model.index(0, ProblemsModel::What).data().toString().isEmpty());
        QVERIFY(problemsOf(*planOf(modelOf(kGpt), "mesh dp=2\n")).empty());
    }

    void aConflictIsOneProblemWithAButtonAndAnEffectForEachWayOut()
    {
        ProblemsPanel panel;
        QSignalSpy chosen(&panel, &ProblemsPanel::wayOutChosen);
        PlanUpdate update = *planOf(modelOf(kGpt), "place all : devices 0\nplace all : devices 1\n");
        QVERIFY(!update.conflicts.empty());
        RowConflict conflict = update.conflicts.front();
        conflict.waysOut = {{.words = "make row 1: place all : devices 1",
                                .edit = replaceLine(update.table, 0, "place all : devices 1"),
                                .holds = true,
                                .stepSeconds = 0.0412,
                                .peak = {3 << 20}},
            {.words = "switch row 2 off",
                .edit = setEnabled(update.table, {1}, false),
                .left = "rows 3 and 4 still can't hold together"}};
        update.conflicts = {conflict};
        panel.setUpdate(std::make_shared<const PlanUpdate>(update));
        QCOMPARE(panel.count(), 1);
        QVERIFY(panel.model()->problems().front().error.message.find("ows 1 and 2") != std::string::npos);
        const auto buttons = panel.findChildren<QPushButton *>();
        QCOMPARE(buttons.size(), 2);
        QStringList texts;
        for (const QLabel *label : panel.findChildren<QLabel *>())
            texts << label->text();
        QVERIFY(texts.contains(QStringLiteral("step 41.2 ms, peak 3.00 MiB")));
        QVERIFY(texts.contains(QStringLiteral("rows 3 and 4 still can't hold together")));
        panel.setUpdate(std::make_shared<const PlanUpdate>(update)); // the same again: nothing moves
        QCOMPARE(panel.findChildren<QPushButton *>(), buttons);
        buttons.front()->click();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.front()[1].value<TableEdit>(), conflict.waysOut.front().edit);
    }

    /// Weights that a gallery's plan could not cut are told of once an axis; those of a person's rows are
    /// not.
    void whatTheGalleryLeavesWholeIsSaid()
    {
        const ModelSnapshot odd = modelOf("zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=33&batch=8");
        const std::string rows = "mesh tp=2\nsplit name:h.*.attn.c_attn : out0.-1 over tp\n"
                                 "split name:h.*.mlp.c_fc : out0.-1 over tp";
        const auto problems = problemsOf(*planOf(odd, rows + "  @template\n"));
        QCOMPARE(problems.size(), std::size_t{1});
        const ProblemsModel::Problem &problem = problems.front();
        QVERIFY2(problem.error.message.starts_with("not cut: "), problem.error.message.c_str());
        QVERIFY2(
            problem.error.message.find("lm_head over tp (4.12 KiB): 2 does not divide n=33 (34 would do)")
                != std::string::npos,
            problem.error.message.c_str());
        QCOMPARE(problem.operators.size(), std::size_t{2}); // wte and lm_head
        QVERIFY(problemsOf(*planOf(odd, rows + "\n")).empty());
    }

    void aProblemLeadsToItsOwnRowHoweverManyThereAre()
    {
        PlanUpdate update;
        for (std::int32_t row = 0; row < 13; ++row)
            update.rows.push_back({RowId{row}, 2 * row, {}, {}, {}});
        update.error = Error{ErrorCode::InvalidInput, "no", {}, "row:12/rule"};
        QCOMPARE(problemsOf(update).size(), std::size_t{1});
        QCOMPARE(problemsOf(update).front().line, 24);
        update.error->where = "row:1";
        QCOMPARE(problemsOf(update).front().line, 2);
        update.error->where = "row:13";
        QCOMPARE(problemsOf(update).front().line, -1);
    }

    void theInspectorExplainsOneOperatorSeveralAndTheModel()
    {
        const ModelSnapshot gpt = modelOf(kGpt);
        const auto update = planOf(gpt, "mesh tp=2\nsplit name:h.0.mlp.* : out0.-1 over tp\n");
        QVERIFY2(update->plan != nullptr, update->error ? update->error->message.c_str() : "rows in error");
        OperatorId split;
        for (std::size_t i = 0; i < gpt->graph->operators.size(); ++i) {
            if (update->plan->decisions[i].rows == std::vector<RowId>{RowId{1}}) {
                split = OperatorId{static_cast<std::int32_t>(i)};
                break;
            }
        }
        QVERIFY(split.valid());
        const QString one = inspectorText(lightPalette(), *gpt, update.get(), {split});
        QVERIFY(one.contains(QString::fromStdString(nameOf(gpt->graph->at(split).kind))));
        QVERIFY(one.contains(QStringLiteral("row 2")));
        QVERIFY(one.contains(QStringLiteral("GPU 0-1")));
        QVERIFY(one.contains(QStringLiteral("sequence")));
        QVERIFY(one.contains(QStringLiteral("feed-forward")));
        QVERIFY(one.contains(QStringLiteral("Where the time comes from")));
        QVERIFY(one.contains(
            QString::fromStdString(update->cluster.device.memoryBandwidth.source).toHtmlEscaped()));
        const QString two = inspectorText(lightPalette(), *gpt, update.get(), {split, OperatorId{0}});
        QVERIFY(two.contains(QStringLiteral("2 operators")));
        const QString none = inspectorText(darkPalette(), *gpt, nullptr, {});
        QVERIFY(none.contains(QStringLiteral("gpt")));
        // Ids of another model are passed by.
        QVERIFY(!inspectorText(lightPalette(), *gpt, nullptr, {OperatorId{1 << 20}}).isEmpty());
    }
};

PLANLOOM_QTEST(ModelsTest)
#include "models_test.moc"
