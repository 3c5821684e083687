#pragma once

#include <QtWidgets/QWidget>

class QLabel;
class QPlainTextEdit;

namespace planloom {

struct TalkState;

/// The speaker's window, for a second screen: the scene's note in large type, what comes next, how long the
/// talk has been going on, and the time of day.
class NotesWindow : public QWidget
{
    Q_OBJECT
public:
    /// Beside `window`: on another screen if there is one.
    explicit NotesWindow(QWidget *window);

    void show(const TalkState &state);
    using QWidget::show;
    QString noteText() const;
    QString nextText() const;
    QString timeText() const;

private:
    QLabel *m_name;
    QPlainTextEdit *m_note;
    QLabel *m_next;
    QLabel *m_elapsed;
    QLabel *m_clock;
};

} // namespace planloom
