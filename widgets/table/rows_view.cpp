#include "widgets/table/rows_view.h"

#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QScrollBar>

#include "widgets/common/palette.h"
#include "widgets/table/table_list_model.h"

#include <array>

namespace planloom {

RowsView::RowsView(TableListModel *rows, QWidget *parent)
    : QTableView(parent)
    , m_rows(rows)
{
    setModel(rows);
    setFrameShape(QFrame::NoFrame);
    setShowGrid(false);
    setWordWrap(false);
    setMouseTracking(true);
    setCornerButtonEnabled(false);
    setTabKeyNavigation(false); // Tab leaves; arrows go from cell to cell
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed
        | QAbstractItemView::AnyKeyPressed);
    setDragEnabled(true);
    setAcceptDrops(true);
    setDropIndicatorShown(true);
    setDragDropOverwriteMode(false);
    setDragDropMode(QAbstractItemView::DragDrop);
    setDefaultDropAction(Qt::MoveAction);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    setTextElideMode(Qt::ElideRight);
    setAccessibleName(tr("Constraints"));
    verticalHeader()->hide();
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setSectionsClickable(true);
    horizontalHeader()->setStretchLastSection(true);
    horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    // Where the solver's column is half outside, its buttons stay within the view.
    connect(horizontalScrollBar(), &QScrollBar::valueChanged, viewport(), qOverload<>(&QWidget::update));
    setDefaultWidths();
}

void RowsView::setDefaultWidths()
{
    const int letter = fontMetrics().averageCharWidth();
    static constexpr std::array<int, kTableColumns> kLetters{6, 6, 30, 17, 30, 14, 24, 26, 11, 30};
    for (int column = 0; column < kTableColumns; ++column)
        setColumnWidth(column, letter * kLetters[static_cast<std::size_t>(column)]);
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 3 / 2);
    horizontalHeader()->setMinimumSectionSize(letter * 4);
}

void RowsView::keyPressEvent(QKeyEvent *event)
{
    const int row = currentIndex().row();
    const bool heading = currentIndex().isValid() && m_rows->kindOf(row) == TableListModel::Kind::Heading;
    const int key = event->key();
    const bool enter = key == Qt::Key_Return || key == Qt::Key_Enter;
    if (heading && (enter || key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Space)) {
        m_rows->setCollapsed(row, key == Qt::Key_Left || (key != Qt::Key_Right && !m_rows->isCollapsed(row)));
        return;
    }
    if (enter && event->modifiers() == Qt::NoModifier && currentIndex().isValid()
        && (currentIndex().flags() & Qt::ItemIsEditable)) {
        edit(currentIndex());
        return;
    }
    if (key == Qt::Key_Space && event->modifiers() == Qt::NoModifier)
        return; // switches rows, and is the panel's
    if (key == Qt::Key_Escape && currentIndex().isValid()) {
        selectionModel()->clearSelection();
        event->ignore(); // others give things up too
        return;
    }
    QTableView::keyPressEvent(event);
}

void RowsView::mousePressEvent(QMouseEvent *event)
{
    const QModelIndex index = indexAt(event->position().toPoint());
    if (index.isValid() && event->button() == Qt::LeftButton
        && m_rows->kindOf(index.row()) == TableListModel::Kind::Heading) {
        setCurrentIndex(index);
        m_rows->setCollapsed(index.row(), !m_rows->isCollapsed(index.row()));
        return;
    }
    QTableView::mousePressEvent(event);
    // The new row is there to be typed into: one click is enough.
    if (index.isValid() && event->button() == Qt::LeftButton
        && m_rows->kindOf(index.row()) == TableListModel::Kind::NewRow
        && (index.flags() & Qt::ItemIsEditable))
        edit(index);
}

void RowsView::mouseMoveEvent(QMouseEvent *event)
{
    QTableView::mouseMoveEvent(event);
    if (event->buttons() == Qt::NoButton)
        hover(indexAt(event->position().toPoint()).row());
}

void RowsView::leaveEvent(QEvent *event)
{
    QTableView::leaveEvent(event);
    hover(-1);
}

void RowsView::hover(int row)
{
    if (row == m_hovered)
        return;
    m_hovered = row;
    Q_EMIT rowHovered(row);
}

void RowsView::paintEvent(QPaintEvent *event)
{
    QTableView::paintEvent(event);
    if (m_rows->rowCount() > 1)
        return;
    QPainter painter(viewport());
    painter.setPen(paletteFor(*this).textMuted);
    const int top = rowViewportPosition(0) + rowHeight(0) * 2;
    const bool filtered = m_rows->rows()->rowCount() > 0;
    painter.drawText(viewport()->rect().adjusted(fontMetrics().height(), top, -fontMetrics().height(), 0),
        Qt::AlignHCenter | Qt::AlignTop | Qt::TextWordWrap,
        filtered ? tr("No row fits the filter.")
                 : tr("No rows yet: the defaults decide everything.\nPress Insert, type into the row above, "
                      "paste rows, or "
                      "shape the plan on the canvases."));
}

void RowsView::changeEvent(QEvent *event)
{
    QTableView::changeEvent(event);
    if (event->type() == QEvent::FontChange)
        setDefaultWidths();
}

} // namespace planloom

#include "moc_rows_view.cpp"
