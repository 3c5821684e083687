// Every lesson of the program is worked through in the window by mouse and keys, with the mistakes that it
// refuses.

#include <QtCore/QObject>
#include <QtCore/QRegularExpression>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "tests/widgets/main/lesson_hands.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/settings.h"
#include "widgets/glossary/glossary.h"
#include "widgets/lesson/lesson_pane.h"
#include "widgets/lesson/lesson_question.h"
#include "widgets/lesson/lesson_task_card.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/lesson_window.h"
#include "widgets/main/main_window.h"
#include "widgets/main/start_page.h"
#include "widgets/run/run_panel.h"

#include <algorithm>
#include <utility>

using namespace planloom;

class WorkedLessonsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_settings = std::make_shared<Settings>();
        WindowServices services;
        services.settings = m_settings;
        services.sessionFolder = m_folder->filePath(QStringLiteral("sessions"));
        m_window = std::make_unique<MainWindow>(services);
        m_window->run()->service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }

    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
    }

    void oneToThree_data() { rows(0, 3); }
    void oneToThree() { work(); }
    void fourToSix_data() { rows(3, 6); }
    void fourToSix() { work(); }
    void sevenToNine_data() { rows(6, 9); }
    void sevenToNine() { work(); }
    void tenOn_data() { rows(9, bundledLessons().size()); }
    void tenOn() { work(); }

    /// What lessons name of the window is there: terms, commands, docks, colourings.
    void whatLessonsNameIsThere()
    {
        static const QRegularExpression kLink(QStringLiteral("\\(glossary:([^)]*)\\)"));
        for (const Lesson &lesson : bundledLessons()) {
            for (const LessonStep &step : lesson.steps) {
                for (const LessonPoint &point : step.points) {
                    if (point.kind == PlaceKind::Command)
                        QVERIFY2(m_window->commands().find(toQString(point.what)), point.what.c_str());
                }
                if (step.show && !step.show->colour.empty())
                    QVERIFY2(m_window->commands().find(LessonWindow::commandOfColour(step.show->colour)),
                        step.show->colour.c_str());
                for (const LessonPart &part : step.parts) {
                    const auto *prose = std::get_if<Prose>(&part);
                    if (!prose)
                        continue;
                    for (const LessonText::Piece &piece : prose->text.pieces) {
                        const auto *words = std::get_if<std::string>(&piece);
                        auto links = kLink.globalMatch(words ? toQString(*words) : QString());
                        while (links.hasNext()) {
                            const QString term = links.next().captured(1);
                            QVERIFY2(findTerm(term),
                                qPrintable(toQString(lesson.name) + QStringLiteral(": ") + term));
                        }
                    }
                }
            }
        }
    }

private:
    static void rows(std::size_t from, std::size_t to)
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = from; i < std::min(to, bundledLessons().size()); ++i)
            QTest::addRow("%s", bundledLessons()[i].name.c_str()) << static_cast<int>(i);
    }

    /// A card is clicked, questions are answered wrong and right, and each task is done by hand, after what
    /// it refuses was done, too.
    void work()
    {
        QFETCH(int, index);
        const Lesson &lesson = bundledLessons()[static_cast<std::size_t>(index)];
        const auto cards = m_window->findChildren<LessonCard *>();
        QCOMPARE(static_cast<std::size_t>(cards.size()), bundledLessons().size());
        m_window->findChild<StartPage *>()->ensureWidgetVisible(cards[index]);
        QTest::mouseClick(cards[index], Qt::LeftButton);
        for (std::size_t i = 0; i < lesson.steps.size(); ++i) {
            QTRY_VERIFY_WITH_TIMEOUT(
                guide()->isSettled() && guide()->progress().step == static_cast<int>(i), kLong);
            for (LessonQuestionBox *question : pane()->questions())
                answer(question);
            const QString text = pane()->plainText();
            QVERIFY2(!text.contains(QLatin1Char('[')) && !text.contains(QLatin1Char('{')), qPrintable(text));
            QVERIFY2(!text.contains(QStringLiteral("Here it is otherwise")), qPrintable(text));
            if (lesson.steps[i].task)
                doTask(lesson, lesson.steps[i]);
            QTest::mouseClick(pane()->nextButton(), Qt::LeftButton);
        }
        QVERIFY(!guide()->isOn());
        QVERIFY(lessonMark(*m_settings, toQString(lesson.name))->finished);
    }

    void doTask(const Lesson &lesson, const LessonStep &step)
    {
        QVERIFY2(QTest::qWaitFor([&] { return !pane()->task()->missing().isEmpty(); }, kLong),
            qPrintable(pane()->plainText()));
        for (const LessonWrong &wrong : step.task->wrong) {
            if (!makeByHand(lesson, step, wrong))
                continue;
            QVERIFY2(QTest::qWaitFor([&] { return missing().contains(toQString(wrong.says)); }, kLong),
                qPrintable(toQString(wrong.says) + QStringLiteral("\nbut:\n") + missing()));
            QTest::mouseClick(
                pane()->task()->findChild<QPushButton *>(QStringLiteral("beginAgain")), Qt::LeftButton);
        }
        for (const LessonDeed &deed : step.task->solution)
            doByHand(*m_window, deed);
        if (asksForRun(*step.task))
            run();
        QVERIFY2(QTest::qWaitFor([this] { return pane()->task()->isDone(); }, kLong), qPrintable(missing()));
    }

    /// @return false for plans on other models or clusters, which hands don't open here
    bool makeByHand(const Lesson &lesson, const LessonStep &step, const LessonWrong &wrong)
    {
        if (!wrong.design) {
            for (const LessonDeed &deed : wrong.deeds)
                doByHand(*m_window, deed);
            return true;
        }
        const LessonDesign &open = lesson.designs[static_cast<std::size_t>(step.open)];
        const LessonDesign design = filledUp(*wrong.design, open);
        if (design.model != open.model || design.cluster != open.cluster || design.gallery.empty()
            || design.rows)
            return false;
        if (design.devices != open.devices)
            doByHand(*m_window, {.kind = DeedKind::Devices, .devices = design.devices});
        doByHand(*m_window, {.kind = DeedKind::Gallery, .what = design.gallery});
        return true;
    }

    QString missing() const
    {
        return pane()->task()->missing().join(QLatin1Char('\n')) + QStringLiteral("\nwith\n")
            + toQString(m_window->workspace().tableText());
    }

    static QString reply(QWidget *question)
    {
        return question->findChild<QLabel *>(QStringLiteral("reply"))->text();
    }

    /// Tries all answers: each has a reply, and at least one is right.
    static void answer(LessonQuestionBox *question)
    {
        bool right = false;
        const auto answers =
            question->findChildren<QAbstractButton *>(QRegularExpression(QStringLiteral("^answer")));
        for (QAbstractButton *button : answers) {
            QTest::mouseClick(button, Qt::LeftButton, {}, QPoint(8, button->height() / 2));
            QVERIFY(!reply(question).isEmpty());
            right = right || question->isRight();
        }
        if (auto *number = question->findChild<QLineEdit *>(QStringLiteral("number"))) {
            QTest::keyClicks(number, QStringLiteral("-1"));
            QTest::keyClick(number, Qt::Key_Return);
            QVERIFY(!question->isRight());
            number->clear();
            QTest::keyClicks(number, toQString(toString(*question->texts().answer)));
            QTest::keyClick(number, Qt::Key_Return);
            right = question->isRight();
        }
        QVERIFY2(right, qPrintable(question->accessibleName()));
    }

    static bool asksForRun(const LessonTask &task)
    {
        return std::any_of(task.needs.begin(), task.needs.end(), [](const LessonNeed &need) {
            const std::vector<FigureName> figures = need.condition.figures();
            return std::any_of(figures.begin(), figures.end(), [](const FigureName &name) {
                return name.figure == Figure::Run || name.figure == Figure::Measured;
            });
        });
    }

    void run()
    {
        const auto &workspace = m_window->workspace();
        QTRY_VERIFY_WITH_TIMEOUT(
            !workspace.isPlanning() && workspace.latest()->grade == PlanGrade::Verified, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->run()->runAction()->isEnabled(), kLong);
        QVERIFY(m_window->trigger(QStringLiteral("run.run")));
        QTRY_VERIFY_WITH_TIMEOUT(
            !workspace.runs().empty() && workspace.runs().back().state == "done", 3 * kLong);
    }

    LessonGuide *guide() const { return m_window->lessons()->guide(); }
    LessonPane *pane() const { return guide()->pane(); }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::shared_ptr<Settings> m_settings;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(WorkedLessonsTest)
#include "worked_lessons_test.moc"
