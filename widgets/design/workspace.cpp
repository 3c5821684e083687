#include "widgets/design/workspace.h"

#include "engine/frontend/zoo.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/execution_plan_json.h"
#include "sessions/digest.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFileInfo>

#include <algorithm>

namespace planloom {

namespace {

constexpr int kEditMilliseconds = 150;
constexpr std::size_t kMostSavedInstructions = 300'000;

std::string summaryJson(const PlanUpdate &update)
{
    // Numbers only, so that there is nothing to escape.
    return "{\"step_seconds\":" + std::to_string(update.summary.stepSeconds)
        + ",\"peak_bytes\":" + std::to_string(update.summary.largestPeak.count)
        + ",\"bubble\":" + std::to_string(update.summary.bubble)
        + ",\"sent_bytes\":" + std::to_string(update.summary.sent.count)
        + ",\"verified\":" + (update.verdict && update.verdict->ok() ? "true" : "false") + "}";
}

/// What of a plan goes into a session. Instructions of huge plans are left out: they follow from the rows.
SessionPlan sessionPlan(const PlanUpdate &update)
{
    SessionPlan plan;
    plan.tableSha256 = sha256(update.tableText);
    plan.summary = summaryJson(update);
    std::size_t instructions = 0;
    for (const DeviceProgram &program : update.scene->plan->devices) {
        for (const Segment &segment : program.segments)
            instructions += segment.instructions.size();
    }
    if (instructions <= kMostSavedInstructions)
        plan.execution = toJson(*update.scene->plan);
    return plan;
}

} // namespace

Workspace::Workspace(QObject *parent) : QObject(parent)
{
    m_savePool.setMaxThreadCount(1);
    m_editTimer.setSingleShot(true);
    m_editTimer.setInterval(kEditMilliseconds);
    connect(&m_editTimer, &QTimer::timeout, this, [this] { request({}); });
    connect(&m_engine, &EngineService::modelOpened, this, &Workspace::onModelOpened);
    connect(&m_engine, &EngineService::modelFailed, this, [this](const ModelSource &, const Error &error) {
        m_pendingGallery.clear();
        Q_EMIT stateChanged();
        Q_EMIT problem(error);
    });
    connect(&m_engine, &EngineService::planUpdated, this, &Workspace::onPlanUpdated);
    connect(&m_engine, &EngineService::stateChanged, this, &Workspace::stateChanged);
    connect(&m_saveWatcher, &QFutureWatcherBase::finished, this, &Workspace::takeSaved);
}

Workspace::~Workspace()
{
    m_savePool.waitForDone(); // a save that was begun is finished: what was asked for is on the disk
}

void Workspace::openAny(const QString &pathOrSpec)
{
    const std::string text = pathOrSpec.toStdString();
    if (!isZooSpec(text) && looksLikeSession(text))
        openSession(pathOrSpec);
    else
        openModel({text, {}, {}});
}

void Workspace::openModel(const ModelSource &source, bool keepRows)
{
    m_pendingGallery.clear();
    if (!keepRows) {
        m_pendingGallery = "single";
        m_path.clear();
        m_view.clear();
    }
    m_editTimer.stop();
    m_engine.open(source);
}

void Workspace::openWith(const ModelSource &source, const std::string &cluster, std::int32_t devices,
    const std::string &gallery, const std::string &rows)
{
    m_path.clear();
    m_view.clear();
    m_cluster = cluster;
    m_deviceCount = devices;
    m_tableText = rows;
    m_editTimer.stop();
    m_pendingGallery = gallery;
    m_engine.open(source);
    Q_EMIT clusterChanged();
    Q_EMIT tableTextChanged();
}

void Workspace::openSession(const QString &path)
{
    auto file = SessionFile::open(path.toStdString());
    if (!file) {
        Q_EMIT problem(file.error());
        return;
    }
    auto data = file->load();
    if (!data) {
        Q_EMIT problem(data.error());
        return;
    }
    m_path = path;
    m_cluster = data->cluster.name.empty() ? m_cluster : data->cluster.name;
    m_deviceCount = data->cluster.deviceCount;
    m_tableText = std::move(data->tableText);
    m_view = std::move(data->view);
    m_pendingGallery.clear();
    m_editTimer.stop();
    m_modified = false;
    Q_EMIT clusterChanged();
    Q_EMIT tableTextChanged();
    if (!data->model.source.empty())
        m_engine.open({data->model.source, std::move(data->model.content), std::move(data->model.options)});
    Q_EMIT stateChanged();
}

void Workspace::onModelOpened(const ModelSnapshot &model)
{
    m_model = model;
    m_latest.reset();
    m_lastGood.reset();
    const std::string gallery = std::move(m_pendingGallery);
    m_pendingGallery.clear();
    Q_EMIT modelChanged();
    Q_EMIT planChanged();
    request(gallery);
    setModified(m_path.isEmpty() && m_modified);
}

void Workspace::setTableText(const std::string &text)
{
    if (text == m_tableText)
        return;
    m_tableText = text;
    setModified(true);
    m_editTimer.start();
}

void Workspace::setCluster(const std::string &name)
{
    if (name == m_cluster)
        return;
    m_cluster = name;
    setModified(true);
    Q_EMIT clusterChanged();
    request({});
}

void Workspace::setDeviceCount(std::int32_t count)
{
    if (count == m_deviceCount || count < 1)
        return;
    m_deviceCount = count;
    setModified(true);
    Q_EMIT clusterChanged();
    request({});
}

void Workspace::applyGallery(const std::string &spec)
{
    setModified(true);
    request(spec);
}

void Workspace::replan()
{
    request({});
}

void Workspace::stopPlanning()
{
    m_editTimer.stop();
    m_engine.stop();
}

void Workspace::request(std::string gallery)
{
    m_editTimer.stop();
    if (!m_model)
        return;
    PlanRequest request;
    request.model = m_model;
    request.tableText = m_tableText;
    request.gallery = std::move(gallery);
    request.cluster = m_cluster;
    request.deviceCount = m_deviceCount;
    m_revision = m_engine.plan(std::move(request));
}

void Workspace::onPlanUpdated(const PlanUpdateSnapshot &update)
{
    if (update->model != m_model)
        return;
    m_latest = update;
    if (update->scene)
        m_lastGood = update;
    if (update->tableText != m_tableText && !m_editTimer.isActive()) {
        m_tableText = update->tableText;
        Q_EMIT tableTextChanged();
    }
    Q_EMIT planChanged();
}

bool Workspace::isStale() const
{
    return m_lastGood && (m_lastGood->revision != m_revision || m_editTimer.isActive());
}

QString Workspace::title() const
{
    if (!m_path.isEmpty())
        return QFileInfo(m_path).completeBaseName();
    return m_model ? QString::fromStdString(m_model->name) : QString();
}

void Workspace::setModified(bool modified)
{
    if (modified)
        ++m_edits;
    if (m_modified == modified)
        return;
    m_modified = modified;
    Q_EMIT stateChanged();
}

SessionData Workspace::snapshot() const
{
    SessionData data;
    data.model.source = m_model->source.source;
    data.model.content = m_model->source.content;
    data.model.options = m_model->source.options;
    data.cluster = {m_cluster, {}, m_deviceCount};
    data.tableText = m_tableText;
    data.view = m_view;
    return data;
}

void Workspace::save(const QString &path)
{
    if (!m_model || m_saveWatcher.isRunning())
        return;
    m_pathSaving = path;
    m_editsSaving = m_edits;
    const PlanUpdateSnapshot plan = isStale() ? nullptr : m_lastGood;
    m_saveWatcher.setFuture(QtConcurrent::run(
        &m_savePool, [target = path.toStdString(), data = snapshot(), plan]() mutable -> SaveOutcome {
            if (plan) {
                data.plan = sessionPlan(*plan);
                data.cluster.json = toJson(plan->cluster);
            }
            return std::make_shared<const Result<void>>(saveSession(target, data));
        }));
}

void Workspace::takeSaved()
{
    if (m_saveWatcher.future().resultCount() == 0)
        return;
    const SaveOutcome outcome = m_saveWatcher.result();
    if (!*outcome) {
        Q_EMIT problem(outcome->error());
        return;
    }
    m_path = m_pathSaving;
    if (m_edits == m_editsSaving)
        m_modified = false;
    Q_EMIT stateChanged();
    Q_EMIT saved(m_path);
}

} // namespace planloom
