#include "widgets/glossary/glossary_dialog.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include "widgets/glossary/glossary.h"

#include <algorithm>

namespace planloom {

namespace {

/// Terms that begin with what is sought come before those that have it elsewhere; then those whose sentences
/// do. -1: none of these.
int rankOf(const GlossaryEntry &entry, const QString &words)
{
    const auto begins = [&](const QString &name) { return name.startsWith(words, Qt::CaseInsensitive); };
    const auto has = [&](const QString &name) { return name.contains(words, Qt::CaseInsensitive); };
    if (begins(entry.term) || std::any_of(entry.alsoNamed.begin(), entry.alsoNamed.end(), begins))
        return 0;
    if (has(entry.term) || std::any_of(entry.alsoNamed.begin(), entry.alsoNamed.end(), has))
        return 1;
    return has(entry.sentences) || has(entry.paper) ? 2 : -1;
}

} // namespace

GlossaryDialog::GlossaryDialog(QWidget *parent)
    : QDialog(parent)
    , m_filter(new QLineEdit(this))
    , m_list(new QListWidget(this))
    , m_page(new QTextBrowser(this))
{
    setObjectName(QStringLiteral("glossary"));
    setWindowTitle(tr("Glossary"));
    m_filter->setPlaceholderText(tr("Search terms"));
    m_filter->setAccessibleName(tr("Search terms"));
    m_filter->setClearButtonEnabled(true);
    m_filter->installEventFilter(this);
    m_list->setAccessibleName(tr("Terms"));
    m_page->setAccessibleName(tr("What the term means"));
    m_page->setOpenLinks(false);
    auto *splitter = new QSplitter(this);
    splitter->addWidget(m_list);
    splitter->addWidget(m_page);
    splitter->setStretchFactor(1, 1);
    splitter->setChildrenCollapsible(false);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(m_filter);
    layout->addWidget(splitter, 1);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_filter, &QLineEdit::textChanged, this, &GlossaryDialog::narrow);
    connect(m_list, &QListWidget::currentItemChanged, this, &GlossaryDialog::showEntry);
    const int letter = fontMetrics().averageCharWidth();
    m_list->setMinimumWidth(letter * 26);
    resize(letter * 100, fontMetrics().height() * 26);
    narrow({});
}

void GlossaryDialog::showTerm(const QString &term)
{
    m_filter->clear();
    const GlossaryEntry *entry = findTerm(term);
    const QList<QListWidgetItem *> found =
        entry ? m_list->findItems(entry->term, Qt::MatchExactly) : QList<QListWidgetItem *>{};
    if (found.isEmpty())
        m_list->setCurrentRow(0);
    else
        m_list->setCurrentItem(found.front());
    m_filter->setFocus();
}

/// The arrows choose among the terms while words are written.
bool GlossaryDialog::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_filter && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent *>(event)->key();
        if (key == Qt::Key_Up || key == Qt::Key_Down || key == Qt::Key_PageUp || key == Qt::Key_PageDown) {
            QCoreApplication::sendEvent(m_list, event);
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

void GlossaryDialog::narrow(const QString &words)
{
    const QString sought = words.simplified();
    m_list->clear();
    for (int rank = 0; rank <= 2; ++rank)
        for (const GlossaryEntry &entry : glossary())
            if (rankOf(entry, sought) == rank)
                m_list->addItem(entry.term);
    m_list->setCurrentRow(0);
    showEntry();
}

void GlossaryDialog::showEntry()
{
    const QListWidgetItem *item = m_list->currentItem();
    const GlossaryEntry *entry = item ? findTerm(item->text()) : nullptr;
    if (!entry) {
        m_page->setHtml(tr("<p>No term has these words.</p>"));
        return;
    }
    QString html = QStringLiteral("<h2>%1</h2><p>%2</p>")
                       .arg(entry->term.toHtmlEscaped(), entry->sentences.toHtmlEscaped());
    if (!entry->alsoNamed.isEmpty())
        html += tr("<p>Also: %1</p>").arg(entry->alsoNamed.join(QStringLiteral(", ")).toHtmlEscaped());
    if (!entry->paper.isEmpty())
        html += tr("<p>Paper: %1</p>").arg(entry->paper.toHtmlEscaped());
    m_page->setHtml(html);
}

} // namespace planloom

#include "moc_glossary_dialog.cpp"
