#include "widgets/sweep/sweep_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QPromise>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "widgets/common/qt_text.h"
#include "widgets/sweep/sweep_chart.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::size_t kMostKnown = 64; ///< Designs whose points are remembered.

} // namespace

SweepPanel::SweepPanel(Workspace *workspace, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_microBatches(new SweepChart(tr("Micro-batches"), this))
    , m_stages(new SweepChart(tr("Stages"), this))
    , m_state(new QLabel(this))
    , m_stop(new QPushButton(tr("Stop"), this))
{
    m_pool.setMaxThreadCount(1);
    m_microBatches->setObjectName(QStringLiteral("sweep.microBatches"));
    m_stages->setObjectName(QStringLiteral("sweep.stages"));
    m_stages->setToolTip(tr("The gallery plan 3d with as many devices for each product as now"));
    m_state->setTextFormat(Qt::PlainText);
    auto *head = new QHBoxLayout;
    head->setContentsMargins(6, 3, 6, 3);
    head->addWidget(m_state, 1);
    head->addWidget(m_stop);
    auto *charts = new QHBoxLayout;
    charts->setContentsMargins(0, 0, 0, 0);
    charts->setSpacing(1);
    charts->addWidget(m_microBatches, 3);
    charts->addWidget(m_stages, 2);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(head);
    column->addLayout(charts, 1);
    connect(m_workspace, &Workspace::planChanged, this, &SweepPanel::refresh);
    connect(m_stop, &QPushButton::clicked, this, &SweepPanel::stop);
    connect(m_microBatches, &SweepChart::chosen, this, &SweepPanel::open);
    connect(m_stages, &SweepChart::chosen, this, &SweepPanel::open);
    connect(&m_watcher, &QFutureWatcherBase::resultsReadyAt, this, &SweepPanel::take);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        m_working = false;
        showPoints();
    });
    showPoints();
}

SweepPanel::~SweepPanel()
{
    m_stopSource.request_stop();
    m_pool.waitForDone();
}

void SweepPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    refresh();
}

void SweepPanel::refresh()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    if (!isVisible() || good == m_of)
        return;
    if (good && !good->isTimed())
        return; // the figures of this plan come with a later answer
    stop();
    m_of = good;
    m_choices.clear();
    m_points.clear();
    if (good && good->plan)
        start();
    showPoints();
}

void SweepPanel::start()
{
    const auto request = m_workspace->planRequest();
    if (!request)
        return;
    m_choices = sweepChoices(*m_of);
    m_key = request->table.text() + '\n' + request->target.cluster + '\n' + request->target.clusterJson + '\n'
        + std::to_string(request->target.deviceCount) + '\n' + request->model->source.source;
    m_points = m_known[m_key];
    std::vector<SweepChoice> open;
    for (const SweepChoice &choice : m_choices)
        if (std::none_of(m_points.begin(), m_points.end(),
                [&](const SweepPoint &point) { return point.choice == choice; }))
            open.push_back(choice);
    if (open.empty())
        return;
    m_stopSource = std::stop_source{};
    m_working = true;
    m_watcher.setFuture(QtConcurrent::run(
        &m_pool, [request = *request, open, stop = m_stopSource.get_token()](QPromise<SweepPoint> &promise) {
            for (const SweepChoice &choice : open) {
                auto point = sweep(request, choice, stop);
                if (!point)
                    return; // stopped
                promise.addResult(*std::move(point));
            }
        }));
}

void SweepPanel::stop()
{
    if (!m_working)
        return;
    m_stopSource.request_stop();
    m_watcher.setFuture({});
    m_working = false;
    showPoints();
}

void SweepPanel::take(int begin, int end)
{
    if (!m_working)
        return;
    for (int i = begin; i < end; ++i)
        m_points.push_back(m_watcher.resultAt(i));
    if (m_known.size() > kMostKnown)
        m_known.clear();
    m_known[m_key] = m_points;
    showPoints();
}

void SweepPanel::showPoints()
{
    const Bytes memory = m_of ? Bytes{static_cast<std::int64_t>(leastMemory(m_of->cluster))} : Bytes{};
    for (const auto &[chart, axis] :
        {std::pair{m_microBatches, SweepAxis::MicroBatches}, {m_stages, SweepAxis::Stages}}) {
        std::vector<SweepChoice> own;
        std::copy_if(m_choices.begin(), m_choices.end(), std::back_inserter(own),
            [axis = axis](const SweepChoice &choice) { return choice.axis == axis; });
        chart->setPoints(std::move(own), m_points, memory);
    }
    m_stop->setVisible(m_working);
    if (m_choices.empty()) {
        m_state->setText(tr("What other numbers of micro-batches and stages would come to appears here."));
        return;
    }
    const auto best =
        std::min_element(m_points.begin(), m_points.end(), [](const SweepPoint &a, const SweepPoint &b) {
            const auto rank = [](const SweepPoint &point) {
                return std::pair(point.stepSeconds <= 0 || !point.fits, point.stepSeconds);
            };
            return rank(a) < rank(b);
        });
    QString words = tr("%1 of %2 worked out")
                        .arg(static_cast<qsizetype>(m_points.size()))
                        .arg(static_cast<qsizetype>(m_choices.size()));
    if (best != m_points.end() && best->stepSeconds > 0 && best->fits)
        words += tr(" · shortest that fits: %1, step %2")
                     .arg(toQString(best->choice.axis == SweepAxis::MicroBatches
                                  ? counted(best->choice.value, "micro-batch")
                                  : counted(best->choice.value, "stage")),
                         toQString(formatSeconds(best->stepSeconds)));
    m_state->setText(words);
}

void SweepPanel::open(const SweepChoice &choice)
{
    const auto request = m_workspace->planRequest();
    if (!request || m_workspace->isReadOnly())
        return;
    if (choice.axis == SweepAxis::Stages) {
        m_workspace->applyGallery(choice.gallery);
        return;
    }
    const auto wanted = requestOf(*request, choice);
    if (wanted)
        m_workspace->editTable(tr("run in %1").arg(toQString(counted(choice.value, "micro-batch"))),
            difference(request->table, wanted->table));
}

} // namespace planloom

#include "moc_sweep_panel.cpp"
