#pragma once

#include <QtCore/QAbstractTableModel>

#include "widgets/design/engine_job.h"

#include <vector>

namespace planloom {

/// What became of each line of the table: rows with what they bind, and lines that are no rows.
class ReportModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Line, Row, Selected, Bound, State, ColumnCount };

    explicit ReportModel(QObject *parent = nullptr);

    void setUpdate(const PlanUpdateSnapshot &update);
    int lineAt(int row) const; ///< 0-based line of the text.
    bool isError(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Entry {
        int line = 0;
        QString row{};
        int selected = -1; ///< -1: not a row.
        int bound = -1;
        QString state{};
        QString advice{};
        bool error = false;
        bool warning = false;
        friend bool operator==(const Entry &, const Entry &) = default;
    };
    std::vector<Entry> m_entries;
};

} // namespace planloom
