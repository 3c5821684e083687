#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QTimer>

#include "widgets/common/selection_model.h"
#include "widgets/present/frame_writer.h"
#include "widgets/present/talk_plans.h"

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>

class QWidget;

namespace planloom {

class DagView;
class TimelineView;

/// Makes an animated picture of scenes: GIF or WebM. They are set up on canvases that nobody sees, a piece an
/// event, and painted on a worker; the window stays where it is.
class TalkAnimation : public QObject
{
    Q_OBJECT
public:
    static constexpr std::size_t kMostScenes = 60; ///< Of one animation.

    /// `finished` follows.
    TalkAnimation(std::vector<Scene> scenes, PlansBySteps plans, AnimationFormat format, QObject *parent);
    ~TalkAnimation() override;

    void cancel();

Q_SIGNALS:
    void progressed(int percent);
    void finished(const planloom::Result<void> &outcome);

private:
    void setUp();
    void takeTile();
    void takeShot();
    void write();

    std::vector<Scene> m_scenes;
    PlansBySteps m_plans;
    AnimationFormat m_format;
    SelectionModel m_selection;
    std::unique_ptr<QWidget> m_room; ///< Holds the canvases.
    DagView *m_dag;
    TimelineView *m_timeline;
    std::vector<SceneShot> m_shots;
    SceneShot m_shot; ///< That is being set up.
    std::size_t m_next = 0;
    int m_tileTop = 0;
    QTimer m_settle; ///< Until the graph is laid out.
    int m_waits = 0;
    QTimer m_look; ///< At how far the worker is.
    std::shared_ptr<std::atomic<int>> m_done = std::make_shared<std::atomic<int>>(0);
    QFutureWatcher<std::shared_ptr<Result<void>>> m_watcher;
    std::stop_source m_stop;
};

} // namespace planloom
