#pragma once

#include <QtWidgets/QDialog>

class QLineEdit;
class QListWidget;
class QTextBrowser;

namespace planloom {

/// The glossary: a list of terms that is narrowed by what is written, and the entry of the one that is
/// chosen.
class GlossaryDialog : public QDialog
{
    Q_OBJECT
public:
    explicit GlossaryDialog(QWidget *parent = nullptr);

    /// Chooses a term, with all terms listed; without one of that name the first.
    void showTerm(const QString &term);
    QLineEdit *filter() const { return m_filter; }
    QListWidget *list() const { return m_list; }
    QTextBrowser *page() const { return m_page; }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void narrow(const QString &words);
    void showEntry();

    QLineEdit *m_filter;
    QListWidget *m_list;
    QTextBrowser *m_page;
};

} // namespace planloom
