#pragma once

#include <QtGui/QAction>
#include <QtWidgets/QListView>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/player.h"
#include "widgets/present/presenter.h"
#include "widgets/scenes/scene_list.h"
#include "widgets/scenes/scene_stage.h"
#include "widgets/scenes/scenes_panel.h"

namespace planloom {

/// A window with a pipeline of four stages, and what a talk is made of in it.
struct TalkWindow : WindowForTests {
    explicit TalkWindow(const QString &sessions = {})
        : WindowForTests(sessions)
    {
    }
    void openPipeline()
    {
        workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", 4, "pipeline:schedule=1f1b,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(settled(), kLong);
    }
    SceneList *scenes() const { return window->findChild<SceneList *>(); }
    SceneStage *stage() const { return window->findChild<SceneStage *>(); }
    ScenesPanel *panel() const { return window->findChild<ScenesPanel *>(); }
    Presenter *presenter() const { return window->findChild<Presenter *>(); }
    Playback &playback() const { return window->findChild<Player *>()->playback(); }
    /// The key for a scene.
    void makeScene(const QString &name) const
    {
        QTest::keyClick(window.get(), Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
        scenes()->rename(panel()->currentRow(), name);
    }
    void press(Qt::Key which, Qt::KeyboardModifiers held = {}) const
    {
        QWidget *focus = window->focusWidget();
        QTest::keyClick(focus ? focus : window.get(), which, held);
    }
    QStringList names() const
    {
        QStringList all;
        for (const Scene &scene : scenes()->scenes())
            all << scene.name;
        return all;
    }
};

} // namespace planloom
