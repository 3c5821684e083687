#include <QtCore/QObject>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QPushButton>

#include "engine/frontend/zoo/graph_builder.h"
#include "sessions/model_values.h"
#include "tests/qt_test.h"
#include "widgets/main/stored_tensors_dialog.h"
#include "widgets/main/stored_tensors_model.h"

using namespace planloom;

namespace {

/// A folded weight that the file calls "val_1", a mask and a list of integers, as an importer leaves them.
Graph storedGraph()
{
    GraphBuilder builder;
    const TensorId x = builder.input("x", {DataType::Float32, {2, 4}});
    const TensorId weight = builder.weight("q.weight", {4, 4});
    const TensorId mask = builder.buffer("mask", {2, 4});
    const TensorId list = builder.constant("list", integerData({2}, {0, 1}));
    const TensorId product = builder.one(OperatorKind::MatMul, {x, weight});
    const TensorId sum = builder.one(OperatorKind::Add, {product, mask});
    const TensorId taken = builder.one(OperatorKind::Gather, {sum, list}, attributesOf({{"axis", 0}}));
    auto graph = builder.finish({taken});
    if (!graph)
        qFatal("%s", describe(graph.error()).c_str());
    const auto classify = [&](TensorId id, StoredAs as, const char *why) {
        graph->at(id).classification =
            std::make_shared<const Classification>(Classification{.as = as, .why = why});
    };
    classify(weight, StoredAs::Parameter, "the exporter folded it");
    graph->at(weight).filePart = FilePart{.name = "val_1", .shape = {4, 4}};
    classify(mask, StoredAs::Constant, "it has the shape of a mask");
    classify(list, StoredAs::Constant, "it holds no floating numbers");
    return *std::move(graph);
}

QString shown(const StoredTensorsModel &model, int row, int column)
{
    return model.data(model.index(row, column), Qt::DisplayRole).toString();
}

} // namespace

class StoredTensorsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theListSaysWhatWasTakenAsWhatAndWhy()
    {
        StoredTensorsModel model(storedGraph(), {});
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(shown(model, 0, StoredTensorsModel::Name), QStringLiteral("q.weight"));
        QVERIFY(model.data(model.index(0, StoredTensorsModel::Name), Qt::ToolTipRole)
                    .toString()
                    .contains(QStringLiteral("val_1")));
        QCOMPARE(shown(model, 0, StoredTensorsModel::TakenAs), QStringLiteral("Parameter"));
        QCOMPARE(shown(model, 1, StoredTensorsModel::TakenAs), QStringLiteral("Constant"));
        QCOMPARE(shown(model, 1, StoredTensorsModel::Why), QStringLiteral("it has the shape of a mask"));
    }

    void aChoiceIsKeptByTheFilesNameAndCanBeTakenBack()
    {
        StoredTensorsModel model(storedGraph(), {});
        const QModelIndex weight = model.index(0, StoredTensorsModel::TakenAs);
        QVERIFY(model.setData(weight, static_cast<int>(StoredAs::Buffer), Qt::EditRole));
        QCOMPARE(model.options().storedAs, (std::map<std::string, StoredAs>{{"val_1", StoredAs::Buffer}}));
        QCOMPARE(shown(model, 0, StoredTensorsModel::Why), QStringLiteral("chosen by hand"));
        QVERIFY(model.setData(weight, StoredTensorsModel::kByRule, Qt::EditRole));
        QVERIFY(model.options().storedAs.empty());
        QVERIFY(!model.setData(weight, 7, Qt::EditRole));
        QVERIFY(!model.setData(model.index(0, StoredTensorsModel::Name), 0, Qt::EditRole));
        // Integers cannot be trained.
        const QModelIndex list = model.index(2, StoredTensorsModel::TakenAs);
        QVERIFY(!model.setData(list, static_cast<int>(StoredAs::Parameter), Qt::EditRole));
    }

    void theDialogGivesTheOptionsBack()
    {
        ModelOptions options;
        options.learningRate = 0.5;
        StoredTensorsDialog dialog(storedGraph(), options, nullptr);
        QPushButton *anew = nullptr;
        for (QPushButton *button : dialog.findChildren<QPushButton *>())
            anew = button->isDefault() ? button : anew;
        QVERIFY(anew && !anew->isEnabled());
        StoredTensorsModel *model = dialog.model();
        QVERIFY(model->setData(model->index(1, StoredTensorsModel::TakenAs),
            static_cast<int>(StoredAs::Parameter), Qt::EditRole));
        QVERIFY(anew->isEnabled());
        ModelOptions given;
        connect(&dialog, &StoredTensorsDialog::chosen, this, [&](const ModelOptions &made) { given = made; });
        anew->click();
        options.storedAs = {{"mask", StoredAs::Parameter}};
        QVERIFY(given == options);
    }

    void choicesAreValuesOfTheDesignThatCanBeTakenBack()
    {
        DesignState state;
        ModelOptions chosen;
        chosen.storedAs = {{"mask", StoredAs::Parameter}};
        const auto changes = changeOfOptions(state, {}, chosen);
        QCOMPARE(changes.size(), std::size_t{1});
        QCOMPARE(changes[0].name, std::string("model/stored.mask"));
        state.values[changes[0].name] = *changes[0].after;
        QVERIFY(*modelOptionsIn(state, {}) == chosen);
        const auto back = changeOfOptions(state, chosen, {});
        QCOMPARE(back.size(), std::size_t{1});
        state.values[back[0].name] = *back[0].after;
        QVERIFY(*modelOptionsIn(state, {}) == ModelOptions{});
        QVERIFY(*modelOptionsIn(state, chosen) == ModelOptions{}); // however it was opened
    }
};

PLANLOOM_QTEST(StoredTensorsTest)
#include "stored_tensors_test.moc"
