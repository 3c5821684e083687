#pragma once

#include <QtWidgets/QFrame>

class QLabel;
class QLineEdit;
class QToolButton;

namespace planloom {

/// The strip over the canvas that finds operators: a text, "3 of 12", previous, next, close.
class DagFindBar : public QFrame
{
    Q_OBJECT
public:
    explicit DagFindBar(QWidget *parent);

    QString text() const;
    /// Shows the strip with its text selected.
    void open();
    /// @param current  from 0; -1 if none is current
    void setMatches(int current, int count);
    /// What is wrong with the question; empty if nothing is.
    void setProblem(const QString &sentence);

Q_SIGNALS:
    void textChanged(const QString &text);
    void nextAsked();
    void previousAsked();
    void closed();
    void allAsked(); ///< Select all that was found.
    void rowAsked(); ///< Make a row about what was found.

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QLineEdit *m_edit;
    QLabel *m_count;
    QToolButton *m_previous;
    QToolButton *m_next;
    QToolButton *m_all;
    QToolButton *m_row;
    QString m_wrong;
};

} // namespace planloom
