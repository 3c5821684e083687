#include "widgets/compare/plan_book.h"

#include <QtConcurrent/QtConcurrentRun>

#include "engine/naming/plan_name.h"
#include "widgets/design/workspace.h"
#include "widgets/scene/plan_thumbnail.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

PlanFacts factsOf(const PlanUpdate &update)
{
    PlanFacts facts;
    facts.rows = static_cast<std::int32_t>(update.rows.size());
    facts.memoryCap = static_cast<std::int64_t>(leastMemory(update.cluster));
    if (update.scene) {
        facts.figures = {update.summary.stepSeconds, update.summary.largestPeak.count,
            update.verdict && update.verdict->ok()};
        facts.bubble = update.summary.bubble;
        facts.devices = static_cast<std::int32_t>(update.summary.devices.size());
        return facts;
    }
    const auto wrong = std::find_if(update.rows.begin(), update.rows.end(),
        [](const RowLine &row) { return row.report.error.has_value(); });
    if (update.error)
        facts.why = QString::fromStdString(update.error->message);
    else if (wrong != update.rows.end())
        facts.why = QString::fromStdString(wrong->report.error->message);
    else if (!update.textErrors.empty())
        facts.why = QString::fromStdString(update.textErrors.front().message);
    else
        facts.why = PlanBook::tr("its rows lead to no plan");
    return facts;
}

} // namespace

PlanBook::PlanBook(Workspace *workspace, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    connect(workspace, &Workspace::sessionChanged, this, &PlanBook::forget);
    connect(workspace, &Workspace::modelChanged, this, &PlanBook::forget);
    connect(workspace, &Workspace::planChanged, this, &PlanBook::followCurrent);
    connect(
        workspace, &Workspace::planOfStepReady, this, [this](StepId step, const PlanUpdateSnapshot &update) {
            if (std::find(m_wanted.begin(), m_wanted.end(), step) != m_wanted.end()
                || m_facts.count(step) != 0)
                learn(step, update);
            if (m_asked == step) {
                m_asked.reset();
                askNext();
            }
        });
    connect(&m_painter, &QFutureWatcherBase::finished, this, [this] {
        const Painted painted = m_painter.result();
        const auto facts = m_facts.find(painted.step);
        if (painted.generation == m_generation && facts != m_facts.end()) {
            facts->second.picture = painted.image;
            facts->second.name = painted.name;
            Q_EMIT factsChanged(painted.step);
        }
        paintNext();
    });
}

PlanBook::~PlanBook() = default;

const PlanFacts *PlanBook::find(StepId step) const
{
    const auto found = m_facts.find(step);
    return found == m_facts.end() ? nullptr : &found->second;
}

void PlanBook::forget()
{
    ++m_generation;
    m_facts.clear();
    m_unpainted.clear();
    m_asked.reset();
    m_current.reset();
    followCurrent();
    askNext();
}

void PlanBook::setLooks(Theme theme, QSize size, qreal ratio)
{
    if (theme == m_theme && size == m_size && ratio == m_ratio)
        return;
    m_theme = theme;
    m_ratio = ratio;
    m_size = size;
    forget(); // plans are in the workspace's cache, so this costs little
}

void PlanBook::want(std::vector<StepId> steps)
{
    m_wanted = std::move(steps);
    if (std::find(m_wanted.begin(), m_wanted.end(), kCurrentPlan) != m_wanted.end())
        followCurrent();
    askNext();
}

void PlanBook::followCurrent()
{
    const PlanUpdateSnapshot &latest = m_workspace->latest();
    if (!latest || latest == m_current)
        return;
    // Facts of the step that is current are those of its newest rows: it may have been amended.
    const StepId step = m_workspace->history().current();
    if (latest->scene || latest->final) {
        m_current = latest;
        learn(kCurrentPlan, latest);
        if (m_facts.count(step) != 0 && !m_workspace->isStale())
            learn(step, latest);
    }
}

void PlanBook::askNext()
{
    if (m_asked)
        return;
    for (const StepId step : m_wanted) {
        if (step == kCurrentPlan || m_facts.count(step) != 0)
            continue;
        m_asked = step;
        if (const PlanUpdateSnapshot known = m_workspace->planOfStep(step)) {
            m_asked.reset();
            learn(step, known);
            continue;
        }
        return;
    }
}

void PlanBook::learn(StepId step, const PlanUpdateSnapshot &update)
{
    PlanFacts facts = factsOf(*update);
    const auto known = m_facts.find(step);
    if (known != m_facts.end()) {
        facts.picture = known->second.picture; // until the new one is painted and named
        facts.name = known->second.name;
    }
    m_facts[step] = std::move(facts);
    if (update->scene)
        m_unpainted[step] = update;
    else {
        m_facts[step].picture = {};
        m_facts[step].name.clear();
    }
    Q_EMIT factsChanged(step);
    if (!m_painter.isRunning())
        paintNext();
}

void PlanBook::paintNext()
{
    if (m_unpainted.empty() || m_painter.isRunning())
        return;
    const auto first = m_unpainted.begin();
    const StepId step = first->first;
    const PlanUpdateSnapshot update = first->second;
    m_unpainted.erase(first);
    m_painter.setFuture(QtConcurrent::run(
        [step, update, generation = m_generation, theme = m_theme, size = m_size, ratio = m_ratio] {
            return Painted{step, generation, thumbnailOf(*update->scene, paletteOf(theme), size, ratio),
                QString::fromStdString(planNameOf(*update->plan, *update->model).sentence)};
        }));
}

} // namespace planloom

#include "moc_plan_book.cpp"
