#pragma once

#include <QtCore/QAbstractItemModel>
#include <QtGui/QColor>

#include "engine/measured/measured_rows.h"

#include <optional>
#include <vector>

namespace planloom {

/// Measured runs below the sources that they are from, each with how far its prediction is off, and each
/// source with the median and the worst of its runs.
class AccuracyModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum Column : int {
        Run,
        Off,
        Predicted,
        Measured,
        PeakOff,
        PredictedPeak,
        MeasuredPeak,
        Device,
        Devices,
        Framework,
        Remark,
        Columns
    };
    static constexpr int kSortRole = Qt::UserRole; ///< Figures as numbers; errors by their size.

    explicit AccuracyModel(QObject *parent = nullptr);

    void setRows(std::vector<MeasuredRow> rows);
    const std::vector<MeasuredRow> &rows() const { return m_rows; } ///< Source by source.
    /// Of the sources, in their order.
    void setColours(std::vector<QColor> colours);
    int groupCount() const { return static_cast<int>(m_groups.size()); }
    int groupOf(int row) const;
    /// The index of `rows()[row]`.
    QModelIndex indexOf(int row) const;
    /// The row that an index is of; none for sources.
    std::optional<int> rowOf(const QModelIndex &index) const;

    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Group {
        int first = 0; ///< Of `m_rows`.
        int count = 0;
        ErrorSummary step{};
        ErrorSummary peak{};
    };
    QVariant ofGroup(const Group &group, int column, int role) const;
    static QVariant ofRow(const MeasuredRow &row, int column, int role);

    std::vector<MeasuredRow> m_rows;
    std::vector<Group> m_groups;
    std::vector<QColor> m_colours;
};

} // namespace planloom
