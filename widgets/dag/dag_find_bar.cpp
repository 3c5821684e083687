#include "widgets/dag/dag_find_bar.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QToolButton>

#include <algorithm>

namespace planloom {

DagFindBar::DagFindBar(QWidget *parent)
    : QFrame(parent)
    , m_edit(new QLineEdit(this))
    , m_count(new QLabel(this))
    , m_previous(new QToolButton(this))
    , m_next(new QToolButton(this))
    , m_all(new QToolButton(this))
    , m_row(new QToolButton(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    m_edit->setPlaceholderText(tr("Find: attention, kind:Linear & layer:0-3, bytes>64MiB, /regex/"));
    m_edit->setClearButtonEnabled(true);
    m_edit->setAccessibleName(tr("Find operators"));
    m_edit->setMinimumWidth(fontMetrics().averageCharWidth() * 38);
    m_edit->installEventFilter(this);
    m_count->setMinimumWidth(70);
    m_previous->setArrowType(Qt::UpArrow);
    m_previous->setToolTip(tr("Previous (Shift+F3)"));
    m_previous->setAccessibleName(tr("Previous match"));
    m_next->setArrowType(Qt::DownArrow);
    m_next->setToolTip(tr("Next (F3)"));
    m_next->setAccessibleName(tr("Next match"));
    m_all->setText(tr("All"));
    m_all->setToolTip(tr("Select all that was found"));
    m_all->setAccessibleName(tr("Select all matches"));
    m_row->setText(tr("Row…"));
    m_row->setToolTip(tr("Make a row from this"));
    m_row->setAccessibleName(tr("Make a row from this"));
    auto *close = new QToolButton(this);
    close->setText(QStringLiteral("✕"));
    close->setAutoRaise(true);
    close->setToolTip(tr("Close (Esc)"));
    close->setAccessibleName(tr("Close find"));
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(6, 4, 6, 4);
    row->setSpacing(4);
    for (QWidget *part : {static_cast<QWidget *>(m_edit), static_cast<QWidget *>(m_count),
             static_cast<QWidget *>(m_previous), static_cast<QWidget *>(m_next),
             static_cast<QWidget *>(m_all), static_cast<QWidget *>(m_row), static_cast<QWidget *>(close)})
        row->addWidget(part);
    connect(m_edit, &QLineEdit::textChanged, this, &DagFindBar::textChanged);
    connect(m_previous, &QToolButton::clicked, this, &DagFindBar::previousAsked);
    connect(m_next, &QToolButton::clicked, this, &DagFindBar::nextAsked);
    connect(m_all, &QToolButton::clicked, this, &DagFindBar::allAsked);
    connect(m_row, &QToolButton::clicked, this, &DagFindBar::rowAsked);
    connect(close, &QToolButton::clicked, this, &DagFindBar::closed);
    hide();
}

QString DagFindBar::text() const
{
    return m_edit->text();
}

void DagFindBar::open()
{
    show();
    raise();
    m_edit->setFocus(Qt::ShortcutFocusReason);
    m_edit->selectAll();
}

void DagFindBar::setProblem(const QString &sentence)
{
    m_wrong = sentence;
    m_edit->setToolTip(sentence);
    m_count->setToolTip(sentence);
}

void DagFindBar::setMatches(int current, int count)
{
    if (!m_wrong.isEmpty())
        m_count->setText(tr("? %1").arg(m_wrong));
    else if (m_edit->text().isEmpty())
        m_count->setText({});
    else if (count == 0)
        m_count->setText(tr("no match"));
    else if (current < 0)
        m_count->setText(count == 1 ? tr("1 match") : tr("%1 matches").arg(count));
    else
        m_count->setText(tr("%1 of %2").arg(current + 1).arg(count));
    m_previous->setEnabled(count > 0);
    m_next->setEnabled(count > 0);
    m_all->setEnabled(count > 0);
    m_row->setEnabled(count > 0);
    adjustSize();
    if (parentWidget() != nullptr)
        move(std::max(0, parentWidget()->width() - width() - 12), y());
}

bool DagFindBar::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_edit && event->type() == QEvent::KeyPress) {
        const auto *key = static_cast<QKeyEvent *>(event); // the type was checked
        const bool shift = key->modifiers().testFlag(Qt::ShiftModifier);
        switch (key->key()) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
        case Qt::Key_F3:
            if (shift)
                Q_EMIT previousAsked();
            else
                Q_EMIT nextAsked();
            return true;
        case Qt::Key_Escape:
            Q_EMIT closed();
            return true;
        default:
            break;
        }
    }
    return QFrame::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_dag_find_bar.cpp"
