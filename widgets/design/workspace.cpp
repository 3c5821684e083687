#include "widgets/design/workspace.h"

#include "engine/design/models/model_rows.h"
#include "engine/design/solved_store.h"
#include "engine/frontend/open_dimensions.h"
#include "engine/frontend/zoo/zoo.h"
#include "sessions/model_values.h"
#include "widgets/design/cluster_values.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QDir>
#include <QtCore/QFileInfo>

#include <utility>

namespace planloom {

namespace {

constexpr int kEditMilliseconds = 150;
constexpr int kHandMilliseconds = 100; ///< Between two looks at whether a hand is still at work.
constexpr int kViewMilliseconds = 400;

} // namespace

struct Workspace::OpenedSession {
    QString path;
    SessionStore store;
    SessionContents contents;
    std::vector<InputDimension> dimensions; ///< Of its model, if rows speak of them.
};

Workspace::Workspace(QObject *parent)
    : GestureHost(parent)
    , m_solved(std::make_shared<SolvedStore>())
{
    m_openPool.setMaxThreadCount(1);
    m_editTimer.setSingleShot(true);
    m_editTimer.setInterval(kEditMilliseconds);
    connect(&m_editTimer, &QTimer::timeout, this, [this] { request(false); });
    m_viewTimer.setSingleShot(true);
    m_viewTimer.setInterval(kViewMilliseconds);
    connect(&m_viewTimer, &QTimer::timeout, this, &Workspace::postView);
    for (EngineService &each : m_engines)
        connectEngine(each);
    m_ghostEngine->setLeastMilliseconds(kGhostMilliseconds);
    m_soFarTimer.setSingleShot(true);
    m_soFarTimer.setInterval(kHandMilliseconds);
    connect(&m_soFarTimer, &QTimer::timeout, this, [this] {
        if (const PlanUpdateSnapshot waiting = m_soFar.waiting)
            showBetter(waiting);
    });
    connect(&m_stepEngine, &EngineService::planUpdated, this, &Workspace::onStepUpdated);
    connect(&m_openWatcher, &QFutureWatcherBase::finished, this, &Workspace::takeSession);
    connect(&m_rebindWatcher, &QFutureWatcherBase::finished, this, &Workspace::takeRebinding);
    connect(&m_modelWatcher, &QFileSystemWatcher::fileChanged, this, [this](const QString &path) {
        // Many programs write a file anew under its name, which ends the watch.
        if (QFileInfo::exists(path))
            m_modelWatcher.addPath(path);
        Q_EMIT modelFileChanged(path);
    });
}

void Workspace::connectEngine(EngineService &engine)
{
    const auto isGhosts = [this, &engine] { return &engine == m_ghostEngine; };
    connect(&engine, &EngineService::modelOpened, this, &Workspace::onModelOpened);
    connect(&engine, &EngineService::modelFailed, this, &Workspace::onModelFailed);
    connect(&engine, &EngineService::sizesAsked, this,
        [this](const ModelSource &source, const std::vector<InputDimension> &dimensions) {
            askSizes(source, dimensions, {});
        });
    connect(&engine, &EngineService::planUpdated, this, [this, isGhosts](const PlanUpdateSnapshot &update) {
        isGhosts() ? onPreviewUpdated(update) : onPlanUpdated(update);
    });
    connect(&engine, &EngineService::searchImproved, this, [this, isGhosts](const SearchProgress &progress) {
        if (isGhosts())
            return;
        m_progress = progress;
        Q_EMIT stateChanged();
    });
    connect(&engine, &EngineService::betterPlanned, this, [this, isGhosts](const PlanUpdateSnapshot &update) {
        if (!isGhosts())
            showBetter(update);
    });
    connect(&engine, &EngineService::stateChanged, this, [this, isGhosts] {
        if (!isGhosts())
            Q_EMIT stateChanged();
    });
}

Workspace::~Workspace()
{
    m_rebindStop.request_stop();
    if (m_viewTimer.isActive())
        postView();
}

void Workspace::setSessionFolder(const QString &folder)
{
    m_sessionFolder = folder;
}

void Workspace::setSolvedFolder(const QString &folder)
{
    m_solved = std::make_shared<SolvedStore>(std::filesystem::path(folder.toStdString()));
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
    Opening opening;
    opening.keepRows = keepRows && m_model;
    opening.gallery = "single";
    opening.root.values = clusterValues(m_cluster, m_clusterJson);
    opening.root.values["devices"] = std::to_string(m_deviceCount);
    ModelSource wanted = source;
    if (opening.keepRows) {
        // What was chosen about training stays, as rows do; sizes and loss are about one file.
        const ModelOptions kept = modelOptions();
        const ModelOptions given = std::exchange(wanted.options, kept);
        if (source.source != m_model->source.source) {
            wanted.options.dimensions = given.dimensions;
            wanted.options.storedAs = given.storedAs;
            wanted.options.asInputs = given.asInputs;
            wanted.options.operatorFiles = given.operatorFiles;
            wanted.options.capacities = given.capacities;
            wanted.options.unroll = given.unroll;
            wanted.options.lossOutput = given.lossOutput;
        } else {
            wanted.options = withRows(std::move(wanted.options), table(), *m_model->graph);
        }
    }
    beginOpening(wanted, std::move(opening));
}

void Workspace::openWith(const ModelSource &source, const std::string &cluster, std::int32_t devices,
    const std::string &gallery, const std::string &rows)
{
    Opening opening;
    opening.root.table = TableDocument(rows);
    opening.root.values = clusterValues(cluster, {});
    opening.root.values["devices"] = std::to_string(devices);
    opening.gallery = gallery;
    beginOpening(source, std::move(opening));
}

void Workspace::openSession(const QString &path)
{
    cancelOpening();
    m_openingSession = true;
    std::vector<std::shared_future<void>> closing; // it may be one of these that is opened again
    for (const auto &writer : m_retired) {
        if (!writer->hasFailed()) // else it may last: the file is open elsewhere until then
            closing.push_back(writer->ended());
    }
    m_openWatcher.setFuture(QtConcurrent::run(&m_openPool, [path, closing]() -> OpenOutcome {
        for (const std::shared_future<void> &closed : closing)
            closed.wait();
        auto opened = SessionStore::open(path.toStdString());
        if (!opened)
            return std::make_shared<Result<std::shared_ptr<OpenedSession>>>(opened.error());
        auto session = std::make_shared<OpenedSession>(
            OpenedSession{path, std::move(opened->store), std::move(opened->contents), {}});
        const SessionModel &model = session->contents.model;
        if (modelRows(session->contents.history.state().table).lineCount() > 0) {
            auto options = modelOptionsOf(model.options);
            if (auto known = openDimensions(
                    {model.source, model.content, options ? *std::move(options) : ModelOptions{}}))
                session->dimensions = *std::move(known);
        }
        return std::make_shared<Result<std::shared_ptr<OpenedSession>>>(std::move(session));
    }));
    Q_EMIT stateChanged();
}

void Workspace::cancelOpening()
{
    const bool opening = isOpening();
    m_openWatcher.setFuture({}); // what it still reads is dropped with the future
    m_openingSession = false;
    m_rebindStop.request_stop();
    m_rebindWatcher.setFuture({});
    m_rebinding = false;
    m_opening.reset();
    m_asked.reset();
    if (m_engine->isOpening())
        m_engine->stop();
    if (opening)
        Q_EMIT stateChanged();
}

void Workspace::takeSession()
{
    if (!m_openingSession || m_openWatcher.future().resultCount() == 0)
        return;
    m_openingSession = false;
    const OpenOutcome outcome = m_openWatcher.result();
    m_openWatcher.setFuture({});
    if (!*outcome) {
        Q_EMIT stateChanged();
        Q_EMIT problem(outcome->error());
        return;
    }
    const std::shared_ptr<OpenedSession> session = **outcome;
    Opening opening;
    opening.session = session;
    const SessionModel &model = session->contents.model;
    // The stored options are as the model was opened first, the history's values what was chosen since.
    auto options = modelOptionsOf(model.options);
    const DesignState &state = session->contents.history.state();
    if (options)
        options = modelOptionsIn(state, *options);
    if (options)
        options = withRows(*std::move(options), state.table, session->dimensions);
    if (!options) {
        Q_EMIT stateChanged();
        Q_EMIT problem(options.error());
        return;
    }
    beginOpening({model.source, model.content, *std::move(options)}, std::move(opening));
}

void Workspace::beginOpening(const ModelSource &source, Opening opening)
{
    cancelOpening();
    m_editTimer.stop();
    endPreview();
    m_galleryAsked.clear();
    m_searchAsked = false;
    m_searchNext = false;
    dropSoFar();
    m_opening = std::move(opening);
    m_engine->open(source);
}

void Workspace::askSizes(
    const ModelSource &source, const std::vector<InputDimension> &dimensions, const QString &problem)
{
    if (!m_opening)
        return;
    m_asked = Asked{source, std::move(*m_opening), dimensions};
    m_opening.reset();
    Q_EMIT stateChanged();
    Q_EMIT sizesAsked(dimensions, problem);
}

void Workspace::giveSizes(const std::map<std::string, std::int64_t> &sizes)
{
    if (!m_asked)
        return;
    Asked asked = std::move(*m_asked);
    for (InputDimension &dimension : asked.dimensions) {
        if (const auto given = sizes.find(dimension.name); given != sizes.end()) {
            dimension.size = given->second;
            asked.source.options.dimensions[dimension.name] = given->second;
        }
    }
    asked.opening.asked = std::move(asked.dimensions);
    beginOpening(asked.source, std::move(asked.opening));
}

void Workspace::onModelFailed(const ModelSource &source, const Error &error)
{
    if (m_opening && !m_opening->asked.empty()) {
        const std::vector<InputDimension> asked = m_opening->asked;
        askSizes(source, asked, QString::fromStdString(describe(error)));
        return;
    }
    const bool isOther = m_opening && m_opening->options;
    m_opening.reset();
    Q_EMIT stateChanged();
    Q_EMIT problem(error);
    if (isOther)
        request(false); // the row that asks for what cannot be says so
}

void Workspace::onModelOpened(const ModelSnapshot &model)
{
    if (!m_opening)
        return;
    Opening opening = std::move(*m_opening);
    m_opening.reset();
    if (opening.keepRows) {
        compareModels(model);
        return;
    }
    if (opening.options) {
        replaceModel(model);
        return;
    }
    // A new session, or one from a file: everything of the last one is let go.
    if (m_viewTimer.isActive()) {
        m_viewTimer.stop();
        postView();
    }
    retireWriter();
    m_openedOptions = model->source.options;
    m_stepEngine.stop();
    m_stepQueue.clear();
    m_runs.clear();
    m_view.clear();
    m_remark.clear();
    m_path.clear();
    m_readOnly = false;
    m_storedCluster = {};
    m_mergeKey.clear();
    m_unsolvedEdits = 0;
    if (opening.session) {
        SessionContents &contents = opening.session->contents;
        if (auto stored = modelOptionsOf(contents.model.options)) // it could be read, see takeSession
            m_openedOptions = *std::move(stored);
        m_path = opening.session->path;
        m_history = std::move(contents.history);
        m_runs = std::move(contents.runs);
        m_view = std::move(contents.view);
        m_storedCluster = {value("cluster"), std::move(contents.clusterJson)};
        m_remark = QString::fromStdString(contents.remark);
        m_readOnly = contents.readOnly;
        m_keptSteps = static_cast<std::int32_t>(m_history.steps().size());
        connectWriter([session = opening.session]() -> Result<SessionStore> {
            return std::move(session->store); // called once
        });
        setSaveState(m_readOnly ? SaveState::ReadOnly : SaveState::Saved, m_remark);
        readValues();
        markInterruptedRuns();
        adoptModel(model);
        Q_EMIT sessionChanged();
        Q_EMIT tableChanged();
        Q_EMIT clusterChanged();
        Q_EMIT valuesChanged();
        Q_EMIT historyChanged();
        Q_EMIT runsChanged();
        Q_EMIT stateChanged();
        request(false);
        return;
    }
    setSaveState(SaveState::None);
    if (!isZooSpec(model->source.source)) // what was chosen for a file can be changed where rows are
        static_cast<void>(opening.root.table.apply(
            sizeRows(opening.root.table, sizesOf(model->graph->dimensions), model->graph->dimensions)));
    m_history = History(opening.root);
    readValues();
    adoptModel(model);
    if (opening.gallery.empty() || model->planProblem) {
        beginSession(std::move(opening.root));
        request(false);
        return;
    }
    m_galleryAsked = opening.gallery;
    m_galleryIsRoot = true;
    PlanRequest asked = requestFor(m_history.state());
    asked.gallery = opening.gallery;
    asked.table = modelRows(opening.root.table);
    m_revision = m_engine->plan(std::move(asked));
    Q_EMIT clusterChanged();
    Q_EMIT stateChanged();
}

void Workspace::beginSession(DesignState root)
{
    m_history = History(std::move(root));
    m_context.reset();
    ++m_designRevision;
    m_stepEngine.stop(); // what was asked for was a step of another history
    m_stepQueue.clear();
    readValues();
    Q_EMIT sessionChanged();
    Q_EMIT tableChanged();
    Q_EMIT clusterChanged();
    Q_EMIT valuesChanged();
    Q_EMIT historyChanged();
    Q_EMIT runsChanged();
    Q_EMIT stateChanged();
    Q_EMIT contextChanged();
}

void Workspace::adoptModel(const ModelSnapshot &model)
{
    m_model = model;
    m_nextModel.reset();
    ++m_designRevision;
    m_latest.reset();
    m_lastGood.reset();
    m_goodIsCurrent = false;
    m_cache.clear();
    m_context.reset();
    watchModel();
    Q_EMIT modelChanged();
    Q_EMIT planChanged();
    Q_EMIT contextChanged();
}

Result<ModelOptions> Workspace::wantedOptions(const DesignState &state) const
{
    TRY(auto options, modelOptionsIn(state, m_openedOptions));
    return withRows(std::move(options), state.table, *m_model->graph);
}

/// The model as the design wants it, if it is open otherwise.
void Workspace::reopenModel()
{
    const auto options = wantedOptions(m_history.state());
    if (!options) {
        Q_EMIT problem(options.error());
        return;
    }
    if (m_opening && m_opening->options)
        cancelOpening();
    m_nextModel.reset();
    if (isOpenedAs(*options, m_model->source.options, m_model->source.source)) {
        request(false);
        return;
    }
    ModelSource source = m_model->source;
    source.options = *options;
    Opening opening;
    opening.options = true;
    beginOpening(source, std::move(opening));
    Q_EMIT stateChanged();
}

/// Plans for the model as it is wanted now. What was open stays in sight until there is something to see in
/// its place.
void Workspace::replaceModel(const ModelSnapshot &model)
{
    if (m_live)
        m_nextModel = model;
    else
        adoptModel(model);
    request(false);
    Q_EMIT stateChanged();
}

void Workspace::compareModels(const ModelSnapshot &after)
{
    m_rebinding = true;
    m_rebindStop = std::stop_source{};
    m_rebindWatcher.setFuture(QtConcurrent::run(&m_openPool,
        [before = m_model, after, rows = table(),
            stop = m_rebindStop.get_token()]() -> std::shared_ptr<const Rebound> {
            return std::make_shared<const Rebound>(
                Rebound{after, rows, rebind(*before->index, *after->index, rows, stop)});
        }));
    Q_EMIT stateChanged();
}

void Workspace::takeRebinding()
{
    if (!m_rebinding || m_rebindWatcher.future().resultCount() == 0)
        return;
    const std::shared_ptr<const Rebound> rebound = m_rebindWatcher.result();
    m_rebindWatcher.setFuture({});
    if (rebound->rows != table()) {
        compareModels(rebound->model); // work went on meanwhile
        return;
    }
    m_rebinding = false;
    const Rebinding &outcome = rebound->outcome;
    const auto count = [](std::size_t n, const QString &one, const QString &several) {
        return n == 1 ? one : several.arg(n);
    };
    if (outcome.fresh == 0 && outcome.gone == 0 && outcome.rewritten.empty()) {
        m_remark = tr("The model was read again: its operators are the same.");
    } else {
        m_remark =
            tr("The model changed: %1, %2 gone, %3.")
                .arg(count(
                    static_cast<std::size_t>(outcome.fresh), tr("1 operator new"), tr("%1 operators new")))
                .arg(outcome.gone)
                .arg(count(outcome.lost.size(), tr("1 row no longer binds"), tr("%1 rows no longer bind")));
        if (!outcome.rewritten.empty())
            m_remark += QLatin1Char(' ')
                + count(
                    outcome.rewritten.size(), tr("1 row was bound anew."), tr("%1 rows were bound anew."));
        if (!outcome.fewer.empty())
            m_remark += QLatin1Char(' ')
                + count(outcome.fewer.size(), tr("1 row acts on fewer operators."),
                    tr("%1 rows act on fewer operators."));
    }
    endPreview();
    // Steps back to before somebody chose how to train lead to what was opened then.
    m_openedOptions.dimensions = rebound->model->source.options.dimensions;
    m_openedOptions.lossOutput = rebound->model->source.options.lossOutput;
    post([source = rebound->model->source, options = m_openedOptions](SessionStore &store) {
        return store.setModel({source.source, source.content, {}, valuesOf(options)});
    });
    adoptModel(rebound->model);
    if (outcome.edit.empty())
        reopenModel(); // if rows want it otherwise; and plans
    else
        record(tr("Rebind rows to the changed model"), {outcome.edit, {}}, {}, false);
    Q_EMIT stateChanged();
}

void Workspace::watchModel()
{
    if (const QStringList files = m_modelWatcher.files(); !files.isEmpty())
        m_modelWatcher.removePaths(files);
    const QString path = QString::fromStdString(m_model->source.source);
    if (!isZooSpec(m_model->source.source) && QFileInfo::exists(path))
        m_modelWatcher.addPath(path);
}

QString Workspace::title() const
{
    if (hasGivenName())
        return QFileInfo(m_path).completeBaseName();
    return m_model ? QString::fromStdString(m_model->name) : QString();
}

bool Workspace::hasGivenName() const
{
    return !m_path.isEmpty()
        && (m_sessionFolder.isEmpty()
            || QFileInfo(m_path).absolutePath() != QDir(m_sessionFolder).absolutePath());
}

} // namespace planloom

#include "moc_workspace.cpp"
