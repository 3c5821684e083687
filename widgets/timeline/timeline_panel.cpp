#include "widgets/timeline/timeline_panel.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

constexpr int kLeastNameLetters = 20; ///< Of a line's name that are shown, however narrow the panel.
constexpr std::size_t kMostShownLines =
    250; ///< Shown; all are copied. More than anybody reads would keep the window waiting.

} // namespace

TimelinePanel::TimelinePanel(QWidget *timeline)
    : QFrame(timeline)
    , m_title(new QLabel(this))
    , m_tree(new QTreeWidget(this))
    , m_copy(new QToolButton(this))
    , m_close(new QToolButton(this))
{
    setObjectName(QStringLiteral("timeline.panel"));
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Window);
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_title->setWordWrap(true);
    m_copy->setText(tr("Copy"));
    m_copy->setToolTip(tr("Copies the table as text (Ctrl+C)"));
    m_close->setText(tr("Close"));
    m_close->setToolTip(tr("Closes the table (Esc)"));
    m_tree->setObjectName(QStringLiteral("timeline.panel.table"));
    m_tree->setAccessibleName(tr("Figures"));
    m_tree->setRootIsDecorated(false);
    m_tree->setUniformRowHeights(true);
    m_tree->setFrameShape(QFrame::NoFrame);
    m_tree->setIndentation(fontMetrics().height() / 2);
    m_tree->header()->setStretchLastSection(false);
    auto *head = new QHBoxLayout;
    head->addWidget(m_title, 1);
    head->addWidget(m_copy);
    head->addWidget(m_close);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->addLayout(head);
    column->addWidget(m_tree, 1);
    connect(m_copy, &QToolButton::clicked, this, &TimelinePanel::copyWanted);
    connect(m_close, &QToolButton::clicked, this, &TimelinePanel::closed);
    const auto choose = [this](const QTreeWidgetItem *item) {
        const qlonglong span = item->data(0, Qt::UserRole).toLongLong();
        if (span >= 0)
            Q_EMIT spanChosen(span);
    };
    connect(m_tree, &QTreeWidget::itemClicked, this, choose);
    connect(m_tree, &QTreeWidget::itemActivated, this, choose);
    hide();
}

void TimelinePanel::open(PanelTable table)
{
    m_table = std::move(table);
    m_title->setText(QString::fromStdString(m_table.title));
    setAccessibleName(m_title->text());
    m_tree->clear();
    m_tree->setRootIsDecorated(m_table.folded);
    QStringList columns;
    for (const std::string &column : m_table.columns)
        columns << QString::fromStdString(column);
    m_tree->setColumnCount(static_cast<int>(columns.size()));
    m_tree->setHeaderLabels(columns);
    m_tree->header()->setSectionResizeMode(0, QHeaderView::Interactive);
    QFont bold = font();
    bold.setBold(true);
    const QFontMetrics metrics(bold);
    // Columns are measured here, once: a header that follows its contents measures them anew for every line
    // that opens.
    std::vector<int> widths;
    for (const QString &column : columns)
        widths.push_back(metrics.horizontalAdvance(column));
    QList<QTreeWidgetItem *> items;
    QTreeWidgetItem *section = nullptr;
    const std::size_t shown = std::min(m_table.lines.size(), kMostShownLines);
    for (std::size_t i = 0; i < shown; ++i) {
        const PanelLine &line = m_table.lines[i];
        QStringList cells;
        for (const std::string &cell : line.cells) {
            cells << QString::fromStdString(cell);
            if (const auto column = static_cast<std::size_t>(cells.size()) - 1; column < widths.size())
                widths[column] = std::max(widths[column], metrics.horizontalAdvance(cells.back()));
        }
        auto *item = new QTreeWidgetItem(cells);
        item->setData(0, Qt::UserRole, static_cast<qlonglong>(line.span));
        for (int column = 1; column < columns.size(); ++column)
            item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        item->setToolTip(0, cells.isEmpty() ? QString() : cells.front());
        if (line.depth == 0) {
            if (!m_table.folded)
                item->setFont(0, bold);
            section = item;
            items << item;
        } else if (section) {
            section->addChild(item);
        } else {
            items << item;
        }
    }
    if (m_table.lines.size() > shown) {
        auto *more = new QTreeWidgetItem({tr("and %1 more lines: Copy has them all")
                                              .arg(static_cast<qulonglong>(m_table.lines.size() - shown))});
        more->setData(0, Qt::UserRole, qlonglong{-1});
        items << more;
    }
    m_tree->addTopLevelItems(items);
    if (!m_table.folded)
        m_tree->expandAll();
    for (QTreeWidgetItem *item : items)
        item->setFirstColumnSpanned(item->text(1).isEmpty());
    for (std::size_t column = 1; column < widths.size(); ++column) {
        m_tree->header()->setSectionResizeMode(static_cast<int>(column), QHeaderView::Interactive);
        m_tree->header()->resizeSection(
            static_cast<int>(column), widths[column] + 2 * metrics.averageCharWidth());
    }
    fitColumns();
    show();
    raise();
}

/// What a line is about has what the figures leave, and never too little to be read: rather are the last
/// figures scrolled to.
void TimelinePanel::fitColumns()
{
    int figures = 0;
    for (int column = 1; column < m_tree->columnCount(); ++column)
        figures += m_tree->header()->sectionSize(column);
    m_tree->header()->resizeSection(0,
        std::max(
            m_tree->viewport()->width() - figures, kLeastNameLetters * fontMetrics().averageCharWidth()));
}

void TimelinePanel::resizeEvent(QResizeEvent *event)
{
    QFrame::resizeEvent(event);
    fitColumns();
}

int TimelinePanel::widthBeside(int timeline) const
{
    const int wanted = fontMetrics().averageCharWidth() * (m_table.columns.size() > 3 ? 80 : 60);
    return std::min(wanted, timeline / 2);
}

void TimelinePanel::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Escape)
        Q_EMIT closed();
    else if (event->matches(QKeySequence::Copy))
        Q_EMIT copyWanted();
    else
        QFrame::keyPressEvent(event);
}

} // namespace planloom

#include "moc_timeline_panel.cpp"
