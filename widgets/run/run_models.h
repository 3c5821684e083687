#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QString>

#include "sessions/session_store.h"
#include "widgets/run/run_record.h"

#include <vector>

namespace planloom {

/// Predicted against measured, a line a figure: step time, throughput, busy time and peak memory of devices.
class RunFiguresModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Figure, Predicted, Measured, Difference, Cap, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    /// `predicted` may be null. `memoryCap` is what the devices that are planned for have, in bytes; 0 if
    /// unknown.
    void setRun(const RunRecord &record, const Timeline *predicted, double memoryCap = 0);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Line {
        QString figure;
        QString predicted;
        QString measured;
        QString difference;
        QString cap{};
        bool isUtilization = false;
        friend bool operator==(const Line &, const Line &) = default;
    };
    void addThroughput(std::vector<Line> &lines, const RunRecord &record) const;

    std::vector<Line> m_lines;
    QString m_over; ///< Which steps were measured.
};

/// The runs of a session, the newest first.
class RunListModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Started, Title, State, Step, Loss, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setRuns(const std::vector<SessionRun> &runs);
    /// Number of the run in a row; 0 if there is none.
    std::int64_t runAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Entry {
        std::int64_t id = 0;
        QString started;
        QString title;
        QString state;
        QString step;
        QString loss;
        friend bool operator==(const Entry &, const Entry &) = default;
    };
    std::vector<Entry> m_entries;
};

} // namespace planloom
