#include "widgets/glossary/glossary_help.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QTextBlock>
#include <QtGui/QTextDocument>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QApplication>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QToolTip>

#include "widgets/glossary/glossary.h"
#include "widgets/glossary/glossary_dialog.h"

namespace planloom {

namespace {

/// What the widget says itself, as rich text, before an entry.
QString joinedTip(const QString &own, const GlossaryEntry &entry)
{
    if (own.isEmpty() || own.contains(entry.sentences.toHtmlEscaped()))
        return own.isEmpty() ? tipOf(entry) : own;
    return (Qt::mightBeRichText(own) ? own : QStringLiteral("<p>%1</p>").arg(own.toHtmlEscaped()))
        + tipOf(entry);
}

QString tipOfSection(const QHeaderView &header, const QPoint &position)
{
    const int section = header.logicalIndexAt(position);
    const QAbstractItemModel *model = header.model();
    if (section < 0 || !model)
        return {};
    const GlossaryEntry *entry = termOfLabel(model->headerData(section, header.orientation()).toString());
    return entry
        ? joinedTip(model->headerData(section, header.orientation(), Qt::ToolTipRole).toString(), *entry)
        : QString();
}

} // namespace

const std::vector<NamedHelp> &namedHelp()
{
    static const std::vector<NamedHelp> kNames{
        {"dag", "Operator"},
        {"timeline", "Timeline"},
        {"transportBar", "Timeline"},
        {"model", "Model"},
        {"devices", "Device"},
        {"gallery", "Gallery"},
        {"inspector", "Inspector"},
        {"constraints", "Constraint table"},
        {"problems", "Problems"},
        {"memory", "Memory"},
        {"communication", "Communication"},
        {"whatif", "What If"},
        {"history", "History"},
        {"plans", "Plan"},
        {"scenes", "Scene"},
        {"lessonPane", "Lesson"},
        {"run", "Run"},
        {"trace", "Trace"},
        {"log", "Log"},
        {"cluster", "Cluster"},
        {"framework", "Framework profile"},
        {"schedule", "Schedule"},
        {"scheduleBoard", "Schedule"},
        {"compareView", "Waterfall"},
        {"searchedPlans", "Search"},
    };
    return kNames;
}

QString termOfWidget(const QWidget *widget)
{
    for (const QWidget *each = widget; each; each = each->parentWidget())
        for (const NamedHelp &help : namedHelp())
            if (each->objectName() == QLatin1String(help.widget))
                return QString::fromLatin1(help.term);
    return {};
}

QString glossaryTipAt(QWidget &widget, const QPoint &position)
{
    if (const auto *label = qobject_cast<QLabel *>(&widget)) {
        QString text = label->text();
        if (label->textFormat() == Qt::RichText || Qt::mightBeRichText(text)) {
            QTextDocument plain;
            plain.setHtml(text);
            text = plain.toPlainText();
        }
        const GlossaryEntry *entry = termOfLabel(text);
        return entry ? joinedTip(label->toolTip(), *entry) : QString();
    }
    // What is seen of a scroll area is its viewport.
    QWidget *parent = widget.parentWidget();
    if (const auto *header = qobject_cast<QHeaderView *>(parent))
        return tipOfSection(*header, position);
    if (const auto *page = qobject_cast<QTextBrowser *>(parent)) {
        const QTextCursor cursor = page->cursorForPosition(position);
        const GlossaryEntry *entry = findTerm(cursor.block().text());
        return entry && page->anchorAt(position).isEmpty() ? tipOf(*entry) : QString();
    }
    return {};
}

GlossaryHelp::GlossaryHelp(QWidget *window)
    : QObject(window)
    , m_window(window)
{
    qApp->installEventFilter(this);
}

GlossaryHelp::~GlossaryHelp() = default;

void GlossaryHelp::open(const QString &term)
{
    if (!m_dialog) {
        m_dialog = new GlossaryDialog(m_window);
        m_dialog->setAttribute(Qt::WA_DeleteOnClose);
    }
    m_dialog->show();
    m_dialog->raise();
    m_dialog->activateWindow();
    m_dialog->showTerm(term);
}

void GlossaryHelp::openForFocus()
{
    open(termOfWidget(QApplication::focusWidget()));
}

GlossaryDialog *GlossaryHelp::dialog() const
{
    return m_dialog;
}

bool GlossaryHelp::eventFilter(QObject *watched, QEvent *event)
{
    auto *widget = event->type() == QEvent::ToolTip ? qobject_cast<QWidget *>(watched) : nullptr;
    if (widget && (widget->window() == m_window || widget->window()->parentWidget() == m_window)) {
        const auto *help = static_cast<const QHelpEvent *>(event);
        if (const QString tip = glossaryTipAt(*widget, help->pos()); !tip.isEmpty()) {
            QToolTip::showText(help->globalPos(), tip, widget);
            return true;
        }
    }
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_glossary_help.cpp"
