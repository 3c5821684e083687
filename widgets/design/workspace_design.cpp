// Edits of the design, its history, and the file they go to.

#include <QtCore/QDateTime>
#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QPromise>

#include "engine/design/models/model_rows.h"
#include "engine/hardware/framework.h"
#include "sessions/model_values.h"
#include "widgets/design/cluster_values.h"
#include "widgets/design/row_sentences.h"
#include "widgets/design/workspace.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

constexpr qint64 kMergeMilliseconds = 1000;

/// Whether a value of the design says for what plans are made.
bool isTargetValue(const std::string &name)
{
    return name == "cluster" || name == "cluster-json" || name == "devices";
}

/// The smallest edit that makes `document` read `text`, without reading the lines that stay.
TableEdit editTo(const TableDocument &document, const std::string &text)
{
    std::vector<std::string> wanted;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        wanted.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    const auto &lines = document.lines();
    std::size_t same = 0;
    while (same < lines.size() && same < wanted.size() && lines[same]->text == wanted[same])
        ++same;
    std::size_t tail = 0;
    while (tail < lines.size() - same && tail < wanted.size() - same
        && lines[lines.size() - 1 - tail]->text == wanted[wanted.size() - 1 - tail])
        ++tail;
    TableSplice splice;
    splice.line = static_cast<std::int32_t>(same);
    for (std::size_t i = same; i < lines.size() - tail; ++i)
        splice.removed.push_back(lines[i]->text);
    splice.inserted.assign(
        wanted.begin() + static_cast<std::ptrdiff_t>(same), wanted.end() - static_cast<std::ptrdiff_t>(tail));
    TableEdit edit;
    if (!splice.removed.empty() || !splice.inserted.empty())
        edit.splices.push_back(std::move(splice));
    TableDocument changed = document;
    if (changed.apply(edit) && changed.text() == text && !changed.pieces().empty())
        return edit;
    return difference(document, TableDocument(text)); // they differ in how the last line ends
}

} // namespace

std::string Workspace::value(const std::string &name) const
{
    const auto &values = m_history.state().values;
    const auto found = values.find(name);
    return found == values.end() ? std::string{} : found->second;
}

void Workspace::readValues()
{
    TargetChoice target =
        targetOf(m_history.state().values, m_storedCluster, {m_cluster, m_clusterJson, m_deviceCount});
    m_cluster = std::move(target.cluster);
    m_clusterJson = std::move(target.clusterJson);
    m_deviceCount = target.deviceCount;
}

bool Workspace::edit(const QString &words, const DesignChange &change, const QString &mergeKey)
{
    return record(words, change, mergeKey, false);
}

bool Workspace::editTable(const QString &words, const TableEdit &edit, const QString &mergeKey)
{
    return record(words, {edit, {}}, mergeKey, false);
}

bool Workspace::setValue(
    const QString &words, const std::string &name, std::optional<std::string> value, const QString &mergeKey)
{
    const auto &values = m_history.state().values;
    const auto found = values.find(name);
    const std::optional<std::string> before =
        found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
    if (before == value)
        return true;
    return record(words, {{}, {{name, before, std::move(value)}}}, mergeKey, false);
}

void Workspace::setTableText(const std::string &text)
{
    editText(editTo(table(), text));
}

void Workspace::editText(const TableEdit &edit)
{
    record(wordsOfTextEdit(edit), {edit, {}}, QStringLiteral("text"), true);
}

void Workspace::setCluster(const std::string &nameOrPath, const std::string &json, std::int32_t devices)
{
    auto wanted = clusterValues(nameOrPath, json);
    wanted["devices"] = std::to_string(devices > 0 ? devices : m_deviceCount);
    edit(tr("plan for %1").arg(QString::fromStdString(wanted["cluster"])),
        {{}, targetChanges(m_history.state().values, wanted)});
}

void Workspace::setFramework(const std::string &name)
{
    auto wanted = clusterValues(joinFramework(splitFramework(m_cluster).first, name), m_clusterJson);
    wanted["devices"] = std::to_string(m_deviceCount);
    edit(name.empty() ? tr("predict without a framework")
                      : tr("predict with %1").arg(QString::fromStdString(name)),
        {{}, targetChanges(m_history.state().values, wanted)});
}

ModelOptions Workspace::modelOptions() const
{
    auto options = modelOptionsIn(m_history.state(), m_openedOptions);
    return options ? *std::move(options) : m_model ? m_model->source.options : ModelOptions{};
}

void Workspace::setModelOptions(const ModelOptions &options)
{
    const std::string words = describe(options);
    edit(words.empty() ? tr("train as usual") : tr("model: %1").arg(QString::fromStdString(words)),
        {{}, changeOfOptions(m_history.state(), modelOptions(), options)});
}

void Workspace::setSizes(const std::map<std::string, std::int64_t> &sizes)
{
    if (!m_model)
        return;
    const std::vector<InputDimension> &known = m_model->graph->dimensions;
    std::string words;
    std::map<std::string, std::int64_t> others;
    const auto options = wantedOptions(m_history.state());
    for (const auto &[name, size] : sizes) {
        const InputDimension *dimension = findDimension(known, name);
        if (dimension == nullptr)
            continue;
        const auto wanted = options ? options->dimensions.find(dimension->name)
                                    : std::map<std::string, std::int64_t>::const_iterator{};
        const bool isAsked = options && wanted != options->dimensions.end();
        if (size == (isAsked ? wanted->second : dimension->size))
            continue;
        others[dimension->name] = size;
        words += (words.empty() ? "" : ", ") + dimension->name + " = " + std::to_string(size);
    }
    if (!others.empty())
        editTable(tr("open with %1").arg(QString::fromStdString(words)), sizeRows(table(), others, known),
            QStringLiteral("sizes"));
}

void Workspace::setDeviceCount(std::int32_t count)
{
    if (count >= 1)
        setValue(count == 1 ? tr("plan for 1 device") : tr("plan for %1 devices").arg(count), "devices",
            std::to_string(count), QStringLiteral("devices"));
}

bool Workspace::record(const QString &words, const DesignChange &change, const QString &mergeKey, bool gather,
    PlanUpdateSnapshot begin)
{
    if (!m_model || change.empty())
        return true;
    const bool isOtherTarget = std::any_of(change.values.begin(), change.values.end(),
        [](const ValueChange &each) { return isTargetValue(each.name); });
    if (!change.table.empty() || isOtherTarget) { // else a search goes on
        if (!m_answered)
            keepSoFar();
        m_searchAsked = false;
    }
    m_galleryAsked.clear(); // what a person does now is newer
    // What the solver chose is its to choose again, within the rows as they are now.
    m_searchNext = !m_answered && m_searchesAgain && m_live && (!change.table.empty() || isOtherTarget);
    const bool merge = mergeKey == QLatin1String(kAnswerOfEdit)
        || (!mergeKey.isEmpty() && mergeKey == m_mergeKey && m_sinceEdit.isValid()
            && m_sinceEdit.elapsed() < kMergeMilliseconds);
    if (mergeKey != QLatin1String(kAnswerOfEdit)) {
        m_mergeKey = mergeKey;
        m_sinceEdit.start();
    }
    if (merge) {
        const auto amended = m_history.amend(words.toStdString(), change);
        if (!amended) {
            Q_EMIT problem(amended.error());
            return false;
        }
        if (*amended) {
            if (!startFile()) {
                if (const HistoryStep *step = m_history.find(m_history.current())) {
                    if (m_writer) {
                        m_writer->dropDerived(figuresKey(step->id)); // of what the step was
                        m_writer->dropDerived(kThumbnailKey);
                    }
                    post([stored = *step](SessionStore &store) { return store.replaceStep(stored); });
                }
            }
            stateReplaced(change, gather, std::move(begin));
            return true;
        }
    }
    const auto step = m_history.record(words.toStdString(), change, QDateTime::currentMSecsSinceEpoch());
    if (!step) {
        Q_EMIT problem(step.error());
        return false;
    }
    if (!startFile()) {
        post([stored = *m_history.find(*step), current = m_history.current(), branches = m_history.branches(),
                 branch = m_history.branch()](
                 SessionStore &store) { return store.addStep(stored, current, branches, branch); });
    }
    stateReplaced(change, gather, std::move(begin));
    return true;
}

void Workspace::stateReplaced(const DesignChange &change, bool gather, PlanUpdateSnapshot begin)
{
    m_context.reset();
    ++m_designRevision;
    bool cluster = false;
    bool others = false;
    bool model = false;
    for (const ValueChange &value : change.values) {
        const bool about = isTargetValue(value.name);
        cluster = cluster || about;
        others = others || !about;
        model = model || isModelValue(value.name);
    }
    const bool plans = !change.table.empty() || cluster;
    if (!model && !change.table.empty()) {
        const auto wanted = wantedOptions(m_history.state());
        const ModelSource &planned = plannedModel()->source;
        model = wanted && !isOpenedAs(*wanted, planned.options, planned.source);
    }
    if (plans || model)
        m_goodIsCurrent = false;
    if (cluster)
        readValues();
    if (!change.table.empty())
        Q_EMIT tableChanged();
    if (cluster)
        Q_EMIT clusterChanged();
    if (others)
        Q_EMIT valuesChanged();
    Q_EMIT historyChanged();
    Q_EMIT contextChanged();
    if (model)
        reopenModel(); // and plans
    else if (plans)
        request(gather, std::move(begin));
    Q_EMIT stateChanged();
}

void Workspace::moved(const DesignState &before)
{
    m_galleryAsked.clear();
    m_searchAsked = false;
    m_searchNext = false;
    m_mergeKey.clear();
    dropSoFar();
    postPosition();
    stateReplaced(difference(before, m_history.state()), false);
}

void Workspace::undo()
{
    if (!canUndo())
        return;
    const DesignState before = m_history.state();
    m_history.undo();
    moved(before);
}

void Workspace::redo()
{
    if (!canRedo())
        return;
    const DesignState before = m_history.state();
    m_history.redo();
    moved(before);
}

void Workspace::goTo(StepId step)
{
    const DesignState before = m_history.state();
    if (const auto gone = m_history.goTo(step); !gone)
        Q_EMIT problem(gone.error());
    else
        moved(before);
}

void Workspace::addBranch(const QString &name)
{
    if (!m_model)
        return;
    QString chosen = name.trimmed();
    if (chosen.isEmpty())
        chosen = tr("branch %1").arg(m_history.branches().size() + 1);
    m_history.addBranch(chosen.toStdString());
    m_mergeKey.clear();
    if (!startFile())
        postPosition();
    Q_EMIT historyChanged();
}

void Workspace::switchBranch(std::int32_t branch)
{
    const DesignState before = m_history.state();
    if (const auto switched = m_history.switchBranch(branch); !switched)
        Q_EMIT problem(switched.error());
    else
        moved(before);
}

void Workspace::renameBranch(std::int32_t branch, const QString &name)
{
    if (name.trimmed().isEmpty())
        return;
    if (const auto renamed = m_history.renameBranch(branch, name.trimmed().toStdString()); !renamed) {
        Q_EMIT problem(renamed.error());
        return;
    }
    postPosition();
    Q_EMIT historyChanged();
}

void Workspace::nameCheckpoint(const QString &name)
{
    nameStep(name, m_history.current());
}

void Workspace::nameStep(const QString &name, StepId step)
{
    if (!m_model || name.trimmed().isEmpty())
        return;
    m_history.setName(name.trimmed().toStdString(), step);
    namesChanged();
}

void Workspace::removeName(const QString &name)
{
    if (!m_model)
        return;
    m_history.removeName(name.trimmed().toStdString());
    namesChanged();
}

void Workspace::namesChanged()
{
    m_mergeKey.clear(); // a named step is not changed any more
    if (!startFile())
        post([names = m_history.names()](SessionStore &store) { return store.setNames(names); });
    Q_EMIT historyChanged();
}

std::function<SessionContents()> Workspace::contents() const
{
    SessionContents contents;
    contents.model = {m_model->source.source, {}, {}, valuesOf(m_openedOptions)};
    contents.clusterJson = m_storedCluster.json;
    contents.history = m_history;
    contents.view = m_view;
    contents.runs = m_runs;
    return [begin = std::move(contents), model = m_model] {
        SessionContents whole = begin;
        whole.model.content = model->source.content;
        return whole;
    };
}

bool Workspace::startFile()
{
    if (m_writer || m_readOnly || m_sessionFolder.isEmpty() || !m_model)
        return false;
    const QDir folder(m_sessionFolder);
    QString stem = QString::fromStdString(m_model->name);
    for (QChar &c : stem) {
        if (!c.isLetterOrNumber() && c != QLatin1Char('-') && c != QLatin1Char('_'))
            c = QLatin1Char('_');
    }
    stem = stem.left(60) + QDateTime::currentDateTime().toString(QStringLiteral(" yyyy-MM-dd hhmmss"));
    m_path = folder.filePath(stem + QStringLiteral(".planloom"));
    const auto make = [folder = m_sessionFolder.toStdString(), stem = stem.toStdString(),
                          contents = contents()]() -> Result<SessionStore> {
        std::error_code failure;
        std::filesystem::create_directories(folder, failure); // create() says it
        const SessionContents whole = contents();
        for (int i = 2;; ++i) {
            const std::string name = i == 2 ? stem : stem + ' ' + std::to_string(i - 1);
            const std::filesystem::path target = std::filesystem::path(folder) / (name + ".planloom");
            auto made = SessionStore::create(target, whole);
            if (made || !std::filesystem::exists(std::filesystem::symlink_status(target, failure)))
                return made;
        } // another window began at the same second: the name is taken
    };
    connectWriter(make);
    post([](SessionStore &) { return Result<void>{}; }); // so that the file is made
    return true;
}

/// What was begun to be written goes on by itself; nothing here waits for it but the end of the program.
void Workspace::retireWriter()
{
    if (!m_writer)
        return;
    m_writer->disconnect(this); // what it has to say is about another session now
    SessionWriter *writer = m_writer.get();
    m_retired.push_back(std::move(m_writer));
    connect(writer, &SessionWriter::finished, this, [this, writer] {
        std::erase_if(m_retired, [writer](auto &kept) {
            if (kept.get() != writer)
                return false;
            kept.release()->deleteLater(); // it is the one that speaks
            return true;
        });
    });
    writer->finish();
}

/// Runs that were under way when their program ended can't be any more.
void Workspace::markInterruptedRuns()
{
    for (SessionRun &run : m_runs) {
        if (run.state == "done" || run.state == "failed" || run.state == "stopped"
            || run.state == "interrupted")
            continue;
        run.state = "interrupted";
        post([stored = run](SessionStore &store) { return store.updateRun(stored); });
    }
}

void Workspace::connectWriter(SessionWriter::Make make)
{
    m_writer = std::make_unique<SessionWriter>(std::move(make), [this]() -> SessionWriter::Write {
        return [whole = contents()](SessionStore &store) { return store.rewrite(whole()); };
    });
    SessionWriter *writer = m_writer.get();
    connect(writer, &SessionWriter::opened, this, [this](const QString &path) {
        if (std::exchange(m_path, path) != path)
            Q_EMIT stateChanged();
    });
    connect(writer, &SessionWriter::acknowledged, this, [this] {
        if (!m_readOnly) // there, only reading is acknowledged
            setSaveState(SaveState::Saved);
    });
    connect(writer, &SessionWriter::failed, this, [this](const Error &error) {
        setSaveState(SaveState::Failed, QString::fromStdString(error.message));
        Q_EMIT problem(error);
    });
    connect(writer, &SessionWriter::refused, this, &Workspace::problem);
    connect(writer, &SessionWriter::derivedFailed, this, &Workspace::minorProblem);
}

std::int32_t Workspace::unkeptEdits() const
{
    return m_readOnly ? std::max(static_cast<std::int32_t>(m_history.steps().size()) - m_keptSteps, 0) : 0;
}

bool Workspace::isEverythingSaved() const
{
    return !(m_writer && m_writer->hasFailed())
        && std::none_of(
            m_retired.begin(), m_retired.end(), [](const auto &writer) { return writer->hasFailed(); });
}

bool Workspace::finishSaving(std::chrono::milliseconds patience)
{
    const auto until = std::chrono::steady_clock::now() + patience;
    const auto finish = [until](SessionWriter &writer) {
        return writer.waitForEdits(until - std::chrono::steady_clock::now());
    };
    bool isDone = m_readOnly || !m_writer || finish(*m_writer);
    for (const auto &writer : m_retired)
        isDone = finish(*writer) && isDone;
    return isDone;
}

void Workspace::post(SessionWriter::Write write)
{
    if (!m_writer || m_readOnly)
        return;
    if (!m_writer->hasFailed())
        setSaveState(SaveState::Saving);
    m_writer->post(std::move(write));
}

void Workspace::postDerived(const std::string &key, SessionWriter::Write write)
{
    if (m_writer && !m_readOnly)
        m_writer->postDerived(key, std::move(write));
}

void Workspace::postView()
{
    postDerived("view", [view = m_view](SessionStore &store) { return store.setView(view); });
}

void Workspace::postPosition()
{
    post([current = m_history.current(), branches = m_history.branches(), branch = m_history.branch()](
             SessionStore &store) { return store.setPosition(current, branches, branch); });
}

void Workspace::setSaveState(SaveState state, const QString &remark)
{
    if (m_saveState == state && m_saveRemark == remark)
        return;
    m_saveState = state;
    m_saveRemark = remark;
    Q_EMIT saveStateChanged();
}

void Workspace::saveCopyAs(const QString &path)
{
    m_mergeKey.clear(); // what is edited from now on is a step of its own
    copyTo(path,
        [this, path, of = m_path, steps = static_cast<std::int32_t>(m_history.steps().size())](
            const Result<void> &outcome) {
            if (!outcome) {
                Q_EMIT problem(outcome.error());
                return;
            }
            if (of == m_path)
                m_keptSteps = steps;
            Q_EMIT copySaved(path);
        });
}

void Workspace::copyTo(const QString &path, std::function<void(const Result<void> &)> done)
{
    if (!m_model)
        return;
    auto *watcher = new QFutureWatcher<std::shared_ptr<Result<void>>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [watcher, done] {
        done(*watcher->result());
        watcher->deleteLater();
    });
    auto promise = std::make_shared<QPromise<std::shared_ptr<Result<void>>>>();
    promise->start();
    watcher->setFuture(promise->future());
    const auto answer = [promise](Result<void> outcome) {
        promise->addResult(std::make_shared<Result<void>>(std::move(outcome)));
        promise->finish();
    };
    if (m_writer && !m_readOnly && !m_writer->hasFailed()) {
        m_writer->post([target = path.toStdString(), answer](SessionStore &store) {
            answer(store.copyTo(target));
            return Result<void>{}; // a copy that fails is no reason to stop writing
        });
        return;
    }
    // Without a writer, or where it can't write any more, the copy is made of what is in memory.
    m_openPool.start([target = path.toStdString(), whole = contents(), answer] {
        Result<void> outcome{};
        if (const auto store = SessionStore::create(target, whole()); !store)
            outcome = store.error();
        answer(std::move(outcome)); // once the file is let go of
    });
}

void Workspace::saveAs(const QString &path)
{
    const auto mark = [this] {
        return std::tuple(m_model, m_history.steps(), m_history.current(), m_history.branches(),
            m_history.names(), m_runs, m_writer ? m_writer->refusals() : 0);
    };
    copyTo(path, [this, path, mark, before = mark()](const Result<void> &outcome) {
        if (!outcome) {
            Q_EMIT problem(outcome.error());
            return;
        }
        if (mark() != before) {
            QFile::remove(path); // work went on meanwhile: that goes there, too
            saveAs(path);
            return;
        }
        const QString old = m_path;
        const bool named = hasGivenName();
        m_writer.reset();
        m_path = path;
        m_readOnly = false;
        connectWriter([target = path.toStdString()]() -> Result<SessionStore> {
            TRY(auto opened, SessionStore::open(target));
            return std::move(opened.store);
        });
        if (!old.isEmpty() && !named)
            QFile::remove(old); // it had no name of its own, and is here now
        post([](SessionStore &) { return Result<void>{}; }); // so that it is opened, and said to be saved
        postView();
        Q_EMIT stateChanged();
        Q_EMIT copySaved(path);
    });
}

std::int64_t Workspace::addRun(SessionRun run)
{
    run.id = m_runs.empty() ? 1 : m_runs.back().id + 1;
    if (!startFile() || m_writer)
        post([stored = run](SessionStore &store) -> Result<void> {
            TRY_VOID(store.addRun(stored));
            return {};
        });
    run.timeline.clear();
    m_runs.push_back(std::move(run));
    Q_EMIT runsChanged();
    return m_runs.back().id;
}

void Workspace::updateRun(const SessionRun &run)
{
    for (SessionRun &kept : m_runs) {
        if (kept.id != run.id)
            continue;
        kept = run;
        kept.timeline.clear();
        post([stored = run](SessionStore &store) { return store.updateRun(stored); });
        Q_EMIT runsChanged();
        return;
    }
}

void Workspace::removeRun(std::int64_t id)
{
    std::erase_if(m_runs, [id](const SessionRun &run) { return run.id == id; });
    post([id](SessionStore &store) { return store.removeRun(id); });
    Q_EMIT runsChanged();
}

void Workspace::loadRunTimeline(std::int64_t id)
{
    if (!m_writer) { // kept in memory alone: spans are not
        QMetaObject::invokeMethod(
            this, [this, id] { Q_EMIT runTimelineLoaded(id, {}); }, Qt::QueuedConnection);
        return;
    }
    m_writer->post([this, id](SessionStore &store) {
        // The writer is part of this object and ends before it: the call cannot come too late.
        const auto timeline = store.loadRunTimeline(id);
        QByteArray bytes = timeline ? QByteArray::fromStdString(*timeline) : QByteArray();
        QMetaObject::invokeMethod(
            this, [this, id, bytes] { Q_EMIT runTimelineLoaded(id, bytes); }, Qt::QueuedConnection);
        return Result<void>{};
    });
}

void Workspace::setView(const std::string &name, const std::string &value)
{
    std::string &kept = m_view[name];
    if (kept == value)
        return;
    kept = value;
    if (m_writer && !m_readOnly && !m_viewTimer.isActive())
        m_viewTimer.start();
}

void Workspace::setThumbnail(const QByteArray &png)
{
    postDerived(kThumbnailKey, [step = m_history.current(), bytes = png.toStdString()](SessionStore &store) {
        return store.setThumbnail(step, bytes);
    });
}

} // namespace planloom
