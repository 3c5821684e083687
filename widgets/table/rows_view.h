#pragma once

#include <QtWidgets/QTableView>

namespace planloom {

class TableListModel;

/// The grid of the constraint table: keys, headings that collapse, and what the pointer is over.
class RowsView : public QTableView
{
    Q_OBJECT
public:
    RowsView(TableListModel *rows, QWidget *parent = nullptr);

    /// Column widths for the font, the note taking what is left.
    void setDefaultWidths();
    bool isEditing() const { return state() == QAbstractItemView::EditingState; }

Q_SIGNALS:
    void rowHovered(int row); ///< -1 when the pointer leaves.

protected:
    void keyPressEvent(QKeyEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void hover(int row);

    TableListModel *m_rows;
    int m_hovered = -1;
};

} // namespace planloom
