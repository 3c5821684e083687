// The script that the window shows is the one in the README and in resources.

#include <QtCore/QFile>
#include <QtTest/QTest>
#include <QtWidgets/QPlainTextEdit>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/main/export_help.h"

using namespace planloom;

class ExportHelpTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theScriptIsThatOfTheReadme()
    {
        const QString script = exportScript();
        QVERIFY(script.contains(QLatin1String("torch.export.save(")));
        QVERIFY(script.contains(QLatin1String("torch.onnx.export(")));
        QFile readme(QStringLiteral(PLANLOOM_SOURCE_DIR "/README.md"));
        QVERIFY(readme.open(QIODevice::ReadOnly));
        QVERIFY(QString::fromUtf8(readme.readAll()).contains(script));
        const ExportHelp help;
        const auto *text = help.findChild<QPlainTextEdit *>();
        QVERIFY(text != nullptr);
        QCOMPARE(text->toPlainText(), script);
        QVERIFY(text->isReadOnly());
    }
};

PLANLOOM_QTEST(ExportHelpTest)
#include "export_help_test.moc"
