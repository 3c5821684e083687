#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "sessions/digest.h"
#include "widgets/design/workspace.h"

using namespace planloom;

namespace {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";
constexpr int kLong = 30'000; ///< ms

bool verified(const Workspace &workspace)
{
    return workspace.latest() && workspace.latest()->verdict && !workspace.isStale() && !workspace.isPlanning();
}

} // namespace

class WorkspaceTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void openingAModelPlansIt()
    {
        Workspace workspace;
        workspace.openAny(QString::fromLatin1(kSmall));
        QVERIFY(workspace.isOpening());
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->verdict->ok());
        QVERIFY(!workspace.isModified());
        QCOMPARE(workspace.title(), QStringLiteral("mlp"));
    }

    void theNewestTextWins()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        for (int i = 0; i < 20; ++i)
            workspace.setTableText("mesh dp=2\nsplit all : batch over dp\n# " + std::to_string(i) + "\n");
        QVERIFY(workspace.isStale());
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->tableText.ends_with("# 19\n"));
        QVERIFY(workspace.isModified());
    }

    void atMostTenAnswersASecondReachTheViews()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QSignalSpy answers(&workspace, &Workspace::planChanged);
        QElapsedTimer clock;
        clock.start();
        while (clock.elapsed() < 1000) {
            workspace.replan();
            QTest::qWait(5);
        }
        QVERIFY2(answers.count() <= 11, qPrintable(QString::number(answers.count())));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
    }

    void wrongRowsKeepTheLastPlanAndSaySo()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const PlanUpdateSnapshot good = workspace.lastGood();
        workspace.setTableText("split nonsense\n");
        QTRY_COMPARE_WITH_TIMEOUT(workspace.latest()->errorCount(), std::size_t{1}, kLong);
        QCOMPARE(workspace.lastGood(), good);
        QVERIFY(workspace.isStale());
        workspace.setTableText(good->tableText);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
    }

    void aGalleryPlanReplacesTheRows()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const QSignalSpy text(&workspace, &Workspace::tableTextChanged);
        workspace.applyGallery("zero1");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && text.count() == 1, kLong);
        QVERIFY(workspace.tableText().find("zero1") != std::string::npos);
    }

    void aSessionBringsEverythingBack()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("my plan.planloom"));
        std::string text;
        {
            Workspace workspace;
            workspace.openWith({kSmall, {}, {}}, "dgx-h100", 2, "data-parallel");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            text = "# mine\n" + workspace.tableText();
            workspace.setTableText(text);
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            workspace.view()["colour-by"] = "3";
            const QSignalSpy saved(&workspace, &Workspace::saved);
            workspace.save(path);
            QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, kLong);
            QVERIFY(!workspace.isModified());
        }
        const auto file = SessionFile::open(path.toStdString());
        QVERIFY(file.has_value());
        const auto data = file->load();
        QVERIFY2(data.has_value(), data ? "" : data.error().message.c_str());
        QVERIFY(data->plan.has_value());
        QCOMPARE(data->plan->tableSha256, sha256(text));
        QVERIFY(!data->plan->execution.empty());

        Workspace again;
        again.openAny(path);
        QCOMPARE(again.tableText(), text);
        QCOMPARE(again.cluster(), std::string("dgx-h100"));
        QCOMPARE(again.deviceCount(), 2);
        QCOMPARE(again.view()["colour-by"], std::string("3"));
        QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
        QVERIFY(!again.isModified());
    }

    void whatCannotBeOpenedIsAProblemAndChangesNothing()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const ModelSnapshot model = workspace.model();
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.openAny(QStringLiteral("/no/such/file.onnx"));
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 1, kLong);
        QCOMPARE(workspace.model(), model);
        const QTemporaryDir folder;
        QFile other(folder.filePath(QStringLiteral("other.db")));
        QVERIFY(other.open(QIODevice::WriteOnly));
        other.write(QByteArray("SQLite format 3\0", 16) + QByteArray(200, '\0'));
        other.close();
        workspace.openAny(other.fileName());
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 2, kLong);
        QCOMPARE(workspace.model(), model);
    }

    void savingWhereOneMayNotIsAProblem()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.save(QStringLiteral("/no/such/folder/a.planloom"));
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 1, kLong);
        QVERIFY(workspace.path().isEmpty());
    }

    void quittingWhilePlanningIsSafe()
    {
        for (int i = 0; i < 5; ++i) {
            Workspace workspace;
            workspace.openAny(QStringLiteral("zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=100&batch=8"));
            QTest::qWait(10 * i);
        }
    }
};

QTEST_MAIN(WorkspaceTest)
#include "workspace_test.moc"
