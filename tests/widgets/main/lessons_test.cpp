// Lessons in the window: driven by mouse and keys from the start page to the last step.

#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>

#include "tests/qt_test.h"
#include "tests/widgets/main/lesson_hands.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/lesson/lesson_arrows.h"
#include "widgets/lesson/lesson_pane.h"
#include "widgets/lesson/lesson_question.h"
#include "widgets/lesson/lesson_task_card.h"
#include "widgets/main/lesson_window.h"
#include "widgets/main/main_window.h"
#include "widgets/main/notice_bar.h"

#include <filesystem>
#include <fstream>

using namespace planloom;

namespace {

constexpr const char *kLesson = R"(# Two devices

```lesson
order: 1
minutes: 5
idea: Two devices are faster than one.
```

```open
model: zoo:mlp?layers=3&hidden=256&batch=64
cluster: dgx-a100
devices: 2
rows:
place all : devices 0
```

The step takes {step}, see [bubble](glossary:bubble).

```show
canvas: timeline
dock: constraints
colour: micro-batch
```

```point
at: device 0
words: It has all to do.
```

```choice
Which device waits?
- The first | It has all to do.
+ The second | Nothing runs there.
```

That is half of the devices.

## Share the work

```number
question: How long does the step take?
answer: step
tolerance: 5%
right: It takes {step}.
wrong: Look at the status bar.
```

```task
goal: Give both devices work.
- busy of device 1 > 0 ms | One device of two has nothing to do.
- data parallel = 2
```

```hint
Think of the batch.
```

```hint
A mesh of two.
```

```solution
say: First a name for the two devices.
replace: place -> mesh dp=2
say: Then the batch is cut.
row: split all : batch over dp
```
)";

} // namespace

class LessonsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_settings = std::make_shared<Settings>();
        const QString lesson = m_folder->filePath(QStringLiteral("two"));
        std::filesystem::create_directory(lesson.toStdString());
        std::ofstream(lesson.toStdString() + "/lesson.md") << kLesson;
        makeWindow();
    }

    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
    }

    void aLessonLeadsThroughItsStepsWithMouseAndKeys()
    {
        begin();
        // The first step: its texts have values, and what it shows is shown.
        const QString text = pane()->plainText();
        QVERIFY2(text.contains(QStringLiteral("The step takes")), qPrintable(text));
        QVERIFY2(!text.contains(QLatin1Char('{')) && !text.contains(QLatin1Char('[')), qPrintable(text));
        QVERIFY(!m_window->dag()->isVisible());
        QVERIFY(m_window->timeline()->isVisible());
        QCOMPARE(m_window->timeline()->colouring(), TimelineColouring::MicroBatch);
        QTRY_COMPARE(guide()->arrows()->boxes().size(), std::size_t{1});

        // A wrong answer, then the right one.
        LessonQuestionBox *question = pane()->questions().front();
        // What stands behind a question is read once there is an answer.
        QVERIFY(!text.contains(QStringLiteral("half of the devices")));
        click(question, "answer0");
        QVERIFY(pane()->plainText().contains(QStringLiteral("half of the devices")));
        QVERIFY(!question->isRight());
        QVERIFY(reply(question).contains(QStringLiteral("It has all to do")));
        click(question, "answer1");
        QVERIFY(question->isRight());

        QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isSettled(), kLong);
        QCOMPARE(guide()->progress().step, 1);

        // A number in another unit, one without a unit, and none at all.
        question = pane()->questions().front();
        const double step = m_window->workspace().lastGood()->summary.stepSeconds;
        auto *number = question->findChild<QLineEdit *>(QStringLiteral("number"));
        for (const auto &[typed, right] :
            {std::pair{QString::number(step * 1e6) + QStringLiteral(" us"), true},
                {QStringLiteral("no idea"), false}, {QStringLiteral("%1 s").arg(step * 2), false},
                {QStringLiteral("%1s").arg(step * 1.04), true}}) {
            number->clear();
            QTest::keyClicks(number, typed);
            QTest::keyClick(number, Qt::Key_Return);
            QVERIFY2(
                question->isRight() == right, qPrintable(typed + QStringLiteral(": ") + reply(question)));
        }

        // The task says what is missing, gives hints one after another, and is done by hand.
        LessonTaskCard *task = pane()->task();
        QVERIFY(task);
        QTRY_COMPARE_WITH_TIMEOUT(task->missing().size(), 2, kLong);
        QCOMPARE(task->missing().front(), QStringLiteral("One device of two has nothing to do."));
        QVERIFY(!task->findChild<QLabel *>(QStringLiteral("goalPicture"))->pixmap().isNull());
        click(task, "hint");
        QVERIFY(pane()->plainText().contains(QStringLiteral("Think of the batch.")));
        QVERIFY(!pane()->plainText().contains(QStringLiteral("A mesh of two.")));
        retypeRow(*m_window, QStringLiteral("place"), QStringLiteral("mesh dp=2"));
        typeRow(*m_window, QStringLiteral("split all : batch over dp"));
        QVERIFY2(isDone(), qPrintable(missing()));
        QCOMPARE(pane()->nextButton()->text(), QStringLiteral("&Finish"));

        QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
        QVERIFY(!guide()->isOn());
        QVERIFY(!pane()->isVisible());
        QVERIFY(m_window->dag()->isVisible());
        QVERIFY(lessonMark(*m_settings, QStringLiteral("two"))->finished);
    }

    void showMeMakesOneMoveAfterAnotherAndUndoTakesItBack()
    {
        begin();
        QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isSettled(), kLong);
        const std::string before = m_window->workspace().tableText();
        click(pane()->task(), "showMe");
        QVERIFY(m_window->workspace().tableText().find("mesh dp=2") != std::string::npos);
        QVERIFY(pane()->plainText().contains(QStringLiteral("First a name for the two devices.")));
        click(pane()->task(), "showMe");
        QVERIFY2(isDone(), qPrintable(missing()));
        QVERIFY(m_window->trigger(QStringLiteral("edit.undo")));
        QVERIFY(m_window->trigger(QStringLiteral("edit.undo")));
        QCOMPARE(m_window->workspace().tableText(), before);
        QTRY_VERIFY_WITH_TIMEOUT(!pane()->task()->isDone(), kLong);
        // From anywhere the way begins where the step did.
        typeRow(*m_window, QStringLiteral("mesh tp=2"));
        click(pane()->task(), "beginAgain");
        QCOMPARE(m_window->workspace().tableText(), before);
    }

    void aTaskThatIsPassedByCountsAsDoneForWhatFollows()
    {
        const QString folder = m_folder->filePath(QStringLiteral("three"));
        std::filesystem::create_directory(folder.toStdString());
        std::ofstream(folder.toStdString() + "/lesson.md")
            << kLesson << "\n## Behind it\n\nThere are {data parallel} replicas.\n";
        m_window->lessons()->openFolder(folder);
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isOn() && guide()->isSettled(), kLong);
        for (const int step : {1, 2}) {
            QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
            QTRY_VERIFY_WITH_TIMEOUT(guide()->isSettled() && guide()->progress().step == step, kLong);
        }
        QVERIFY2(pane()->plainText().contains(QStringLiteral("There are 2 replicas.")),
            qPrintable(pane()->plainText()));
        QVERIFY(m_window->workspace().tableText().find("split all : batch over dp") != std::string::npos);
        QVERIFY(m_window->trigger(QStringLiteral("edit.undo"))); // one step of the history
        QVERIFY(m_window->workspace().tableText().find("place all") != std::string::npos);
    }

    void whereOneLeftItIsWhereOneGoesOn()
    {
        begin();
        click(pane()->questions().front(), "answer1");
        QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isSettled(), kLong);
        typeRow(*m_window, QStringLiteral("mesh dp=2"));
        click(pane()->task(), "hint");
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().isAcknowledged(), kLong);
        const std::string rows = m_window->workspace().tableText();
        m_window->close();
        makeWindow();
        begin();
        QCOMPARE(guide()->progress().step, 1);
        QCOMPARE(m_window->workspace().tableText(), rows);
        QVERIFY(pane()->plainText().contains(QStringLiteral("Think of the batch.")));
        QTest::mouseClick(pane()->backButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isSettled(), kLong);
        QVERIFY(pane()->questions().front()->isRight()); // as it was answered
        QCOMPARE(m_window->workspace().tableText(), rows); // going back takes nothing away
    }

    void aDesignThatIsOpenIsLeftAlone()
    {
        m_window->workspace().openModel({"zoo:mlp", {}, {}});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().lastGood() && m_window->isSettled(), kLong);
        const std::string rows = m_window->workspace().tableText();
        m_window->lessons()->openFolder(m_folder->filePath(QStringLiteral("two")));
        MainWindow *other = nullptr;
        for (QWidget *widget : QApplication::topLevelWidgets()) {
            auto *window = qobject_cast<MainWindow *>(widget);
            if (window && window != m_window.get() && window->isVisible())
                other = window;
        }
        QVERIFY(other);
        QTRY_VERIFY_WITH_TIMEOUT(
            other->lessons()->guide()->isOn() && other->lessons()->guide()->isSettled(), kLong);
        QVERIFY(!guide()->isOn());
        QCOMPARE(m_window->workspace().tableText(), rows);
        delete other;
    }

    void whatIsWrongWithAFileIsSaidAndTheRestOpens()
    {
        const QString folder = m_folder->filePath(QStringLiteral("broken"));
        std::filesystem::create_directory(folder.toStdString());
        std::string text = kLesson;
        text.replace(text.find("```show"), 7, "```shwo");
        std::ofstream(folder.toStdString() + "/lesson.md") << text;
        m_window->lessons()->openFolder(folder);
        QVERIFY(m_window->notices().textOf(QStringLiteral("lesson")).contains(QStringLiteral("lesson.md:")));
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isOn() && guide()->isSettled(), kLong);
        QVERIFY(pane()->plainText().contains(QStringLiteral("The step takes")));

        guide()->leave();
        m_window->lessons()->openFolder(m_folder->filePath(QStringLiteral("nowhere")));
        QVERIFY(m_window->notices().textOf(QStringLiteral("lesson")).contains(QStringLiteral("lesson.md")));
        QVERIFY(!guide()->isOn());
    }

    void aModelThatIsNotThereIsSaidInThePane()
    {
        const QString folder = m_folder->filePath(QStringLiteral("gone"));
        std::filesystem::create_directory(folder.toStdString());
        std::string text = kLesson;
        text.replace(text.find("zoo:mlp?"), 8, "zoo:nothing?");
        std::ofstream(folder.toStdString() + "/lesson.md") << text;
        m_window->lessons()->openFolder(folder);
        QTRY_VERIFY_WITH_TIMEOUT(pane()->plainText().contains(QStringLiteral("nothing")), kLong);
        QVERIFY(guide()->isSettled());
    }

private:
    void makeWindow()
    {
        WindowServices services;
        services.settings = m_settings;
        services.sessionFolder = m_folder->filePath(QStringLiteral("sessions"));
        m_window = std::make_unique<MainWindow>(services);
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }

    void begin()
    {
        m_window->lessons()->openFolder(m_folder->filePath(QStringLiteral("two")));
        QTRY_VERIFY_WITH_TIMEOUT(guide()->isOn() && guide()->isSettled(), kLong);
    }

    static void click(QWidget *parent, const char *name)
    {
        auto *button = parent->findChild<QAbstractButton *>(QLatin1String(name));
        QVERIFY(button);
        QTest::mouseClick(button, Qt::LeftButton, {}, QPoint(8, button->height() / 2));
    }

    static QString reply(QWidget *question)
    {
        return question->findChild<QLabel *>(QStringLiteral("reply"))->text();
    }

    bool isDone() const
    {
        return QTest::qWaitFor([this] { return pane()->task()->isDone(); }, kLong);
    }
    QString missing() const
    {
        return pane()->task()->missing().join(QLatin1Char('\n')) + QStringLiteral("\nwith\n")
            + toQString(m_window->workspace().tableText());
    }

    LessonGuide *guide() const { return m_window->lessons()->guide(); }
    LessonPane *pane() const { return guide()->pane(); }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::shared_ptr<Settings> m_settings;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(LessonsTest)
#include "lessons_test.moc"
