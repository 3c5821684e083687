#pragma once

#include <QtWidgets/QDialog>

#include "sessions/history.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/engine_service.h"
#include "widgets/schedule/schedule_trials.h"

#include <cstdint>
#include <string>
#include <vector>

class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QTableWidget;

namespace planloom {

class TimelineView;
class Workspace;

/// All schedules that fit the open plan, side by side: filled as they are simulated, the fastest first. A
/// click shows one's timeline, *Apply* takes it as one step of the history, two are held against each other
/// in *Compare*. *Find Best* searches beside those with a name; it shows the best so far and what no schedule
/// is below, and selects the best in the end.
class ScheduleBoard : public QDialog
{
    Q_OBJECT
public:
    /// Both must outlive the board.
    ScheduleBoard(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);
    ~ScheduleBoard() override;

    void tryAll(); ///< Those with a name.
    void findBest(); ///< And searches, and selects the best.
    void stop();
    bool isWorking() const { return m_trials.isWorking(); }

    QTableWidget *list() const { return m_list; }
    TimelineView *timeline() const { return m_view; }
    QString state() const; ///< What is known so far, in words.
    QString
    proof() const; ///< Why nothing is better, or by how much something might be; empty without search.
    /// What is in a line of the list; null if there is none.
    const TriedSchedule *triedAt(int line) const;

Q_SIGNALS:
    /// The search is over and the best is selected, or was there already: in a sentence, with its proof.
    void found(const QString &sentence);
    /// These steps are to be compared.
    void compareAsked(const std::vector<planloom::StepId> &steps);

private:
    void build();
    void start(double seconds);
    void take(const TrialReportSnapshot &report);
    void fill();
    void refresh();
    void showChosen();
    void apply();
    void showBest();
    bool applyTried(const TriedSchedule &tried);
    void compareChosen();
    std::vector<StepId> stepsOf(const std::vector<const TriedSchedule *> &tried);
    std::vector<const TriedSchedule *> chosen() const;
    const TriedSchedule *best() const;
    /// All that the figures follow from: they are of another design where this is another.
    std::string basis() const;

    Workspace *m_workspace;
    ScheduleTrials m_trials;
    EngineService m_shower; ///< Plans what is looked at.
    TrialReportSnapshot m_report; ///< Null before the first.
    std::vector<std::size_t> m_order; ///< By line of the list: row of the report.
    std::string m_basis; ///< Of the report.
    bool m_searches = false; ///< The best is searched for.
    bool m_stopped = false;
    TimelineView *m_view = nullptr;
    QTableWidget *m_list = nullptr;
    QLabel *m_state = nullptr;
    QLabel *m_proof = nullptr;
    QDoubleSpinBox *m_seconds = nullptr;
    QPushButton *m_again = nullptr;
    QPushButton *m_best = nullptr;
    QPushButton *m_stop = nullptr;
    QPushButton *m_compare = nullptr;
    QPushButton *m_apply = nullptr;
};

} // namespace planloom
