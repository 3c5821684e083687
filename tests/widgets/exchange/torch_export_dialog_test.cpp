#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtGui/QClipboard>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "widgets/design/workspace.h"
#include "widgets/exchange/torch_export_dialog.h"

using namespace planloom;

namespace {

QString labelOf(const TorchExportDialog &dialog, const char *name)
{
    return dialog.findChild<QLabel *>(QLatin1String(name))->text();
}

struct ExportStage {
    Workspace workspace;
    TorchExportDialog dialog;
    QTemporaryDir folder;

    void open(const char *model = "zoo:mlp?layers=2&hidden=16&batch=8")
    {
        workspace.openWith({model, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(
            workspace.latest() && workspace.latest()->verdict && !workspace.isPlanning(), kLong);
        dialog.setPlan(workspace.lastGood(), workspace.planRequest());
        dialog.show();
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
    }
    template<typename Widget> Widget *child(const char *name)
    {
        return dialog.findChild<Widget *>(QLatin1String(name));
    }
    QString command() { return child<QPlainTextEdit>("command")->toPlainText(); }
    QString target() const { return folder.filePath(QStringLiteral("plan")); }
    void write()
    {
        QTest::mouseClick(child<QPushButton>("write"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
    }
};

} // namespace

class TorchExportDialogTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aPlanIsWrittenAsAFolderThatSaysHowItIsStarted()
    {
        ExportStage stage;
        stage.open();
        QVERIFY(labelOf(stage.dialog, "words").startsWith(QStringLiteral("2 processes, ")));
        QVERIFY(labelOf(stage.dialog, "precision").startsWith(QStringLiteral("as the plan's rows say: ")));
        QSignalSpy written(&stage.dialog, &TorchExportDialog::written);
        stage.child<QLineEdit>("folder")->setText(stage.target());
        stage.write();
        QCOMPARE(written.count(), 1);
        QVERIFY2(written.first().first().toString().contains(stage.target()),
            qPrintable(written.first().first().toString()));
        for (const char *name : {"train.py", "check.py", "README.md", "train.sbatch", "reference/plan.json"})
            QVERIFY2(QFileInfo::exists(stage.target() + QLatin1Char('/') + QLatin1String(name)), name);
        stage.write(); // its own folder is written again
        QCOMPARE(written.count(), 2);
    }

    void theCommandFollowsTheForm()
    {
        ExportStage stage;
        stage.open();
        QCOMPARE(stage.command(),
            QStringLiteral("torchrun --nproc-per-node 2 train.py --steps 3 --random-weights 7 --data same"));
        stage.child<QComboBox>("starter")->setCurrentIndex(3);
        QCOMPARE(stage.command(),
            QStringLiteral("mpirun -np 2 -x MASTER_ADDR=HOST -x MASTER_PORT=29500 python train.py --steps 3 "
                           "--random-weights 7 --data same"));
        stage.child<QComboBox>("starter")->setCurrentIndex(1);
        stage.child<QComboBox>("weights")->setCurrentIndex(2);
        stage.child<QComboBox>("data")->setCurrentIndex(0);
        QCOMPARE(stage.command(),
            QStringLiteral("sbatch --nodes 1 --ntasks-per-node 2 train.sbatch --steps 3 --weights "
                           "FILE.safetensors --data dataset"));
        QTest::mouseClick(stage.child<QToolButton>("copy"), Qt::LeftButton);
        QCOMPARE(QGuiApplication::clipboard()->text(), stage.command());
    }

    void theSamePlanIsWrittenInPyTorchsOwnWords()
    {
        ExportStage stage;
        stage.open();
        QVERIFY(!stage.child<QLineEdit>("module")->isVisible());
        stage.child<QComboBox>("form")->setCurrentIndex(1);
        QTRY_VERIFY_WITH_TIMEOUT(!stage.dialog.isBusy(), kLong);
        QVERIFY2(labelOf(stage.dialog, "words").startsWith(QStringLiteral("2 processes; ")),
            qPrintable(labelOf(stage.dialog, "words")));
        QVERIFY(
            stage.child<QLineEdit>("module")->isVisible() && !stage.child<QComboBox>("data")->isVisible());
        QTest::keyClicks(stage.child<QLineEdit>("module"), QStringLiteral("mine:make_model"));
        QCOMPARE(stage.command(),
            QStringLiteral("torchrun --nproc-per-node 2 train.py --module mine:make_model --steps 3"));
        stage.child<QLineEdit>("folder")->setText(stage.target());
        stage.write();
        for (const char *name : {"train.py", "check.py", "parallelize.py", "README.md"})
            QVERIFY2(QFileInfo::exists(stage.target() + QLatin1Char('/') + QLatin1String(name)), name);
    }

    void whatPyTorchHasNoWordsForIsListedOrLeftOut()
    {
        ExportStage stage;
        stage.open();
        stage.workspace.setTableText(stage.workspace.tableText() + "offload all : states\n");
        QTRY_VERIFY_WITH_TIMEOUT(!stage.workspace.isPlanning(), kLong);
        stage.dialog.setPlan(stage.workspace.lastGood(), stage.workspace.planRequest());
        stage.child<QComboBox>("form")->setCurrentIndex(1);
        QTRY_VERIFY_WITH_TIMEOUT(!stage.dialog.isBusy(), kLong);
        QVERIFY2(labelOf(stage.dialog, "words").contains(QStringLiteral("offload all : states")),
            qPrintable(labelOf(stage.dialog, "words")));
        stage.child<QLineEdit>("folder")->setText(stage.target());
        QVERIFY(!stage.child<QPushButton>("write")->isEnabled());
        stage.child<QCheckBox>("leaveOut")->click();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.dialog.isBusy(), kLong);
        QVERIFY2(stage.child<QPushButton>("write")->isEnabled(), qPrintable(labelOf(stage.dialog, "words")));
        QVERIFY(labelOf(stage.dialog, "words").contains(QStringLiteral("offload all : states")));
        stage.child<QComboBox>("form")->setCurrentIndex(0);
        QTRY_VERIFY_WITH_TIMEOUT(!stage.dialog.isBusy(), kLong);
        QVERIFY(labelOf(stage.dialog, "words").contains(QStringLiteral("distinct program")));
    }

    void aFolderWithOtherFilesIsLeftAsItIs()
    {
        ExportStage stage;
        stage.open();
        QDir().mkpath(stage.target());
        QFile mine(stage.target() + QStringLiteral("/thesis.txt"));
        QVERIFY(mine.open(QIODevice::WriteOnly));
        mine.close();
        stage.child<QLineEdit>("folder")->setText(stage.target());
        stage.write();
        QVERIFY2(labelOf(stage.dialog, "words").contains(QStringLiteral("thesis.txt")),
            qPrintable(labelOf(stage.dialog, "words")));
        QCOMPARE(QDir(stage.target()).entryList(QDir::Files), QStringList{QStringLiteral("thesis.txt")});
    }

    void withoutAPlanNothingIsWritten()
    {
        TorchExportDialog dialog;
        dialog.show();
        QVERIFY(!dialog.findChild<QPushButton *>(QStringLiteral("write"))->isEnabled());
        QVERIFY(labelOf(dialog, "words").contains(QStringLiteral("no plan to export")));
    }
};

PLANLOOM_QTEST(TorchExportDialogTest)
#include "torch_export_dialog_test.moc"
