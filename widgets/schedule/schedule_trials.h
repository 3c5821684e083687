#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QSize>
#include <QtCore/QThreadPool>
#include <QtGui/QImage>

#include "engine/design/schedules/schedule_choice.h"
#include "widgets/common/palette.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A schedule that was tried, with its timeline, small.
struct TrialRow {
    TriedSchedule tried{};
    QImage picture{}; ///< Null where there is no plan.
};

/// What is known of schedules that are tried. Immutable.
struct TrialReport {
    std::vector<std::shared_ptr<const TrialRow>> rows{}; ///< In the order in which they were tried.
    std::vector<ScheduleSearch> searches{};
    std::vector<RowId> bentTo{}; ///< See `ScheduleChoice`.
    bool done = false; ///< No more follows.
    std::optional<Error> error{}; ///< Why nothing could be tried.
};
using TrialReportSnapshot = std::shared_ptr<const TrialReport>;

/// Tries schedules on a plan, off the GUI thread; the newest question wins. Lives on the GUI thread.
class ScheduleTrials : public QObject
{
    Q_OBJECT
public:
    explicit ScheduleTrials(QObject *parent = nullptr);
    ~ScheduleTrials() override;

    /// @param seconds  for each search; 0 tries those with a name alone
    /// @param picture  size of pictures, which are painted in `theme` for screens of this `ratio`
    void start(PlanRequest request, double seconds, Theme theme, QSize picture, qreal ratio);
    /// Drops what is under way: what is known stays as it was reported.
    void stop();
    bool isWorking() const { return m_working; }

Q_SIGNALS:
    void reported(planloom::TrialReportSnapshot report);

private:
    void take(int begin, int end);

    QThreadPool m_pool;
    std::stop_source m_stop;
    QFutureWatcher<TrialReportSnapshot> m_watcher{this};
    bool m_working = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::TrialReportSnapshot)
