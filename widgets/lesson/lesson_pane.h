#pragma once

#include <QtWidgets/QWidget>

#include "widgets/lesson/lesson_progress.h"
#include "widgets/lesson/lesson_work.h"

#include <vector>

class QLabel;
class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace planloom {

class LessonQuestionBox;
class LessonTaskCard;

/// A lesson beside the canvases: one step at a time, its texts, questions and task, and the way from step to
/// step.
class LessonPane : public QWidget
{
    Q_OBJECT
public:
    explicit LessonPane(QWidget *parent = nullptr);

    /// Shows a step whose texts are still worked out.
    void showStep(const Lesson &lesson, const LessonProgress &progress);
    void setTexts(const StepTexts &texts, const LessonProgress &progress);
    /// Instead of the texts: why the step cannot be begun.
    void setProblem(const QString &sentence);
    void setMissing(const std::vector<std::string> &missing);
    void setBusy(bool busy);
    /// How many moves of the solution were made.
    void setMoves(int made);
    LessonTaskCard *task() const { return m_task; } ///< Null in steps without one.
    const std::vector<LessonQuestionBox *> &questions() const { return m_questions; }
    QPushButton *nextButton() const { return m_next; }
    QPushButton *backButton() const { return m_back; }
    QPushButton *leaveButton() const { return m_leave; }
    /// All that can be read of the step, as plain text: for tests and screen readers.
    QString plainText() const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void stepAsked(int step);
    void leaveAsked();
    void termAsked(const QString &term); ///< Of the glossary.
    void answered(const QString &place, const QString &given);
    void hintAsked();
    void moveAsked();
    void beginAgainAsked();

private:
    void clearStep();
    QLabel *addText(const QString &rich);
    void addPart(const PartTexts &part, const QString &place, const LessonProgress &progress);
    void addTask(const StepTexts &texts, const LessonProgress &progress);
    void followLink(const QString &address);
    void refreshHead();
    void refreshParts();

    QLabel *m_title;
    QLabel *m_where;
    QPushButton *m_leave;
    QScrollArea *m_scroll;
    QVBoxLayout *m_body;
    QPushButton *m_back;
    QPushButton *m_next;
    LessonTaskCard *m_task = nullptr;
    std::vector<LessonQuestionBox *> m_questions;
    std::vector<QWidget *> m_parts; ///< Of the step, in their order; questions among them.
    StepTexts m_texts;
    int m_step = 0;
    int m_steps = 0;
};

} // namespace planloom
