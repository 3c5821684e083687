// What the Run dock says of the step that is shown, and which one that is.

#include "widgets/run/run_panel.h"

#include "widgets/common/format.h"
#include "widgets/run/run_charts.h"
#include "widgets/run/run_difference.h"
#include "widgets/run/span_errors.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtGui/QAction>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QTableView>

#include <algorithm>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// A run held against its prediction; made on a worker.
struct Comparison {
    OperatorStepTimes times{}; ///< Of whole steps alone, as the next three.
    std::optional<Waterfall> waterfall{};
    std::vector<CollectiveFigures> collectives{};
    SpanErrors errors{};
    std::string straggler{};
};

} // namespace

void RunPanel::buildSteps(QWidget *parent)
{
    m_choice = new QComboBox(parent);
    m_choice->addItem(tr("Last step"));
    m_choice->addItem(tr("Mean of steps"));
    m_choice->addItem(tr("Worst step"));
    m_choice->addItem(tr("One step"));
    m_choice->setAccessibleName(tr("Which step is shown"));
    m_stepSlider = new QSlider(Qt::Horizontal, parent);
    m_stepSlider->setAccessibleName(tr("Step that is shown"));
    m_stepSlider->setPageStep(1);
    m_stepSlider->setMinimumWidth(fontMetrics().averageCharWidth() * 8);
    m_stepSlider->setRange(1, 1);
    m_stepLabel = new QLabel(parent);
    m_stepLabel->setTextFormat(Qt::PlainText);
    connect(m_choice, &QComboBox::currentIndexChanged, this, &RunPanel::chooseStep);
    connect(m_stepSlider, &QSlider::valueChanged, this, [this] {
        const QSignalBlocker blocker(m_choice);
        m_choice->setCurrentIndex(static_cast<int>(StepChoice::One));
        chooseStep();
    });
}

void RunPanel::chooseStep()
{
    m_service.chooseStep(static_cast<StepChoice>(m_choice->currentIndex()), m_stepSlider->value() - 1);
}

void RunPanel::refreshSteps()
{
    const RunRecord &record = m_service.record();
    // Steps that are done, and whose spans came.
    const auto known = static_cast<int>(std::min(record.steps().size(), record.losses.size()));
    const bool several = known > 1;
    for (QWidget *widget : std::initializer_list<QWidget *>{m_choice, m_stepSlider})
        widget->setEnabled(several);
    m_stepSlider->setToolTip(several
            ? QString()
            : tr("Spans of every step are kept while the program is open, if they are shown while it runs"));
    const QSignalBlocker sliderBlocker(m_stepSlider);
    const QSignalBlocker choiceBlocker(m_choice);
    m_choice->setCurrentIndex(static_cast<int>(m_service.stepChoice()));
    m_stepSlider->setRange(1, std::max(known, 1));
    const int shown = m_service.shownStep();
    if (shown >= 0)
        m_stepSlider->setValue(shown + 1);
    QString text;
    if (m_service.stepChoice() == StepChoice::Mean && known > 0)
        text = tr("%1 steps").arg(std::max(known - 1, 1));
    else if (shown >= 0)
        text = tr("step %1 of %2").arg(shown + 1).arg(record.setup.steps);
    if (shown >= 0 && static_cast<std::size_t>(shown) < record.stepSeconds.size())
        text += QStringLiteral(" · ")
            + QString::fromStdString(formatSeconds(record.stepSeconds[static_cast<std::size_t>(shown)]));
    m_stepLabel->setText(text);
    m_stepLabel->setVisible(!text.isEmpty());
}

void RunPanel::takeOverlay()
{
    const RunOverlaySnapshot overlay = m_service.overlay();
    if (overlay && overlay->measured && overlay->predicted)
        compare(overlay);
    refreshRecord();
    Q_EMIT overlayChanged(m_overlayAction->isChecked() ? overlay : nullptr);
}

void RunPanel::compare(const RunOverlaySnapshot &overlay)
{
    // While spans come, one look after the other is enough; a whole step is always looked at.
    if (!overlay->complete && std::exchange(m_comparing, true))
        return;
    using Made = std::shared_ptr<const Comparison>;
    auto *watcher = new QFutureWatcher<Made>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, overlay] {
        watcher->deleteLater();
        m_comparing = m_comparing && overlay->complete;
        if (m_service.overlay() != overlay
            && (overlay->complete || m_service.overlay() == nullptr || m_service.overlay()->complete))
            return; // another run, or another step, is shown by now
        const Made made = watcher->result();
        m_straggler = QString::fromStdString(made->straggler);
        if (!m_straggler.isEmpty())
            m_straggler[0] = m_straggler[0].toUpper();
        if (!overlay->complete) {
            refreshRecord();
            return;
        }
        m_difference->setWaterfall(made->waterfall);
        m_collectives->setFigures(made->collectives);
        m_collectivesView->resizeColumnsToContents();
        m_spanErrors->setErrors(made->errors);
        m_spanErrorsView->resizeColumnsToContents();
        const Graph &graph = *overlay->predicted->plan->graph;
        std::vector<OperatorPoint> points;
        std::vector<double> ratios(graph.operators.size(), 0);
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (!(made->times.predicted[i] > 0) || !(made->times.measured[i] > 0))
                continue;
            points.push_back({OperatorId{static_cast<std::int32_t>(i)}, graph.operators[i].name,
                made->times.predicted[i], made->times.measured[i]});
            ratios[i] = made->times.measured[i] / made->times.predicted[i];
        }
        m_scatter->setPoints(std::move(points));
        refreshRecord();
        Q_EMIT errorsChanged(std::move(ratios));
    });
    watcher->setFuture(QtConcurrent::run([overlay]() -> Made {
        auto made = std::make_shared<Comparison>();
        const ExecutionPlan &plan = *overlay->predicted->plan;
        const Timeline &predicted = *overlay->predicted->timeline;
        const Timeline &measured = *overlay->measured->timeline;
        made->straggler = stragglerOf(plan, predicted, measured);
        if (overlay->complete) {
            made->times = operatorTimes(plan, predicted, measured);
            made->waterfall = waterfallOf(plan, predicted, plan, measured);
            made->collectives = collectivesBySize(plan, predicted, measured);
            made->errors = spanErrors(plan, predicted, measured);
        }
        return made;
    }));
}

} // namespace planloom
