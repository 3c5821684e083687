#include "widgets/scenes/scene_stage.h"

#include <QtCore/QEvent>
#include <QtCore/QJsonDocument>
#include <QtCore/QTimer>

#include "widgets/common/selection_model.h"
#include "widgets/dag/dag_view.h"
#include "widgets/design/workspace.h"
#include "widgets/timeline/playback.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

double canvasWidthOf(const TimelineView &timeline)
{
    return std::max(timeline.viewport()->width() - timeline.axisLeft(), 1);
}

/// All of the graph lies in its window.
bool isWholeInSight(const DagView &dag)
{
    const DagPictureSnapshot picture = dag.picture();
    if (!picture)
        return true;
    const SceneRect &bounds = picture->scene.bounds;
    const DagCamera &camera = dag.camera();
    return camera.viewX(bounds.x) >= -1 && camera.viewY(bounds.y) >= -1
        && camera.viewX(bounds.right()) <= dag.width() + 1
        && camera.viewY(bounds.y + bounds.height) <= dag.height() + 1;
}

} // namespace

SceneStage::SceneStage(StageParts parts, QObject *parent)
    : QObject(parent)
    , m_parts(std::move(parts))
{
    const auto proceed = [this] {
        if (m_wanted && isPlanInSight())
            finish();
    };
    connect(m_parts.workspace, &Workspace::planChanged, this, proceed);
    connect(m_parts.workspace, &Workspace::stateChanged, this, proceed);
    connect(m_parts.timeline, &TimelineView::shownSceneChanged, this, proceed);
    connect(m_parts.workspace, &Workspace::sessionChanged, this, [this] { m_wanted.reset(); });
    connect(m_parts.dag, &DagView::pictureChanged, this, &SceneStage::fitGraph);
    connect(m_parts.timeline, &TimelineView::axisChanged, this, [this] {
        if (!m_showsStretch)
            m_stretch.reset();
    });
    m_parts.timeline->viewport()->installEventFilter(this);
}

Scene SceneStage::take() const
{
    Scene scene;
    const History &history = m_parts.workspace->history();
    scene.step = history.current();
    scene.branch = history.branch();
    scene.timeline = m_parts.timeline->viewState();
    const auto state = QJsonDocument::fromJson(QByteArray::fromStdString(scene.timeline));
    if (!state[QLatin1String("fitted")].toBool(true)) {
        const TimeAxis &axis = m_parts.timeline->axis();
        scene.span = {axis.origin, axis.timeAt(canvasWidthOf(*m_parts.timeline))};
    }
    scene.graph = m_parts.dag->cameraState();
    scene.wholeGraph = isWholeInSight(*m_parts.dag);
    scene.colouring = static_cast<int>(m_parts.timeline->colouring());
    scene.graphColouring = static_cast<int>(m_parts.dag->colourBy());
    scene.docks = m_parts.docksInFront();
    scene.selected = rangesOfOperators(m_parts.selection->selected());
    scene.moment = m_parts.playback->time();
    scene.plays = m_parts.playback->isPlaying();
    return scene;
}

void SceneStage::show(const Scene &scene)
{
    if (!m_parts.workspace->model())
        return;
    m_wanted = scene;
    if (!goToStep(scene))
        Q_EMIT refused(tr("The scene \"%1\" is of a step that this session does not have.").arg(scene.name));
    if (m_wanted && isPlanInSight())
        finish();
}

/// @return false where the history does not hold the step
bool SceneStage::goToStep(const Scene &scene)
{
    Workspace &workspace = *m_parts.workspace;
    if (!workspace.history().holds(scene.step))
        return false;
    // The branch it was on, as long as it still leads over the step: Redo goes on from there.
    const auto &branches = workspace.history().branches();
    const auto own = std::find_if(
        branches.begin(), branches.end(), [&](const Branch &branch) { return branch.id == scene.branch; });
    if (own != branches.end() && workspace.history().branch() != own->id) {
        const std::vector<StepId> path = workspace.history().pathTo(own->head);
        if (scene.step == kRootStep || std::find(path.begin(), path.end(), scene.step) != path.end())
            workspace.switchBranch(own->id);
    }
    if (workspace.history().current() != scene.step)
        workspace.goTo(scene.step);
    if (!workspace.isLive() && workspace.isStale())
        workspace.replan(); // what is shown is a plan
    return true;
}

/// What is to be known of the step's plan is, and the timeline shows it.
bool SceneStage::isPlanInSight() const
{
    const Workspace &workspace = *m_parts.workspace;
    if (workspace.isOpening() || workspace.isPlanning() || !workspace.latest() || !workspace.latest()->final)
        return false;
    const PlanUpdateSnapshot &good = workspace.lastGood();
    return workspace.isStale() || !good || !good->scene || m_parts.timeline->scene() == good->scene;
}

void SceneStage::finish()
{
    const Scene scene = *std::exchange(m_wanted, {});
    if (scene.colouring < kTimelineColouringCount)
        m_parts.colour(static_cast<TimelineColouring>(scene.colouring));
    if (scene.graphColouring < kColourByCount
        && scene.graphColouring != static_cast<int>(m_parts.dag->colourBy()))
        m_parts.dag->setColourBy(static_cast<ColourBy>(scene.graphColouring));
    m_stretch = scene;
    showTimeline();
    m_parts.dag->restoreCamera(scene.graph);
    m_fitsGraph = scene.wholeGraph;
    fitGraph();
    m_parts.selection->select(
        operatorsOfRanges(scene.selected, m_parts.workspace->model()->graph->operators.size()));
    m_parts.showDocks(scene.docks);
    Playback &playback = *m_parts.playback;
    playback.pause();
    if (scene.moment && playback.scene())
        playback.seek(*scene.moment);
    else
        playback.stop();
    if (scene.plays && playback.scene())
        playback.play();
    Q_EMIT shown();
}

void SceneStage::showTimeline()
{
    m_showsStretch = true;
    m_parts.timeline->restoreViewState(stateOnWidth(*m_stretch, canvasWidthOf(*m_parts.timeline)));
    m_showsStretch = false;
}

/// A canvas that comes, or a window that goes into full screen, gets its size later than the scene is shown.
bool SceneStage::eventFilter(QObject *watched, QEvent *event)
{
    if (m_stretch && m_stretch->span && watched == m_parts.timeline->viewport()
        && event->type() == QEvent::Resize)
        QTimer::singleShot(0, this, [this] {
            if (m_stretch)
                showTimeline();
        });
    return QObject::eventFilter(watched, event);
}

void SceneStage::fitGraph()
{
    if (!m_fitsGraph || !m_parts.dag->isSettled() || !m_parts.dag->picture())
        return;
    m_fitsGraph = false;
    m_parts.dag->fitAll();
}

} // namespace planloom

#include "moc_scene_stage.cpp"
