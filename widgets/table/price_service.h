#pragma once

#include <QtCore/QObject>
#include <QtCore/QTimer>

#include "widgets/design/engine_service.h"
#include "widgets/table/constraint_table_model.h"

#include <deque>
#include <memory>

namespace planloom {

/// Finds what each row costs while nothing else is to be done: the plan is made again with the row off, one
/// row after another, on a worker of its own; for a row about the model (engine/design/models/model_rows.h),
/// of the model opened without it. Where a search has chosen rows, it chooses again: what they were chosen
/// for is a person's row, and those have prices alone. Waits until the last plan is final and the person has
/// been idle for a second; the newest table wins.
class PriceService : public QObject
{
    Q_OBJECT
public:
    explicit PriceService(ConstraintTableModel *rows, QObject *parent = nullptr);

    /// Off, nothing is computed and prices go.
    void setEnabled(bool enabled);
    bool isEnabled() const { return m_enabled; }
    void setIdleMilliseconds(int milliseconds)
    {
        m_idle.setInterval(milliseconds);
    } ///< 1000 if nothing else is said.

    /// The table was edited, or the model or devices are others: what is under way is dropped.
    void interrupt();
    /// The plan of the rows as they are, final, with everything it was made from.
    void setBaseline(const PlanUpdateSnapshot &update, const std::string &cluster, std::int32_t deviceCount,
        const std::string &clusterJson = {});
    bool isWorking() const { return m_current != 0; }

protected:
    /// Any key, click or move of the pointer in the program puts the work off.
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void begin();
    void next();
    void take(const PlanUpdateSnapshot &update);
    void plan(const ModelSnapshot &model);
    /// The row under way has a price; the next one's turn.
    void finish(const RowPrice &price);
    void finishNeeded(const std::string &why);

    ConstraintTableModel *m_rows;
    EngineService m_engine;
    QTimer m_idle;
    PlanUpdateSnapshot m_baseline;
    std::string m_cluster;
    std::string m_clusterJson;
    std::int32_t m_deviceCount = 1;
    std::shared_ptr<SearchMemory> m_searches = std::make_shared<SearchMemory>();
    std::deque<ConstraintTableModel::RowKey> m_queue;
    ConstraintTableModel::RowKey m_current = 0;
    TableDocument m_without; ///< The table without the row under way.
    std::uint64_t m_revision = 0;
    bool m_enabled = true;
};

} // namespace planloom
