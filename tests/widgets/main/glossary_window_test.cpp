// Every term that the window shows has an entry in the glossary, every entry is of a word that a user meets,
// and help follows what has the keyboard.

#include <QtCore/QDir>
#include <QtCore/QDirIterator>
#include <QtCore/QFile>
#include <QtCore/QRegularExpression>
#include <QtCore/QSet>
#include <QtGui/QHelpEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolTip>

#include "engine/lowering/program/execution_plan.h"
#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/frame/dock_board.h"
#include "widgets/glossary/glossary.h"
#include "widgets/glossary/glossary_dialog.h"
#include "widgets/glossary/glossary_help.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/status/status_pill.h"

#include <algorithm>

using namespace planloom;

namespace {

/// Columns whose heads are plain words: what they hold is no term of the field.
const QSet<QString> &plainHeads()
{
    static const QSet<QString> kHeads{QStringLiteral("About"), QStringLiteral("Algorithm"),
        QStringLiteral("All"), QStringLiteral("Alone"), QStringLiteral("At"), QStringLiteral("Compute"),
        QStringLiteral("First at"), QStringLiteral("Other"), QStringLiteral("Times"), QStringLiteral("Took"),
        QStringLiteral("Window"), QStringLiteral("Can be used"), QStringLiteral("Cap"),
        QStringLiteral("Change"), QStringLiteral("Compare"), QStringLiteral("Count"), QStringLiteral("Error"),
        QStringLiteral("Error before"), QStringLiteral("Error now"), QStringLiteral("Largest error"),
        QStringLiteral("Figure"), QStringLiteral("From"), QStringLiteral("Kind"), QStringLiteral("Note"),
        QStringLiteral("Now"), QStringLiteral("Of what it could carry"), QStringLiteral("Off by"),
        QStringLiteral("On"), QStringLiteral("Remark"), QStringLiteral("Share"), QStringLiteral("Size"),
        QStringLiteral("Started"), QStringLiteral("State"), QStringLiteral("Time"), QStringLiteral("To"),
        QStringLiteral("Value"), QStringLiteral("What"), QStringLiteral("What happened"),
        QStringLiteral("What helps"), QStringLiteral("What it is"), QStringLiteral("When"),
        QStringLiteral("Where"), QStringLiteral("#"), QStringLiteral("")};
    return kHeads;
}

QString fileText(const QString &path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString galleryTexts()
{
    const QDir gallery(QStringLiteral(PLANLOOM_SOURCE_DIR "/resources/gallery"));
    QString text;
    for (const QString &file : gallery.entryList({QStringLiteral("*.gallery")}))
        text += fileText(gallery.filePath(file));
    return text;
}

/// What the window can say, in whatever state it is: all words that its sources give to people, but for those
/// of the glossary.
QString wordsOfSources()
{
    static const QRegularExpression kSaid(QStringLiteral("\\btr\\(\\s*((?:\"(?:[^\"\\\\]|\\\\.)*\"\\s*)+)"));
    QString words;
    QDirIterator sources(QStringLiteral(PLANLOOM_SOURCE_DIR "/widgets"), {QStringLiteral("*.cpp")},
        QDir::Files, QDirIterator::Subdirectories);
    while (sources.hasNext()) {
        const QString path = sources.next();
        if (path.contains(QLatin1String("/glossary/")))
            continue;
        const QString text = fileText(path);
        for (auto said = kSaid.globalMatch(text); said.hasNext();)
            words += said.next().captured(1) + QLatin1Char('\n');
    }
    return words;
}

} // namespace

class GlossaryWindowTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_window = std::make_unique<MainWindow>();
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
        m_window->openSample({"small", "A small one", "For tests",
            "zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100&batch=8", "dgx-a100", 4,
            "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4"});
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().latest() && m_window->workspace().latest()->verdict, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->isSettled(), kLong);
    }

    void cleanupTestCase() { m_window.reset(); }

    void everyDockHasHelp()
    {
        QVERIFY(m_window->docks().docks().size() > 10);
        for (const QDockWidget *dock : m_window->docks().docks()) {
            QVERIFY2(!termOfWidget(dock).isEmpty(), qPrintable(dock->objectName()));
            QVERIFY2(termOfLabel(dock->windowTitle()), qPrintable(dock->windowTitle()));
        }
    }

    void everyHeadIsATermOrAPlainWord()
    {
        QStringList unknown;
        int terms = 0;
        for (const QHeaderView *header : m_window->findChildren<QHeaderView *>()) {
            if (header->orientation() != Qt::Horizontal || !header->model() || header->isHidden())
                continue;
            for (int section = 0; section < header->count(); ++section) {
                const QString text = header->model()->headerData(section, Qt::Horizontal).toString();
                if (termOfLabel(text))
                    ++terms;
                else if (!plainHeads().contains(text)
                    && text != QString::number(section + 1)) // without words
                    unknown += text;
            }
        }
        unknown.removeDuplicates();
        QVERIFY2(unknown.isEmpty(), qPrintable(unknown.join(QStringLiteral("; "))));
        QVERIFY(terms > 10);
    }

    void partsOfTheStatusBarAreTerms()
    {
        int shown = 0;
        QStringList unknown;
        for (QLabel *label : m_window->statusBar()->findChildren<QLabel *>()) {
            if (label->text().isEmpty())
                continue;
            ++shown;
            const bool isTerm = !glossaryTipAt(*label, {}).isEmpty();
            // Zoom and saving are of the window, not of the plan.
            const bool isOfWindow =
                label->text().endsWith(QLatin1Char('%')) || label->text().contains(QLatin1String("sav"));
            if (!isTerm && !isOfWindow)
                unknown += label->text();
        }
        QVERIFY(shown > 5);
        QVERIFY2(unknown.isEmpty(), qPrintable(unknown.join(QStringLiteral("; "))));
    }

    void figuresOfTheInspectorsPlanAreTerms()
    {
        QTRY_VERIFY(m_window->inspector()->toPlainText().contains(QLatin1String("Bubble")));
        const QString text = m_window->inspector()->toPlainText();
        // The plan says what it is, before its figures.
        QVERIFY2(text.contains(QLatin1String("1F1B over 2 stages, tensor parallel 2, 4 micro-batches")),
            qPrintable(text));
        for (const char *figure : {"Step", "Peak memory", "Bubble", "Sent", "Micro-batches", "Stages"}) {
            QVERIFY2(text.contains(QLatin1String(figure)), figure);
            QVERIFY2(findTerm(QString::fromLatin1(figure)), figure);
        }
    }

    void everyEntryIsOfAWordThatUsersMeet()
    {
        QString corpus;
        for (const QWidget *widget : m_window->findChildren<QWidget *>())
            corpus += widget->toolTip() + QLatin1Char('\n') + widget->windowTitle() + QLatin1Char('\n');
        for (const QLabel *label : m_window->findChildren<QLabel *>())
            corpus += label->text() + QLatin1Char('\n');
        for (const QHeaderView *header : m_window->findChildren<QHeaderView *>())
            for (int section = 0; header->model() && section < header->count(); ++section)
                corpus += header->model()->headerData(section, header->orientation()).toString()
                    + QLatin1Char('\n');
        for (const QAction *action : m_window->findChildren<QAction *>())
            corpus += action->text().remove(QLatin1Char('&')) + QLatin1Char('\n');
        for (const char *page : {"window.md", "rows.md", "gallery.md", "desktop.md"})
            corpus += fileText(QStringLiteral(PLANLOOM_SOURCE_DIR "/resources/") + QLatin1String(page));
        for (int kind = 0; kind <= static_cast<int>(InstructionKind::Weigh); ++kind) // of the timeline's bars
            corpus += QString::fromUtf8(nameOf(static_cast<InstructionKind>(kind))) + QLatin1Char('\n');
        corpus += wordsOfSources() + galleryTexts();
        QStringList unused;
        for (const GlossaryEntry &entry : glossary()) {
            const QStringList words = QStringList{entry.term} + entry.alsoNamed;
            if (std::none_of(words.begin(), words.end(),
                    [&corpus](const QString &word) { return corpus.contains(word, Qt::CaseInsensitive); }))
                unused += entry.term;
        }
        QVERIFY2(unused.isEmpty(), qPrintable(unused.join(QStringLiteral("; "))));
    }

    void f1ShowsTheEntryOfWhatHasTheKeyboard()
    {
        m_window->docks().reveal(QStringLiteral("history"));
        QVERIFY(m_window->trigger(QStringLiteral("help.focus")));
        auto *dialog = m_window->findChild<GlossaryDialog *>();
        QVERIFY(dialog);
        QCOMPARE(dialog->list()->currentItem()->text(), QStringLiteral("History"));
        dialog->close();
        QTRY_VERIFY(!m_window->findChild<GlossaryDialog *>());
        QVERIFY(m_window->trigger(QStringLiteral("help.glossary")));
        QVERIFY(m_window->findChild<GlossaryDialog *>());
        m_window->findChild<GlossaryDialog *>()->close();
    }

    void thePillsTipSaysWhatThePlanIs()
    {
        QHelpEvent help(QEvent::ToolTip, {3, 3}, m_window->pill()->mapToGlobal(QPoint{3, 3}));
        QApplication::sendEvent(m_window->pill(), &help);
        QTRY_VERIFY(QToolTip::text().contains(QLatin1String("1F1B over 2 stages, tensor parallel 2")));
    }

private:
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(GlossaryWindowTest)
#include "glossary_window_test.moc"
