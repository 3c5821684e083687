#pragma once

#include <QtWidgets/QStyledItemDelegate>

namespace planloom {

class HistoryModel;
class HistoryFilter;

/// Draws the rows of the history: the tree of branches, names as tags, changes in their colour. Holds no
/// logic: what is drawn is what the model says.
class HistoryDelegate : public QStyledItemDelegate
{
    Q_OBJECT
public:
    /// Neither is owned; `filter` shows `model`.
    HistoryDelegate(const HistoryModel *model, const HistoryFilter *filter, QObject *parent = nullptr);

    void paint(
        QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    /// Width of the tree's column, for the font of `widget`.
    int treeWidth(const QWidget &widget) const;

protected:
    void initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const override;

private:
    void paintTree(QPainter &painter, const QStyleOptionViewItem &option, int row) const;
    void paintWords(QPainter &painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;

    const HistoryModel *m_model;
    const HistoryFilter *m_filter;
};

} // namespace planloom
