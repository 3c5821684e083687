#pragma once

#include <QtCore/QByteArray>
#include <QtCore/QElapsedTimer>
#include <QtCore/QFileSystemWatcher>
#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QThreadPool>
#include <QtCore/QTimer>

#include "engine/gesture/rebind.h"
#include "engine/hardware/framework.h"
#include "sessions/session_store.h"
#include "widgets/design/cluster_values.h"
#include "widgets/design/engine_service.h"
#include "widgets/design/gesture_host.h"
#include "widgets/design/plan_cache.h"
#include "widgets/design/session_writer.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Where the session's file stands, for the status bar.
enum class SaveState : std::uint8_t {
    None, ///< No file: no model is open, or there is no place for one (`saveRemark` says why).
    Saving, ///< Edits are on their way.
    Saved, ///< All that was done is in the file: acknowledged.
    ReadOnly,
    Failed, ///< Disk full, folder gone ...: `saveRemark` says it; it is tried again with all that is missing.
};

/// What a window works on: model, rows with their history, the plan that follows from them, and the session
/// file all of it is kept in while people work. Views read here and write here; every change is a step of the
/// history, goes to the file, and asks the engine for a new plan. GUI thread only; nothing here waits.
class Workspace : public GestureHost
{
    Q_OBJECT
public:
    explicit Workspace(QObject *parent = nullptr);
    ~Workspace() override; ///< Finishes what was begun to be written.

    // --- opening
    // -----------------------------------------------------------------------------------------------------

    /// Where sessions without a name are kept (they are saved from the first edit on); empty keeps them in
    /// memory alone, as tests and screenshots want.
    void setSessionFolder(const QString &folder);
    /// Where what searches found is remembered for later sessions and other windows; empty (the default)
    /// remembers it while the workspace lives.
    void setSolvedFolder(const QString &folder);
    /// Opens a model as a new session, or in the present one if `keepRows` (its rows are bound anew, by
    /// structure and by name; those that change are one step of the history, and `remark` says what became of
    /// operators and rows).
    void openModel(const ModelSource &source, bool keepRows = false);
    /// Opens a session file, read on a worker.
    void openSession(const QString &path);
    /// Opens an .onnx file, a zoo name or a session, whichever it is.
    void openAny(const QString &pathOrSpec);
    /// Opens a model with a cluster and rows: what samples are made of. `gallery` takes the place of `rows`.
    void openWith(const ModelSource &source, const std::string &cluster, std::int32_t devices,
        const std::string &gallery, const std::string &rows = {});
    /// Goes on with opening what `sizesAsked` was about, with these sizes.
    void giveSizes(const std::map<std::string, std::int64_t> &sizes);
    /// Gives up what is being opened, or waits for sizes; what was open stays.
    void cancelOpening();
    bool isOpening() const { return m_engine->isOpening() || m_openingSession || m_rebinding; }
    bool isReadOnly() const { return m_readOnly; }
    /// Edits since a read-only session was opened, which are in no file; those in a copy that was saved count
    /// no more.
    std::int32_t unkeptEdits() const;

    const ModelSnapshot &model() const { return m_model; }
    const QString &path() const { return m_path; } ///< Of the session's file; empty if it has none.
    bool hasGivenName() const; ///< Its file was named by a person.
    QString title() const; ///< "gpt2_small_full", or the session's name.
    /// What opening had to say (recovered, read-only, model changed), in sentences; empty mostly.
    const QString &remark() const { return m_remark; }

    // --- the design and its history
    // ------------------------------------------------------------------------------------

    const History &history() const { return m_history; }
    /// The rows of the current step; while a search shows what it has so far, with those of that plan. An
    /// edit of these keeps them, as a step of their own.
    const TableDocument &table() const
    {
        return m_soFar.plan ? m_soFar.plan->table : m_history.state().table;
    }
    std::string tableText() const { return table().text(); }
    /// With its framework: "dgx-a100+fsdp".
    const std::string &cluster() const { return m_cluster; }
    /// What the cluster's file held; empty for profiles. In the design itself, so that sessions need no files
    /// beside them.
    const std::string &clusterJson() const { return m_clusterJson; }
    std::int32_t deviceCount() const { return m_deviceCount; }
    /// A named value of the design; empty if there is none.
    std::string value(const std::string &name) const;

    /// One step of the history. Steps with the same `mergeKey` (not empty) within a second are one. Nothing
    /// happens for empty changes. @return false, and `problem`, if the change does not fit the present state
    bool edit(const QString &words, const DesignChange &change, const QString &mergeKey = {});
    bool editTable(const QString &words, const TableEdit &edit, const QString &mergeKey = {});
    /// A null value removes it.
    bool setValue(const QString &words, const std::string &name, std::optional<std::string> value,
        const QString &mergeKey = {});
    /// As typed in the text mode: keystrokes within a second are one step, and the engine waits for a pause.
    void setTableText(const std::string &text);
    /// The same by what was typed: for tables of any length.
    void editText(const TableEdit &edit);
    /// A profile's name, or the path of a cluster file, whose content is taken into the design.
    ///
    /// @param json  what the file holds, where it has been read; the first parameter is then its name
    /// @param devices  the number of devices from now on; 0 leaves it
    void setCluster(const std::string &nameOrPath, const std::string &json = {}, std::int32_t devices = 0);
    /// What the design's step is predicted for (framework.h), by the word behind its cluster; empty for none.
    void setFramework(const std::string &name);
    std::string framework() const { return splitFramework(m_cluster).second; }
    void setDeviceCount(std::int32_t count);
    /// How the model is to be trained, or whether at all: a step of the history; the model is opened anew
    /// with them
    /// (`isOpening` meanwhile), also when the step is undone. Rows stay as they are.
    void setModelOptions(const ModelOptions &options);
    /// As the design asks for; those of `model()` once it is open with them. Rows may ask for other sizes.
    ModelOptions modelOptions() const;
    /// Gives dimensions of the model's inputs other sizes, by rows (`dim batch = 64`): a step of the history.
    /// As whatever else changes such rows, it has the model opened anew; the last plan stays meanwhile.
    void setSizes(const std::map<std::string, std::int64_t> &sizes);
    /// Replaces the rows by those of a gallery plan; the engine writes them, then it is a step.
    void applyGallery(const std::string &spec);
    /// What the design as it is asks of the engine; nothing without a model that can be planned.
    std::optional<PlanRequest> planRequest() const;
    /// What *Find Best Plan* would ask; nothing where it can't.
    std::optional<PlanRequest> searchRequest() const;
    /// What to plan to see what a gallery plan would do; nothing without a model.
    std::optional<PlanRequest> galleryRequest(const std::string &spec) const;

    bool canUndo() const { return m_history.canUndo(); }
    bool canRedo() const { return m_history.canRedo(); }
    void undo();
    void redo();
    void goTo(StepId step);
    /// Begins a branch at the current step; an empty name is made up.
    void addBranch(const QString &name);
    void switchBranch(std::int32_t branch);
    void renameBranch(std::int32_t branch, const QString &name);
    /// Names the current step: a checkpoint, a plan to compare. Empty names are passed by.
    void nameCheckpoint(const QString &name);
    void nameStep(const QString &name, StepId step); ///< The root takes no name: nothing happens.
    void removeName(const QString &name);

    // --- plans
    // -----------------------------------------------------------------------------------------------------------

    void replan();
    /// Has what the rows leave open decided anew, for the best: rows of the solver are replaced, in one step
    /// of the history. `searched` or `problem` follows.
    void searchBest();
    bool hasSolverRows() const; ///< That are on.
    /// A person asked for the last search, or the one under way; else an edit led to it.
    bool isSearchByName() const { return m_searchByName; }
    bool isSearching() const { return m_searchAsked && m_engine->isPlanning(); }
    /// The rows as they are have no say of the solver's: it chooses again, and what is planned until then is
    /// shown alone.
    bool isSearchedNext() const { return m_searchNext && isChosenAgain(table()); }
    /// The best plan of the search under way; nothing before it has one.
    const std::optional<SearchProgress> &searchProgress() const { return m_progress; }
    /// The search under way ends with the best that it has, which is kept; without one the rows stay.
    void settleSearch();
    /// `table`, `latest` and `lastGood` are of the best plan that the search under way has shown so far: no
    /// step of the history, and gone with the search unless it is kept.
    bool showsBestSoFar() const { return m_soFar.plan != nullptr; }
    /// The least time between two plans that a search shows.
    void setBetterEvery(std::chrono::milliseconds time) { m_betterEvery = time; }
    /// Asked before a search shows a plan; true while a hand or an editor is at work on what is shown: the
    /// plan waits.
    void setHandAtWork(std::function<bool()> isAtWork) { m_isHandAtWork = std::move(isAtWork); }
    /// Searched again after every edit of rows beside which there are some of the solver (the default).
    void setSearchesAgain(bool again) { m_searchesAgain = again; }
    bool searchesAgain() const { return m_searchesAgain; }
    void stopPlanning();
    bool isPlanning() const { return m_engine->isPlanning(); }
    /// Live: every edit is solved at once (the default); off, edits gather until `replan`.
    void setLive(bool live);
    bool isLive() const { return m_live; }
    std::int32_t unsolvedEdits() const { return m_unsolvedEdits; } ///< While not live.
    /// The last answer, whatever it says; null before the first.
    const PlanUpdateSnapshot &latest() const { return m_latest; }
    /// The last answer with a timeline; null before the first.
    const PlanUpdateSnapshot &lastGood() const { return m_lastGood; }
    /// The plan shown is not that of the rows as they are.
    bool isStale() const;
    /// The plan of any step: from the cache at once, or null and `planOfStepReady` later.
    PlanUpdateSnapshot planOfStep(StepId step);

    // --- gestures (GestureHost)
    // ------------------------------------------------------------------------------------------

    GestureContextSnapshot gestureContext() const override;
    void preview(const Proposal &proposal) override;
    PreviewSnapshot currentPreview() const override { return m_preview; }
    void endPreview() override;
    bool commit(const Proposal &proposal, const QString &mergeKey = {}) override;

    // --- the session file
    // --------------------------------------------------------------------------------------------------

    SaveState saveState() const { return m_saveState; }
    const QString &saveRemark() const { return m_saveRemark; }
    /// Every edit up to now is in the file.
    bool isAcknowledged() const { return m_saveState == SaveState::Saved; }
    /// No edit waits for a disk that refuses it: neither of this session nor of those that were open before.
    bool isEverythingSaved() const;
    /// Waits until every edit is in its file, or can't be written, or `patience` is over. For the end of a
    /// window alone: it blocks.
    bool finishSaving(std::chrono::milliseconds patience);
    void saveCopyAs(
        const QString &path); ///< `copySaved` or `problem` follows; the session stays where it is.
    /// Moves the session to `path`: from now on it is kept there.
    void saveAs(const QString &path);

    const std::vector<SessionRun> &runs() const { return m_runs; }
    /// @return the run's number, at once
    std::int64_t addRun(SessionRun run);
    void updateRun(const SessionRun &run);
    void removeRun(std::int64_t id);
    void loadRunTimeline(std::int64_t id); ///< `runTimelineLoaded` follows.
    /// View state, kept in the session, not undone: write, then `viewChanged`.
    const std::map<std::string, std::string> &view() const { return m_view; }
    void setView(const std::string &name, const std::string &value);
    /// Begins the session's file where there is none yet, though nothing was edited: what stands beside the
    /// design is worth keeping.
    void keep() { startFile(); }
    /// A picture of the present design's plan, small; kept with the step it shows.
    void setThumbnail(const QByteArray &png);
    /// Grows with every change of the design, by whatever: to tell later whether something is still of the
    /// same one.
    std::uint64_t designRevision() const { return m_designRevision; }

Q_SIGNALS:
    void modelChanged();
    /// Another session is open: everything is new.
    void sessionChanged();
    void tableChanged(); ///< By whatever: an edit, undo, a gallery plan.
    void clusterChanged();
    void valuesChanged(); ///< Named values other than the cluster's.
    void historyChanged(); ///< Steps, branches, names, figures or the place in them.
    void planChanged(); ///< `latest` changed.
    void planOfStepReady(planloom::StepId step, planloom::PlanUpdateSnapshot update);
    void stateChanged(); ///< Opening, planning, live, path.
    void saveStateChanged();
    /// A search is over: `latest` has what it found (`PlanAnswer::search`).
    void searched();
    void runsChanged();
    void runTimelineLoaded(std::int64_t run, QByteArray timeline);
    void copySaved(QString path);
    void problem(planloom::Error error);
    /// Blocks were moved before it was known what comes of it, and a limit would be broken that was kept:
    /// they have been moved back.
    void limitBroken(planloom::Error error);
    /// What failed without any work being lost: for the log.
    void minorProblem(planloom::Error error);
    /// The model's file on the disk is not the one that is open any more.
    void modelFileChanged(QString path);
    /// What is being opened leaves sizes of its inputs open: `giveSizes` or `cancelOpening`.
    /// @param problem  why the sizes that are in `dimensions` did not do; empty at first
    void sizesAsked(const std::vector<planloom::InputDimension> &dimensions, const QString &problem);

private:
    /// Keys of what follows from edits.
    static constexpr const char *kThumbnailKey = "thumbnail";
    /// The merge key of what a search chose for the edit before it.
    static constexpr const char *kAnswerOfEdit = "answer";
    static std::string figuresKey(StepId step) { return "figures/" + std::to_string(step); }

    /// A session read from its file, before its model is.
    struct OpenedSession;
    /// What the model that is being opened is for.
    struct Opening {
        std::shared_ptr<OpenedSession> session{}; ///< Null for a new one.
        bool keepRows = false; ///< In the present session.
        bool options = false; ///< The present model, with other options.
        std::vector<InputDimension> asked{}; ///< Whose sizes a person gave.
        DesignState root{}; ///< Of a new session.
        std::string gallery{}; ///< Whose rows the new session begins with.
    };
    using OpenOutcome = std::shared_ptr<Result<std::shared_ptr<OpenedSession>>>;

    /// Ghosts are never held back: only the newest is asked for.
    static constexpr int kGhostMilliseconds = 0;

    // workspace.cpp: opening
    void connectEngine(EngineService &engine);
    void beginOpening(const ModelSource &source, Opening opening);
    void onModelFailed(const ModelSource &source, const Error &error);
    void askSizes(
        const ModelSource &source, const std::vector<InputDimension> &dimensions, const QString &problem);
    void takeSession();
    void onModelOpened(const ModelSnapshot &model);
    void adoptModel(const ModelSnapshot &model);
    void reopenModel();
    void replaceModel(const ModelSnapshot &model);
    Result<ModelOptions> wantedOptions(const DesignState &state) const;
    /// The model that plans are made for: the one that is open, or about to take its place.
    const ModelSnapshot &plannedModel() const { return m_nextModel ? m_nextModel : m_model; }
    void beginSession(DesignState root);
    void compareModels(const ModelSnapshot &after);
    void takeRebinding();
    void watchModel();
    // workspace_design.cpp: edits and the file they go to
    bool record(const QString &words, const DesignChange &change, const QString &mergeKey, bool gather,
        PlanUpdateSnapshot begin = {});
    void stateReplaced(const DesignChange &change, bool gather, PlanUpdateSnapshot begin = {});
    void moved(const DesignState &before);
    void readValues();
    bool startFile();
    void post(SessionWriter::Write write); ///< An edit.
    /// What follows from edits, see `SessionWriter`.
    void postDerived(const std::string &key, SessionWriter::Write write);
    void postView();
    void postPosition();
    void connectWriter(SessionWriter::Make make);
    void namesChanged();
    void retireWriter();
    void markInterruptedRuns();
    void setSaveState(SaveState state, const QString &remark = {});
    /// All that is in memory, for a worker: the model's bytes are copied there.
    std::function<SessionContents()> contents() const;
    void copyTo(const QString &path, std::function<void(const Result<void> &)> done);
    // workspace_plans.cpp: plans and previews
    PlanRequest requestFor(const DesignState &state) const;
    void request(bool gather, PlanUpdateSnapshot begin = {});
    void onPlanUpdated(const PlanUpdateSnapshot &update);
    void onGalleryUpdated(const PlanUpdateSnapshot &update);
    void onSearchUpdated(const PlanUpdateSnapshot &update);
    void search(bool byName, bool meanwhile = false);
    bool leaveToSearch(
        PlanRequest &wanted) const; ///< False if the rows of a gallery plan can't be taken out.
    void adoptSearched(const PlanUpdateSnapshot &update);
    // workspace_so_far.cpp: what a search shows on its way, and chooses
    void recordAnswer(const QString &words, const SearchResult &found, const DesignChange &change);
    void showBetter(const PlanUpdateSnapshot &update);
    void keepSoFar();
    bool leaveSoFar();
    void dropSoFar();
    void searchForGhost();
    bool isGhostSearched() const;
    bool takeOverGhost(const Proposal &proposal, const QString &mergeKey);
    void leavePreview();
    /// There are rows of the solver, and none of a person's that holds them (`scheduleThatHoldsSearch`).
    static bool isChosenAgain(const TableDocument &rows);
    bool searchesAfterEdits(const TableDocument &rows) const
    {
        return m_searchesAgain && m_live && isChosenAgain(rows);
    }
    void publishPlan(const PlanUpdateSnapshot &update);
    bool takeBackIfBroken(const PlanUpdateSnapshot &update);
    void onPreviewUpdated(const PlanUpdateSnapshot &update);
    void startNextStep();
    void onStepUpdated(const PlanUpdateSnapshot &update);

    EngineService m_engines[2];
    EngineService *m_engine = &m_engines[0];
    /// Answers previews, beside the plan. A drop whose ghost is being searched has the two change places.
    EngineService *m_ghostEngine = &m_engines[1];
    EngineService m_stepEngine; ///< Plans of other steps, to compare with.
    PlanCache m_cache;

    QThreadPool m_openPool;
    QFutureWatcher<OpenOutcome> m_openWatcher{this};
    bool m_openingSession = false;
    std::optional<Opening> m_opening; ///< For the model that is being opened.
    struct Asked {
        ModelSource source{};
        Opening opening{};
        std::vector<InputDimension> dimensions{};
    };
    std::optional<Asked> m_asked; ///< What waits for sizes.
    /// The present rows bound to the model read again.
    struct Rebound {
        ModelSnapshot model{};
        TableDocument rows{}; ///< As they were.
        Rebinding outcome{};
    };
    QFutureWatcher<std::shared_ptr<const Rebound>> m_rebindWatcher{this};
    std::stop_source m_rebindStop;
    bool m_rebinding = false;

    ModelSnapshot m_model;
    ModelSnapshot m_nextModel; ///< The same with other options, until there is a plan for it.
    ModelOptions m_openedOptions; ///< As the session's model was opened; the design's own go before them.
    History m_history;
    std::string m_cluster = "dgx-a100"; ///< The state's values, kept beside it for quick reading.
    std::int32_t m_deviceCount = 4;
    std::int32_t m_keptSteps =
        0; ///< Of the history: in the file of a read-only session, or in its last copy.
    std::string m_clusterJson; ///< Of a cluster from a file.
    StoredCluster m_storedCluster; ///< As the session's file was opened.
    std::uint64_t m_designRevision = 0;
    QString m_mergeKey;
    QElapsedTimer m_sinceEdit; ///< For joining steps.
    QFileSystemWatcher m_modelWatcher;

    QTimer m_editTimer; ///< Gathers keystrokes.
    PlanUpdateSnapshot m_latest;
    PlanUpdateSnapshot m_lastGood;
    std::uint64_t m_revision = 0; ///< Of the newest request.
    std::string m_galleryAsked; ///< A gallery plan whose rows are awaited; empty if none.
    bool m_galleryIsRoot = false; ///< They begin the session.
    bool m_searchAsked = false; ///< The rows of a search are awaited.
    bool m_searchByName = false; ///< A person asked for it.
    std::uint64_t m_ghostsRevision = 0; ///< As `m_revision`, of a search that began as a ghost's.
    std::optional<SearchProgress> m_progress;
    /// What a search shows on its way, and what was shown before it.
    struct SoFar {
        PlanUpdateSnapshot plan{}; ///< Null while nothing of a search is shown.
        PlanUpdateSnapshot waiting{}; ///< Newer, but a hand is at work.
        PlanUpdateSnapshot latestBefore{};
        PlanUpdateSnapshot goodBefore{};
        bool wasCurrent = false; ///< `goodBefore` is the plan of the rows as they were.
    };
    SoFar m_soFar;
    QTimer m_soFarTimer; ///< Looks whether the hand is still at work.
    std::chrono::milliseconds m_betterEvery{300};
    std::function<bool()> m_isHandAtWork;
    std::shared_ptr<SolvedStore> m_solved;
    bool m_searchesAgain = true;
    std::shared_ptr<SearchMemory> m_searchMemory = std::make_shared<SearchMemory>();
    bool m_searchNext = false; ///< Once the plan of the rows as they are is there.
    bool m_goodIsCurrent = false; ///< `m_lastGood` is the plan of the rows as they are.
    bool m_answered = false; ///< The rows being recorded are those the engine is at work on: nothing to ask.
    bool m_live = true;
    std::int32_t m_unsolvedEdits = 0;

    mutable GestureContextSnapshot m_context; ///< Made when asked for.
    PreviewSnapshot m_preview;
    std::uint64_t m_previewRevision = 0;
    PlanRequest m_ghostRequest; ///< Of the preview.
    bool m_ghostSearches = false; ///< Its plan is known, now it is searched for the best.
    PlanUpdateSnapshot m_ghostPlain; ///< The plan of its rows alone, once there is one,
    PlanUpdateSnapshot m_ghostSolved; ///< and what was found.
    /// Rows that were written before their plan was known.
    struct Unchecked {
        PlanUpdateSnapshot plan; ///< The one before; null where there is nothing to check.
        TableDocument table; ///< And its rows.
        StepId step = 0;
        bool isWholeStep = false; ///< Not joined to one before.
    };
    Unchecked m_unchecked;

    struct StepRequest {
        StepId step = 0;
        PlanRequest request{};
    };
    std::deque<StepRequest> m_stepQueue; ///< The first one is being planned.
    std::uint64_t m_stepRevision = 0; ///< Of the first one.

    std::unique_ptr<SessionWriter> m_writer;
    std::vector<std::unique_ptr<SessionWriter>>
        m_retired; ///< Of sessions that were open before, until all of them is written.
    QTimer m_viewTimer; ///< Gathers changes of views.
    QString m_sessionFolder;
    QString m_path;
    bool m_readOnly = false;
    QString m_remark;
    SaveState m_saveState = SaveState::None;
    QString m_saveRemark;
    std::vector<SessionRun> m_runs;
    std::map<std::string, std::string> m_view;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::SessionRun)
