// What the Inspector says of kinds of operators.

#include <QtCore/QFile>
#include <QtCore/QSet>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/inspector/kind_meanings.h"

using namespace planloom;

class KindMeaningsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyKindHasASentenceOfItsOwn()
    {
        QSet<QString> told;
        for (int kind = 0; kind < kOperatorKindCount; ++kind) {
            const QString meaning = meaningOfKind(static_cast<OperatorKind>(kind));
            const char *name = nameOf(static_cast<OperatorKind>(kind));
            QVERIFY2(meaning.endsWith(QLatin1Char('.')), name);
            QVERIFY2(!told.contains(meaning), name);
            told.insert(meaning);
        }
    }

    void whatIsToldIsOfKindsThatThereAre()
    {
        QFile file(QStringLiteral(":/planloom/kinds.txt"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        int lines = 0;
        while (!file.atEnd()) {
            const QString line = QString::fromUtf8(file.readLine());
            if (line.startsWith(QLatin1Char('#')))
                continue;
            ++lines;
            QVERIFY2(operatorKindNamed(line.section(QLatin1Char(':'), 0, 0).toStdString()), qPrintable(line));
        }
        QCOMPARE(lines, kOperatorKindCount);
    }

    void attributesReadAsTheyAreWritten()
    {
        QCOMPARE(attributeText(std::int64_t{-1}), QStringLiteral("-1"));
        QCOMPARE(attributeText(0.1), QStringLiteral("0.1"));
        QCOMPARE(attributeText(std::string("tanh")), QStringLiteral("\"tanh\""));
        QCOMPARE(attributeText(std::vector<std::int64_t>{2, 3}), QStringLiteral("2, 3"));
        QCOMPARE(attributeText(std::vector<std::string>{"a"}), QStringLiteral("\"a\""));
        QCOMPARE(attributeText(std::vector<double>(20, 0.5)),
            QStringLiteral("0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, …"));
    }
};

PLANLOOM_QTEST(KindMeaningsTest)

#include "kind_meanings_test.moc"
