#pragma once

#include <QtCore/QAbstractTableModel>

#include "engine/analyse/span_errors.h"

#include <vector>

namespace planloom {

/// Totals by kind, then the worst spans.
class SpanErrorsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { What, Device, Count, Predicted, Measured, Difference, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setErrors(const SpanErrors &errors);
    /// The operator of a row; invalid for totals.
    OperatorId operatorAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<SpanError> m_lines;
};

} // namespace planloom
