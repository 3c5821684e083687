#include "widgets/present/presenter.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QBoxLayout>
#include <QtWidgets/QMainWindow>

#include "widgets/design/workspace.h"
#include "widgets/present/notes_window.h"
#include "widgets/present/spotlight.h"
#include "widgets/scenes/scene_list.h"
#include "widgets/scenes/scene_stage.h"
#include "widgets/timeline/playback.h"

#include <algorithm>
#include <utility>

namespace planloom {

Presenter::Presenter(SceneList *list, SceneStage *stage, PresentParts parts, QObject *parent)
    : QObject(parent)
    , m_list(list)
    , m_stage(stage)
    , m_frame(std::move(parts))
    , m_strip(new PresentStrip(m_frame.parts().window->centralWidget()))
    , m_spotlight(new Spotlight(m_frame.parts().window))
{
    m_strip->hide();
    if (auto *column = qobject_cast<QBoxLayout *>(m_frame.parts().window->centralWidget()->layout()))
        column->addWidget(m_strip);
    m_second.setInterval(1000);
    connect(&m_second, &QTimer::timeout, this, &Presenter::showState);
    m_stay.setSingleShot(true);
    connect(&m_stay, &QTimer::timeout, this, [this] { goTo(m_current + 1); });
    connect(m_stage, &SceneStage::shown, this, &Presenter::stay);
    connect(m_list, &SceneList::changed, this, &Presenter::showState);
    connect(m_list, &SceneList::replaced, this, &Presenter::showState);
    connect(m_stage->parts().workspace, &Workspace::sessionChanged, this, [this] {
        m_before.reset(); // of another session
        m_current = -1;
        showState();
    });
    m_frame.parts().window->installEventFilter(this);
    for (QWidget *canvas : m_frame.parts().canvases)
        canvas->installEventFilter(this);
}

Presenter::~Presenter() = default;

void Presenter::start(int row)
{
    if (isPresenting() || !m_stage->parts().workspace->model())
        return;
    m_current = -1;
    m_runs = false;
    m_before = m_stage->take();
    m_since.start();
    m_frame.enter();
    m_strip->show();
    m_second.start();
    goTo(row);
    showState();
    Q_EMIT presentingChanged(true);
}

void Presenter::leave()
{
    if (!isPresenting())
        return;
    m_second.stop();
    m_stay.stop();
    m_runs = false;
    m_spotlight->setOn(false);
    m_strip->hide();
    if (m_notes)
        m_notes->close();
    m_frame.leave();
    if (m_before && m_current >= 0) // scenes were gone to
        m_stage->show(*m_before);
    m_before.reset();
    m_current = -1;
    Q_EMIT presentingChanged(false);
}

void Presenter::goTo(int row)
{
    const Scene *scene = m_list->find(row);
    if (!scene || !isPresenting())
        return;
    m_current = row;
    m_stay.stop();
    m_frame.showCanvases(scene->canvases);
    Scene shown = *scene;
    shown.docks.clear(); // there are none
    m_stage->show(shown);
    showState();
}

void Presenter::setRunning(bool runs)
{
    m_runs = runs && isPresenting();
    if (!m_runs)
        m_stay.stop();
    else if (!m_list->find(m_current))
        goTo(0);
    else if (!m_stage->isShowing())
        stay();
    showState();
}

/// The time of a scene begins when its plan is in sight.
void Presenter::stay()
{
    const Scene *scene = m_list->find(m_current);
    if (!m_runs || !scene)
        return;
    if (m_current + 1 < m_list->rowCount())
        m_stay.start(scene->seconds * 1000);
    else
        m_runs = false; // it stays at the last one
}

TalkState Presenter::state() const
{
    TalkState state;
    state.elapsed = m_since.isValid() ? m_since.elapsed() / 1000 : 0;
    state.runs = m_runs;
    state.count = m_list->rowCount();
    for (const Scene &scene : m_list->scenes())
        state.planned += scene.seconds;
    if (const Scene *scene = m_list->find(m_current)) {
        state.name = scene->name;
        state.number = m_current + 1;
        state.note = scene->note;
        if (const Scene *next = m_list->find(m_current + 1))
            state.next = next->name;
    } else {
        state.name = m_stage->parts().workspace->title();
    }
    return state;
}

void Presenter::showState()
{
    if (!isPresenting())
        return;
    const TalkState now = state();
    m_strip->show(now);
    if (m_notes && m_notes->isVisible())
        m_notes->show(now);
}

void Presenter::toggleNotes()
{
    if (!m_notes) {
        m_notes = new NotesWindow(m_frame.parts().window);
        m_notes->installEventFilter(this);
        for (QWidget *child : m_notes->findChildren<QWidget *>())
            child->installEventFilter(this);
    }
    m_notes->setVisible(!m_notes->isVisible());
    showState();
}

void Presenter::togglePlay()
{
    if (m_stage->parts().playback->scene())
        m_stage->parts().playback->toggle();
}

/// @return false for keys that mean nothing in a talk
bool Presenter::act(int key)
{
    const int last = m_list->rowCount() - 1;
    switch (key) {
    case Qt::Key_Right:
    case Qt::Key_Space:
    case Qt::Key_PageDown:
        goTo(std::min(m_current + 1, last));
        return true;
    case Qt::Key_Left:
    case Qt::Key_PageUp:
        goTo(std::max(m_current - 1, 0));
        return true;
    case Qt::Key_Home:
        goTo(0);
        return true;
    case Qt::Key_End:
        goTo(last);
        return true;
    case Qt::Key_P:
        togglePlay();
        return true;
    case Qt::Key_A:
        setRunning(!m_runs);
        return true;
    case Qt::Key_S:
        m_spotlight->setOn(!m_spotlight->isOn());
        return true;
    case Qt::Key_N:
        toggleNotes();
        return true;
    case Qt::Key_T:
        m_strip->setTimerShown(!m_strip->isTimerShown());
        return true;
    case Qt::Key_B:
        m_strip->setVisible(m_strip->isHidden());
        return true;
    case Qt::Key_1:
    case Qt::Key_2:
    case Qt::Key_3:
        m_frame.showCanvases(static_cast<SceneCanvases>(key - Qt::Key_1));
        return true;
    case Qt::Key_Escape:
        leave();
        return true;
    default:
        return key == Qt::Key_F11; // the window is in full screen, and stays so
    }
}

/// While it presents, its keys go before those of the canvases and the window.
bool Presenter::eventFilter(QObject *watched, QEvent *event)
{
    if (!isPresenting() || (event->type() != QEvent::ShortcutOverride && event->type() != QEvent::KeyPress))
        return QObject::eventFilter(watched, event);
    const auto *key = static_cast<const QKeyEvent *>(event); // the type was checked
    if ((key->modifiers() & ~Qt::KeypadModifier) != Qt::NoModifier)
        return QObject::eventFilter(watched, event);
    static constexpr int kKeys[] = {Qt::Key_Right, Qt::Key_Space, Qt::Key_PageDown, Qt::Key_Left,
        Qt::Key_PageUp, Qt::Key_Home, Qt::Key_End, Qt::Key_P, Qt::Key_A, Qt::Key_S, Qt::Key_N, Qt::Key_T,
        Qt::Key_B, Qt::Key_1, Qt::Key_2, Qt::Key_3, Qt::Key_Escape, Qt::Key_F11};
    if (std::find(std::begin(kKeys), std::end(kKeys), key->key()) == std::end(kKeys))
        return QObject::eventFilter(watched, event);
    event->accept();
    return event->type() == QEvent::ShortcutOverride || act(key->key());
}

} // namespace planloom

#include "moc_presenter.cpp"
