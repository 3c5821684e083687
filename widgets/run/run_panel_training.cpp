// What the Run dock says of training, of what can be done now, and of this machine.

#include "widgets/run/run_panel.h"

#include "widgets/common/format.h"
#include "widgets/run/calibration_job.h"
#include "widgets/run/training_form.h"

#include <QtCore/QFileInfo>
#include <QtGui/QAction>

namespace planloom {

void RunPanel::buildTraining(QWidget *parent)
{
    m_training = new TrainingForm(parent);
    m_calibration = new CalibrationJob(this);
    m_calibrateAction->setToolTip(
        tr("Measure every kernel of the plan on this machine, for better predictions of runs; Stop ends it"));
    connect(m_continueAction, &QAction::triggered, this, &RunPanel::continueRun);
    connect(m_calibrateAction, &QAction::triggered, this, [this] {
        const PlanUpdateSnapshot good = m_workspace->lastGood();
        if (!good || !good->scene)
            return;
        m_calibration->start(good->scene->plan);
        Q_EMIT runShown(); // its progress and outcome are told here
    });
    connect(m_stopAction, &QAction::triggered, m_calibration, &CalibrationJob::stop);
    connect(m_calibration, &CalibrationJob::progressed, this, &RunPanel::refreshRecord);
    connect(m_calibration, &CalibrationJob::finished, this, &RunPanel::calibrated);
}

void RunPanel::calibrated(const QString &sentence)
{
    m_calibrated = sentence;
    m_service.predictAgain();
    refreshRecord();
    Q_EMIT said(sentence, false);
}

void RunPanel::continueRun()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    const RunRecord &record = m_service.record();
    if (!good || !m_mayRun || m_workspace->isStale() || record.checkpoint.empty())
        return;
    RunSetup further = setup();
    further.training.resume = record.checkpoint;
    further.training.schedule.reset(); // the checkpoint's goes on
    start(good, m_workspace->history().current(), further);
}

void RunPanel::refreshActions()
{
    const bool running = m_service.isRunning();
    const bool busy = running || m_calibration->isRunning();
    const RunRecord &record = m_service.record();
    const QString refusal = busy || m_mayRun ? QString() : m_blocked;
    m_runAction->setEnabled(m_mayRun && !busy);
    m_runAction->setToolTip(refusal.isEmpty() ? tr("Run the plan") : tr("Cannot run: %1").arg(refusal));
    m_againAction->setEnabled(!busy && m_last.has_value());
    // PyTorch has checkpoints of its own form (resources/pytorch.md: checkpoints.py makes one of the other).
    const bool sameForm =
        (record.setup.backend == RunBackend::Torch) == (setup().backend == RunBackend::Torch);
    m_continueAction->setEnabled(!busy && m_mayRun && sameForm && !record.checkpoint.empty());
    m_continueAction->setToolTip(record.checkpoint.empty()
            ? tr("Go on from the last run's checkpoint: it wrote none")
            : !sameForm ? tr("The last run's checkpoint is not of the form that this place reads")
                        : tr("Go on behind step %1, from %2, under the plan on screen")
                              .arg(record.checkpointStep)
                              .arg(QFileInfo(QString::fromStdString(record.checkpoint)).fileName()));
    m_pauseAction->setEnabled(running);
    m_stopAction->setEnabled(busy);
    m_calibrateAction->setEnabled(!busy && m_workspace->lastGood() && m_workspace->lastGood()->scene);
    if (refusal == m_refusal)
        return;
    m_refusal = refusal;
    Q_EMIT refusalChanged(refusal);
}

/// A step's times, each with whose it is, and that no GPU has them.
QString RunPanel::clocks() const
{
    const RunRecord &record = m_service.record();
    const bool any = m_service.isRunning() || m_service.update() != nullptr;
    const RunBackend backend = any ? record.setup.backend : setup().backend;
    const QString emulation = backend == RunBackend::Cpu ? tr("CPU emulation: times are not GPU times")
        : backend == RunBackend::Torch                   ? tr("Run by PyTorch")
        : backend == RunBackend::CudaEmulated
        ? tr("Emulation on one GPU: times are not those of several")
        : tr("On GPUs of this machine; predicted for the plan's cluster");
    const double measured = record.measuredStepSeconds();
    if (!(record.predictedStepSeconds > 0))
        return emulation;
    const auto text = [](double seconds) { return QString::fromStdString(formatSeconds(seconds)); };
    if (!(measured > 0))
        return tr("A step: %1 predicted here").arg(text(record.predictedStepSeconds)) + QLatin1Char('\n')
            + emulation;
    return tr("A step: %1 predicted here, %2 measured (%3)")
               .arg(text(record.predictedStepSeconds), text(measured),
                   QString::fromStdString(record.measuredOver()))
        + QLatin1Char('\n') + emulation;
}

QString RunPanel::badge() const
{
    const QString step = m_service.stepChoice() == StepChoice::Mean
        ? QString::fromStdString(m_service.record().measuredOver())
        : m_service.shownStep() >= 0
        ? tr("step %1").arg(m_service.record().firstStep + m_service.shownStep() + 1)
        : QString();
    if (m_service.record().setup.backend == RunBackend::Torch)
        return step.isEmpty() ? tr("PyTorch: outlines are as predicted")
                              : tr("PyTorch: %1 as measured here, outlines as predicted").arg(step);
    if (m_service.record().setup.backend != RunBackend::Cpu) {
        const QString where =
            m_service.record().setup.backend == RunBackend::Cuda ? tr("On GPUs") : tr("Emulation on one GPU");
        return step.isEmpty()
            ? tr("%1: outlines are predicted for the plan's cluster").arg(where)
            : tr("%1: %2 as measured here, outlines as predicted for the plan's cluster").arg(where, step);
    }
    return step.isEmpty()
        ? tr("CPU emulation: outlines are predicted for this machine")
        : tr("CPU emulation: %1 as measured here, outlines as predicted for this machine").arg(step);
}

} // namespace planloom
