#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include "widgets/common/selection_model.h"
#include "widgets/compare/alignment.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/compare/compare_result.h"
#include "widgets/scene/time_axis.h"

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <vector>

class QAction;
class QComboBox;
class QLabel;
class QSplitter;
class QStackedWidget;
class QTableView;
class QTabWidget;

namespace planloom {

class CommunicationCompare;
class CompareCauses;
class ComparedTimeline;
class DagView;
class MemoryOverlay;
class MetricModel;
class RowDiffModel;
class TimelineView;
class WaterfallView;
class Workspace;

/// How two timelines are shown.
enum class CompareMode : std::uint8_t { SideBySide, Difference, Butterfly };

/// Two plans held against each other: figures, where the time goes, timelines on one axis, operators, rows
/// and memory. Everything is worked out on a worker; the newest choice wins. If one of them is the current
/// design, the comparison follows every edit.
///
/// Actions (added to the widget): compare.sideBySide, compare.difference, compare.butterfly, compare.blink
/// (also while holding `), compare.takeIntoCurrent, compare.onlyDifferences, compare.copyTable,
/// compare.copyJson, compare.done (leaves the comparison: who holds the view connects it).
class CompareView : public QWidget
{
    Q_OBJECT
public:
    /// All must outlive the view.
    CompareView(
        Workspace *workspace, SelectionModel *selection, CompareChoice *choice, QWidget *parent = nullptr);
    ~CompareView() override;

    void setMode(CompareMode mode);
    CompareMode mode() const { return m_mode; }
    /// At which event the timelines lie over each other.
    void setAlignment(AlignAt event);
    AlignAt alignment() const { return m_alignAt; }
    /// How much later that event is in B, in nanoseconds; 0 where one of them has no such event.
    double shift() const { return m_shift; }
    /// While on, A and B take turns at the same place.
    void setBlinking(bool blinking);
    bool isBlinking() const { return m_blinkTimer.isActive(); }

    /// What is shown; null before the first.
    const CompareSnapshot &result() const { return m_result; }
    bool isComparing() const { return m_comparing; }
    QString remark() const; ///< What keeps plans from being compared, or was refused; empty mostly.

    MetricModel *metrics() const { return m_metrics; }
    RowDiffModel *rows() const { return m_rows; }
    CompareCauses *causes() const { return m_causes; }
    QTableView *rowList() const { return m_rowList; }
    WaterfallView *waterfall() const { return m_waterfall; }
    TimelineView *timeline(bool ofB) const { return ofB ? m_timelineB : m_timelineA; }
    ComparedTimeline *comparedTimeline() const { return m_compared; }
    MemoryOverlay *memory() const { return m_memory; }
    CommunicationCompare *communication() const { return m_communication; }
    DagView *dag() const { return m_dag; }

Q_SIGNALS:
    void resultChanged();
    /// An operator was double-clicked or entered in one of the timelines.
    void operatorActivated(planloom::OperatorId op);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void showEvent(QShowEvent *event) override;
    void hideEvent(QHideEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    // compare_view.cpp
    void gather();
    PlanUpdateSnapshot planOf(StepId step);
    void compareNow();
    void showResult(const CompareSnapshot &result);
    void fillChoosers();
    void refreshMetrics();
    void say(const QString &sentence);
    QString titleOfPlan(std::size_t place) const;
    void takeIntoCurrent(const std::vector<int> &rows, bool fromA);
    void takeSelected();
    void copyFigures(bool json);
    void align();
    void linkAxis(const TimeAxis &axis, const QObject *from);
    void fitAxis();
    // compare_view_layout.cpp
    void buildBar();
    void buildTimelines();
    void buildTabs();
    void makeActions();
    void layOut();
    void fitFonts();
    QAction *addNewAction(
        const char *name, const QString &text, const QString &tip, std::function<void()> act);

    Workspace *m_workspace;
    SelectionModel *m_selection;
    CompareChoice *m_choice;
    std::map<StepId, PlanUpdateSnapshot> m_plans; ///< Of the chosen steps, once known.
    CompareSnapshot m_result;
    QFutureWatcher<CompareSnapshot> m_watcher{this};
    std::stop_source m_stop;
    bool m_comparing = false;
    bool m_outdated = true; ///< While hidden.
    QTimer m_gatherTimer; ///< Joins changes that come together.
    QTimer m_blinkTimer;
    bool m_blinkB = false;
    bool m_fitted = true;
    AlignAt m_alignAt = AlignAt::Start;
    double m_shift = 0;
    CompareMode m_mode = CompareMode::SideBySide;

    QComboBox *m_chooseA = nullptr;
    QComboBox *m_chooseB = nullptr;
    QComboBox *m_align = nullptr;
    QLabel *m_remark = nullptr;
    QLabel *m_blinkLabel = nullptr;
    QWidget *m_bar = nullptr;
    MetricModel *m_metrics = nullptr;
    QTableView *m_metricList = nullptr;
    WaterfallView *m_waterfall = nullptr;
    QStackedWidget *m_pages = nullptr;
    QSplitter *m_pair = nullptr;
    TimelineView *m_timelineA = nullptr;
    TimelineView *m_timelineB = nullptr;
    ComparedTimeline *m_compared = nullptr;
    QTabWidget *m_tabs = nullptr;
    DagView *m_dag = nullptr;
    QLabel *m_dagCounts = nullptr;
    GraphSnapshot m_dagGraph;
    RowDiffModel *m_rows = nullptr;
    QTableView *m_rowList = nullptr;
    CompareCauses *m_causes = nullptr;
    MemoryOverlay *m_memory = nullptr;
    CommunicationCompare *m_communication = nullptr;
    std::map<CompareMode, QAction *> m_modes;
    QAction *m_blink = nullptr;
    QAction *m_take = nullptr;
    QAction *m_swap = nullptr;
    QAction *m_copy = nullptr;
    QAction *m_copyJson = nullptr;
    QAction *m_only = nullptr;
};

} // namespace planloom
