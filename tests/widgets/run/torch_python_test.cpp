#include <QtCore/QThreadPool>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>

#include "tests/qt_test.h"
#include "tests/widgets/run/fake_python.h"
#include "widgets/run/torch_python.h"

using namespace planloom;
using testing_support::fakePython;
using testing_support::kProbedTorch;

namespace {

QString wordsOf(const TorchPython &python)
{
    return python.findChild<QLabel *>(QStringLiteral("torch.words"))->text();
}

} // namespace

class TorchPythonTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aPythonIsAskedWhenItsPathHasBeenTyped()
    {
        QTemporaryDir folder;
        TorchPython python;
        QSignalSpy chosen(&python, &TorchPython::chosen);
        python.show();
        const QString path = fakePython(folder, kProbedTorch);
        auto *edit = python.findChild<QLineEdit *>(QStringLiteral("torch.python"));
        QTest::keyClicks(edit, path);
        QCOMPARE(chosen.last().first().toString(), path);
        QVERIFY(!python.found());
        QTRY_VERIFY_WITH_TIMEOUT(python.found() != nullptr, kLong);
        QVERIFY(*python.found());
        QCOMPARE(wordsOf(python),
            QStringLiteral("Python 3.11.2, PyTorch 2.15.0, on CPUs, by gloo: PyTorch sees no GPU"));
        QTest::keyClick(edit, Qt::Key_Backspace); // another path: what was known counts no more
        QVERIFY(!python.found());
        QTRY_VERIFY_WITH_TIMEOUT(python.found() != nullptr, kLong);
        QVERIFY(!*python.found());
        QVERIFY2(wordsOf(python).contains(QStringLiteral("Choose a Python that has PyTorch 2.6 or newer")),
            qPrintable(wordsOf(python)));
    }

    void whatItHasIsSaidAndWhyItDoesNotDo_data()
    {
        QTest::addColumn<QByteArray>("probe");
        QTest::addColumn<QString>("words");
        const auto said = [](const char *json) { return QByteArray("echo 'PLANLOOM ") + json + "'"; };
        QTest::newRow("GPUs") << said(
            R"({"python": "3.12.1", "torch": "2.8.0", "distributed": true, "gloo": true, "nccl": true, "gpus": 8, "cuda": "12.8"})")
                              << QStringLiteral("Python 3.12.1, PyTorch 2.8.0, CUDA 12.8, NCCL, 8 GPUs");
        QTest::newRow("no torch") << said(
            R"({"python": "3.9.1", "no_torch": "ModuleNotFoundError: No module named torch"})")
                                  << QStringLiteral("No module named torch");
        QTest::newRow("old") << said(
            R"({"python": "3.9.1", "torch": "2.1.0", "distributed": true, "gloo": true})")
                             << QStringLiteral("need 2.6 or newer");
        QTest::newRow("no distributed") << said(R"({"python": "3.9.1", "torch": "2.9.0"})")
                                        << QStringLiteral("without torch.distributed");
        QTest::newRow("other program") << QByteArray("echo hello") << QStringLiteral("it said hello");
    }
    void whatItHasIsSaidAndWhyItDoesNotDo()
    {
        QFETCH(const QByteArray, probe);
        QFETCH(const QString, words);
        QTemporaryDir folder;
        TorchPython python;
        python.setPath(fakePython(folder, probe));
        python.ask();
        QTRY_VERIFY_WITH_TIMEOUT(python.found() != nullptr, kLong);
        QVERIFY2(wordsOf(python).contains(words), qPrintable(wordsOf(python)));
    }

    void aPythonThatDoesNotAnswerHoldsNothingUp()
    {
        QTemporaryDir folder;
        {
            TorchPython python;
            python.setPath(fakePython(folder, "sleep 600"));
            python.ask();
            QVERIFY(python.isAsking());
            QCOMPARE(wordsOf(python), QStringLiteral("It is asked what it has…"));
        }
        QVERIFY(QThreadPool::globalInstance()->waitForDone(5000));
    }
};

PLANLOOM_QTEST(TorchPythonTest)
#include "torch_python_test.moc"
