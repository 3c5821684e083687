#pragma once

#include <QtWidgets/QFrame>

#include "widgets/lesson/lesson_work.h"

#include <string>
#include <vector>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace planloom {

/// What a lesson asks somebody to do: the goal in words and as a picture, what is missing still, hints, and
/// the solution move by move.
class LessonTaskCard : public QFrame
{
    Q_OBJECT
public:
    explicit LessonTaskCard(QWidget *parent = nullptr);

    /// @param hints  how many are shown
    void setTexts(const StepTexts &texts, int hints);
    /// Empty: it is done. The sentences of the last time stay while a plan is made.
    void setMissing(const std::vector<std::string> &missing);
    /// A plan is being made, or looked at.
    void setBusy(bool busy);
    /// How many moves of the solution were made, and what was said last.
    void setMoves(int made, const QString &said);
    bool isDone() const { return m_done; }
    int hints() const { return m_shownHints; }
    QStringList missing() const { return m_missing; }

Q_SIGNALS:
    void hintAsked();
    /// The next move of the solution is to be made.
    void moveAsked();
    /// The design is to be again what the step began with.
    void beginAgainAsked();
    void linkActivated(const QString &address);

private:
    QLabel *addLabel(const char *name);
    void showHints();
    void refreshButtons();

    StepTexts m_texts;
    QStringList m_missing;
    int m_shownHints = 0;
    int m_made = 0;
    bool m_done = false;
    QLabel *m_goal;
    QLabel *m_picture;
    QLabel *m_state;
    QLabel *m_hints;
    QLabel *m_said;
    QPushButton *m_hint;
    QPushButton *m_show;
    QPushButton *m_again;
};

} // namespace planloom
