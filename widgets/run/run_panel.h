#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"
#include "widgets/run/machine_devices.h"
#include "widgets/run/readiness.h"
#include "widgets/run/run_service.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

class QAction;
class QCheckBox;
class QComboBox;
class QLabel;
class QListWidget;
class QProgressBar;
class QPushButton;
class QSlider;
class QSpinBox;
class QTableView;
class QTabWidget;

namespace planloom {

class CalibrationJob;
class CollectivesModel;
class LossCurve;
class OperatorScatter;
class RunDifference;
class RunFiguresModel;
class RunListModel;
class SpanErrorsModel;
class TrainingForm;

/// The *Run* dock: set-up with what can be said before, the run while it goes, and what it measured against
/// what was predicted. Runs are kept in the session.
class RunPanel : public QWidget
{
    Q_OBJECT
public:
    RunPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);
    ~RunPanel() override;

    RunService &service() { return m_service; }
    MachineProbe &machine() { return m_machineProbe; }
    TorchPython *python() const { return m_python; } ///< That PyTorch's runs are made with.
    QAction *runAction() const { return m_runAction; } ///< "run.run"
    QAction *stopAction() const { return m_stopAction; } ///< "run.stop"
    QAction *pauseAction() const { return m_pauseAction; } ///< "run.pauseView"
    QAction *againAction() const { return m_againAction; } ///< "run.again"
    QAction *continueAction() const { return m_continueAction; } ///< "run.continue"
    QAction *calibrateAction() const { return m_calibrateAction; } ///< "run.calibrate"
    RunDifference *difference() const { return m_difference; }
    CollectivesModel *collectives() const { return m_collectives; }
    RunSetup setup() const;
    void setSetup(const RunSetup &setup);

    /// Why nothing can be run now; empty if something can, or runs.
    QString refusal() const { return m_refusal; }
    /// What the emulation badge of the timeline says: whose times are shown, and of which step.
    QString badge() const;

Q_SIGNALS:
    void refusalChanged(const QString &refusal);
    /// A run or calibration began or ended: a line for the log.
    void said(const QString &sentence, bool isProblem);
    /// A run begins or is shown: its timeline wants to be seen.
    void runShown();
    /// Measured over predicted for the timeline; null when there is nothing to show any more (the plan has
    /// changed).
    void overlayChanged(planloom::RunOverlaySnapshot overlay);
    /// Measured over predicted time of operators, 1 is a perfect prediction; empty without a run.
    void errorsChanged(std::vector<double> ratioByOperator);

protected:
    void showEvent(QShowEvent *event) override;

private:
    void build();
    void buildBackends(QWidget *parent);
    void showPython();
    void buildDevices();
    void refreshDevices();
    void start(const PlanUpdateSnapshot &update, StepId step, const RunSetup &setup);
    void startCurrent();
    void continueRun();
    void buildTraining(QWidget *parent);
    void refreshActions();
    void calibrated(const QString &sentence);
    QString clocks() const;
    /// Asks whether libraries that operator files name may be loaded, and goes on if so.
    void askForLibraries(const std::vector<std::string> &paths, std::function<void()> then);
    void buildSteps(QWidget *parent);
    void chooseStep();
    void refreshSteps();
    void compare(const RunOverlaySnapshot &overlay);
    void refreshSetup();
    void buildOffer(QWidget *parent);
    void showOffer(std::optional<RunBackend> offer);
    void refreshRecord();
    void finished();
    void takeOverlay();
    void takeRuns();
    QString lastKept() const;
    void showStored(std::int64_t run);
    void takeStored(std::int64_t run, const QByteArray &timeline);
    void showAwaited();

    Workspace *m_workspace;
    SelectionModel *m_selection;
    RunService m_service;
    RunFiguresModel *m_figures;
    RunListModel *m_list;
    QSpinBox *m_steps = nullptr;
    QSpinBox *m_seed = nullptr;
    QSpinBox *m_ranks = nullptr;
    QComboBox *m_backend = nullptr;
    TorchPython *m_python = nullptr;
    QTimer m_lookTimer; ///< Looks at the GPUs while they run.
    TrainingForm *m_training = nullptr;
    CalibrationJob *m_calibration = nullptr;
    QCheckBox *m_check = nullptr;
    QCheckBox *m_live = nullptr;
    QListWidget *m_preflight = nullptr;
    QAction *m_offerAction = nullptr; ///< Runs on what else there is; seen where that can be.
    QToolButton *m_offerButton = nullptr;
    std::optional<RunBackend> m_offer{};
    QLabel *m_state = nullptr;
    QLabel *m_badge = nullptr;
    QLabel *m_details = nullptr;
    QProgressBar *m_progress = nullptr;
    QComboBox *m_choice = nullptr;
    QSlider *m_stepSlider = nullptr;
    QLabel *m_stepLabel = nullptr;
    LossCurve *m_losses = nullptr;
    OperatorScatter *m_scatter = nullptr;
    RunDifference *m_difference = nullptr;
    CollectivesModel *m_collectives;
    SpanErrorsModel *m_spanErrors;
    QTableView *m_spanErrorsView = nullptr;
    MachineProbe m_machineProbe;
    MachineDevicesModel *m_machine;
    QTableView *m_machineView = nullptr;
    QTableView *m_collectivesView = nullptr;
    QTableView *m_figuresView = nullptr;
    QTableView *m_listView = nullptr;
    QTabWidget *m_tabs = nullptr;
    QAction *m_runAction = nullptr;
    QAction *m_stopAction = nullptr;
    QAction *m_againAction = nullptr;
    QAction *m_continueAction = nullptr;
    QAction *m_calibrateAction = nullptr;
    QAction *m_pauseAction = nullptr;
    QAction *m_removeAction = nullptr;
    QAction *m_overlayAction = nullptr;
    QFutureWatcher<Readiness> m_preflightWatcher{this};
    bool m_mayRun = false;
    QString m_blocked; ///< What of the list before a run forbids it.
    QString m_refusal;
    QString m_calibrated; ///< What came of the last calibration.
    StepId m_step = 0; ///< Whose plan runs, or ran last.
    std::int64_t m_run = 0; ///< Its number in the session.
    std::optional<RunSetup> m_last; ///< Of the last run, for Run Again.
    PlanUpdateSnapshot m_lastUpdate;
    StepId m_lastStep = 0; ///< Of the history: whose plan that was.
    QString m_straggler; ///< Which device holds the others up; empty for none.
    bool m_comparing = false;
    std::int64_t m_awaited = 0; ///< Stored run whose spans are on their way.
    PlanUpdateSnapshot m_awaitedPlan;
    std::optional<QByteArray> m_awaitedSpans; ///< Once they have come.
};

} // namespace planloom
