#pragma once

#include <QtWidgets/QFrame>

#include "widgets/lesson/lesson_work.h"

class QButtonGroup;
class QLabel;
class QLineEdit;
class QPushButton;

namespace planloom {

/// A question of a lesson: answers to choose from, or a number to type, and what is said of it.
class LessonQuestionBox : public QFrame
{
    Q_OBJECT
public:
    explicit LessonQuestionBox(QWidget *parent = nullptr);

    /// @param given  as `given()` had it; empty for none
    void setTexts(const QuestionTexts &texts, const QString &given);
    /// The number of the answer that was chosen, or what was typed, once it was checked; empty before.
    const QString &given() const { return m_given; }
    const QuestionTexts &texts() const { return m_texts; }
    bool isRight() const { return m_right; }

Q_SIGNALS:
    void answered();
    /// A link to a term of the glossary.
    void linkActivated(const QString &address);

private:
    QLabel *addLabel(const QString &text);
    void addAnswers();
    void addNumber();
    void choose(int answer);
    void checkNumber();
    void reply(bool right, const QString &words);

    QuestionTexts m_texts;
    QString m_given;
    bool m_right = false;
    QButtonGroup *m_answers = nullptr; ///< Of a choice.
    QLineEdit *m_number = nullptr; ///< Of a number.
    QLabel *m_reply = nullptr;
};

} // namespace planloom
