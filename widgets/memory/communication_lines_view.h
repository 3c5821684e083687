#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QFutureWatcher>
#include <QtWidgets/QTableView>

#include "engine/analyse/communication_lines.h"
#include "widgets/design/plan_update.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

using CommunicationLines = std::vector<CommunicationLine>;
using CommunicationLinesSnapshot = std::shared_ptr<const CommunicationLines>;

/// Collectives and messages of a step, a row each (communication_lines.h).
class CommunicationLinesModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column {
        What,
        Groups,
        Link,
        Algorithm,
        Size,
        Times,
        Alone,
        All,
        Exposed,
        BusBandwidth,
        First,
        ColumnCount
    };

    using QAbstractTableModel::QAbstractTableModel;
    void set(CommunicationLinesSnapshot lines); ///< Null: none.
    const CommunicationLine *lineAt(int row) const;
    const CommunicationLinesSnapshot &lines() const { return m_lines; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    CommunicationLinesSnapshot m_lines;
};

/// Their table. What is chosen tells its operators; the context menu copies all of it as CSV.
class CommunicationLinesView : public QTableView
{
    Q_OBJECT
public:
    explicit CommunicationLinesView(QWidget *parent = nullptr);
    ~CommunicationLinesView() override;

    /// Works the lines out on a worker; the newest plan wins. Null: there is none.
    void setUpdate(const PlanUpdateSnapshot &update);
    bool isSettled() const { return !m_watcher.isRunning(); }
    const CommunicationLinesModel &lines() const { return *m_model; }
    QString csv() const;

Q_SIGNALS:
    void operatorsChosen(std::vector<OperatorId> operators);

private:
    CommunicationLinesModel *m_model;
    QFutureWatcher<CommunicationLinesSnapshot> m_watcher{this};
    std::stop_source m_stop;
};

} // namespace planloom
