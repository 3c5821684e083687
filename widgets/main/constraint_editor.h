#pragma once

#include <QtWidgets/QPlainTextEdit>

#include "widgets/design/engine_job.h"

#include <map>

class QSyntaxHighlighter;

namespace planloom {

/// The constraint table as text, with line numbers, how many operators each row binds, and marks on lines with errors.
class ConstraintEditor : public QPlainTextEdit
{
    Q_OBJECT
public:
    explicit ConstraintEditor(QWidget *parent = nullptr);

    /// Marks lines by what `update` says of them; null removes all marks.
    void setReports(const PlanUpdateSnapshot &update);
    /// Replaces the text unless it is the same, without a `textEdited`.
    void setTableText(const QString &text);
    /// Puts the cursor on line `line` (0-based).
    void showLine(int line);

    int gutterWidth() const;
    void paintGutter(QPaintEvent *event);
    /// The sentence on a line, for its tooltip; empty for none.
    QString messageAt(int line) const;

Q_SIGNALS:
    /// The person changed the text.
    void textEdited();

protected:
    void resizeEvent(QResizeEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    struct Mark {
        bool error = false;
        bool warning = false;
        QString text{}; ///< "96": what the gutter says.
        QString message{};
        int column = -1; ///< 0-based; -1 marks the whole line.
    };

    void highlight();
    int lineAt(const QPoint &position) const;

    QWidget *m_gutter;
    QSyntaxHighlighter *m_highlighter;
    std::map<int, Mark> m_marks; ///< By line, 0-based.
    bool m_setting = false;
};

} // namespace planloom
