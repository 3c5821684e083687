#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QComboBox>

#include "engine/design/schedules/stage_layout.h"
#include "engine/gesture/kept_schedules.h"
#include "engine/table/kinds/order/schedule.h"
#include "widgets/design/plan_update.h"

#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// The pipeline's schedule: every template by name, with a picture of it at work, what it is, and the paper
/// it comes from; below them those that the table keeps for numbers of micro-batches. Templates that are not
/// for the stages of the plan are grey and say why. GUI thread; which fit is worked out on a worker.
class ScheduleChooser : public QComboBox
{
    Q_OBJECT
public:
    explicit ScheduleChooser(QWidget *parent = nullptr);
    ~ScheduleChooser() override;

    /// Shows the schedule of this plan, null for none. Says nothing.
    void setPlan(const PlanUpdateSnapshot &plan);
    /// Whether a template is for the plan's stages, as far as is known; never without a plan.
    bool isPossible(ScheduleKind kind) const;
    /// Why it is not; empty if it is.
    QString reason(ScheduleKind kind) const;
    /// Rows that lay the plan's stages out as the template needs them; empty where they lie so.
    std::vector<Row> stageRows(ScheduleKind kind) const;
    /// "forward and backward blocks in turn": a template's line.
    static QString meaningOf(ScheduleKind kind);
    /// Its meaning and its paper; rich text.
    static QString tipOf(ScheduleKind kind);

Q_SIGNALS:
    /// A person chose it.
    void chosen(planloom::ScheduleKind kind);
    /// A person chose the schedule that the table keeps in this line, with its number of micro-batches.
    void keptChosen(int line);
    /// All that fit are to be shown, side by side.
    void allAsked();
    /// The best one is to be searched for.
    void bestAsked();
    /// What is possible is another.
    void possibleChanged();

protected:
    void wheelEvent(QWheelEvent *event) override; ///< Rolling by doesn't plan anew.
    void changeEvent(QEvent *event) override;

private:
    using Fits = std::vector<TemplateFit>;
    using Answer = std::pair<PlanUpdateSnapshot, Fits>;

    void onActivated(int index);
    void showShown();
    void ask();
    void paintPictures();
    void refreshItems();
    void refreshKept();

    PlanUpdateSnapshot m_plan;
    std::vector<KeptSchedule> m_kept; ///< Of the plan's table, as they stand in the list.
    Fits m_fits; ///< By template; of the plan, or of the one before until it is known.
    QFutureWatcher<Answer> m_watcher{this};
};

} // namespace planloom
