// What goes wrong around a person's work: wrong files, models that vanish, folders that can't be written,
// helpers that die, a clipboard full of nonsense. A sentence at the place, nothing lost, the window alive.

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QObject>
#include <QtGui/QClipboard>
#include <QtTest/QTest>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QToolButton>

#include "tests/e2e/window_for_tests.h"
#include "tests/model_folder.h"
#include "tests/qt_test.h"
#include "widgets/main/notice_bar.h"
#include "widgets/run/run_panel.h"
#include "widgets/table/paste_preview.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"

using namespace planloom;

namespace {

constexpr const char *kTiny = "zoo:mlp?layers=2&hidden=32&batch=8";
const QString kModels = QString::fromStdString(modelFolder().string()) + QLatin1Char('/');

QString write(const QTemporaryDir &folder, const char *name, const QByteArray &content)
{
    QFile file(folder.filePath(QLatin1String(name)));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size())
        qFatal("%s can't be written", name);
    return file.fileName();
}

} // namespace

class BadInputTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void wrongFilesDropped_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("name");
        QTest::newRow("folder") << QByteArray() << QStringLiteral(".");
        QTest::newRow("picture") << QByteArray("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16)
                                 << QStringLiteral("a.png");
        QTest::newRow("empty model") << QByteArray() << QStringLiteral("a.onnx");
        QTest::newRow("nonsense as a model")
            << QByteArray("\xff\xff\xff\xff nonsense \0\1\2", 17) << QStringLiteral("b.onnx");
        QTest::newRow("empty session") << QByteArray() << QStringLiteral("a.planloom");
        QTest::newRow("nonsense as a session") << QByteArray(5000, 'x') << QStringLiteral("b.planloom");
    }

    void wrongFilesDropped()
    {
        QFETCH(QByteArray, content);
        QFETCH(QString, name);
        const QTemporaryDir folder;
        const QString path =
            name == QLatin1String(".") ? folder.path() : write(folder, name.toLatin1().constData(), content);
        WindowForTests at;
        openTiny(at);
        const std::string rows = at.workspace().tableText();
        const ModelSnapshot model = at.workspace().model();
        dropFile(at.window.get(), path);
        if (QPushButton *open =
                at.window->notices().button(QStringLiteral("drop"), QStringLiteral("Open Here")))
            QTest::mouseClick(open, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().isOpening() && !said(at).isEmpty(), kPatience);
        QVERIFY2(said(at).size() > 15, qPrintable(said(at)));
        QVERIFY(at.workspace().model() == model);
        alive(at, rows);
    }

    void aModelThatWasCutShort()
    {
        QFile whole(kModels + QStringLiteral("gpt2_tiny.onnx"));
        if (!whole.open(QIODevice::ReadOnly))
            QSKIP("the sample models are not here");
        const QByteArray bytes = whole.readAll();
        const QTemporaryDir folder;
        WindowForTests at;
        for (const auto size : {bytes.size() / 4, bytes.size() / 2, bytes.size() - 1}) {
            at.window->openHere(write(folder, "cut.onnx", bytes.left(size)));
            QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().isOpening(), kPatience);
            QVERIFY(at.workspace().model() == nullptr);
            QVERIFY(!said(at).isEmpty());
        }
        openTiny(at);
    }

    void aModelThatChangesAndVanishes()
    {
        if (!QFile::exists(kModels + QStringLiteral("bert_tiny.onnx")))
            QSKIP("the sample models are not here");
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("model.onnx"));
        QVERIFY(QFile::copy(kModels + QStringLiteral("gpt2_tiny.onnx"), path));
        WindowForTests at(folder.filePath(QStringLiteral("sessions")));
        at.window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() && at.settled(), kPatience);
        OperatorId named;
        for (std::size_t i = 0; i < at.graph().operators.size() && !named.valid(); ++i) {
            if (at.graph().operators[i].kind == OperatorKind::Linear)
                named = OperatorId{static_cast<std::int32_t>(i)};
        }
        at.workspace().setTableText(
            "recompute name:" + at.graph().at(named).name + " per operator\nplace all : devices 0\n");
        const std::string rows = at.workspace().tableText();
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        // Another model takes its place: it is said, the rows stay, and what binds no more is named.
        QVERIFY(QFile::remove(path));
        QVERIFY(QFile::copy(kModels + QStringLiteral("bert_tiny.onnx"), path));
        QTRY_VERIFY_WITH_TIMEOUT(
            at.window->notices().button(QStringLiteral("model"), QStringLiteral("Reload")), kPatience);
        QCOMPARE(at.workspace().tableText(), rows);
        const ModelSnapshot before = at.workspace().model();
        QTest::mouseClick(
            at.window->notices().button(QStringLiteral("model"), QStringLiteral("Reload")), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() != before && !at.workspace().isOpening(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().latest() && !at.workspace().isPlanning(), kPatience);
        QCOMPARE(at.workspace().tableText(), rows);
        QVERIFY2(!at.workspace().remark().isEmpty(), "what changed is not said");
        // It vanishes: the model in memory stays.
        QVERIFY(QFile::remove(path));
        QTRY_VERIFY_WITH_TIMEOUT(
            at.window->notices().textOf(QStringLiteral("model")).contains(QStringLiteral("gone")), kPatience);
        alive(at, rows);
    }

    void aFolderThatCanNotBeWritten()
    {
        const QTemporaryDir folder;
        const QString file = write(folder, "file", "not a folder");
        WindowForTests at(file + QStringLiteral("/sessions"));
        openTiny(at);
        at.workspace().setTableText("place all : devices 1\n");
        QTRY_VERIFY_WITH_TIMEOUT(
            at.workspace().saveState() == SaveState::Failed || at.workspace().saveState() == SaveState::None,
            kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().saveRemark().isEmpty(), kPatience);
        alive(at, "place all : devices 1\n");
        // A place that can be written takes all of it.
        const QString good = folder.filePath(QStringLiteral("good.planloom"));
        at.workspace().saveAs(good);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().isAcknowledged() && QFile::exists(good), kPatience);
    }

    void aSessionFromTheFuture()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("future.planloom"));
        {
            WindowForTests at;
            openTiny(at);
            at.workspace().setTableText("place all : devices 1\n");
            at.workspace().saveAs(path);
            QTRY_VERIFY_WITH_TIMEOUT(
                at.workspace().isAcknowledged() && at.workspace().path() == path, kPatience);
        }
        {
            QFile file(path); // the format's number stands at byte 60 of the file
            QVERIFY(file.open(QIODevice::ReadWrite));
            QVERIFY(file.seek(60));
            QCOMPARE(file.write(QByteArray::fromHex("00000fff")), qint64{4});
        }
        WindowForTests at;
        at.window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() && at.settled(), kPatience);
        QVERIFY(at.workspace().isReadOnly());
        QVERIFY2(!at.workspace().remark().isEmpty(), "that it is read-only is not said");
        QCOMPARE(at.workspace().tableText(), std::string("place all : devices 1\n"));
        QVERIFY(at.workspace().saveState() == SaveState::ReadOnly);
    }

    void nonsensePasted()
    {
        WindowForTests at;
        openTiny(at);
        const std::string before = at.workspace().tableText();
        at.window->docks().reveal(QStringLiteral("constraints"));
        TablePanel *table = at.window->constraints();
        for (const QString &text :
            {QStringLiteral("\x01\x02 nonsense\t\t\t\n\n<html>&nbsp;</html>\tplace\tdevices"),
                QString(100'000, QLatin1Char('x')), QStringLiteral("{\"rows\": [1, 2"), QString()}) {
            QApplication::clipboard()->setText(text);
            table->grid()->setFocus();
            table->pasteRows();
            QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().isPlanning(), kPatience);
            QVERIFY(at.workspace().tableText() == before || at.workspace().canUndo());
            while (at.workspace().canUndo())
                at.workspace().undo();
            QCOMPARE(at.workspace().tableText(), before);
        }
        alive(at, before);
    }

    void tenThousandRowsPasted()
    {
        WindowForTests at;
        openTiny(at);
        const std::string before = at.workspace().tableText();
        QString rows;
        for (int i = 0; i < 10'000; ++i)
            rows += QStringLiteral("off recompute name:fc%1 per operator\n").arg(i);
        QApplication::clipboard()->setText(rows);
        at.window->docks().reveal(QStringLiteral("constraints"));
        at.window->constraints()->grid()->setFocus();
        at.window->constraints()->pasteRows();
        QTRY_VERIFY_WITH_TIMEOUT(at.window->constraints()->pastePreview()->isOpen(), kPatience);
        at.window->constraints()->pastePreview()->applyButton()->click();
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().table().lineCount() >= 10'000, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().isPlanning() && !at.workspace().isStale(), 3 * kPatience);
        QVERIFY(at.workspace().latest()->plan);
        QVERIFY(at.window->constraints()->grid()->model()->rowCount() >= 10'000);
        QVERIFY(!at.window->grab().isNull());
        QVERIFY(at.workspace().canUndo());
        at.workspace().undo();
        alive(at, before);
    }

    void aLayoutHelperThatIsMissingOrDies()
    {
        const QTemporaryDir folder;
        for (const QString &program : {QStringLiteral("/no/such/program"), dying(folder)}) {
            WindowForTests at;
            at.window->setLayoutHelper(program);
            at.window->openHere(QString::fromLatin1(kSmallGpt));
            QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() && at.settled(), kPatience);
            at.dag()->expandAll();
            QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled(), kPatience);
            QVERIFY(at.dag()->picture() && at.dag()->picture()->scene.rects.size() > 10);
        }
    }

    void aRunnerThatIsMissingOrDies()
    {
        const QTemporaryDir folder;
        for (const QString &program : {QStringLiteral("/no/such/program"), dying(folder)}) {
            WindowForTests at(folder.filePath(QStringLiteral("sessions")));
            openTiny(at);
            const std::string rows = at.workspace().tableText();
            RunPanel *run = at.window->run();
            run->service().setProgram(program);
            QTRY_VERIFY_WITH_TIMEOUT(run->runAction()->isEnabled(), kPatience);
            at.dag()->setFocus();
            QTest::keyClick(at.dag(), Qt::Key_F9);
            QTRY_VERIFY_WITH_TIMEOUT(
                at.workspace().runs().size() == 1 && !run->service().isRunning(), kPatience);
            QVERIFY(run->service().record().state == RunState::Failed);
            QVERIFY2(
                run->service().record().sentence().size() > 15, run->service().record().sentence().c_str());
            QTRY_COMPARE_WITH_TIMEOUT(at.workspace().runs().front().state, std::string("failed"), kPatience);
            alive(at, rows);
        }
    }

private:
    static void openTiny(WindowForTests &at)
    {
        at.workspace().openWith({kTiny, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(
            at.workspace().model() && at.settled() && !at.workspace().tableText().empty(), kPatience);
    }

    /// Whatever the window says, wherever it says it.
    static QString said(const WindowForTests &at)
    {
        return at.window->notices().textOf(QStringLiteral("drop"))
            + at.window->notices().textOf(QStringLiteral("open"));
    }

    /// A program that is killed as soon as it runs.
    static QString dying(const QTemporaryDir &folder)
    {
        const QString path = write(folder, "dies.sh", "#!/bin/sh\nkill -9 $$\n");
        QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }

    /// The rows are as they were, and the window does what it is asked.
    static void alive(WindowForTests &at, const std::string &rows)
    {
        QCOMPARE(at.workspace().tableText(), rows);
        QVERIFY(at.workspace().editTable(
            QStringLiteral("a remark"), insertText(at.workspace().table(), 0, "# still here")));
        QTRY_VERIFY_WITH_TIMEOUT(!at.workspace().isPlanning() && !at.workspace().isStale(), kPatience);
        QVERIFY(at.workspace().latest()->table == at.workspace().table());
        at.workspace().undo();
        QCOMPARE(at.workspace().tableText(), rows);
        QVERIFY(!at.window->grab().isNull());
    }
};

PLANLOOM_QTEST(BadInputTest)
#include "bad_input_test.moc"
