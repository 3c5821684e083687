// Plans of the rows as they are, as they would be, and as they were.

#include "engine/design/explain/free_decisions.h"
#include "engine/design/models/model_rows.h"
#include "engine/design/schedules/block_move.h"
#include "engine/design/solved_store.h"
#include "sessions/model_values.h"
#include "widgets/design/workspace.h"

#include <algorithm>
#include <utility>

namespace planloom {

PlanRequest Workspace::requestFor(const DesignState &state) const
{
    PlanRequest request;
    request.model = plannedModel();
    request.table = state.table;
    request.target = {m_cluster, m_clusterJson, m_deviceCount};
    request.explains = true;
    request.solved = m_solved;
    if (m_lastGood && m_lastGood->model == request.model)
        request.last = m_lastGood;
    return request;
}

void Workspace::request(bool gather, PlanUpdateSnapshot begin)
{
    m_editTimer.stop();
    if (!m_model)
        return;
    m_goodIsCurrent = false;
    if (m_opening && m_opening->options)
        return; // planned once the model is open as the design wants it
    if (m_answered)
        return;
    m_searchAsked = false; // a search under way is given up
    if (leaveSoFar()) {
        m_goodIsCurrent = false;
        Q_EMIT tableChanged();
        Q_EMIT planChanged();
    }
    if (!m_live) {
        m_engine->stopPlanning();
        ++m_unsolvedEdits;
        Q_EMIT stateChanged();
        return;
    }
    PlanRequest wanted = requestFor(m_history.state());
    if (const PlanUpdateSnapshot known = m_cache.find(PlanCache::keyOf(wanted))) {
        m_engine->stopPlanning();
        publishPlan(known);
        return;
    }
    if (gather) {
        m_engine->stopPlanning(); // an answer for older rows may not pass for that of these
        m_editTimer.start();
        return;
    }
    if (begin && begin->scene && begin->table == wanted.table && begin->model == wanted.model) {
        m_revision = m_engine->plan(std::move(wanted), begin);
        publishPlan(begin);
        return;
    }
    if (isSearchedNext()
        && !m_model->planProblem) { // the rows as they are are shown until the search has an answer
        search(false, true);
        return;
    }
    m_revision = m_engine->plan(std::move(wanted));
}

void Workspace::replan()
{
    const bool live = std::exchange(m_live, true);
    m_unsolvedEdits = 0;
    m_cache.clear(); // asked for by name: nothing old is shown
    request(false);
    m_live = live;
    Q_EMIT stateChanged();
}

bool Workspace::hasSolverRows() const
{
    const auto &lines = table().lines();
    return std::any_of(lines.begin(), lines.end(), [](const TableLineSnapshot &line) {
        return line->row && line->row->enabled && line->row->origin == RowOrigin::Solver;
    });
}

bool Workspace::isChosenAgain(const TableDocument &rows)
{
    const ConstraintTable table = rows.table();
    return std::any_of(table.rows.begin(), table.rows.end(), [](const Row &row) {
        return row.enabled && row.origin == RowOrigin::Solver;
    }) && !scheduleThatHoldsSearch(table);
}

/// The rows of a search become rows of the table: part of the edit that led to it, which one undo takes back;
/// a step of their own where a person asked for it.
void Workspace::adoptSearched(const PlanUpdateSnapshot &update)
{
    m_unchecked = {}; // the edit's step is not the move alone any more
    const bool wasShown =
        std::exchange(m_soFar, {}).plan != nullptr; // it stays in sight until this one is there
    m_soFarTimer.stop();
    const DesignChange change{difference(table(), update->table), {}};
    if (change.empty()) {
        m_context.reset();
        if (wasShown)
            Q_EMIT tableChanged();
        return;
    }
    recordAnswer(tr("best plan: %1"), *update->search, change);
}

void Workspace::onSearchUpdated(const PlanUpdateSnapshot &update)
{
    m_searchAsked = false;
    if (!update->search) {
        dropSoFar();
        Error refused = update->searchProblem.value_or(
            Error{ErrorCode::InvalidInput, tr("the rows do not hold").toStdString(), {}, {}});
        refused.where = "search";
        if (m_searchByName && refused.code != ErrorCode::Cancelled)
            Q_EMIT problem(refused);
        return;
    }
    adoptSearched(update);
    QMetaObject::invokeMethod(
        this, [this] { Q_EMIT searched(); }, Qt::QueuedConnection); // once it is shown
}

void Workspace::settleSearch()
{
    if (isSearching())
        m_engine->settle();
}

void Workspace::stopPlanning()
{
    m_editTimer.stop();
    m_galleryAsked.clear();
    m_searchAsked = false;
    m_searchNext = false;
    m_engine->stopPlanning();
    dropSoFar();
}

void Workspace::setLive(bool live)
{
    if (live == m_live)
        return;
    m_live = live;
    if (live) {
        m_unsolvedEdits = 0;
        request(false);
    }
    Q_EMIT stateChanged();
}

std::optional<PlanRequest> Workspace::planRequest() const
{
    if (!m_model || m_model->planProblem)
        return std::nullopt;
    return requestFor(m_history.state());
}

std::optional<PlanRequest> Workspace::galleryRequest(const std::string &spec) const
{
    auto wanted = planRequest();
    if (wanted) {
        wanted->gallery = spec;
        wanted->table = modelRows(table()); // its rows take the place of all others
    }
    return wanted;
}

void Workspace::applyGallery(const std::string &spec)
{
    auto wanted = galleryRequest(spec);
    if (!wanted)
        return;
    m_galleryAsked = spec;
    m_galleryIsRoot = false;
    m_searchAsked = false;
    m_editTimer.stop();
    dropSoFar();
    m_revision = m_engine->plan(*std::move(wanted));
}

void Workspace::onGalleryUpdated(const PlanUpdateSnapshot &update)
{
    const std::string spec = std::exchange(m_galleryAsked, {});
    // A person may have begun to work before the rows came: a branch begun then is kept, and the rows are a
    // step.
    const bool isUntouched =
        m_galleryIsRoot && !m_writer && m_history.steps().empty() && m_history.branches().size() == 1;
    if (update->error && update->rows.empty()) {
        // The plan does not fit this model: the rows stay as they are with what is known of them, and it is
        // said why. What was being planned of them gave way to the question: it is taken up again.
        if (isUntouched)
            beginSession(m_history.state());
        m_revision = 0; // no answer of theirs
        if (m_live
            && (!m_latest || m_cache.find(PlanCache::keyOf(requestFor(m_history.state()))) != m_latest))
            request(false);
        Error refused = *update->error;
        refused.where = "gallery";
        Q_EMIT problem(refused);
        return;
    }
    const TableDocument &rows = update->table;
    if (isUntouched) {
        DesignState root = m_history.state();
        root.table = rows;
        beginSession(std::move(root));
        return;
    }
    const DesignChange change{difference(table(), rows), {}};
    if (change.empty())
        return;
    m_answered = true;
    record(tr("gallery plan %1").arg(QString::fromStdString(spec)), change, {}, false);
    m_answered = false;
}

void Workspace::onPlanUpdated(const PlanUpdateSnapshot &update)
{
    if (update->model != plannedModel() || update->revision != m_revision)
        return;
    if (!m_galleryAsked.empty()) {
        const std::uint64_t revision = m_revision;
        onGalleryUpdated(update);
        if (m_revision != revision)
            return;
    }
    if (m_searchAsked && !update->final && !update->search && !update->searchProblem) {
        if (!(update->table == table()))
            return; // what rows other than those shown bind to
        publishPlan(update);
        if (update->scene)
            takeBackIfBroken(update);
        return;
    }
    if (m_searchAsked) {
        // Known first, and yet it may not have been delivered.
        if (const PlanUpdateSnapshot asTheyAre = m_engine->meanwhile();
            asTheyAre && asTheyAre->table == table() && takeBackIfBroken(asTheyAre))
            return;
        onSearchUpdated(update);
    }
    if (update->final && update->revision == std::exchange(m_ghostsRevision, 0)) // still to be proven
        m_revision = m_engine->plan(requestFor(m_history.state()), update->scene ? update : nullptr);
    publishPlan(update);
}

void Workspace::publishPlan(const PlanUpdateSnapshot &update)
{
    if (m_nextModel) {
        if (!update->scene && !update->final)
            return;
        adoptModel(ModelSnapshot(m_nextModel));
    }
    m_latest = update;
    if (update->scene) {
        m_lastGood = update;
        m_goodIsCurrent = true;
        m_context.reset();
    }
    if (update->final && !isSearchedNext()) {
        m_cache.insert(PlanCache::keyOf(requestFor(m_history.state())), update);
        const StepId step = m_history.current();
        if (update->scene) {
            const StepFigures figures{update->summary.stepSeconds, update->summary.largestPeak.count,
                update->verdict && update->verdict->ok()};
            const StepFigures *known = m_history.figuresOf(step);
            if (!known || *known != figures) {
                m_history.setFigures(step, figures);
                postDerived(figuresKey(step),
                    [step, figures](SessionStore &store) { return store.setFigures(step, figures); });
                Q_EMIT historyChanged();
            }
        }
    }
    Q_EMIT planChanged();
    if (update->scene)
        Q_EMIT contextChanged();
    if (update->final) {
        takeBackIfBroken(update);
        Q_EMIT stateChanged();
    }
    if ((update->scene || update->final) && std::exchange(m_searchNext, false) && isChosenAgain(table()))
        search(false);
}

/// A move that was written before it was known what comes of it, and for which there is no room, is refused
/// like one that a hand still holds.
/// @return whether it was
bool Workspace::takeBackIfBroken(const PlanUpdateSnapshot &update)
{
    const Unchecked unchecked = std::exchange(m_unchecked, {});
    const PlanUpdateSnapshot &before = unchecked.plan;
    if (!before || !before->plan || !update->plan || before->model != update->model
        || m_history.current() != unchecked.step || !isMoved(*before->plan, *update->plan))
        return false;
    auto broken = limitBrokenBy(*update, before.get());
    if (!broken)
        return false;
    if (unchecked.isWholeStep)
        undo();
    else // the last of several moves that are one step
        editTable(tr("take the last move back"), difference(table(), unchecked.table));
    Q_EMIT limitBroken(*broken);
    return true;
}

bool Workspace::isStale() const
{
    return m_lastGood && !m_goodIsCurrent;
}

PlanUpdateSnapshot Workspace::planOfStep(StepId step)
{
    if (!m_model)
        return nullptr;
    if (step == m_history.current() && (m_soFar.plan ? m_soFar.wasCurrent : m_goodIsCurrent))
        return m_soFar.plan ? m_soFar.goodBefore : m_lastGood;
    const auto state = m_history.stateAt(step);
    if (!state)
        return nullptr;
    if (const auto options = wantedOptions(*state);
        !options || !isOpenedAs(*options, m_model->source.options, m_model->source.source)) {
        // Operators of the one model are not those of the other: such plans cannot stand beside each other.
        auto none = std::make_shared<PlanUpdate>();
        none->model = m_model;
        none->table = state->table;
        none->final = true;
        none->error = options
            ? Error{ErrorCode::NotSupported, tr("this step plans the model with other options").toStdString(),
                tr("go to the step to see its plan").toStdString(), {}}
            : options.error();
        QMetaObject::invokeMethod(
            this, [this, step, none] { Q_EMIT planOfStepReady(step, none); }, Qt::QueuedConnection);
        return nullptr;
    }
    PlanRequest wanted = requestFor(*state);
    wanted.target = targetOf(state->values, m_storedCluster, wanted.target);
    if (const PlanUpdateSnapshot known = m_cache.find(PlanCache::keyOf(wanted)))
        return known;
    const bool waiting = std::any_of(m_stepQueue.begin(), m_stepQueue.end(),
        [step](const StepRequest &asked) { return asked.step == step; });
    if (!waiting) {
        m_stepQueue.push_back({step, std::move(wanted)});
        if (m_stepQueue.size() == 1)
            startNextStep();
    }
    return nullptr;
}

void Workspace::startNextStep()
{
    if (!m_stepQueue.empty())
        m_stepRevision = m_stepEngine.plan(m_stepQueue.front().request);
}

void Workspace::onStepUpdated(const PlanUpdateSnapshot &update)
{
    if (!update->final || m_stepQueue.empty() || update->revision != m_stepRevision)
        return;
    const StepRequest asked = std::move(m_stepQueue.front());
    m_stepQueue.pop_front();
    m_cache.insert(PlanCache::keyOf(asked.request), update);
    startNextStep();
    if (update->model == m_model)
        Q_EMIT planOfStepReady(asked.step, update);
}

GestureContextSnapshot Workspace::gestureContext() const
{
    if (!m_model || m_model->planProblem) // what can't be planned can't be shaped either
        return nullptr;
    if (m_context)
        return m_context;
    auto context = std::make_shared<GestureContext>(gestureContextOf(*m_model, table(), m_deviceCount));
    if (m_lastGood) {
        context->plan = m_lastGood->plan;
        context->cluster = m_lastGood->cluster;
    }
    m_context = std::move(context);
    return m_context;
}

void Workspace::preview(const Proposal &proposal)
{
    if (m_preview && m_preview->proposal.edit == proposal.edit && m_preview->proposal.words == proposal.words
        && m_preview->proposal.refusal.has_value() == proposal.refusal.has_value()) {
        return; // asked already
    }
    auto ghost = std::make_shared<Preview>();
    ghost->proposal = proposal;
    ghost->linesBefore = table().lineCount();
    ghost->baseline = m_preview ? m_preview->baseline : m_lastGood;
    m_previewRevision = 0;
    m_ghostSearches = false;
    m_ghostPlain.reset();
    m_ghostSolved.reset();
    if (!proposal.accepted() || !m_model) {
        m_ghostEngine->stopPlanning();
        ghost->final = true;
    } else {
        DesignState wouldBe{table(), m_history.state().values};
        if (!wouldBe.table.apply(proposal.edit)) {
            ghost->final = true;
        } else {
            PlanRequest wanted = requestFor(wouldBe);
            wanted.upTo = PlanGrade::Simulated;
            wanted.explains = false;
            m_ghostRequest = wanted;
            if (const PlanUpdateSnapshot known = m_cache.find(PlanCache::keyOf(wanted))) {
                m_ghostEngine->stopPlanning();
                ghost->update = known;
                m_ghostPlain = known->isTimed() ? known : nullptr;
                ghost->final = !searchesAfterEdits(m_ghostRequest.table);
                if (!ghost->final)
                    searchForGhost();
            } else {
                m_previewRevision = m_ghostEngine->plan(std::move(wanted));
            }
        }
    }
    m_preview = std::move(ghost);
    Q_EMIT previewChanged();
}

void Workspace::onPreviewUpdated(const PlanUpdateSnapshot &update)
{
    if (!m_preview || update->revision != m_previewRevision || update->model != m_model)
        return;
    if (!m_ghostSearches && !update->final && !update->isTimed() && update->errorCount() == 0)
        return; // it tells nothing yet, and views would paint it all the same
    auto ghost = std::make_shared<Preview>(*m_preview);
    if (!m_ghostSearches) {
        ghost->update = update;
        m_ghostPlain = update->final && update->isTimed() ? update : nullptr;
        ghost->final = update->final && !searchesAfterEdits(m_ghostRequest.table);
        if (update->final && !ghost->final)
            searchForGhost();
    } else if (update->search && update->isTimed()) {
        ghost->update = update;
        ghost->final = update->final;
        if (update->final && update->scene)
            m_ghostSolved = update;
    } else if (update->final) {
        ghost->final = true; // nothing was found: it stays with what it had
        if (!ghost->update || !ghost->update->isTimed())
            ghost->update = update;
    } else {
        return;
    }
    m_preview = std::move(ghost);
    Q_EMIT previewChanged();
}

/// The ghost's numbers become those of the plan that the solver would choose: a drop has nothing left to
/// search.
void Workspace::searchForGhost()
{
    m_ghostSearches = true;
    PlanRequest wanted = m_ghostRequest;
    wanted.search = true;
    wanted.memory = m_searchMemory;
    wanted.betterEvery = m_betterEvery; // if it is dropped before that ends
    m_previewRevision = m_ghostEngine->plan(std::move(wanted));
}

/// The plan of its rows alone is there, and better ones are being looked for.
bool Workspace::isGhostSearched() const
{
    return m_ghostSearches && m_previewRevision != 0 && m_ghostEngine->isPlanning() && m_ghostPlain
        && m_ghostPlain->scene && !m_ghostSolved && !m_engine->isOpening();
}

void Workspace::endPreview()
{
    m_ghostEngine->stopPlanning();
    leavePreview();
}

/// As `endPreview`, but what is planned for it goes on.
void Workspace::leavePreview()
{
    m_previewRevision = 0;
    m_ghostPlain.reset();
    m_ghostSolved.reset();
    m_ghostRequest = {};
    if (!m_preview)
        return;
    m_preview.reset();
    Q_EMIT previewChanged();
}

/// What is searched for the ghost is searched for its rows: its plan is shown at once, and the search goes on
/// as that of the plan.
bool Workspace::takeOverGhost(const Proposal &proposal, const QString &mergeKey)
{
    auto shown = std::make_shared<PlanUpdate>(*m_ghostPlain);
    shown->final = false;
    const std::uint64_t revision = m_previewRevision;
    const TableDocument rows = m_ghostRequest.table;
    leavePreview();
    keepSoFar();
    m_answered = true;
    const bool isWritten =
        record(QString::fromStdString(proposal.words), {proposal.edit, {}}, mergeKey, false);
    m_answered = false;
    if (!isWritten || m_preview || !m_ghostEngine->isPlanning() || !(table() == rows)
        || shown->model != plannedModel()) { // something else came of it
        if (!m_preview)
            m_ghostEngine->stopPlanning();
        m_searchNext = isWritten && m_searchesAgain && m_live;
        if (isWritten)
            request(false);
        return isWritten;
    }
    m_engine->stopPlanning();
    std::swap(m_engine, m_ghostEngine);
    m_engine->setLeastMilliseconds(EngineService::kLeastMilliseconds);
    m_ghostEngine->setLeastMilliseconds(kGhostMilliseconds);
    m_editTimer.stop();
    m_revision = revision;
    m_ghostsRevision = revision;
    m_searchAsked = true;
    m_searchByName = false;
    m_progress.reset();
    publishPlan(std::move(shown));
    return true;
}

bool Workspace::commit(const Proposal &proposal, const QString &mergeKey)
{
    PlanUpdateSnapshot begin;
    PlanUpdateSnapshot solved;
    if (m_preview && m_preview->proposal.edit == proposal.edit) {
        if (proposal.accepted() && isGhostSearched())
            return takeOverGhost(proposal, mergeKey);
        solved = m_ghostSolved;
        begin = m_ghostPlain;
    }
    endPreview();
    if (!proposal.accepted())
        return false;
    const QString words = QString::fromStdString(proposal.words);
    if (!solved) {
        Unchecked unchecked{begin || !m_goodIsCurrent ? nullptr : m_lastGood, table()};
        const StepId last = m_history.current();
        if (!record(words, {proposal.edit, {}}, mergeKey, false, std::move(begin)))
            return false;
        unchecked.step = m_history.current();
        unchecked.isWholeStep = unchecked.step != last;
        m_unchecked = std::move(unchecked);
        if (m_latest && m_latest->final && m_latest->table == table()) // known from before
            takeBackIfBroken(m_latest);
        return true;
    }
    keepSoFar();
    m_answered = true;
    const bool isWritten = record(words, {proposal.edit, {}}, mergeKey, false);
    m_answered = false;
    if (!isWritten)
        return false;
    m_searchByName = false;
    adoptSearched(solved);
    m_revision = m_engine->plan(requestFor(m_history.state()), solved); // it is still to be proven
    publishPlan(solved);
    return true;
}

} // namespace planloom
