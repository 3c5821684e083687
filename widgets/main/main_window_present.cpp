// Scenes, presenting them, and talks as files.

#include "widgets/main/main_window.h"

#include <QtCore/QFileInfo>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QListView>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/files.h"
#include "engine/talk/talk.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/remembered.h"
#include "widgets/frame/tool_bars.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/player.h"
#include "widgets/present/presenter.h"
#include "widgets/present/talk_animation.h"
#include "widgets/present/talk_maker.h"
#include "widgets/scenes/scene_list.h"
#include "widgets/scenes/scene_stage.h"
#include "widgets/scenes/scenes_panel.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr QSize kAnimationSize{1280, 720};

QWidget *titleOf(const QWidget &canvas)
{
    return canvas.layout()->itemAt(0)->widget();
}

StageParts stagePartsOf(MainWindow &window, Playback &playback)
{
    StageParts parts{.workspace = &window.workspace(),
        .selection = &window.selection(),
        .dag = window.dag(),
        .timeline = window.timeline(),
        .playback = &playback};
    parts.colour = [&window](TimelineColouring colouring) { window.setColouring(colouring); };
    parts.docksInFront = [&window] {
        QStringList names;
        for (const QDockWidget *dock : window.docks().docks())
            if (!dock->visibleRegion().isEmpty())
                names << dock->objectName();
        return names;
    };
    parts.showDocks = [&window](const QStringList &names) {
        for (const QString &name : names)
            window.docks().reveal(name, false);
    };
    return parts;
}

} // namespace

void MainWindow::buildPresent()
{
    auto *list = new SceneList(&m_workspace, this);
    auto *stage = new SceneStage(stagePartsOf(*this, m_player->playback()), this);
    auto *panel = new ScenesPanel(list, stage, this);
    m_docks->add(tr("Scenes"), "scenes", panel, Qt::BottomDockWidgetArea, panel->list());
    PresentParts parts{.window = this, .graph = m_splitter->widget(0), .timeline = m_splitter->widget(1)};
    parts.canvases = {m_dag, m_timeline};
    parts.chrome = {menuBar(), m_toolBars->choices(), m_toolBars->deeds(), statusBar(), titleOf(*parts.graph),
        titleOf(*parts.timeline)};
    parts.bars = {m_notices, m_player->bar()};
    parts.dockState = [this] { return m_docks->state(); };
    parts.showDocks = [this](bool shown) { m_docks->setShown(shown); };
    parts.restoreDocks = [this](const QByteArray &state) { m_docks->restore(state); };
    auto *presenter = new Presenter(list, stage, std::move(parts), this);

    QAction *full = m_commands->add(
        "view.fullScreen", tr("F&ull Screen"), {QKeySequence(Qt::Key_F11)}, nullptr, this, [] {});
    full->setCheckable(true);
    // What it was before, maximized or not, is kept beside it.
    connect(full, &QAction::toggled, this, [this](bool on) {
        setWindowState(on ? windowState() | Qt::WindowFullScreen : windowState() & ~Qt::WindowFullScreen);
    });
    QAction *still = m_commands->add("view.reducedMotion", tr("Reduced Moti&on"), {}, nullptr, this, [] {});
    still->setCheckable(true);
    still->setToolTip(tr("Nodes of the graph are where they belong at once, without moving there"));
    connect(still, &QAction::toggled, m_dag, &DagView::setReducedMotion);
    remember(still, m_services.settings, QStringLiteral("view/reducedMotion"));
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto hasScenes = [this, list] { return m_workspace.model() && list->rowCount() > 0; };
    const auto add = [this](const char *id, const QString &text, const QKeySequence &key,
                         const auto &possible, auto &&act) {
        QAction *action = m_commands->add(
            id, text, key.isEmpty() ? QList<QKeySequence>{} : QList<QKeySequence>{key}, nullptr, this, act);
        m_commands->enableWhile(action, possible);
        return action;
    };
    panel->addTool(add("view.makeScene", tr("&Make Scene"), Qt::CTRL | Qt::SHIFT | Qt::Key_M, hasModel,
        [panel] { panel->makeScene(); }));
    panel->addTool(add("view.present", tr("P&resent"), Qt::SHIFT | Qt::Key_F5, hasModel, [presenter, panel] {
        presenter->isPresenting() ? presenter->leave() : presenter->start(std::max(panel->currentRow(), 0));
    }));
    panel->addTool(add("view.playScenes", tr("Play &Scenes"), {}, hasScenes, [presenter] {
        presenter->start(0);
        presenter->setRunning(true);
    }));
    add("file.exportTalk", tr("Talk as &Web Page…"), {}, hasScenes, [this] { exportTalk(); });
    add("file.exportAnimation", tr("Talk as A&nimation…"), {}, hasScenes, [this] { exportAnimation(); });
    const auto refresh = [this] { m_chores.add("state", [this] { refreshCommands(); }); };
    connect(list, &SceneList::changed, this, refresh);
    connect(list, &SceneList::replaced, this, [this, list, refresh] {
        refresh();
        if (!list->problem().isEmpty())
            m_log->model()->add(LogKind::Problem, list->problem());
    });
    connect(stage, &SceneStage::refused, this, &MainWindow::say);
    connect(
        panel, &ScenesPanel::made, this, [this](const QString &name) { say(tr("Made \"%1\"").arg(name)); });
    connect(panel, &ScenesPanel::removed, this, [this, list](const QString &name) {
        m_notices->show({QStringLiteral("scene"), NoticeKind::Info,
            tr("The scene \"%1\" was removed.").arg(name), {{tr("Undo"), [list] { list->undo(); }}}, true});
    });
}

/// The plans of all scenes' steps, then `then`; `path` is what for.
void MainWindow::withScenePlans(
    const QString &path, const std::function<void(const std::map<StepId, PlanUpdateSnapshot> &)> &then)
{
    auto *plans = new TalkPlans(&m_workspace, findChild<SceneList *>()->scenes(), this);
    const QString notice = QStringLiteral("talk/") + path;
    connect(plans, &TalkPlans::progressed, this, [this, plans, notice](int done, int all) {
        if (done < all)
            m_notices->show(
                {notice, NoticeKind::Info, tr("Planning the scenes: %1 of %2 …").arg(done).arg(all),
                    {{tr("Cancel"), [plans] { plans->deleteLater(); }}}, false});
    });
    connect(plans, &TalkPlans::gathered, this, [this, plans, notice, then](const PlansBySteps &found) {
        plans->deleteLater();
        m_notices->dismiss(notice);
        then(found);
    });
    plans->start();
}

void MainWindow::exportTalk()
{
    askFile(tr("Export the talk as a web page"), tr("Web pages (*.html)"),
        m_workspace.title() + QStringLiteral(".html"), true, [this](const QString &path) {
            withScenePlans(path, [this, path](const PlansBySteps &plans) {
                writeOnWorker(tr("Wrote %1").arg(path),
                    [path, plans, title = m_workspace.title().toStdString(),
                        scenes = findChild<SceneList *>()->scenes()] {
                        return writeFile(path.toStdString(), htmlOf(makeTalk(title, scenes, plans)));
                    });
            });
        });
}

void MainWindow::exportAnimation()
{
    const auto ffmpeg = findFfmpeg();
    if (!ffmpeg) {
        m_notices->show({QStringLiteral("animation"), NoticeKind::Warning,
            toQString(describe(ffmpeg.error())), {}, true});
        return;
    }
    const auto begin = [this, program = *ffmpeg](const QString &path, const PlansBySteps &plans) {
        const AnimationFormat format{path, program, kAnimationSize, paletteFor(*this), font()};
        auto *made = new TalkAnimation(findChild<SceneList *>()->scenes(), plans, format, this);
        connect(made, &TalkAnimation::progressed, this, [this, made, path](int percent) {
            m_notices->show({QStringLiteral("animation"), NoticeKind::Info,
                tr("Writing the animation %1: %2 % …").arg(QFileInfo(path).fileName()).arg(percent),
                {{tr("Cancel"), [made] { made->cancel(); }}}, false});
        });
        connect(made, &TalkAnimation::finished, this, [this, made, path](const Result<void> &outcome) {
            made->deleteLater();
            m_notices->dismiss(QStringLiteral("animation"));
            if (outcome)
                m_log->model()->add(LogKind::Session, tr("Wrote %1").arg(path));
            else if (outcome.error().code != ErrorCode::Cancelled)
                onProblem(outcome.error());
        });
    };
    askFile(tr("Export the talk as an animation"), tr("Animated pictures (*.gif);;Videos (*.webm)"),
        m_workspace.title() + QStringLiteral(".gif"), true, [this, begin](const QString &path) {
            withScenePlans(path, [begin, path](const PlansBySteps &plans) { begin(path, plans); });
        });
}

} // namespace planloom
