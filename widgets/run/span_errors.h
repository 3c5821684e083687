#pragma once

#include <QtCore/QAbstractTableModel>

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Spans of one kind in a step, or one span, measured against predicted.
struct SpanError {
    std::string what{}; ///< "kernel", "all-reduce"; with its operator and micro-batch, of one span.
    std::int32_t device = -1; ///< -1: all.
    OperatorId op{}; ///< Of one span.
    std::int64_t count = 1;
    double predicted = 0; ///< Seconds,
    double measured = 0; ///< of all of them together.
    friend bool operator==(const SpanError &, const SpanError &) = default;
};

/// What a prediction is wrong by, instruction by instruction.
struct SpanErrors {
    std::vector<SpanError> kinds{}; ///< Totals by kind, the longest first.
    std::vector<SpanError> worst{}; ///< Single spans whose time is furthest off, first the furthest.
    friend bool operator==(const SpanErrors &, const SpanErrors &) = default;
};

/// Both timelines are of `plan`; spans are the same where device, segment, instruction and micro-batch are.
/// Those that only one of the two has count with the totals alone. O(spans log spans).
/// @param most  how many single spans are wanted
SpanErrors spanErrors(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured, std::size_t most = 10);

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
