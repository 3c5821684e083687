#include <QtCore/QMimeData>
#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QMenu>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "widgets/inspector/chip_bar.h"
#include "widgets/inspector/devices_model.h"
#include "widgets/inspector/devices_panel.h"
#include "widgets/inspector/sharding_view.h"

using namespace planloom;

namespace {

constexpr const char *kModel = "zoo:mlp?layers=2&hidden=32&batch=8";

struct Stage {
    Workspace workspace;
    SelectionModel selection;

    void open(const char *gallery, int devices)
    {
        workspace.openWith({kModel, {}, {}}, "dgx-a100", devices, gallery);
        QTRY_VERIFY_WITH_TIMEOUT(settled(), kLong);
    }
    bool settled() const
    {
        return workspace.latest() && workspace.latest()->verdict && !workspace.isStale()
            && !workspace.isPlanning();
    }
    OperatorId product() const
    {
        const Graph &graph = *workspace.model()->graph;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (graph.operators[i].kind == OperatorKind::Linear)
                return OperatorId{static_cast<std::int32_t>(i)};
        }
        return {};
    }
};

} // namespace

class InspectorPanelsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aChipSplitsTheSelectedOperatorAndUndoTakesItBack()
    {
        Stage stage;
        stage.open("single", 2);
        ChipBar chips(&stage.workspace, &stage.selection);
        chips.show();
        QVERIFY(chips.buttons().empty());
        stage.selection.select({stage.product()});
        QVERIFY(!chips.buttons().empty());
        // What a dimension is in the model stands beside its letter.
        const std::vector<QToolButton *> shown(chips.buttons().begin(), chips.buttons().end());
        QStringList texts;
        for (const QToolButton *button : shown)
            texts << button->text();
        QVERIFY2(std::any_of(texts.begin(), texts.end(),
                     [](const QString &text) { return text.startsWith(QStringLiteral("n hidden ")); }),
            qPrintable(texts.join(QStringLiteral(" | "))));
        const std::string before = stage.workspace.tableText();
        QToolButton *splittable = nullptr;
        for (QToolButton *button : chips.buttons()) {
            QVERIFY(!button->accessibleName().isEmpty());
            if (!splittable && button->isEnabled() && button->menu())
                splittable = button;
        }
        QVERIFY(splittable);
        QAction *choice = splittable->menu()->actions().front();
        QSignalSpy previews(&stage.workspace, &GestureHost::previewChanged);
        choice->hover();
        QVERIFY(stage.workspace.currentPreview());
        QVERIFY(stage.workspace.currentPreview()->proposal.accepted());
        QCOMPARE(stage.workspace.tableText(), before);
        QTRY_VERIFY_WITH_TIMEOUT(
            stage.workspace.currentPreview() && stage.workspace.currentPreview()->final, kLong);
        QVERIFY2(stage.workspace.currentPreview()->feasible(),
            qPrintable(tagOf(*stage.workspace.currentPreview())));
        QVERIFY(tagOf(*stage.workspace.currentPreview()).contains(QStringLiteral("feasible")));
        choice->trigger();
        QVERIFY(stage.workspace.tableText() != before);
        QVERIFY(!stage.workspace.currentPreview());
        QVERIFY(stage.workspace.canUndo());
        QTRY_VERIFY_WITH_TIMEOUT(stage.settled(), kLong);
        const auto &decision =
            stage.workspace.lastGood()->plan->decisions[static_cast<std::size_t>(stage.product().index)];
        QVERIFY(partCount(decision.partition) > 1);
        stage.workspace.undo();
        QCOMPARE(stage.workspace.tableText(), before);
    }

    void theDevicesModelKeepsTheRules()
    {
        Stage stage;
        stage.open("3d:dp=2,tp=2,pp=1", 4);
        DevicesModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.set(nullptr, {}, 3);
        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(model.rowCount(model.index(0, 0)), 3);
        model.set(stage.workspace.lastGood(), {{"dp", 2}, {"tp", 2}}, 4);
        QCOMPARE(model.rowCount(), 2);
        const QModelIndex axis = model.index(1, 0, model.index(0, 0));
        QCOMPARE(axis.data().toString(), QStringLiteral("tp : 2"));
        const QModelIndex device = model.index(2, 0, model.index(1, 0));
        QCOMPARE(device.data(DevicesModel::DeviceRole).toInt(), 2);
        QVERIFY(device.siblingAtColumn(DevicesModel::Memory).data().toString().contains(QLatin1Char('/')));
        const std::unique_ptr<QMimeData> dragged(model.mimeData({axis}));
        QCOMPARE(dragged->data(QLatin1String(kAxisMimeType)), QByteArray("tp"));
        const std::unique_ptr<QMimeData> devices(model.mimeData({device}));
        QCOMPARE(devices->data(QLatin1String(kDeviceMimeType)), QByteArray("2"));
        model.set(stage.workspace.lastGood(), {{"dp", 2}, {"tp", 2}}, 4);
        model.set(nullptr, {}, 0);
        QCOMPARE(model.rowCount(), 0);
    }

    void enterOnADevicePlacesTheSelection()
    {
        Stage stage;
        stage.open("single", 2);
        DevicesPanel panel(&stage.workspace, &stage.selection);
        panel.resize(300, 300);
        panel.show();
        stage.selection.select({stage.product()});
        panel.setFocus();
        const QModelIndex second = panel.model()->index(1, 0, panel.model()->index(0, 0));
        QVERIFY(second.isValid());
        panel.setCurrentIndex(second);
        const QString words = QString::fromStdString(stage.workspace.history().undoWords());
        QTest::keyClick(&panel, Qt::Key_Return);
        QVERIFY(QString::fromStdString(stage.workspace.history().undoWords()) != words);
        QTRY_VERIFY_WITH_TIMEOUT(stage.settled(), kLong);
        const auto &decision =
            stage.workspace.lastGood()->plan->decisions[static_cast<std::size_t>(stage.product().index)];
        QCOMPARE(decision.devices, (std::vector<DeviceId>{{1}}));
        panel.setCurrentIndex(second);
        stage.selection.clear();
        panel.selectAction()->trigger();
        QVERIFY(stage.selection.contains(stage.product()));
    }

    void thePictureFollowsTheSelectionAndCanBeReadAloud()
    {
        Stage stage;
        stage.open("tensor-parallel", 2);
        ShardingView view(&stage.selection);
        view.resize(420, 600);
        view.show();
        view.setPlan(stage.workspace.lastGood());
        QVERIFY(view.pictures().empty());
        stage.selection.select({stage.product()});
        QTRY_VERIFY_WITH_TIMEOUT(!view.pictures().empty(), kLong);
        QVERIFY(view.accessibleDescription().contains(QStringLiteral("device")));
        QTest::keyClick(&view, Qt::Key_Down);
        const QString first = view.accessibleDescription();
        QTest::keyClick(&view, Qt::Key_Down);
        QVERIFY(view.accessibleDescription() != first);
        QVERIFY(!view.grab().isNull());
        stage.selection.clear();
        QTRY_VERIFY(view.pictures().empty());
    }
};

PLANLOOM_QTEST(InspectorPanelsTest)
#include "inspector_panels_test.moc"
