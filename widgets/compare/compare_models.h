#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QStringList>

#include "widgets/compare/compare_result.h"
#include "widgets/compare/metric_table.h"

#include <vector>

namespace planloom {

/// Figures by plan: the first plan's values, and for each other one its values, the difference and the share
/// of the first.
class MetricModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Role {
        ChangeRole = Qt::UserRole + 1, ///< Change as an int, in the columns of differences.
    };

    explicit MetricModel(QObject *parent = nullptr);

    /// `titles` are those of the plans.
    void setMetrics(std::vector<PlanMetric> metrics, QStringList titles);
    const std::vector<PlanMetric> &metrics() const { return m_metrics; }
    const QStringList &titles() const { return m_titles; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<PlanMetric> m_metrics;
    QStringList m_titles;
};

/// Rows of two tables beside each other. Rows can be dragged from one side to the other, which asks to take
/// them over.
class RowDiffModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { State, SelectorA, RuleA, SelectorB, RuleB, ColumnCount };
    enum Role {
        DiffersRole = Qt::UserRole + 1, ///< The cell differs from its like on the other side.
        KindRole, ///< ComparedRow::Kind as an int.
    };

    explicit RowDiffModel(QObject *parent = nullptr);

    void setRows(std::vector<ComparedRow> rows);
    const std::vector<ComparedRow> &rows() const { return m_rows; }
    int differences() const; ///< Rows that are not the same.
    /// Leaves out rows that are the same on both sides.
    void setOnlyDifferences(bool only);
    /// The row shown at `row`.
    const ComparedRow &rowAt(int row) const { return m_rows[m_shown[static_cast<std::size_t>(row)]]; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QStringList mimeTypes() const override;
    QMimeData *mimeData(const QModelIndexList &indexes) const override;
    bool canDropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column,
        const QModelIndex &parent) const override;
    bool dropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column,
        const QModelIndex &parent) override;
    Qt::DropActions supportedDropActions() const override { return Qt::CopyAction; }

Q_SIGNALS:
    /// Rows (indices of `rows()`) were dragged from a side to the other one.
    void takeOverRequested(const std::vector<int> &rows, bool fromA);

private:
    void reshow();

    std::vector<ComparedRow> m_rows;
    std::vector<std::size_t> m_shown;
    bool m_onlyDifferences = false;
};

} // namespace planloom
