#include "widgets/present/talk_animation.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QPainter>
#include <QtWidgets/QWidget>

#include "widgets/dag/dag_decor.h"
#include "widgets/dag/dag_still.h"
#include "widgets/dag/dag_view.h"
#include "widgets/design/workspace.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr int kCaption = 52;
constexpr double kGraphShare = 0.42; ///< Of the height, where the timeline is below.
constexpr int kTileHigh = 48; ///< Pixels of the timeline that are painted in one event.
constexpr int kSettleMilliseconds = 20;
constexpr int kMostWaits = 1000; ///< Then the graph is left out.
constexpr double kMostStill = 4; ///< Seconds of a scene in which nothing moves,
constexpr double kMostPlayed = 8; ///< and of one that plays.

} // namespace

TalkAnimation::TalkAnimation(
    std::vector<Scene> scenes, PlansBySteps plans, AnimationFormat format, QObject *parent)
    : QObject(parent)
    , m_scenes(std::move(scenes))
    , m_plans(std::move(plans))
    , m_format(std::move(format))
    , m_room(std::make_unique<QWidget>())
    , m_dag(new DagView(m_room.get()))
    , m_timeline(new TimelineView(&m_selection, m_room.get()))
{
    if (m_scenes.size() > kMostScenes)
        m_scenes.resize(kMostScenes);
    m_room->setAttribute(Qt::WA_DontShowOnScreen);
    m_room->setAttribute(Qt::WA_QuitOnClose, false);
    m_room->setAttribute(Qt::WA_ShowWithoutActivating);
    m_room->resize(m_format.size);
    m_room->setFont(m_format.font);
    m_dag->setSelectionModel(&m_selection);
    m_dag->setReducedMotion(true);
    m_timeline->setFrameShape(QFrame::NoFrame);
    m_timeline->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_timeline->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_room->show();
    m_settle.setSingleShot(true);
    m_settle.setInterval(kSettleMilliseconds);
    connect(&m_settle, &QTimer::timeout, this, &TalkAnimation::takeShot);
    m_look.setInterval(200);
    connect(&m_look, &QTimer::timeout, this, [this] { Q_EMIT progressed(30 + m_done->load() * 70 / 100); });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        m_look.stop();
        Q_EMIT finished(*m_watcher.result());
    });
    QTimer::singleShot(0, this, &TalkAnimation::setUp);
}

TalkAnimation::~TalkAnimation()
{
    m_stop.request_stop();
}

void TalkAnimation::cancel()
{
    m_stop.request_stop();
}

/// Puts the next scene on the canvases.
void TalkAnimation::setUp()
{
    if (m_stop.stop_requested()) {
        m_room->hide();
        Q_EMIT finished(Error{ErrorCode::Cancelled, "the animation was given up", {}, {}});
        return;
    }
    if (m_next >= m_scenes.size())
        return write();
    const Scene &scene = m_scenes[m_next];
    const auto found = m_plans.find(scene.step);
    const PlanUpdateSnapshot update = found == m_plans.end() ? nullptr : found->second;
    m_shot = {};
    m_shot.caption = scene.name;
    const bool hasTimeline = update && update->scene;
    m_shot.seconds = std::min<double>(scene.seconds, scene.plays && hasTimeline ? kMostPlayed : kMostStill);
    const QRect whole = QRect(QPoint(), m_format.size).adjusted(0, kCaption, 0, 0);
    const bool both = scene.canvases == SceneCanvases::Both;
    const int split = kCaption + static_cast<int>(whole.height() * kGraphShare);
    m_shot.graphAt = both ? QRect(QPoint(0, kCaption), QPoint(whole.right(), split - 1)) : whole;
    m_shot.timelineAt = both ? QRect(QPoint(0, split), whole.bottomRight()) : whole;
    m_dag->setGeometry(m_shot.graphAt);
    m_timeline->setGeometry(m_shot.timelineAt);
    if (scene.canvases != SceneCanvases::Timeline && update && update->model) {
        m_dag->setGraph(update->model->graph);
        m_dag->setUpdate(update);
        if (scene.graphColouring < kColourByCount)
            m_dag->setColourBy(static_cast<ColourBy>(scene.graphColouring));
        m_dag->restoreCamera(scene.graph);
    }
    m_timeline->setScene(hasTimeline ? update->scene : nullptr);
    if (hasTimeline) {
        if (scene.colouring < kTimelineColouringCount)
            m_timeline->setColouring(static_cast<TimelineColouring>(scene.colouring));
        m_timeline->restoreViewState(
            stateOnWidth(scene, std::max(m_timeline->viewport()->width() - m_timeline->axisLeft(), 1)));
        m_selection.select(
            operatorsOfRanges(scene.selected, update->model ? update->model->graph->operators.size() : 0));
        if (scene.moment || scene.plays) {
            m_shot.begin = scene.moment.value_or(0);
            m_shot.end =
                scene.plays ? static_cast<double>(update->scene->timeline->step.count()) : *m_shot.begin;
        }
    }
    m_tileTop = 0;
    m_waits = 0;
    if (hasTimeline && scene.canvases != SceneCanvases::Graph)
        QTimer::singleShot(0, this, &TalkAnimation::takeTile);
    else
        m_settle.start();
}

/// Paints a part of the timeline, and comes back for the next one.
void TalkAnimation::takeTile()
{
    const QSize size = m_shot.timelineAt.size();
    if (m_shot.timeline.isNull()) {
        m_shot.timeline = QImage(size, QImage::Format_RGB32);
        const TimelineMetrics metrics = TimelineMetrics::forFont(m_timeline->fontMetrics().height());
        m_shot.picture = {.metrics = metrics, .axis = m_timeline->axis(), .size = size};
        m_shot.picture.phases = m_timeline->lanesTop() - metrics.ruler;
    }
    QImage tile(size.width(), std::min(kTileHigh, size.height() - m_tileTop), QImage::Format_RGB32);
    QPainter painter(&tile);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.translate(0, -m_tileTop);
    painter.fillRect(QRect(QPoint(), size), m_format.palette.canvas);
    m_timeline->render(painter, size, m_format.palette);
    painter.end();
    QPainter into(&m_shot.timeline);
    into.drawImage(0, m_tileTop, tile);
    m_tileTop += tile.height();
    if (m_tileTop < size.height())
        QTimer::singleShot(0, this, &TalkAnimation::takeTile);
    else
        m_settle.start();
}

/// As soon as the graph is laid out.
void TalkAnimation::takeShot()
{
    const Scene &scene = m_scenes[m_next];
    const bool wanted = scene.canvases != SceneCanvases::Timeline;
    const bool settled = m_dag->isSettled() && m_dag->picture();
    if (wanted && !settled && ++m_waits < kMostWaits && !m_stop.stop_requested())
        return m_settle.start();
    if (wanted && settled) {
        if (scene.wholeGraph)
            m_dag->fitAll();
        m_shot.graph = m_dag->still(DagExtent::InSight, m_format.palette);
    }
    m_shots.push_back(std::move(m_shot));
    ++m_next;
    Q_EMIT progressed(static_cast<int>(30 * m_next / m_scenes.size()));
    QTimer::singleShot(0, this, &TalkAnimation::setUp);
}

void TalkAnimation::write()
{
    m_room->hide();
    m_look.start();
    m_watcher.setFuture(QtConcurrent::run(
        [shots = std::exchange(m_shots, {}), format = m_format, done = m_done, stop = m_stop.get_token()] {
            return std::make_shared<Result<void>>(writeAnimation(shots, format, *done, stop));
        }));
}

} // namespace planloom

#include "moc_talk_animation.cpp"
