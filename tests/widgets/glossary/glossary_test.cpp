// The glossary: its text, the words that lead to an entry, its dialog, and what tool tips say.

#include <QtCore/QFile>
#include <QtCore/QRegularExpression>
#include <QtCore/QSet>
#include <QtTest/QTest>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QTextBrowser>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/glossary/glossary.h"
#include "widgets/glossary/glossary_dialog.h"
#include "widgets/glossary/glossary_help.h"

using namespace planloom;

class GlossaryTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyTermHasTwoSentencesAndWordsOfItsOwn()
    {
        QVERIFY(glossary().size() > 80);
        QSet<QString> words;
        static const QRegularExpression kEnd(QStringLiteral("\\.(?=\\s|$)"));
        QString before;
        for (const GlossaryEntry &entry : glossary()) {
            QVERIFY2(entry.sentences.count(kEnd) == 2, qPrintable(entry.term + ": " + entry.sentences));
            QVERIFY2(before.compare(entry.term, Qt::CaseInsensitive) < 0, qPrintable(entry.term));
            before = entry.term;
            for (const QString &word : QStringList{entry.term} + entry.alsoNamed) {
                QVERIFY2(!words.contains(word.toLower()), qPrintable(word + " leads to two entries"));
                words.insert(word.toLower());
                QCOMPARE(findTerm(word), &entry);
            }
        }
    }

    void isThePageOfResources()
    {
        QFile page(QStringLiteral(PLANLOOM_SOURCE_DIR "/resources/glossary.md"));
        QVERIFY(page.open(QIODevice::ReadOnly));
        const auto entries = parseGlossary(QString::fromUtf8(page.readAll()));
        QCOMPARE(entries.size(), glossary().size());
        QCOMPARE(entries.back().sentences, glossary().back().sentences);
    }

    void readsAnyText()
    {
        QVERIFY(parseGlossary({}).empty());
        QVERIFY(parseGlossary(QStringLiteral("# Only a title\n\nwords\nAlso: nothing")).empty());
        const auto entries = parseGlossary(
            QStringLiteral("## One\n\nAlso: first, 1\n\nIt is\none. It is not two.\n\nPaper: none\n## Two"));
        QCOMPARE(entries.size(), 2U);
        QCOMPARE(entries[0].alsoNamed, (QStringList{QStringLiteral("first"), QStringLiteral("1")}));
        QCOMPARE(entries[0].sentences, QStringLiteral("It is one. It is not two."));
        QCOMPARE(entries[0].paper, QStringLiteral("none"));
        QVERIFY(entries[1].sentences.isEmpty());
    }

    void labelsLeadToTheirTerms_data()
    {
        QTest::addColumn<QString>("label");
        QTest::addColumn<QString>("term");
        QTest::newRow("whole") << "Bubble"
                               << "Bubble";
        QTest::newRow("mnemonic") << "&Schedule"
                                  << "Schedule";
        QTest::newRow("figure behind") << "peak 31.2 GiB / 80 GiB"
                                       << "Peak memory";
        QTest::newRow("figure before") << "12 free decisions"
                                       << "Free decision";
        QTest::newRow("sign") << QString::fromUtf8("gap ≤ 12%") << "Gap";
        QTest::newRow("two words") << "In flight"
                                   << "In flight";
        QTest::newRow("other name") << "micro-batches 8"
                                    << "Micro-batch";
        QTest::newRow("parts") << QString::fromUtf8("gpt · 172 operators · 4 × dgx-a100") << "Operator";
        QTest::newRow("none") << "100%"
                              << "";
        QTest::newRow("empty") << ""
                               << "";
        QTest::newRow("prose") << QStringLiteral("word ").repeated(30) + "bubble"
                               << "";
    }
    void labelsLeadToTheirTerms()
    {
        QFETCH(QString, label);
        QFETCH(QString, term);
        const GlossaryEntry *entry = termOfLabel(label);
        QCOMPARE(entry ? entry->term : QString(), term);
    }

    void everyNamedWidgetLeadsToAnEntry()
    {
        for (const NamedHelp &help : namedHelp())
            QVERIFY2(findTerm(QString::fromLatin1(help.term)), help.term);
        QWidget dock;
        dock.setObjectName(QStringLiteral("constraints"));
        QWidget within(&dock);
        QCOMPARE(termOfWidget(&within), QStringLiteral("Constraint table"));
        QCOMPARE(termOfWidget(nullptr), QString());
    }

    void theDialogFindsTermsByTheirWords()
    {
        GlossaryDialog dialog;
        QCOMPARE(dialog.list()->count(), static_cast<int>(glossary().size()));
        dialog.filter()->setText(QStringLiteral("ulysses"));
        QCOMPARE(dialog.list()->item(0)->text(), QStringLiteral("By heads"));
        QVERIFY(dialog.page()->toPlainText().contains(QLatin1String("arXiv:2309.14509")));
        QVERIFY(dialog.list()->count() < static_cast<int>(glossary().size()));
        QTest::keyClick(dialog.filter(), Qt::Key_Down);
        dialog.filter()->setText(QStringLiteral("no such word"));
        QCOMPARE(dialog.list()->count(), 0);
        QVERIFY(dialog.page()->toPlainText().contains(QLatin1String("No term")));
        dialog.showTerm(QStringLiteral("peak"));
        QCOMPARE(dialog.list()->currentItem()->text(), QStringLiteral("Peak memory"));
        QVERIFY(dialog.filter()->text().isEmpty());
        dialog.showTerm(QStringLiteral("nothing of the kind"));
        QCOMPARE(dialog.list()->currentRow(), 0);
    }

    void tipsHaveTheSentencesBehindTheirOwn()
    {
        const QString sentences = findTerm(QStringLiteral("bubble"))->sentences.toHtmlEscaped();
        QLabel label(QStringLiteral("bubble 3.0%"));
        QVERIFY(glossaryTipAt(label, {}).contains(sentences));
        label.setToolTip(QStringLiteral("a < b"));
        QVERIFY(glossaryTipAt(label, {}).startsWith(QLatin1String("<p>a &lt; b</p>")));
        QVERIFY(glossaryTipAt(label, {}).contains(sentences));
        label.setText(QStringLiteral("<a href='#'>2 free decisions</a>"));
        QVERIFY(glossaryTipAt(label, {}).contains(QLatin1String("Free decision")));
        label.setText(QStringLiteral("hello"));
        QVERIFY(glossaryTipAt(label, {}).isEmpty());

        QTableWidget table(1, 2);
        table.setHorizontalHeaderLabels({QStringLiteral("Bubble"), QStringLiteral("Remark")});
        table.resize(400, 200);
        QHeaderView *header = table.horizontalHeader();
        const auto tipAt = [header](int section) {
            return glossaryTipAt(*header->viewport(), {header->sectionViewportPosition(section) + 3, 5});
        };
        QVERIFY(tipAt(0).contains(sentences));
        QVERIFY(tipAt(1).isEmpty());

        QTextBrowser page;
        page.setHtml(QStringLiteral("<p>Bubble</p><p>3%</p>"));
        page.resize(300, 200);
        page.show();
        QVERIFY(glossaryTipAt(*page.viewport(), {8, 10}).contains(sentences));
    }
};

PLANLOOM_QTEST(GlossaryTest)
#include "glossary_test.moc"
