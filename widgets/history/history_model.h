#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QSortFilterProxyModel>
#include <QtCore/QStringList>

#include "widgets/common/delta.h"
#include "widgets/history/history_lanes.h"

#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// The steps of a session's history, one a row in the order of time; row 0 is where the session began.
///
/// Keeps what it shows, so a changed history is taken in as few rows as it changed: a new step is one
/// inserted row.
class HistoryModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Tree, Words, StepTime, TimeChange, Peak, PeakChange, When, ColumnCount };
    enum Role {
        PlaceRole = Qt::UserRole + 1, ///< StepPlace as an int.
        NamesRole, ///< Names of the step: QStringList.
        BranchesRole, ///< Branches that end here: QStringList.
        ChangeRole, ///< Change as an int, in the columns of changes.
    };

    explicit HistoryModel(QObject *parent = nullptr);

    /// Takes over what has changed. `root` are the figures of the session's beginning, if known. O(steps).
    void update(const History &history, const std::optional<StepFigures> &root = {});
    /// The same, but everything is new: another session.
    void reset(const History &history, const std::optional<StepFigures> &root = {});

    const HistoryLanes &lanes() const { return m_lanes; }
    StepId stepAt(int row) const { return row; }
    std::int32_t branchAt(int row) const { return m_lanes.branchOf(static_cast<std::size_t>(row)); }
    int currentRow() const { return m_current; }
    /// The figures a step is compared with: those of its nearest ancestor that has some; null if there is
    /// none.
    const StepFigures *figuresBefore(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Entry {
        StepId parent = 0;
        std::string words{};
        std::int64_t created = 0;
        std::optional<StepFigures> figures{};
        std::optional<StepFigures> before{}; ///< What the figures are compared with.
        StepPlace place = StepPlace::Past;
        std::int32_t branch = 0;
        std::vector<std::string> names{};
        std::vector<std::string> heads{}; ///< Branches that end here.
    };
    struct Marks; ///< Names and heads by step.
    /// Brings an entry up to date. @return whether it was not
    bool takeOver(std::size_t row, const History &history, const HistoryLanes &lanes, const Marks &marks,
        const std::optional<StepFigures> &root);
    QString spoken(const Entry &entry) const;

    std::vector<Entry> m_entries;
    HistoryLanes m_lanes;
    int m_current = 0;
};

/// Steps whose words, names or branches hold a text, without regard to case.
class HistoryFilter : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;
    void setText(const QString &text);
    bool isFiltering() const { return !m_text.isEmpty(); }

protected:
    bool filterAcceptsRow(int row, const QModelIndex &parent) const override;

private:
    QString m_text;
};

} // namespace planloom
