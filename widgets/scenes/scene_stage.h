#pragma once

#include <QtCore/QObject>
#include <QtCore/QPointer>

#include "widgets/scenes/scene.h"
#include "widgets/timeline/timeline_colours.h"

#include <functional>
#include <optional>

namespace planloom {

class DagView;
class Playback;
class SelectionModel;
class TimelineView;
class Workspace;

/// What scenes are taken of and shown on. All of it must outlive the stage.
struct StageParts {
    Workspace *workspace = nullptr;
    SelectionModel *selection = nullptr;
    DagView *dag = nullptr;
    TimelineView *timeline = nullptr;
    Playback *playback = nullptr;
    std::function<void(TimelineColouring)> colour{}; ///< As the window's own commands do.
    std::function<QStringList()> docksInFront{};
    std::function<void(const QStringList &)> showDocks{}; ///< Brings them to the front; closes none.
};

/// Takes the present state of a window as a scene, and shows scenes again: at the step of the history that
/// they are of, which adds nothing to it and takes nothing away, and seen from where they were taken.
class SceneStage : public QObject
{
    Q_OBJECT
public:
    explicit SceneStage(StageParts parts, QObject *parent = nullptr);

    /// The present state; name and note are for who takes it.
    Scene take() const;
    /// Goes there; `shown` follows as soon as its plan is in sight, which is at once where it is known.
    void show(const Scene &scene);
    bool isShowing() const { return m_wanted.has_value(); } ///< The plan is still awaited.
    const StageParts &parts() const { return m_parts; }

Q_SIGNALS:
    void shown();
    /// A sentence: the session does not have what the scene is of.
    void refused(const QString &sentence);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    bool goToStep(const Scene &scene);
    bool isPlanInSight() const;
    void finish();
    void fitGraph();
    void showTimeline();

    StageParts m_parts;
    std::optional<Scene> m_wanted;
    bool m_fitsGraph = false; ///< As soon as it is laid out.
    /// The scene whose stretch of time is in sight, whatever the timeline's width, until a person zooms.
    std::optional<Scene> m_stretch;
    bool m_showsStretch = false; ///< It is being shown.
};

} // namespace planloom
