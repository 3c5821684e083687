#pragma once

#include <QtCore/QAbstractItemModel>

#include "widgets/main/outline_tree.h"

#include <vector>

namespace planloom {

/// Shows an outline tree.
class OutlineModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum Column { Name, Content, ColumnCount };

    explicit OutlineModel(QObject *parent = nullptr);

    /// Null shows nothing.
    void setTree(OutlineTreeSnapshot tree);
    const OutlineTreeSnapshot &tree() const { return m_tree; }

    /// The operator of a row; invalid for modules.
    OperatorId operatorAt(const QModelIndex &index) const;
    /// Forward operators of a row: itself, or all that lie in the module and are shown.
    std::vector<OperatorId> operatorsIn(const QModelIndex &index) const;
    /// Where a forward operator, or the forward one of a backward operator, is shown; invalid if nowhere.
    QModelIndex indexOf(OperatorId op) const;

    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    const OutlineTree::Node &nodeAt(const QModelIndex &index) const;

    OutlineTreeSnapshot m_tree; ///< Never null.
};

} // namespace planloom
