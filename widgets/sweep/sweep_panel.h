#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QThreadPool>
#include <QtWidgets/QWidget>

#include "engine/design/explain/what_if_sweep.h"
#include "widgets/design/workspace.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

class QLabel;
class QPushButton;

namespace planloom {

class SweepChart;

/// The *What If* dock: step and memory for other numbers of micro-batches and stages than those of the plan.
/// Worked out on a worker while it is in sight, point by point, and remembered; the newest plan wins. A point
/// opens as one step of the history.
class SweepPanel : public QWidget
{
    Q_OBJECT
public:
    explicit SweepPanel(Workspace *workspace, QWidget *parent = nullptr);
    ~SweepPanel() override;

    const SweepChart &microBatches() const { return *m_microBatches; }
    const SweepChart &stages() const { return *m_stages; }
    bool isWorking() const { return m_working; }
    /// Drops what is not worked out yet.
    void stop();
    /// Makes the plan of a choice that of the design.
    void open(const SweepChoice &choice);

protected:
    void showEvent(QShowEvent *event) override;

private:
    void refresh();
    void start();
    void take(int begin, int end);
    void showPoints();

    Workspace *m_workspace;
    SweepChart *m_microBatches;
    SweepChart *m_stages;
    QLabel *m_state;
    QPushButton *m_stop;
    QThreadPool m_pool;
    QFutureWatcher<SweepPoint> m_watcher{this};
    std::stop_source m_stopSource;
    PlanUpdateSnapshot m_of; ///< The plan that the points stand beside.
    std::string m_key; ///< All that its points follow from, but the choice.
    std::vector<SweepChoice> m_choices;
    std::vector<SweepPoint> m_points;
    std::map<std::string, std::vector<SweepPoint>> m_known; ///< By key.
    bool m_working = false;
};

} // namespace planloom
