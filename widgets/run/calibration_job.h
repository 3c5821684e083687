#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QString>

#include "engine/lowering/program/execution_plan.h"

#include <memory>
#include <stop_token>

namespace planloom {

/// Measures on this machine what a plan runs, on a worker, and keeps it in the profile that predictions of
/// runs use. Lives on the GUI thread, never waits.
class CalibrationJob : public QObject
{
    Q_OBJECT
public:
    explicit CalibrationJob(QObject *parent = nullptr);
    ~CalibrationJob() override; ///< Stops what is measured.

    /// Measures every kernel of `plan` anew. Does nothing while it runs.
    void start(const std::shared_ptr<const ExecutionPlan> &plan);
    void stop();
    bool isRunning() const { return m_watcher.isRunning(); }
    int done() const { return m_watcher.progressValue(); } ///< Kernels measured,
    int all() const { return m_watcher.progressMaximum(); } ///< of so many; 0 if not known yet.

Q_SIGNALS:
    void progressed();
    void finished(const QString &sentence); ///< What came of it.

private:
    QFutureWatcher<QString> m_watcher{this};
    std::stop_source m_stop;
};

} // namespace planloom
