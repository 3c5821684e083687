// The pages of help that the window shows are those of resources.

#include <QtCore/QFile>
#include <QtTest/QTest>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QTextBrowser>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/main/export_help.h"

using namespace planloom;

class ExportHelpTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theScriptIsThatOfTheManual()
    {
        const QString script = exportScript();
        QVERIFY(script.contains(QLatin1String("torch.export.save(")));
        QVERIFY(script.contains(QLatin1String("torch.onnx.export(")));
        QFile page(QStringLiteral(PLANLOOM_SOURCE_DIR "/resources/pytorch.md"));
        QVERIFY(page.open(QIODevice::ReadOnly));
        QVERIFY(QString::fromUtf8(page.readAll()).contains(script));
        const ExportHelp help;
        const auto *text = help.findChild<QPlainTextEdit *>();
        QVERIFY(text != nullptr);
        QCOMPARE(text->toPlainText(), script);
        QVERIFY(text->isReadOnly());
    }

    void theOperatorFilesPageIsThatOfResources()
    {
        QFile page(QStringLiteral(PLANLOOM_SOURCE_DIR "/resources/operators.md"));
        QVERIFY(page.open(QIODevice::ReadOnly));
        QCOMPARE(operatorFileText(), QString::fromUtf8(page.readAll()));
        const OperatorFileHelp help;
        const auto *text = help.findChild<QTextBrowser *>();
        QVERIFY(text != nullptr);
        QVERIFY(text->toPlainText().contains(QLatin1String("annotation  b s h, h -> b s h")));
    }
};

PLANLOOM_QTEST(ExportHelpTest)
#include "export_help_test.moc"
