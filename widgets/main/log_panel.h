#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QDateTime>
#include <QtWidgets/QWidget>

#include <cstdint>
#include <deque>

class QTableView;

namespace planloom {

/// What a line of the log is about.
enum class LogKind : std::uint8_t { Model, Plan, Session, Run, Problem };

/// What happened, the newest last. Keeps the last `kMostEntries`.
class LogModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Time, Kind, What, ColumnCount };
    static constexpr int kMostEntries = 2000;

    using QAbstractTableModel::QAbstractTableModel;

    /// Adds a line; one that says the same as the last takes its place.
    void add(LogKind kind, const QString &what, const QDateTime &time = QDateTime::currentDateTime());
    void clear();
    /// All of it, tabs between columns.
    QString text() const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Entry {
        QDateTime time{};
        LogKind kind = LogKind::Plan;
        QString what{};
    };
    std::deque<Entry> m_entries;
};

/// The Log dock: what the engine and the session's file did.
///
/// Actions (added to the widget): log.copy, log.clear.
class LogPanel : public QWidget
{
    Q_OBJECT
public:
    explicit LogPanel(QWidget *parent = nullptr);
    LogModel *model() const { return m_model; }
    QTableView *list() const { return m_list; }

private:
    LogModel *m_model;
    QTableView *m_list;
};

} // namespace planloom
